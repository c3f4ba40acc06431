import t from "tap";
import { parsePictureQuery, placeAt } from "../../../src/plugins/thumbnail-plugin.js";

function refusal(run: () => unknown) {
  try {
    run();
    return undefined;
  } catch (error) {
    const { code, message, details } = error as {
      code: string;
      message: string;
      details: { parameter: string };
    };
    return { code, message, parameter: details.parameter };
  }
}

t.test("reads every parameter, and has a default for each", async (t) => {
  t.strictSame(parsePictureQuery(""), {
    size: 320,
    range: undefined,
    scale: undefined,
    isReversed: false,
    indices: new Map(),
  });
  t.strictSame(
    parsePictureQuery(
      "size=64&range=-1.5,2e3&scale=rdbu&reversed=true&index.time=-1&index.a%20b=07&token=secret",
    ),
    {
      size: 64,
      range: [-1.5, 2000],
      scale: "rdbu",
      isReversed: true,
      indices: new Map([
        ["time", -1],
        ["a b", 7],
      ]),
    },
  );
});

t.test("says of a wrong parameter what was expected and received", async (t) => {
  const cases: [query: string, parameter: string, message: RegExp][] = [
    ["size=63", "size", /from 64 to 1024, received '63'/],
    ["size=1025", "size", /received '1025'/],
    ["size=1e2", "size", /received '1e2'/],
    ["size=", "size", /received ''/],
    ["size=+100", "size", /received ' 100'/],
    ["size=100&size=100", "size", /once/],
    ["range=1", "range", /two numbers/],
    ["range=1,1", "range", /less than/],
    ["range=2,1", "range", /less than/],
    ["range=1,2,3", "range", /two numbers/],
    ["range=nan,1", "range", /two numbers/],
    ["range=1,Infinity", "range", /two numbers/],
    ["range=,1", "range", /two numbers/],
    ["range=-1e308,1e308", "range", /two numbers/],
    ["range=0x1,0x2", "range", /two numbers/],
    ["scale=jet", "scale", /viridis, .* received 'jet'/],
    ["scale=__proto__", "scale", /received '__proto__'/],
    ["reversed=1", "reversed", /true or false/],
    ["index.time=a", "index.time", /an integer, received 'a'/],
    ["index.time=1.5", "index.time", /an integer/],
    ["index.time=99999999999999999", "index.time", /an integer/],
    ["index.time=1&index.time=1", "index.time", /once/],
    ["colour=red", "colour", /one of size, range, scale, reversed, index/],
    ["constructor=1", "constructor", /one of size/],
  ];
  for (const [query, parameter, message] of cases)
    t.match(
      refusal(() => parsePictureQuery(query)),
      { code: "invalid-query", parameter, message },
      query,
    );
  const long = refusal(() => parsePictureQuery(`scale=${"x".repeat(5_000)}`));
  t.ok((long?.message.length ?? 0) < 400, "long ones are cut");
});

t.test("indices choose the slice, from the end if they are negative", async (t) => {
  const variable = { dims: ["time", "level", "y", "x"], shape: [10, 3, 4, 5] };
  const place = (indices: [string, number][]) => placeAt([5, 0, 0, 1], variable, [2, 3], new Map(indices));
  t.strictSame(place([]), [5, 0, 0, 1]);
  t.strictSame(
    place([
      ["level", 2],
      ["time", -1],
    ]),
    [9, 2, 0, 1],
  );
  t.strictSame(place([["time", -10]]), [0, 0, 0, 1]);
  t.match(
    refusal(() => place([["time", 10]])),
    { code: "invalid-query", message: /-10 to 9, received '10'/ },
  );
  t.match(
    refusal(() => place([["time", -11]])),
    { message: /received '-11'/ },
  );
  t.match(
    refusal(() => place([["y", 0]])),
    { parameter: "index.y", message: /an index of time, level/ },
  );
  t.match(
    refusal(() => place([["nope", 0]])),
    { message: /an index of time, level, received 'nope'/ },
  );
  const flat = () => placeAt([0, 0], { dims: ["y", "x"], shape: [2, 2] }, [0, 1], new Map([["y", 0]]));
  t.match(refusal(flat), { message: /no index/ });
});
