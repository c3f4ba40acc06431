import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { deflateSync } from "node:zlib";
import { pino } from "pino";
import t, { type Test } from "tap";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
import { swapWords } from "../../src/codec/item-reader.js";
import { pickItems } from "../../src/codec/items/pick-items.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { openSource } from "../../src/open/open-source.js";
import { createEncodePool } from "../../src/pool/encode-pool.js";
import { createValues } from "../../src/values/create-values.js";
import type { ValueBlock } from "../../src/values/values.js";
import { createItemPlan } from "../../src/zarr/plan/item-pick.js";
import { cdfFile } from "../support/cdf-file.js";
import { openPyramid } from "../support/datasets/pyramid.js";
import { writeStores } from "../support/datasets/sample-stores.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

/** Reads values as a server does, with threads. */
function openValues(t: Test, threads = 2) {
  const pool = createEncodePool({ threads, log: pino({ level: "silent" }) });
  t.teardown(() => pool.close());
  return createValues({
    makeChunk: createWorkerFeed((task, signal) => pool.makeChunk(task, signal)),
    callModule: (call, options) => pool.callModule(call, options),
    recycle: (bytes) => pool.recycle?.(bytes),
  });
}

async function openSnapshot(location: string, immutable = false) {
  const config = { id: "d", location: "here", immutable, encoding: {}, variables: {} };
  return createSnapshot(config, await (await openSource(location)).readTree(), "no-cache");
}

const numbers = ({ values }: ValueBlock) => Array.from(values as ArrayLike<number>);

t.test("shards are read where they lie, absent chunks are filled", async (t) => {
  const values = openValues(t);
  const directory = await writeStores(t);
  const origin = await startFaultyOrigin(t, { directory });
  for (const location of [join(directory, "v3"), `${origin.url}/v3`]) {
    const snapshot = await openSnapshot(location);
    const array = snapshot.arrays.get("s")!;
    const [length = 0] = array.variable.shape;
    const fill = Number(array.document.fill_value ?? 0);
    const all = [
      0,
      1,
      2,
      3,
      4,
      5,
      6,
      7,
      ...new Array(8).fill(fill),
      100,
      101,
      102,
      103,
      ...new Array(4).fill(fill),
    ];
    const expected = all.slice(0, length);
    const backwards = await values.read(snapshot, array, [{ begin: length - 1, count: length, step: -1 }]);
    t.same(numbers(backwards), expected.toReversed(), location.slice(0, 4));
    // Whole chunks, and part of one.
    for (const count of [length, length - 1]) {
      const [little, big] = await Promise.all(
        (["little", "big"] as const).map((byteOrder) =>
          values.read(snapshot, array, [{ begin: 0, count, step: 1 }], { byteOrder }),
        ),
      );
      swapWords(big!.bytes, array.variable.dataType.itemSize);
      t.same(big!.bytes, little!.bytes);
    }
    const points = await values.readPoints(snapshot, array, [17, 0, 9, 17]);
    t.same(
      numbers(points),
      [17, 0, 9, 17].map((at) => expected[at]),
    );
  }
});

t.test("coarser levels are read as the arrays below them", async (t) => {
  const directory = await makeDirectory(t);
  const chunk = (first: number) =>
    deflateSync(new Uint8Array(Float32Array.from({ length: 4 }, (_, i) => first + i).buffer));
  await writeFiles(directory, {
    ".zgroup": zgroup,
    "a/.zarray": {
      ...zarray,
      ...{
        shape: [4, 4],
        chunks: [2, 2],
        dtype: "<f4",
        fill_value: "NaN",
        compressor: { id: "zlib", level: 1 },
      },
    },
    ...{ "a/0.0": chunk(0), "a/0.1": chunk(4), "a/1.0": chunk(8) },
  });
  const { levels } = await openPyramid(await openSource(directory), "a", { levels: 1 });
  const whole = { begin: 0, count: 2, step: 1 };
  const block = await openValues(t).read(undefined, levels[0]!, [whole, whole]);
  t.same(numbers(block), [1.5, 5.5, 9.5, Number.NaN]);
});

t.test("a worker looks before each chunk whether anything waits", async (t) => {
  const { plan } = createItemPlan(storedArray({ shape: [8], chunkShape: [2] }), undefined);
  let read = 0;
  const reader = {
    version: () => ({ token: "1" }),
    read: () => {
      read++;
      return undefined;
    },
  };
  const items = [{ begin: 0, count: 8, step: 1 }];
  const pick = { items, dataType: storedArray().dataType, decoding: undefined, byteOrder: "<" } as const;
  await t.rejects(pickItems(plan, pick, reader, { isCancelled: () => read === 2 }), { code: "cancelled" });
  t.equal(read, 2);
});

t.test("functions run in threads", async (t) => {
  const directory = t.testdir({
    "mean.mjs": `import { isMainThread } from "node:worker_threads";
      export default (numbers) => ({ isMainThread, mean: numbers.reduce((sum, each) => sum + each, 0) / numbers.length });`,
    "dies.mjs": "export default () => process.exit(1);",
  });
  const values = openValues(t);
  const urlOf = (name: string) => pathToFileURL(join(directory, name));
  const numbers = Float64Array.of(1, 2, 6);
  t.same(await values.run(urlOf("mean.mjs"), numbers), { isMainThread: false, mean: 3 });
  await t.rejects(values.run(urlOf("dies.mjs"), undefined), {
    code: "codec-failed",
    message: "module dies.mjs: the worker crashed",
  });
});

t.test("a function that runs when the pool is closed fails as the server's end does", async (t) => {
  const directory = t.testdir({
    "waits.mjs": `export default (begun) => new Promise((resolve) => {
      Atomics.store(begun, 0, 1);
      setInterval(() => undefined, 1_000);
    });`,
  });
  const pool = createEncodePool({ threads: 1, log: pino({ level: "silent" }) });
  const data = new Int32Array(new SharedArrayBuffer(4));
  const module = String(pathToFileURL(join(directory, "waits.mjs")));
  const call = pool.callModule({ module, data, cancelled: data }, new AbortController().signal);
  while (Atomics.load(data, 0) === 0) await delay(5);
  await pool.close();
  t.match(await call, { status: "failed", error: { code: "draining" } });
});

t.test("data and results that cannot be copied are errors that say so, and end no thread", async (t) => {
  const directory = t.testdir({
    "thread.mjs": 'import { threadId } from "node:worker_threads"; export default () => threadId;',
    "symbol.mjs": "export default () => [Symbol('c')];",
  });
  const urlOf = (name: string) => pathToFileURL(join(directory, name));
  const values = openValues(t, 1);
  const cases: readonly (readonly [file: string, data: unknown, reason: string])[] = [
    ["thread.mjs", { at: Symbol("b") }, "Symbol(b) could not be cloned."],
    ["thread.mjs", Symbol("a"), "Symbol(a) could not be cloned."],
    [
      "thread.mjs",
      {
        get day() {
          throw new RangeError("no day");
        },
      },
      "no day",
    ],
    ["symbol.mjs", 1, "Symbol(c) could not be cloned."],
  ];
  let first: number | undefined;
  for (const [file, data, reason] of cases) {
    const message = `module ${file}: ${reason}`;
    await t.rejects(values.run(urlOf(file), data), { code: "internal", message });
    const thread = await values.run<number>(urlOf("thread.mjs"), 1);
    first ??= thread;
    t.equal(thread, first);
  }
});

t.test(
  "a file that is replaced after its values were planned is told apart, and nothing is read of it",
  async (t) => {
    const location = join(await makeDirectory(t), "a.nc");
    const write = (first: number) => {
      const bytes = new Uint8Array(4).map((_, at) => first + at);
      const variables = [{ name: "v", type: "byte", dimensions: [0], bytes }] as const;
      return writeFile(location, cdfFile({ version: 1, dimensions: [{ name: "x", length: 4 }], variables }));
    };
    await write(0);
    const values = openValues(t);
    const snapshot = await openSnapshot(location);
    const array = snapshot.arrays.get("v")!;
    const read = () => values.read(snapshot, array, [{ begin: 0, count: 4, step: 1 }]);
    t.same(numbers(await read()), [0, 1, 2, 3]);
    await write(10);
    // By the identity, a request refreshes the dataset and is tried again.
    const changedFile = { code: "source-changed", details: { staleIdentity: /./ } };
    await t.rejects(read(), changedFile);
    await t.rejects(values.readPoints(snapshot, array, [1, 3]), changedFile);
    const changed = await openSnapshot(location);
    t.same(numbers(await values.readPoints(changed, changed.arrays.get("v")!, [1, 3])), [11, 13]);
  },
);

t.test(
  "labels follow chunks of coordinates that are rewritten in place, unless the dataset is immutable",
  async (t) => {
    const directory = await makeDirectory(t);
    const floats = (...numbers: readonly number[]) =>
      deflateSync(new Uint8Array(Float64Array.from(numbers).buffer));
    const array = { ...zarray, dtype: "<f8", compressor: { id: "zlib", level: 1 } };
    const line = { ...array, shape: [4], chunks: [2] };
    const cells = { ...array, shape: [2, 2], chunks: [1, 2] };
    await writeFiles(directory, {
      ".zgroup": zgroup,
      ...{
        "x/.zarray": line,
        "x/.zattrs": { _ARRAY_DIMENSIONS: ["x"] },
        "x/0": floats(0, 1),
        "x/1": floats(2, 3),
      },
      ...{ "v/.zarray": line, "v/.zattrs": { _ARRAY_DIMENSIONS: ["x"] } },
      ...{ "lat/.zarray": cells, "lat/.zattrs": { _ARRAY_DIMENSIONS: ["r", "c"], units: "degrees_north" } },
      ...{ "lon/.zarray": cells, "lon/.zattrs": { _ARRAY_DIMENSIONS: ["r", "c"], units: "degrees_east" } },
      ...{
        "lat/0.0": floats(1, 2),
        "lat/1.0": floats(3, 4),
        "lon/0.0": floats(5, 7),
        "lon/1.0": floats(6, 8),
      },
      ...{ "w/.zarray": cells, "w/.zattrs": { _ARRAY_DIMENSIONS: ["r", "c"], coordinates: "lat lon" } },
    });
    const values = openValues(t);
    const [changing, fixed] = [await openSnapshot(directory), await openSnapshot(directory, true)];
    const axisOf = async (snapshot: typeof fixed) =>
      (await values.coordinates(snapshot, snapshot.arrays.get("v")!)).axes[0]!;
    const cellOf = async (snapshot: typeof fixed) =>
      (await values.nearestCells(snapshot, snapshot.arrays.get("w")!, [[20, 8]]))[0]!.cell;
    const first = await axisOf(changing);
    for (const snapshot of [changing, fixed]) {
      t.same((await axisOf(snapshot)).values, Float64Array.of(0, 1, 2, 3));
      t.equal(await cellOf(snapshot), 3);
    }
    await delay(5);
    t.equal(await axisOf(changing), first, "read once as long as nothing changes");
    await writeFiles(directory, { "x/1": floats(20, 30), "lat/0.0": floats(1, 20) });
    await delay(5);
    t.same((await axisOf(changing)).values, Float64Array.of(0, 1, 20, 30));
    t.equal(await cellOf(changing), 1);
    t.same((await axisOf(fixed)).values, Float64Array.of(0, 1, 2, 3));
    t.equal(await cellOf(fixed), 3);
  },
);
