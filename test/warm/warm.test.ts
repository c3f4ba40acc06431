import t from "tap";
import type { CoordinateAxis } from "../../src/cf/axis-labels.js";
import type { WarmedChunk } from "../../src/chunk/chunk-service.js";
import { ZpublishError } from "../../src/errors.js";
import { type WarmCounts, type WarmOptions, warmChunks } from "../../src/warm/warm-chunks.js";
import {
  chunkKeys,
  chunksOfRuns,
  coarserRuns,
  parseIndexRange,
  parseValueRange,
  runOfIndices,
  runsOfValues,
  type WarmTarget,
} from "../../src/warm/warm-targets.js";

function target(name: string, grid: readonly number[], chunkBytes = 1_000): WarmTarget {
  const axes = grid.map((length) => Array.from({ length }, (_, index) => index));
  const count = grid.reduce((product, length) => product * length, 1);
  return {
    ...({ snapshot: {}, array: { name } } as unknown as Pick<WarmTarget, "snapshot" | "array">),
    ...{ path: `/datasets/d/zarr/${name}/`, axes, count, chunkBytes },
  };
}

type Warm = (name: string, key: string) => WarmedChunk | Promise<WarmedChunk>;

function optionsOf(warm: Warm, more: Partial<WarmOptions> = {}) {
  const asked: string[] = [];
  const controller = new AbortController();
  const options: WarmOptions = {
    warmer: {
      async warm(_snapshot, array, key) {
        const { name } = array as unknown as { name: string };
        asked.push(`${name}/${key}`);
        return warm(name, key);
      },
    },
    cacheBytes: 2 ** 30,
    rootPath: "",
    threads: 1,
    memoryBytes: 2 ** 30,
    stored: false,
    signal: controller.signal,
    hasEvicted: () => false,
    onProgress: () => {},
    ...more,
  };
  return { asked, controller, options };
}

const made = (byteLength = 10): WarmedChunk => ({ outcome: "made", byteLength });

t.test("the keys of a target are in the order of the grid", async (t) => {
  t.strictSame([...chunkKeys({ axes: [[0, 2], [1], [3, 4]] })], ["0.1.3", "0.1.4", "2.1.3", "2.1.4"]);
  t.strictSame([...chunkKeys({ axes: [] })], ["0"], "a scalar has one");
  t.strictSame([...chunkKeys({ axes: [[1], []] })], []);
});

t.test("each chunk is warmed once, and counted by its outcome", async (t) => {
  const outcomes: Record<string, WarmedChunk> = {
    "0.0": { outcome: "cached", byteLength: 10 },
    "0.1": { outcome: "absent", byteLength: 0 },
    "1.0": { outcome: "stored", byteLength: 0 },
  };
  const seen: WarmCounts[] = [];
  const { asked, options } = optionsOf(
    (name, key) => {
      if (name === "b" && key === "0") throw new ZpublishError("corrupt-chunk", "it is broken");
      if (name === "b" && key === "1") throw new ZpublishError("not-found", "it has vanished");
      return outcomes[key] ?? made(100);
    },
    { onProgress: (counts) => seen.push({ ...counts }) },
  );
  const result = await warmChunks([target("a", [2, 2]), target("b", [3])], options);
  t.strictSame(result, {
    ...{ total: 7, made: 2, cached: 1, absent: 2, stored: 1, failed: 1, madeBytes: 200 },
    ...{ failures: ["/datasets/d/zarr/b/0: it is broken"], stopped: undefined },
  });
  t.strictSame(asked, ["a/0.0", "a/0.1", "a/1.0", "a/1.1", "b/0", "b/1", "b/2"]);
  t.equal(seen.length, 7);
  t.strictSame({ ...seen.at(-1), failures: result.failures, stopped: undefined }, result);
});

t.test("it ends when the cache is full", async (t) => {
  const { options } = optionsOf(() => made(9_000), { cacheBytes: 2 ** 20 });
  const result = await warmChunks([target("a", [1_000], 20_000)], options);
  t.equal(result.stopped, "cache-full");
  t.ok(
    result.made > 70 && result.made <= 82 + 128,
    `${result.made}: 82 of 12 KiB fit into 1 MiB, 128 are made at once`,
  );
});

t.test("it ends if the cache takes no more, but not for a chunk that is too large for it", async (t) => {
  const { asked, options } = optionsOf((_, key) =>
    key === "3" ? { outcome: "refused", byteLength: 5 } : made(),
  );
  const result = await warmChunks([target("a", [1_000])], options);
  t.equal(result.stopped, "cache-failed");
  t.ok(asked.length < 300);
  const full = optionsOf(() => ({ outcome: "refused", byteLength: 5 }), { hasEvicted: () => true });
  t.equal((await warmChunks([target("a", [1_000])], full.options)).stopped, "cache-full");
  const large = optionsOf((_, key) => (key === "3" ? { outcome: "refused", byteLength: 2 ** 20 } : made()), {
    cacheBytes: 2 ** 22,
  });
  t.match(await warmChunks([target("a", [10])], large.options), {
    ...{ made: 9, failed: 1, stopped: undefined },
    failures: ["/datasets/d/zarr/a/3: its 1048576 bytes are more than an eighth of the cache"],
  });
});

t.test("a signal ends it soon: what is under way is finished, and the rest is left", async (t) => {
  const { asked, controller, options } = optionsOf(async (_, key) => {
    if (key === "20") controller.abort();
    await new Promise((resolve) => setImmediate(resolve));
    return made();
  });
  const result = await warmChunks([target("a", [1_000])], options);
  t.equal(result.stopped, "cancelled");
  t.ok(result.made <= 300 && result.made === asked.length, `${result.made} made`);
  t.equal(result.failed, 0);
});

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
  for (const [text, ...expected] of [
    ["lat=30:50", "lat", "30", "50"],
    ["lat=-30.5:", "lat", "-30.5", undefined],
    ["lat=:1e3", "lat", undefined, "1e3"],
    ["level=850", "level", "850", "850"],
    ["time=2013-01:2013-02", "time", "2013-01", "2013-02"],
    ["time=2013-01-01T06:30:2013-02-01 12:00:30", "time", "2013-01-01T06:30", "2013-02-01T12:00:30"],
    ["time=2013-01-01T06:2013", "time", "2013-01-01T06", "2013"],
    ["time=2013-01-01T00:00Z", "time", "2013-01-01T00:00", "2013-01-01T00:00"],
  ] as const)
    t.strictSame(bounds(text), expected);
  for (const text of ["lat", "lat=", "=1:2", "lat=a:b", "time=13-1-1", "lat=1:2:3"])
    t.equal(parseValueRange(text), undefined, text);
});

function axisOf(values: readonly number[], units?: string): CoordinateAxis {
  return {
    ...{ dim: "x", length: values.length, role: undefined, variable: "x", values: Float64Array.from(values) },
    ...{ regular: undefined, units, calendar: units?.includes("since") ? "standard" : undefined },
    ...{ floatBytes: 8, isLongitude: units === "degrees_east" },
  };
}

t.test("values are chosen with both ends, whatever their order", async (t) => {
  const runs = (text: string, values: readonly number[], units?: string) =>
    runsOfValues(parseValueRange(text) as never, axisOf(values, units));
  const ascending = [10, 20, 30, 40, 50];
  const descending = ascending.toReversed();
  t.strictSame(runs("lat=20:40", ascending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=20:40", descending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=45:15", descending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=45:15", ascending), [{ begin: 1, end: 4 }]);
  t.strictSame(runs("lat=35:", ascending), [{ begin: 3, end: 5 }]);
  t.strictSame(runs("lat=35:", descending), [{ begin: 0, end: 2 }]);
  t.strictSame(runs("lat=:35", descending), [{ begin: 2, end: 5 }]);
  t.strictSame(runs("lat=30", ascending), [{ begin: 2, end: 3 }]);
  t.strictSame(runs("lat=31", ascending), []);
  t.strictSame(
    runs("lon=-100:100", [0, 90, 180, 270], "degrees_east"),
    [
      { begin: 0, end: 2 },
      { begin: 3, end: 4 },
    ],
    "across the seam",
  );
  t.throws(() => runs("lat=0:25", [10, Number.NaN, 20, 30, 5]), /its labels neither ascend nor descend/);
  t.throws(() => runs("lat=2013-01:", ascending), /expected a number \(10 to 50\), received '2013-01'/);
});

t.test("a date without a day or time stands for all of its month or day", async (t) => {
  const hours = [-6, 0, 738, 1410.5];
  const axis = axisOf(hours, "hours since 2013-01-01");
  const runs = (text: string) => runsOfValues(parseValueRange(text) as never, axis);
  t.strictSame(runs("time=2013-01"), [{ begin: 1, end: 3 }]);
  t.strictSame(runs("time=2013-01-02:2013-02"), [{ begin: 2, end: 4 }]);
  t.strictSame(runs("time=2013-02:2013-01-02"), [{ begin: 2, end: 4 }], "the other way round");
  t.strictSame(runs("time=:2013-01-01"), [{ begin: 0, end: 2 }]);
  t.strictSame(runs("time=2013-02-28T18:30:"), [{ begin: 3, end: 4 }]);
  t.strictSame(runs("time=2013-02-28T18:31:"), []);
  t.strictSame(runs("time=2012:2012"), [{ begin: 0, end: 1 }]);
  t.throws(() => runs("time=5:7"), /expected a date of the calendar standard/);
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
