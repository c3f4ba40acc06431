import t from "tap";
import { csvText } from "../../../../src/explore/page/plot/save-csv.js";

t.test("a header has units, and missing values are empty", async (t) => {
  const text = csvText(
    [
      { name: "time", values: ["2013-01-01T00:00:00", "2013-01-01T06:00:00", "NaT"] },
      {
        name: "air",
        units: "degK",
        values: Float64Array.of(281.3, Number.NaN, -0.5),
      },
      { name: "lat", units: "degrees_north", values: { constant: "40" } },
    ],
    3,
  );
  t.equal(
    text,
    "time,air [degK],lat [degrees_north]\r\n2013-01-01T00:00:00,281.3,40\r\n2013-01-01T06:00:00,,40\r\nNaT,-0.5,40\r\n",
  );
});

t.test("commas, quotes, line ends and outer spaces are quoted", async (t) => {
  const values = ['a "b"', "c,d", "e\nf", " g", "plain", undefined];
  t.equal(
    csvText([{ name: "name, of it", values }], values.length),
    '"name, of it"\r\n"a ""b"""\r\n"c,d"\r\n"e\nf"\r\n" g"\r\nplain\r\n\r\n',
  );
});
