import t from "tap";
import {
  chunksOfRuns,
  coarserRuns,
  parseIndexRange,
  parseValueRange,
  runOfIndices,
  runsOfValues,
} from "../../src/warm/warm-targets.js";

const indices = (text: string, length: number) => {
  const range = parseIndexRange(text);
  return range && runOfIndices(range, length);
};

t.test("indices are chosen as in Python", async (t) => {
  const cases: readonly (readonly [string, number, number])[] = [
    ["time=0:100", 0, 10],
    ["time=2:5", 2, 5],
    ["time=-3:", 7, 10],
    ["time=:-3", 0, 7],
    ["time=:", 0, 10],
    ["time=-100:4", 0, 4],
    ["time=5:2", 5, 5],
    ["time=3", 3, 4],
    ["time=-1", 9, 10],
    ["time=-2", 8, 9],
  ];
  for (const [text, begin, end] of cases) t.strictSame(indices(text, 10), { begin, end }, text);
  for (const text of ["time", "time=", "=1", "time=a", "time=1:2:3", "time=1.5", "time=1 2", ""])
    t.equal(parseIndexRange(text), undefined, text);
});

t.test("ranges of values are numbers or ISO dates, which may hold colons", async (t) => {
  const bounds = (text: string) => {
    const range = parseValueRange(text);
    return range && [range.dim, range.low, range.high];
  };
  t.strictSame(bounds("lat=30:50"), ["lat", "30", "50"]);
  t.strictSame(bounds("lat=-30.5:"), ["lat", "-30.5", undefined]);
  t.strictSame(bounds("lat=:1e3"), ["lat", undefined, "1e3"]);
  t.strictSame(bounds("level=850"), ["level", "850", "850"]);
  t.strictSame(bounds("time=2013-01:2013-02"), ["time", "2013-01", "2013-02"]);
  t.strictSame(bounds("time=2013-01-01T06:30:2013-02-01 12:00:30"), [
    ...["time", "2013-01-01T06:30", "2013-02-01T12:00:30"],
  ]);
  t.strictSame(bounds("time=2013-01-01T06:2013"), ["time", "2013-01-01T06", "2013"]);
  t.strictSame(bounds("time=2013-01-01T00:00Z"), ["time", "2013-01-01T00:00", "2013-01-01T00:00"]);
  for (const text of ["lat", "lat=", "=1:2", "lat=a:b", "time=13-1-1", "lat=1:2:3"])
    t.equal(parseValueRange(text), undefined, text);
});

t.test("values are chosen with both ends, whatever their order, without missing ones", async (t) => {
  const runs = (text: string, values: readonly number[]) =>
    runsOfValues(parseValueRange(text) as never, { kind: "numbers", values });
  const ascending = [10, 20, 30, 40, 50];
  const descending = ascending.toReversed();
  t.strictSame(runs("lat=20:40", ascending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=20:40", descending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=45:15", descending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=35:", ascending), [{ begin: 3, end: 5 }]);
  t.strictSame(runs("lat=35:", descending), [{ begin: 0, end: 2 }]);
  t.strictSame(runs("lat=30", ascending), [{ begin: 2, end: 3 }]);
  t.strictSame(runs("lat=31", ascending), []);
  t.strictSame(runs("lat=0:25", [10, Number.NaN, 20, 30, 5]), [
    { begin: 0, end: 1 },
    { begin: 2, end: 3 },
    { begin: 4, end: 5 },
  ]);
  t.equal(runs("lat=2013-01:", ascending), "expected numbers, received 2013-01");
});

t.test("a date without a day or time stands for all of its month or day", async (t) => {
  const values = [
    "2012-12-31T18:00:00",
    "2013-01-01T00:00:00",
    "NaT",
    "2013-01-31T18:00:00",
    "2013-02-28T18:30:00",
  ];
  const runs = (text: string) => runsOfValues(parseValueRange(text) as never, { kind: "dates", values });
  t.strictSame(runs("time=2013-01"), [
    { begin: 1, end: 2 },
    { begin: 3, end: 4 },
  ]);
  t.strictSame(runs("time=2013-01-02:2013-02"), [{ begin: 3, end: 5 }]);
  t.strictSame(runs("time=2013-02:2013-01-02"), [{ begin: 3, end: 5 }], "the other way round");
  t.strictSame(runs("time=:2013-01-01"), [{ begin: 0, end: 2 }]);
  t.strictSame(runs("time=2013-02-28T18:30:"), [{ begin: 4, end: 5 }]);
  t.strictSame(runs("time=2013-02-28T18:31:"), []);
  t.strictSame(runs("time=2012:2012"), [{ begin: 0, end: 1 }]);
  t.equal(runs("time=5:7"), "expected dates such as 2013-01-31, received 5");
});

t.test("the chunks of runs are each named once, in order; coarser runs cover all cells", async (t) => {
  t.strictSame(chunksOfRuns([{ begin: 0, end: 0 }], 10), []);
  t.strictSame(
    chunksOfRuns(
      [
        { begin: 9, end: 11 },
        { begin: 15, end: 16 },
        { begin: 40, end: 41 },
      ],
      10,
    ),
    [0, 1, 4],
  );
  t.strictSame(coarserRuns([{ begin: 3, end: 9 }], 4), [{ begin: 0, end: 3 }]);
  t.strictSame(coarserRuns([{ begin: 8, end: 9 }], 2), [{ begin: 4, end: 5 }]);
});
