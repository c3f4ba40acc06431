import { crc32 } from "node:zlib";
import fc from "fast-check";
import t from "tap";
import { convertPiece } from "../../src/codec/convert-items.js";
import { OWN_MEMORY } from "../../src/codec/kernel/kernel-memory.js";
import { CHUNK_HEADROOM_BYTES, makeChunk } from "../../src/codec/make-chunk.js";
import { createDecodedCache, decodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";
import {
  combineVersions,
  createEncodingPlan,
  type EncodingRequest,
} from "../../src/zarr/plan/create-encoding-plan.js";
import { type UnpackFields, unpackConversion } from "../support/codec/unpack-conversion.js";
import { decodeAll, decodeServed, readServed } from "../support/datasets/served-array.js";
import { storedArray } from "../support/datasets/stored-array.js";
import { arrayBytes, mixedReaderOf, readerOf } from "../support/datasets/stored-chunks.js";
import { effort } from "../support/effort.js";

const CODEC_CHAINS: CodecSpec[][] = [
  [],
  [{ id: "zlib", level: 1 }],
  [
    { id: "shuffle", elementsize: 2 },
    { id: "lz4", acceleration: 1 },
  ],
  [{ id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 }, { id: "crc32c" }],
];

const cases = fc.integer({ min: 0, max: 3 }).chain((dimensions) => {
  const lengths = fc.array(fc.integer({ min: 1, max: 7 }), { minLength: dimensions, maxLength: dimensions });
  const axes = Array.from({ length: dimensions }, (_, axis) => axis);
  return fc.record({
    shape: lengths,
    chunkShape: lengths,
    servedShape: fc.option(lengths, { nil: undefined }),
    axisOrder: fc.shuffledSubarray(axes, { minLength: dimensions, maxLength: dimensions }),
    dtype: fc.constantFrom("<i2", ">f8", "|S6", "<c16"),
    codecs: fc.constantFrom(...CODEC_CHAINS),
    variants: fc.array(fc.constantFrom(...CODEC_CHAINS), { maxLength: 2 }),
    compressor: fc.constantFrom<CodecSpec | null | undefined>(
      undefined,
      null,
      { id: "zstd", level: 1 },
      { id: "gzip" },
    ),
    absentEvery: fc.constantFrom(0, 0, 2, 3, 1),
    absentIsServed: fc.boolean(),
    hasFill: fc.boolean(),
  });
});

t.test("whatever the plan, clients read the same array, padded with fill", async (t) => {
  await fc.assert(
    fc.asyncProperty(
      cases,
      async ({ servedShape, absentEvery, absentIsServed, hasFill, compressor, ...drawn }) => {
        const { itemSize } = storedArray(drawn).dataType;
        const item = hasFill ? new Uint8Array(itemSize).fill(9) : null;
        const stored = storedArray({
          ...drawn,
          compressorCount: 0,
          fill: { served: hasFill ? 9 : null, item, absentIsServed },
        });
        const bytes = arrayBytes(stored.shape, itemSize);
        const isAbsent = (coords: readonly number[]) =>
          absentEvery > 0 && coords.reduce((sum, index) => sum + index, 0) % absentEvery === 0;
        const reader = await readerOf(stored, bytes, isAbsent);
        const mixed = await mixedReaderOf(stored, bytes, reader);
        const { plan } = createEncodingPlan(stored, { chunkShape: servedShape, compressor });
        // What is wanted: the array where it is stored, fill where it is not.
        const identity = createEncodingPlan(stored, { compressor: null, filters: null }).plan;
        const expected = await readServed({ ...identity, served: plan.stored }, [], async (coords) => {
          const chunk = await reader.read(coords);
          return chunk && decodeSteps(chunk.bytes, decodeAll(stored), "expected");
        });
        const cache = { cache: createDecodedCache(), sourceKey: "x" };
        const served = await readServed(
          plan,
          decodeServed(stored, servedShape, compressor),
          async (coords) => {
            const made = await makeChunk(plan, coords, mixed, { decoded: cache });
            return made.status === "encoded" ? made.bytes : undefined;
          },
        );
        return (
          Buffer.compare(served.array, expected.array) === 0 && (plan.kind !== "rechunk" || served.padding)
        );
      },
    ),
    { numRuns: effort(1_500) },
  );
  t.pass();
});

const RAW: EncodingRequest = { chunkShape: [10, 12], compressor: null };

t.test(
  "a rechunk reads every stored chunk it needs once, and neighbours share what was decoded",
  async (t) => {
    const stored = storedArray();
    const reader = await readerOf(stored, arrayBytes([10, 12], 4));
    const { plan } = createEncodingPlan(stored, { chunkShape: [1, 12], compressor: null });
    const decoded = { cache: createDecodedCache(), sourceKey: "x" };
    for (let row = 0; row < 4; row++) {
      const made = await makeChunk(plan, [row, 0], reader, { decoded });
      t.match(made, { status: "encoded", version: combineVersions(["s0.0", "s0.1", "s0.2"]) });
    }
    t.equal(reader.reads, 3);
    t.equal(decoded.cache.byteLength, 3 * 80);
    await makeChunk(plan, [0, 0], { ...reader, version: () => ({ token: "new" }) }, { decoded });
    t.equal(reader.reads, 6, "another version is another chunk");
  },
);

t.test("absent is absent, unless the plan says that it is served filled", async (t) => {
  const stored = storedArray({
    fill: { served: null, item: new Uint8Array([1, 2, 3, 4]), absentIsServed: false },
  });
  const reader = await readerOf(stored, arrayBytes([10, 12], 4), () => true);
  for (const asked of [{}, { compressor: null }, RAW]) {
    const { plan } = createEncodingPlan(stored, asked);
    t.strictSame(await makeChunk({ ...plan, absentIsAbsent: true }, [0, 0], reader), { status: "absent" });
    const made = await makeChunk(plan, [0, 0], reader);
    t.equal(made.status, "encoded");
    if (made.status !== "encoded") continue;
    const raw = await decodeSteps(made.bytes, plan.encodeAll.toReversed(), "client");
    t.equal(
      raw.length,
      plan.served.chunkShape.reduce((product, length) => product * length, 4),
    );
    t.ok(
      raw.every((byte, index) => byte === 1 + (index % 4)),
      plan.kind,
    );
  }
});

t.test("an absent chunk of texts is filled in the form of their filter", async (t) => {
  const stored = storedArray({
    dtype: "|O",
    codecs: [{ id: "vlen-utf8" }, { id: "zstd", level: 1 }],
    fill: { served: null, item: new Uint8Array([1, 0, 0, 0, 0x61]), absentIsServed: false },
  });
  const { plan } = createEncodingPlan(stored, { compressor: null });
  const reader = await readerOf(storedArray(), arrayBytes([10, 12], 4), () => true);
  const made = await makeChunk(plan, [0, 0], reader);
  if (made.status !== "encoded") throw new Error(made.status);
  t.same([...made.bytes.subarray(0, 9)], [20, 0, 0, 0, 1, 0, 0, 0, 0x61]);
  t.equal(made.bytes.length, 4 + 20 * 5);
});

t.test("a chunk that is absent from a shard has the version of the shard", async (t) => {
  const fill = { served: null, item: null, absentIsServed: false };
  const stored = storedArray({ fill });
  const reader = await readerOf(stored, arrayBytes([10, 12], 4), ([row]) => row === 0);
  const sharded = { ...reader, version: () => ({ token: "shard" }) };
  const kept = await makeChunk(createEncodingPlan(stored, {}).plan, [0, 0], sharded);
  t.match(kept, { status: "encoded", version: "shard" });
  const rechunked = await makeChunk(createEncodingPlan(stored, { chunkShape: [8, 5] }).plan, [0, 0], sharded);
  t.match(rechunked, { status: "encoded", version: combineVersions(["shard", "s1.0"]) });
});

t.test(
  "what is handed out is in a buffer of its own behind some room, also where nothing was done to it",
  async (t) => {
    const shared = new Uint8Array(new SharedArrayBuffer(500), 20, 480).fill(3);
    const stored = storedArray({ chunkShape: [10, 12], codecs: [], compressorCount: 0 });
    const reader = {
      ...(await readerOf(stored, shared)),
      read: async () => ({ bytes: shared, version: "0" }),
    };
    for (const asked of [{}, { chunkShape: [5, 12] }, { compressor: { id: "blosc", clevel: 0 } }]) {
      const { plan } = createEncodingPlan(stored, asked);
      const made = await makeChunk(plan, [0, 0], reader);
      if (made.status !== "encoded") throw new Error(made.status);
      t.ok(made.bytes.buffer instanceof ArrayBuffer);
      t.equal(made.bytes.byteOffset, CHUNK_HEADROOM_BYTES);
      t.equal(made.checksum, undefined, "nobody asked");
      const again = await makeChunk(plan, [0, 0], reader, { into: made.bytes.buffer, withChecksum: true });
      if (again.status !== "encoded") throw new Error(again.status);
      t.equal(again.bytes.buffer, made.bytes.buffer, "used again");
      t.equal(again.checksum, crc32(again.bytes));
      const small = await makeChunk(plan, [0, 0], reader, { into: new ArrayBuffer(8) });
      t.ok(
        small.status === "encoded" && Buffer.compare(small.bytes, again.bytes) === 0,
        "not where it is too small",
      );
    }
  },
);

t.test("a chunk without the codecs of the others must have the length of its items", async (t) => {
  const stored = storedArray({ variants: [[]] });
  const reader = await readerOf(stored, arrayBytes([10, 12], 4));
  for (const asked of [{ compressor: null, filters: null }, {}, { chunkShape: [5, 12] }]) {
    const { plan } = createEncodingPlan(stored, asked);
    const length = stored.chunkShape.reduce((product, each) => product * each, 4);
    for (const [byteLength, isWhole] of [
      [length, true],
      [length - 4, false],
    ] as const) {
      const read = async () => ({ bytes: new Uint8Array(byteLength), version: "x", variant: 1 });
      const making = makeChunk(plan, [0, 0], { ...reader, read });
      if (isWhole) t.match(await making, { status: "encoded" });
      else await t.rejects(making, { code: "corrupt-chunk" });
    }
  }
});

t.test("errors name the array and the stored chunk", async (t) => {
  const stored = storedArray();
  const reader = await readerOf(stored, arrayBytes([10, 12], 4));
  const short = { ...reader, read: async () => ({ bytes: new Uint8Array(20), version: "x" }) };
  const { plan } = createEncodingPlan(stored, RAW);
  await t.rejects(makeChunk(plan, [0, 0], short), {
    code: "corrupt-chunk",
    message: /^array 'g\/t': stored chunk 0\.0: blosc: /,
  });
  const unreadable = {
    ...reader,
    read: async () => {
      throw new ZpublishError("source-unreadable", "permission denied");
    },
  };
  await t.rejects(makeChunk(plan, [0, 0], unreadable), {
    code: "source-unreadable",
    message: "array 'g/t': stored chunk 0.0: permission denied",
  });
  const bare = storedArray({ codecs: [], compressorCount: 0 });
  await t.rejects(makeChunk(createEncodingPlan(bare, RAW).plan, [0, 0], short), {
    code: "corrupt-chunk",
    message: "array 'g/t': stored chunk 0.0 has 20 bytes, expected 80",
  });
  const recompress = createEncodingPlan(bare, { compressor: { id: "zlib" } }).plan;
  await t.rejects(makeChunk(recompress, [0, 0], short), { code: "corrupt-chunk", message: /20/ });
});

t.test("the cache of decoded chunks keeps to its bound", async (t) => {
  const cache = createDecodedCache(100);
  const chunk = (byteLength: number) => ({ bytes: new Uint8Array(byteLength), version: "s" });
  for (const key of ["a", "b", "c"]) cache.set(key, chunk(30));
  cache.get("a");
  cache.set("d", chunk(30));
  t.same(
    ["a", "b", "c", "d"].map((key) => cache.get(key) !== undefined),
    [true, false, true, true],
  );
  t.equal(cache.byteLength, 90);
  cache.set("e", chunk(51));
  t.equal(cache.get("e"), undefined, "more than half of it for one chunk is not kept");
  cache.set("a", chunk(10));
  t.equal(cache.byteLength, 70);
});

function unpack(bytes: Uint8Array, fields: Partial<UnpackFields>): number[] {
  const { to = "<f4", from = "<i2", ...others } = fields;
  const found = convertPiece(bytes, unpackConversion({ from, to, ...others }), OWN_MEMORY);
  const View = to === "<f4" ? Float32Array : Float64Array;
  return [...new View(found.buffer as ArrayBuffer, found.byteOffset, found.length / View.BYTES_PER_ELEMENT)];
}

t.test("items are swapped into the other byte order, in memory of their own", async (t) => {
  const bytes = Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  for (const wordSize of [2, 4, 8]) {
    const expected = [...bytes.keys()].map(
      (index) => bytes[index - (index % wordSize) + wordSize - 1 - (index % wordSize)],
    );
    for (const given of [bytes, new Uint8Array([0, ...bytes]).subarray(1)]) {
      t.same([...convertPiece(given, { kind: "swap", wordSize }, OWN_MEMORY)], expected);
      t.same([...given], [...bytes], "what was given stays");
    }
  }
});

t.test("each step is rounded to the type of the joined array", async (t) => {
  const bytes = new Uint8Array(Int16Array.of(1, 2, 12_345, -32_768).buffer);
  const [scale, offset] = [0.1, 273.15];
  const single = [1, 2, 12_345, -32_768].map((item) =>
    Math.fround(Math.fround(item * Math.fround(scale)) + Math.fround(offset)),
  );
  t.same(unpack(bytes, { scale, offset }), single);
  const double = [1, 2, 12_345, -32_768].map((item) => item * scale + offset);
  t.same(unpack(bytes, { to: "<f8", scale, offset }), double);
});

t.test("a negative zero stays one without an offset, and rows of any length are whole", async (t) => {
  const items = Float32Array.from({ length: 5000 }, (_, index) => -index);
  const found = unpack(new Uint8Array(items.buffer), { from: "<f4", to: "<f8" });
  t.ok(Object.is(found[0], -0));
  t.equal(found.length, 5000);
  t.ok(found.every((value, index) => value === -index));
  t.same(unpack(new Uint8Array(), {}), []);
});
