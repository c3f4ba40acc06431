import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import t from "tap";
import { createWorkerFeed } from "../../src/chunk/worker-feed.js";
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
import { makeDirectory } from "../support/write-store.js";

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
    conversion: { kind: "unpack", from: "<i2", to: "<f4", scale: 0.1, offset: 3.7, missing: [257, -5] },
  },
  bytes: {
    dtype: "|u1",
    conversion: { kind: "unpack", from: "|u1", to: "<f4", scale: 0.25, offset: 0, missing: [9] },
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
  const scaled = Math.fround(item * Math.fround(conversion.scale));
  const value = conversion.missing.includes(item) ? Number.NaN : scaled + Math.fround(conversion.offset);
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
        const versions = await Promise.all(storedChunksOf(plan, coords).map((each) => reader.version(each)));
        if (made.status === "absent") return undefined;
        const version = plan.kind === "rechunk" ? combineVersions(versions) : (versions[0] ?? "");
        if (made.version !== version) throw new Error(`expected ${version}, received ${made.version}`);
        if (plan.kind === "rechunk" || reader.variantOf?.(coords) === PIECED)
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
