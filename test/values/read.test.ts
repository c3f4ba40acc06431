import { once } from "node:events";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import type { ServedArray } from "../../src/dataset/dataset.js";
import type { ErrorCode } from "../../src/errors.js";
import { elementCount } from "../../src/model/data-tree.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import type { AxisSelection, StreamValuesOptions, ValueBlock } from "../../src/values/values.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { inlineValues } from "../support/inline-values.js";

const values = inlineValues();

/** An array in memory that counts from 0. */
function counting(shape: readonly number[], changes: Partial<StoredArray> = {}): ServedArray {
  const count = elementCount(shape);
  const buffer = new SharedArrayBuffer(4 * count);
  const items = new Int32Array(buffer);
  for (let i = 0; i < count; i++) items[i] = i;
  const chunks = { kind: "memory", buffer, byteOffset: 0, byteLength: 4 * count } as const;
  const stored = storedArray({
    ...{ dtype: "<i4", shape, chunkShape: shape, codecs: [], compressorCount: 0, chunks },
    fill: { served: null, item: null, absentIsServed: true },
    ...changes,
  });
  return { stored, variable: stored } as unknown as ServedArray;
}

const range = (begin: number, count: number, step = 1): AxisSelection => ({ begin, count, step });
const list = (...indexes: number[]): AxisSelection => ({ indexes });
const numbers = (block: ValueBlock) => Array.from(block.values as Int32Array);

t.test("ranges, steps backwards and lists with repetitions are gathered in C order", async (t) => {
  const array = counting([4, 5]);
  for (const [selection, shape, expected] of [
    [
      [range(0, 4), range(1, 2)],
      [4, 2],
      [1, 2, 6, 7, 11, 12, 16, 17],
    ],
    [
      [range(3, 2, -2), range(4, 5, -1)],
      [2, 5],
      [19, 18, 17, 16, 15, 9, 8, 7, 6, 5],
    ],
    [
      [list(2, 0, 2), range(0, 3, 2)],
      [3, 3],
      [10, 12, 14, 0, 2, 4, 10, 12, 14],
    ],
    [
      [range(1, 1), list(4, 4, 0)],
      [1, 3],
      [9, 9, 5],
    ],
    [[range(1, 0), list()], [0, 0], []],
  ] as const) {
    const block = await values.read(undefined, array, selection);
    t.same([block.shape, numbers(block)], [shape, expected]);
  }
  const scalar = await values.read(undefined, counting([]), []);
  t.same([scalar.shape, numbers(scalar)], [[], [0]]);
});

t.test("a stream has the items of a read, from any item on, in pieces of any length", async (t) => {
  const array = counting([7, 6, 5], { servedChunks: [3, 4, 5] });
  const selection = [list(6, 0, 3, 3), range(5, 6, -1), range(0, 3, 2)];
  const all = numbers(await values.read(undefined, array, selection));
  for (const [pieceBytes, firstItem, itemCount] of [
    [4, 0, undefined],
    [40, 0, undefined],
    [100, 17, 30],
    [1_000, 71, undefined],
    [60, 72, undefined],
    [16, 5, 1],
  ] as const) {
    const options: StreamValuesOptions = { pieceBytes, firstItem, itemCount };
    const found: number[] = [];
    for await (const piece of values.stream(undefined, array, selection, options)) {
      t.ok(piece.bytes.length <= pieceBytes);
      found.push(...numbers(piece));
    }
    t.same(
      found,
      all.slice(firstItem, itemCount && firstItem + itemCount),
      `${pieceBytes} from ${firstItem}`,
    );
  }
});

t.test("the cost is known before anything is read", async (t) => {
  const array = counting([100, 100], { servedChunks: [10, 10], attrs: { scale_factor: 0.5 } });
  const cost = (selection: AxisSelection[], decode?: boolean) => values.cost(array, selection, { decode });
  t.same(cost([range(5, 10), range(0, 1)]), {
    ...{ itemCount: 10, byteLength: 40, chunks: 2, chunkBytes: 800 },
    streamBytes: 40,
  });
  const held = (pieceBytes: number) =>
    values.cost(array, [range(0, 100), range(0, 100)], { pieceBytes }).streamBytes;
  t.equal(held(1_000_000), 40_000, "all of it");
  t.equal(held(64), 3 * 64 + 4_000, "a row of chunks");
  t.equal(held(16), 3 * 16 + 800, "part of a row of chunks, if that is large");
  t.same(cost([range(99, 4, -30), list(0, 99, 5)], true).chunks, 8);
  t.equal(cost([range(0, 1), range(0, 1)], true).byteLength, 8);
  t.same(
    [values.dataType(array, false).numpyStr, values.dataType(array, true).numpyStr],
    ["int32", "float64"],
  );
});

t.test("what cannot be read is refused before anything is read", async (t) => {
  const tasks: ChunkTask[] = [];
  const counted = inlineValues({
    makeChunk: async (task) => {
      tasks.push(task);
      return { status: "absent" };
    },
  });
  const array = counting([4, 5]);
  const whole = [range(0, 4), range(0, 5)];
  const refusals: [() => Promise<unknown>, ErrorCode, RegExp][] = [
    [() => counted.read(undefined, array, whole, { maxBytes: 79 }), "too-large", /at most 79 .* received 80/],
    [() => counted.read(undefined, array, [range(0, 4)]), "invalid-query", /2 axes, received 1/],
    [
      () => counted.read(undefined, array, [range(0, 5), range(0, 5)]),
      "invalid-query",
      /0 to 3, received 0 to 4/,
    ],
    [() => counted.read(undefined, array, [list(-1), range(0, 5)]), "invalid-query", /0 to 3, received -1/],
    [() => counted.read(undefined, array, [range(0, 2, 0), range(0, 5)]), "invalid-query", /received NaN/],
    [() => counted.readPoints(undefined, array, [1, 5]), "invalid-query", /axis 1 from 0 to 4, received 5/],
    [() => counted.readPoints(undefined, array, [1, 2, 3]), "invalid-query", /2 indexes, received 3/],
  ];
  for (const [read, code, message] of refusals) await t.rejects(read(), { code, message });
  t.same(tasks, []);
});

t.test("each chunk is decoded once for all its points, which come in the order asked for", async (t) => {
  const run = createTaskRunner();
  let chunks = 0;
  const counted = inlineValues({
    makeChunk: (task) => {
      const { items } = task.pick ?? { items: [] };
      chunks += "points" in items ? items.points.length : 0;
      return run(task);
    },
  });
  const array = counting([20, 30]);
  const points = Array.from({ length: 1_000 }, (_, i) => [(i * 7) % 20, (i * 11) % 30]);
  const block = await counted.readPoints(undefined, array, points.flat());
  t.same(
    numbers(block),
    points.map(([y, x]) => y! * 30 + x!),
  );
  t.equal(chunks, 1);
  const missing = await counted.readPoints(undefined, array, [1, 1, -1, 3, 2, 2]);
  t.same(numbers(missing), [31, 0, 62]);
  const decoded = counting([3], { attrs: { scale_factor: 0.5 } });
  const floats = await counted.readPoints(undefined, decoded, [2, -1], { decode: true });
  t.same(Array.from(floats.values as Float64Array), [1, Number.NaN]);
});

t.test(
  "cancelled work ends before the next chunk, and closing a stream ends what is made ahead",
  async (t) => {
    const run = createTaskRunner();
    const controller = new AbortController();
    let begun = 0;
    const cancelling = inlineValues({
      makeChunk: (task) => {
        begun++;
        controller.abort();
        return run(task);
      },
    });
    const array = counting([4, 4]);
    const whole = [range(0, 4), range(0, 4)];
    const { signal } = controller;
    await t.rejects(cancelling.read(undefined, array, whole, { signal }), { code: "cancelled" });
    await t.rejects(cancelling.read(undefined, array, whole, { signal }), { code: "cancelled" });
    t.equal(begun, 1, "nothing begins after an abort");

    const flags: (Int32Array | undefined)[] = [];
    const watched = inlineValues({
      makeChunk: (task) => {
        flags.push(task.cancelled);
        return run(task);
      },
    });
    for await (const _ of watched.stream(undefined, counting([64, 1_024, 1_024 / 16]), [
      range(0, 64),
      range(0, 1_024),
      range(0, 64),
    ]))
      break;
    t.ok(flags.length > 0 && flags.length <= 4, "16 MiB are made ahead");
    t.ok(flags.every((flag) => flag?.[0] === 1));
  },
);

t.test("a function of a module runs in the pool, and its errors are named", async (t) => {
  const directory = t.testdir({
    "sum.mjs": "export default ({ numbers }) => numbers.reduce((sum, each) => sum + each, 0);",
    "fails.mjs": "export default () => { throw new RangeError('too far'); };",
    "none.mjs": "export const sum = 1;",
    "waits.mjs":
      "export default async (data, { isCancelled }) => { while (!isCancelled()) await new Promise(setImmediate); data.postMessage('ended'); };",
  });
  const urlOf = (name: string) => pathToFileURL(join(directory, name));
  t.equal(await values.run(urlOf("sum.mjs"), { numbers: Float64Array.of(1, 2.5) }), 3.5);
  await t.rejects(values.run(urlOf("fails.mjs"), undefined), {
    ...{ code: "internal", message: "module fails.mjs: too far" },
  });
  await t.rejects(values.run(urlOf("none.mjs"), undefined), {
    message: /none\.mjs: expected a default export/,
  });
  const { port1, port2 } = new MessageChannel();
  const ended = once(port2, "message");
  const controller = new AbortController();
  const waiting = values.run(urlOf("waits.mjs"), port1, { signal: controller.signal });
  controller.abort();
  await t.rejects(waiting, { code: "cancelled" });
  await ended;
  port1.close();
});
