import t from "tap";
import parsePoints from "../../../src/plugins/select/parse-points.js";
import { rowsOf } from "../../support/point-rows.js";

const parse = (contentType: string, text: string) => parsePoints({ body: Buffer.from(text), contentType });
const CSV = "text/csv";
const GEO = "application/geo+json";
const nested = (before: string, inner: string, after: string) =>
  before.repeat(200_000) + inner + after.repeat(200_000);
const feature = (properties: object, geometry: object) => ({ type: "Feature", properties, geometry });
const collection = (features: readonly object[]) => JSON.stringify({ type: "FeatureCollection", features });
const place = { type: "Point", coordinates: [0, 60] };
const wide = Object.fromEntries(Array.from({ length: 900 }, (_, index) => [`p${index}`, index]));

t.test("CSV is read as RFC 4180 says", async (t) => {
  const long = "x".repeat(4_000_000);
  const cases: [string, readonly string[], readonly (readonly string[])[]][] = [
    ["lat, lon\n1 ,2\n", ["lat", "lon"], [["1", "2"]]],
    ["\uFEFFlat,lon\r\n1,2\r3,4", ["lat", "lon"], [["1", "2"], ["3", "4"]]], // biome-ignore format: a row per case
    ['a,"b,""c"\n"x\ny",\n\n"",""', ["a", 'b,"c'], [["x\ny", ""], ["", ""]]], // biome-ignore format: a row per case
    [`a\n"${long}"`, ["a"], [[long]]],
    [`a\n"${'""'.repeat(4_000_000)}"`, ["a"], [['"'.repeat(4_000_000)]]],
  ];
  for (const [text, names, rows] of cases)
    t.strictSame(await rowsOf(parse(CSV, text)), { names, rows }, text.slice(0, 20));
});

t.test("bodies that are wrong, nest too deep or mean too much are refused", (t) => {
  const cases: [string, string, string, RegExp][] = [
    [CSV, 'a\n"b', "invalid-body", /a field of CSV in line 2, received '"b'/],
    [CSV, 'a\n"b"c', "invalid-body", /a field of CSV in line 2/],
    [CSV, 'a\nb"c', "invalid-body", /a field of CSV in line 2/],
    [CSV, "a,a\n1,2", "invalid-body", /different names, received 'a'/],
    [CSV, ",".repeat(10_000_000), "too-large", /at most 1000 columns, received at least 1001/],
    [CSV, "\n".repeat(10_000_000), "too-large", /at most 2000000 fields/],
    [GEO, nested('{"type":"FeatureCollection","features":[', "", "]}"), "invalid-body", /nests less/],
    [GEO, nested('{"type":"Feature","geometry":', "null", "}"), "invalid-body", /nests less/],
    [GEO, `{"type":"Point","coordinates":${nested("[", "", "]")}}`, "invalid-body", /nests less/],
    [
      GEO,
      collection(Array.from({ length: 2_000 }, (_, index) => feature({ [`p${index}`]: 0 }, place))),
      "too-large",
      /1000 columns/,
    ],
    [
      GEO,
      JSON.stringify(feature(wide, { type: "MultiPoint", coordinates: Array(100_000).fill([0, 0]) })),
      "too-large",
      /2000000 fields/,
    ],
    [
      GEO,
      JSON.stringify(
        feature({ p: "x".repeat(1_000_000) }, { type: "MultiPoint", coordinates: Array(100).fill([0, 0]) }),
      ),
      "too-large",
      /67108864 characters/,
    ],
  ];
  for (const [type, text, code, message] of cases)
    t.throws(() => parse(type, text), { code, message }, text.slice(0, 60));
  t.end();
});
