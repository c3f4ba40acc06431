import { mkdir, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import t, { type Test } from "tap";
import { createChunkService } from "../../src/chunk/serve-chunk.js";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
import type { DatasetConfig } from "../../src/config/config.js";
import type { ServedArray } from "../../src/dataset/dataset.js";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { parseDataType } from "../../src/model/data-type.js";
import { openChunkReader } from "../../src/open/chunk-reader.js";
import type { ChunkTask } from "../../src/pool/chunk-task.js";
import { createTaskRunner } from "../../src/pool/run-chunk-task.js";
import { PIECED } from "../../src/zarr/chunk-reader.js";
import type { CodecSpec, ItemConversion } from "../../src/zarr/codec-step.js";
import {
  combineVersions,
  createEncodingPlan,
  storedChunksOf,
} from "../../src/zarr/plan/create-encoding-plan.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import { unpackConversion } from "../support/codec/unpack-conversion.js";
import { storedTree } from "../support/datasets/fake-source.js";
import {
  joinParts,
  type TestPart,
  writeChunks,
  writeFileOfChunks,
} from "../support/datasets/joined-array.js";
import { decodeServed, readServed } from "../support/datasets/served-array.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { gridPositions, mixedReaderOf, readerOf } from "../support/datasets/stored-chunks.js";
import { effort } from "../support/effort.js";
import { mapCache } from "../support/map-cache.js";
import { makeDirectory, makeOld } from "../support/write-store.js";

const CODEC_CHAINS: CodecSpec[][] = [
  [],
  [{ id: "zlib", level: 1 }],
  [{ id: "zstd", level: 1 }],
  [
    { id: "shuffle", elementsize: 4 },
    { id: "lz4", acceleration: 1 },
  ],
  [{ id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 }, { id: "crc32c" }],
];

/** How a part differs from the joined array of `<f4`. */
const FORMS: Record<string, { dtype: string; conversion?: ItemConversion }> = {
  same: { dtype: "<f4" },
  swapped: { dtype: ">f4", conversion: { kind: "swap", wordSize: 4 } },
  packed: {
    dtype: "<i2",
    conversion: unpackConversion({ from: "<i2", to: "<f4", scale: 0.1, offset: 3.7, missing: [257, -5] }),
  },
  bytes: {
    dtype: "|u1",
    conversion: unpackConversion({ from: "|u1", to: "<f4", scale: 0.25, missing: [9] }),
  },
};

/** Feeds a worker of its own thread, as far as data are concerned. */
function maker(run = createTaskRunner()) {
  return createWorkerFeed((task) => run(structuredClone(task) as ChunkTask));
}

const length = (max: number) => fc.integer({ min: 1, max });

const cases = fc.integer({ min: 1, max: 4 }).chain((rank) => {
  const axes = Array.from({ length: rank }, (_, axis) => axis);
  const lengths = fc.array(length(rank > 2 ? 4 : 6), { minLength: rank, maxLength: rank });
  const order = fc.shuffledSubarray(axes, { minLength: rank, maxLength: rank });
  const part = fc.record({
    ...{ before: fc.constantFrom(0, 0, 0, 2), length: length(9), after: fc.constantFrom(0, 0, 0, 3) },
    chunkShape: fc.option(lengths, { nil: undefined }),
    axisOrder: fc.option(order, { nil: undefined }),
    codecs: fc.option(fc.constantFrom(...CODEC_CHAINS), { nil: undefined }),
    variants: fc.constantFrom<CodecSpec[][]>([], [], [[{ id: "zlib", level: 1 }]]),
    form: fc.constantFrom("same", "same", "same", ...Object.keys(FORMS)),
    absentEvery: fc.constantFrom(0, 0, 2, 1),
    fill: fc.constantFrom(undefined, undefined, 7),
    place: fc.constantFrom<"memory" | "files" | "file">("memory", "memory", "files", "file"),
  });
  return fc.record({
    axis: fc.constantFrom(...axes),
    shape: lengths,
    chunkShape: lengths,
    axisOrder: order,
    codecs: fc.constantFrom(...CODEC_CHAINS),
    servedShape: fc.option(lengths, { nil: undefined }),
    compressor: fc.constantFrom<CodecSpec | null | undefined>(undefined, null, { id: "gzip" }),
    parts: fc.array(part, { minLength: 1, maxLength: 4 }),
    hasFill: fc.boolean(),
    absentIsServed: fc.boolean(),
  });
});

/** An item of a part as xarray decodes it, in single floats. */
function convert(bytes: Uint8Array, form: string): Uint8Array {
  const { dtype, conversion } = FORMS[form] as (typeof FORMS)[string];
  if (conversion === undefined) return bytes;
  if (conversion.kind !== "unpack") return bytes.toReversed();
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const item = dtype === "<i2" ? view.getInt16(0, true) : view.getUint8(0);
  const { missing, scale = 1, offset = 0 } = conversion.decoding;
  const scaled = Math.fround(item * Math.fround(scale));
  const value = missing.includes(item) ? Number.NaN : scaled + Math.fround(offset);
  return new Uint8Array(Float32Array.of(value).buffer);
}

t.test("joined arrays are the items of their parts, whatever is asked", async (t) => {
  const directory = await makeDirectory(t);
  let count = 0;
  await fc.assert(
    fc.asyncProperty(cases, async (drawn) => {
      const { axis, axisOrder, codecs, chunkShape, servedShape, compressor, absentIsServed } = drawn;
      const total = drawn.parts.reduce((sum, part) => sum + part.length, 0);
      const shape = drawn.shape.with(axis, total);
      const fillItem = drawn.hasFill ? Uint8Array.of(1, 2, 3, 4) : null;
      const fill = { served: drawn.hasFill ? 1 : null, item: fillItem, absentIsServed };
      const joined = storedArray({ shape, chunkShape, axisOrder, codecs, compressorCount: 0, fill });
      const expected = new Uint8Array(shape.reduce((product, each) => product * each, 4));
      const parts: TestPart[] = [];
      let start = 0;
      for (const part of drawn.parts) {
        const { dtype, conversion } = FORMS[part.form] as (typeof FORMS)[string];
        const dataType = parseDataType(dtype);
        const { itemSize } = dataType;
        const item =
          part.fill === undefined && itemSize === 4
            ? fillItem
            : new Uint8Array(itemSize).fill(part.fill ?? 0);
        const stored: StoredArray = {
          ...joined,
          ...{ shape: shape.with(axis, part.before + part.length + part.after), dataType },
          chunkShape: part.chunkShape ?? chunkShape,
          axisOrder: part.axisOrder ?? axisOrder,
          codecs: (part.codecs ?? codecs).map((codec) =>
            codec.id === "shuffle" ? { ...codec, elementsize: itemSize } : codec,
          ),
          variants: part.variants,
          fill: { ...fill, item },
        };
        const bytes = new Uint8Array(stored.shape.reduce((product, each) => product * each, itemSize)).map(
          (_, index) => ((index + start) * 7 + (index >> 3)) % 251,
        );
        const isAbsent = (coords: readonly number[]) =>
          part.absentEvery > 0 && coords.reduce((sum, index) => sum + index, 0) % part.absentEvery === 0;
        const plain = await readerOf(stored, bytes, isAbsent);
        const mixed =
          part.variants.length > 0 && part.place !== "files"
            ? await mixedReaderOf(stored, bytes, plain)
            : plain;
        const own = join(directory, `${count++}`);
        if (part.place !== "memory") await mkdir(own);
        const placed =
          part.place === "memory"
            ? mixed
            : part.place === "files"
              ? await writeChunks(own, stored, mixed)
              : await writeFileOfChunks(own, "all", stored, mixed);
        parts.push({
          stored,
          reader: placed,
          from: part.before,
          length: part.length,
          ...(conversion && { conversion }),
        });
        // Item by item.
        let index = 0;
        for (const position of gridPositions(shape)) {
          const at = index++ * 4;
          const step = position[axis]! - start;
          if (step < 0 || step >= part.length) continue;
          const inPart = position.with(axis, step + part.before);
          const from = inPart.reduce((sum, place, of) => sum * stored.shape[of]! + place, 0) * itemSize;
          const chunk = inPart.map((place, of) => Math.floor(place / stored.chunkShape[of]!));
          const stays = isAbsent(chunk)
            ? (item ?? new Uint8Array(itemSize))
            : bytes.slice(from, from + itemSize);
          expected.set(convert(stays, part.form), at);
        }
        start += part.length;
      }
      const stored = joinParts(parts, { stored: joined, axis });
      const { plan } = createEncodingPlan(stored, { chunkShape: servedShape, compressor });
      const make = maker();
      const reader = openChunkReader(stored.chunks);
      const pieced = new Map<string, Uint8Array>();
      const steps = decodeServed(stored, servedShape, compressor);
      const served = await readServed(plan, steps, async (coords) => {
        const made = await make({ plan, chunkCoords: coords });
        if (made.status === "failed") throw new Error(made.error.message);
        const found = await Promise.all(storedChunksOf(plan, coords).map((each) => reader.version(each)));
        const versions = found.map(({ token }) => token);
        if (made.status === "absent") return undefined;
        const version = plan.kind === "rechunk" ? combineVersions(versions) : (versions[0] ?? "");
        if (made.version !== version) throw new Error(`expected ${version}, received ${made.version}`);
        if (plan.kind === "rechunk" || reader.parts?.variantOf(coords) === PIECED)
          pieced.set(coords.join("."), made.bytes);
        return made.bytes;
      });
      // What is passed through is padded as its part is.
      const { padding } = await readServed(plan, steps, async (coords) => pieced.get(coords.join(".")));
      return Buffer.compare(served.array, expected) === 0 && padding;
    }),
    { numRuns: effort(500) },
  );
  t.pass();
});

/** Bytes in chunks of two rows of three, as parts and joined arrays have them. */
const FORM = {
  ...{ dtype: "|u1", codecs: [], compressorCount: 0 as const, dimNames: ["time", "x"] },
  fill: { served: 0, item: null, absentIsServed: true },
};

type Place = "files" | "file";

/** A part whose items are all one number; row `absent` of its chunks is not stored. */
async function partOf(
  t: Test,
  name: string,
  { rows, item, place = "files", absent }: { rows: number; item: number; place?: Place; absent?: number },
): Promise<TestPart & { readonly directory: string }> {
  const directory = await makeDirectory(t);
  const stored = storedArray({ ...FORM, shape: [rows, 3], chunkShape: [2, 3] });
  const reader = await readerOf(stored, new Uint8Array(3 * rows).fill(item), ([row]) => row === absent);
  const write =
    place === "files"
      ? writeChunks(directory, stored, reader)
      : writeFileOfChunks(directory, "all", stored, reader);
  return { stored, reader: await write, from: 0, length: rows, name, directory };
}

function joined(parts: readonly TestPart[], more: Partial<StoredArray> = {}): StoredArray {
  const rows = parts.reduce((sum, { length }) => sum + length, 0);
  return joinParts(parts, {
    stored: storedArray({ ...FORM, shape: [rows, 3], chunkShape: [2, 3], ...more }),
    axis: 0,
  });
}

/** A service, and datasets of one array that it serves. */
function serviceOf(before?: (task: ChunkTask) => Promise<unknown>) {
  const cache = mapCache();
  const run = createTaskRunner();
  let tasks = 0;
  const service = createChunkService({
    cache: { current: cache },
    makeChunk: createWorkerFeed(async (task) => {
      tasks++;
      await before?.(task);
      return run(structuredClone(task));
    }),
  });

  function open(array: StoredArray, config: Partial<DatasetConfig> = {}) {
    const snapshot = createSnapshot(
      { id: "d", location: "here", immutable: false, encoding: {}, variables: {}, ...config },
      storedTree([{ path: "/", attrs: {}, arrays: [array] }]),
      "no-cache",
    );
    const served = snapshot.arrays.get(array.path) as ServedArray;
    return {
      snapshot,
      async get(key: string) {
        const reply = await service.serve(snapshot, served, { key });
        const { signal } = new AbortController();
        const read = async () => {
          const whole = (byteLength: number) => ({ start: 0, byteLength });
          const body = await reply.open({ signal, reserve: () => undefined, started: false }, whole);
          const from = body.headers.find(([name]) => name === "X-Cache")?.[1];
          return [from, ...(body.read(0) ?? [])];
        };
        return { etag: reply.etag, read };
      },
    };
  }
  return { open, cache, tasks: () => tasks };
}

t.test("a chunk of one part is passed through, others are put together", async (t) => {
  for (const place of ["files", "file"] as const) {
    const parts = [
      await partOf(t, "a", { rows: 3, item: 1, place }),
      await partOf(t, "b", { rows: 3, item: 2, place }),
      await partOf(t, "c", { rows: 1, item: 3, place }),
    ];
    const { open, tasks } = serviceOf();
    const { get } = open(joined(parts));
    t.same(await (await get("0.0")).read(), ["PASS", 1, 1, 1, 1, 1, 1]);
    t.equal(tasks(), 0);
    t.same(await (await get("1.0")).read(), ["MISS", 1, 1, 1, 2, 2, 2]);
    t.same(await (await get("2.0")).read(), ["MISS", 2, 2, 2, 2, 2, 2]);
    t.same(await (await get("3.0")).read(), ["PASS", 3, 3, 3, 238, 238, 238], "as it is stored");
    t.same(await (await get("1.0")).read(), ["HIT", 1, 1, 1, 2, 2, 2]);
    const whole = open(joined(parts), { encoding: { chunks: [7, 3], compressor: null } });
    const rows = [1, 1, 1, 2, 2, 2, 3].flatMap((item) => [item, item, item]);
    t.same(await (await whole.get("0.0")).read(), ["MISS", ...rows]);
  }
});

t.test("chunks of old parts keep their ETags and places in the cache when a part is added", async (t) => {
  const a = await partOf(t, "a", { rows: 3, item: 1 });
  const b = await partOf(t, "b", { rows: 2, item: 2 });
  const c = await partOf(t, "c", { rows: 4, item: 3 });
  for (const encoding of [{}, { compressor: null }, { chunks: [1, 3] }]) {
    const { open, cache } = serviceOf();
    const before = open(joined([a, b]), { encoding });
    const after = open(joined([a, b, c]), { encoding });
    t.not(before.snapshot.revision, after.snapshot.revision);
    const rows = encoding.chunks === undefined ? 2 : 1;
    for (const index of [0, 1, 2, 3, 4].slice(0, Math.ceil(5 / rows))) {
      const was = await before.get(`${index}.0`);
      const is = await after.get(`${index}.0`);
      const grows = index * rows + rows > 5;
      const hasChanged = rows === 2 ? grows : index === 4;
      t.equal(is.etag !== was.etag, hasChanged, `${JSON.stringify(encoding)}: chunk ${index}`);
      const [, ...bytes] = await was.read();
      const [from, ...others] = await is.read();
      t.equal(from === "HIT", !hasChanged);
      if (!grows) t.same(others, bytes);
    }
    t.equal(cache.kept.size > 0, true);
    const shifted = open(joined([c, a, b]), { encoding });
    t.not((await shifted.get("0.0")).etag, (await after.get("0.0")).etag, "another part");
    t.not((await shifted.get("2.0")).etag, (await after.get("2.0")).etag);
  }
});

t.test("chunks of an immutable dataset have no versions, so their ETags change with it", async (t) => {
  const a = await partOf(t, "a", { rows: 3, item: 1 });
  const b = await partOf(t, "b", { rows: 2, item: 2 });
  const { open } = serviceOf();
  const before = await open(joined([a]), { immutable: true }).get("1.0");
  const after = await open(joined([a, b]), { immutable: true }).get("1.0");
  t.not(before.etag, after.etag);
  t.same(await before.read(), ["PASS", 1, 1, 1, 238, 238, 238]);
  t.same(await after.read(), ["MISS", 1, 1, 1, 2, 2, 2]);
});

t.test("ETags of chunks change with what decides their bytes", async (t) => {
  const a = await partOf(t, "a", { rows: 3, item: 1 });
  const b = await partOf(t, "b", { rows: 2, item: 2 });
  const { open } = serviceOf();
  const etagOf = async (array: StoredArray, config: Partial<DatasetConfig> = {}, key = "1.0") =>
    (await open(array, config).get(key)).etag;
  const seven = { served: 7, item: Uint8Array.of(7), absentIsServed: true };
  const other = {
    ...joined([a, b]),
    chunks: { ...joined([a, b]).chunks, store: "elsewhere" },
  } as StoredArray;
  t.equal(await etagOf(joined([a, b])), await etagOf(other), "the same on every machine");
  const etags = new Set([
    await etagOf(joined([a, b])),
    await etagOf(joined([b, a])),
    await etagOf(joined([a, { ...b, name: "c" }])),
    await etagOf(joined([a, { ...b, length: 1 }])),
    await etagOf(joined([a, { ...b, length: 1, from: 1 }])),
    await etagOf(joined([a, b], { fill: seven })),
    await etagOf(joined([a, b], { codecs: [{ id: "zlib", level: 1 }], compressorCount: 1 })),
    await etagOf(joined([a, b], { path: "other" })),
    await etagOf(joined([a, b]), { id: "e" }),
    await etagOf(joined([a, b]), { encoding: { compressor: { id: "gzip", level: 1 } } }),
    await etagOf(joined([a, b]), { encoding: { chunks: [1, 3] } }),
  ]);
  t.equal(etags.size, 11);
});

t.test("a part that is replaced while a chunk is made is not served under the old ETag", async (t) => {
  for (const place of ["files", "file"] as const) {
    for (const encoding of [{}, { compressor: { id: "zlib", level: 1 } }, { chunks: [4, 3] }]) {
      const a = await partOf(t, "a", { rows: 3, item: 1, place });
      const b = await partOf(t, "b", { rows: 3, item: 2, place });
      const path = join(b.directory, place === "files" ? "0.0" : "all");
      let isReplaced = false;
      const { open, cache } = serviceOf(async () => {
        if (isReplaced) return;
        isReplaced = true;
        await writeFile(path, new Uint8Array(place === "files" ? 6 : 12).fill(9));
        const halfAMinuteAgo = Date.now() / 1000 - 30;
        await utimes(path, halfAMinuteAgo, halfAMinuteAgo);
      });
      const { get } = open(joined([a, b]), { encoding });
      const key = encoding.chunks === undefined ? "1.0" : "0.0";
      const reply = await get(key);
      await t.rejects(reply.read(), { code: "source-changed" }, `${place}: ${JSON.stringify(encoding)}`);
      t.equal(cache.kept.size, 0);
      // A file with an index is opened again by its source.
      if (place === "file") continue;
      const again = await get(key);
      t.not(again.etag, reply.etag);
      const [, ...bytes] = await again.read();
      if (encoding.compressor === undefined) t.same(bytes.slice(-3), [9, 9, 9]);
    }
  }
});

t.test("a chunk of which no part stores anything is absent, or served filled", async (t) => {
  const a = await partOf(t, "a", { rows: 3, item: 1, absent: 1 });
  const b = await partOf(t, "b", { rows: 3, item: 2, absent: 0 });
  const filled = { fill: { served: null, item: Uint8Array.of(5), absentIsServed: false } };
  for (const place of ["as stored", "rechunked"]) {
    const { open } = serviceOf();
    const config = place === "rechunked" ? { encoding: { chunks: [1, 3] } } : {};
    const key = place === "rechunked" ? "3.0" : "1.0";
    await t.rejects(open(joined([a, b]), config).get(key), { code: "not-found" });
    const own = (part: TestPart): TestPart => ({ ...part, stored: { ...part.stored, ...filled } });
    const served = await open(joined([own(a), own(b)], filled), config).get(key);
    const bytes = place === "rechunked" ? [5, 5, 5] : [5, 5, 5, 5, 5, 5];
    t.same(await served.read(), ["MISS", ...bytes]);
    t.notMatch(served.etag, /-[0-9a-z]{20}"$/, "without a version");
    const other = await open(joined([own(a), b], filled), config).get(key);
    const mixed = place === "rechunked" ? [0, 0, 0] : [5, 5, 5, 0, 0, 0];
    t.same(await other.read(), ["MISS", ...mixed], "another fill value of a part is a value");
  }
});

t.test("errors name the part, the array and the chunk", async (t) => {
  const a = await partOf(t, "a", { rows: 3, item: 1 });
  const b = await partOf(t, "b", { rows: 3, item: 2 });
  const path = join(b.directory, "0.0");
  await writeFile(path, new Uint8Array(5));
  await makeOld(path);
  const { open } = serviceOf();
  await t.rejects((await open(joined([a, b])).get("1.0")).read(), {
    code: "corrupt-chunk",
    message: "array 'g/t': stored chunk 1.0: part 'b': chunk 0.0 has 5 bytes, expected 6",
  });
  const broken = {
    ...b,
    reader: {
      ...(await readerOf(b.stored, new Uint8Array(9))),
      read: async () => Promise.reject(new Error("gone")),
    },
  };
  for (const encoding of [{}, { chunks: [6, 3] }])
    await t.rejects(
      (await open(joined([a, broken]), { encoding }).get(encoding.chunks ? "0.0" : "1.0")).read(),
      {
        code: "source-unreadable",
        message: "array 'g/t': stored chunk 1.0: part 'b': chunk 0.0: gone",
      },
    );
});

t.test("a part's chunk that lies in several chunks is read once", async (t) => {
  const a = await partOf(t, "a", { rows: 1, item: 1 });
  const long = storedArray({ ...FORM, shape: [9, 3], chunkShape: [9, 3], codecs: [{ id: "zlib" }] });
  const reader = await readerOf(long, new Uint8Array(27).fill(4));
  const parts = [a, { stored: long, reader, from: 0, length: 9, name: "b" }];
  const { open } = serviceOf();
  const whole = open(joined(parts), { encoding: { chunks: [10, 3], compressor: null } });
  const [, ...bytes] = await (await whole.get("0.0")).read();
  t.same(bytes, [1, 1, 1, ...new Uint8Array(27).fill(4)]);
  t.equal(reader.reads, 1);
  const { get } = open(joined(parts));
  for (const key of ["0.0", "1.0", "4.0"]) await (await get(key)).read();
  t.equal(reader.reads, 1, "of another plan");
});

t.test("texts are passed through", async (t) => {
  const texts = { dtype: "|O", codecs: [{ id: "vlen-utf8" }], compressorCount: 0 as const };
  const stored = storedArray({ ...FORM, ...texts, shape: [2, 3], chunkShape: [2, 3] });
  const reader = {
    ...(await readerOf(storedArray(FORM), new Uint8Array(120))),
    read: async () => ({ bytes: Uint8Array.of(0), version: "1" }),
    version: () => ({ token: "1" }),
  };
  const { variants: _variants, ...array } = joined([{ stored, reader, from: 0, length: 2 }], texts);
  const { get } = serviceOf().open(array);
  t.same(await (await get("0.0")).read(), ["PASS", 0]);
});
