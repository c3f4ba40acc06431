import t from "tap";
import { encodeChunk } from "../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../bench/random.js";
import { CODECS } from "../../src/codec/codecs.js";
import { hasJpeg } from "../../src/codec/file-formats/jpeg.js";
import { decodeSteps, encodeSteps } from "../../src/codec/run-steps.js";
import { ZpublishError } from "../../src/errors.js";
import type { CodecSpec, CodecStep } from "../../src/zarr/codec-step.js";
import { codecRule } from "../../src/zarr/plan/codec-rules.js";
import { bloscFrame, INNER, snappyStream } from "../support/codec/blosc-frame.js";
import { PLAIN, streamFrame } from "../support/codec/hostile-frame.js";
import { chunkOfTile, JPEG_TILES } from "../support/codec/jpeg-tiles.js";
import { MUTATION_KINDS, mutations } from "../support/codec/mutate-chunk.js";
import { SAMPLE_KINDS, sampleOf } from "../support/codec/sample-bytes.js";
import { reportFailures, stepOf } from "../support/codec/steps.js";
import { effort } from "../support/effort.js";

t.setTimeout(240_000);

const CHUNK_NAME = "array 'a/b': stored chunk 0.1";

/** Every mutation so many times, for each good chunk; a tenth of it for long ones. */
const ROUNDS = effort(120);
/** Whole items of every size below. */
const BYTE_LENGTH = 6048;
/** Farther than LZ4 reaches, in several blocks. */
const LONG_BYTE_LENGTH = 131_040;
const ITEM_SIZES = [1, 2, 3, 4, 8, 16];

const FUZZED: CodecSpec[] = [
  ...["lz4", "lz4hc", "blosclz", "zlib", "zstd"].flatMap((cname) =>
    [0, 1, 2].flatMap((shuffle) =>
      [0, 512].map((blocksize) => ({ id: "blosc", cname, clevel: 5, shuffle, blocksize })),
    ),
  ),
  { id: "blosc", cname: "lz4", clevel: 0, shuffle: 1, blocksize: 0 },
  ...["lz4", "zstd", "gzip", "zlib", "adler32", "bitround", "crc32", "crc32c", "quantize"].map((id) => ({
    id,
  })),
  ...["hdf5-fletcher32", "hdf5-lz4", "lzf"].map((id) => ({ id })),
  ...["lz4", "zstd", null].map((cname) => ({
    id: "hdf5-bitshuffle",
    elementsize: 4,
    blocksize: 256,
    cname,
  })),
  { id: "hdf5-bits", size: 2, precision: 11, offset: 3, signed: true, endian: "little" },
  { id: "pad", byteLength: 6000 },
  ...["null-terminated", "space-padded"].map((padding) => ({ id: "hdf5-text", itemSize: 5, padding })),
  { id: "hdf5-text", itemSize: 5, padding: "null-padded", charset: "utf-8" },
  {
    id: "repack",
    itemSize: 12,
    pieces: [
      [0, 4, 1],
      [8, 2, 2],
    ],
  },
  ...[2, 3].flatMap((predictor) =>
    [1, 2, 4, 8].map((itemSize) => ({
      ...{ id: "tiff-predictor", predictor, itemSize, rowItems: 48 / itemSize, step: 2 },
      isBigEndian: itemSize === 4,
    })),
  ),
  ...[2, 5].map((elementsize) => ({ id: "hdf5-shuffle", elementsize })),
  ...[2, 4, 12].map((elementsize) => ({ id: "shuffle", elementsize })),
  ...["<i2", ">i4", "<u8", "<f4"].map((dtype) => ({ id: "delta", dtype, astype: dtype })),
  { id: "delta", dtype: "<i2", astype: "<i8" },
  { id: "fixedscaleoffset", dtype: "<f8", astype: "<i2", scale: 10, offset: 3 },
];

const LONG_FUZZED: CodecSpec[] = [
  ...[0, 1, 2].map((shuffle) => ({ id: "blosc", cname: "lz4", clevel: 5, shuffle, blocksize: 16_384 })),
  ...["lz4", "zstd", "gzip"].map((id) => ({ id })),
];

/** Codecs that cannot tell how long a chunk is. */
const FUZZED_OF_LENGTH: readonly (readonly [CodecSpec, byteLength: number])[] = [
  [{ id: "hdf5-filters", filters: [{ id: 1, values: [6] }] }, 600],
  [{ id: "tiff-deflate", maxByteLength: BYTE_LENGTH }, BYTE_LENGTH],
  ...["tiff-lzw", "tiff-packbits"].map((id) => [{ id }, BYTE_LENGTH] as const),
];

/** A good chunk, and what it decodes to. */
interface Seed {
  readonly label: string;
  readonly step: CodecStep;
  readonly encoded: Uint8Array;
  readonly original: Uint8Array;
}

t.test("damaged chunks and noise give the planned length or an error that names the chunk", async (t) => {
  const seeds = await plantSeeds();
  const ids = Object.keys(CODECS).filter((id) => id !== "jpeg" || hasJpeg());
  t.same([...new Set(seeds.map(({ step }) => step.codec.id))].sort(), ids.sort());
  const others = seeds.map(({ encoded }) => encoded);
  const failures: string[] = [];
  let count = 0;
  for (const [index, seed] of seeds.entries()) {
    const damaged = mutations(seed.encoded, others, createRandom(index + 1));
    const rounds = seed.original.length < LONG_BYTE_LENGTH ? ROUNDS : ROUNDS / 10;
    for (let round = 0; round < rounds; round++) {
      for (let kind = 0; kind < MUTATION_KINDS.length; kind++) {
        const { value } = damaged.next();
        count++;
        const problem = await problemOf(value.bytes, seed.step, count);
        if (problem !== undefined) failures.push(`${seed.label}, round ${round}, ${value.kind}: ${problem}`);
      }
      const again = await decodeSteps(seed.encoded, [seed.step], CHUNK_NAME);
      if (Buffer.compare(again, seed.original) !== 0) {
        failures.push(`${seed.label}, round ${round}: the good chunk decodes to other bytes`);
      }
    }
  }
  reportFailures(t, failures, count);
});

/** What is wrong with how a damaged chunk is decoded; undefined: nothing. */
async function problemOf(chunk: Uint8Array, planned: CodecStep, turn: number): Promise<string | undefined> {
  const { maxDecodedByteLength } = planned;
  // A plan that knows the length lets nobody see what decoders do to headers of their own choice.
  const isKnown = turn % 3 !== 0;
  const step = isKnown ? planned : { ...planned, decodedByteLength: null };
  const before = Buffer.from(chunk);
  try {
    const { length } = await decodeSteps(chunk, [step], CHUNK_NAME);
    if (isKnown ? length !== maxDecodedByteLength : length > maxDecodedByteLength) return `${length} bytes`;
  } catch (error) {
    if (!(error instanceof ZpublishError)) return `thrown: ${error}`;
    if (error.code !== "corrupt-chunk") return `${error.code}: ${error.message}`;
    if (!error.message.startsWith(`${CHUNK_NAME}: `)) return `no name: ${error.message}`;
  }
  return before.equals(chunk) ? undefined : "the chunk was changed";
}

async function plantSeeds(): Promise<Seed[]> {
  const seeds: Seed[] = [];
  for (const [index, codec] of [...FUZZED, ...LONG_FUZZED].entries()) {
    const itemSize = ITEM_SIZES[index % ITEM_SIZES.length]!;
    const kind = SAMPLE_KINDS[index % SAMPLE_KINDS.length]!;
    const byteLength = index < FUZZED.length ? BYTE_LENGTH : LONG_BYTE_LENGTH;
    const sample = sampleOf(kind, byteLength, itemSize);
    const step = stepOf(codec, sample.length, itemSize);
    const label = `${JSON.stringify(codec)} of ${kind} in items of ${itemSize}`;
    seeds.push(await seedOf(codec, await encodedBy(sample, step), label));
  }
  for (const [codec, byteLength] of FUZZED_OF_LENGTH) {
    const encoded = await encodeChunk(sampleOf("words", byteLength), stepOf(codec, byteLength));
    seeds.push(await seedOf(codec, encoded, JSON.stringify(codec), byteLength));
  }
  if (hasJpeg()) {
    for (const tile of JPEG_TILES) {
      const { encoded, step } = chunkOfTile(tile);
      seeds.push(await seedOf(step.codec, encoded, `jpeg: ${tile.name}`, step.decodedByteLength));
    }
  }
  // Thousands that are refused: numcodecs.js loses some of its stack with each.
  for (const kind of SAMPLE_KINDS) {
    const codec = { id: "zstd", level: 5 };
    const label = `${JSON.stringify(codec)} of 600 ${kind} bytes`;
    seeds.push(
      await seedOf(codec, await encodeSteps(sampleOf(kind, 600), [stepOf(codec, 600)], label), label),
    );
  }
  const snappy = bloscFrame(streamFrame(INNER.snappy, snappyStream(PLAIN.subarray(0, 60), PLAIN.length)));
  seeds.push(await seedOf({ id: "blosc", cname: "snappy" }, snappy, "Snappy, made by hand"));
  return seeds;
}

/** Encodes a chunk. What is only decoded takes any whole items for one. */
async function encodedBy(sample: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  const { id } = step.codec;
  const isEncoded = CODECS[id]?.encode !== undefined || codecRule(id)?.isInternal === true;
  return isEncoded ? encodeChunk(sample, step) : sample;
}

/** What a chunk decodes to at first is right here: filters of floats round, and other tests ask for more. */
async function seedOf(
  codec: CodecSpec,
  encoded: Uint8Array,
  label: string,
  byteLength: number | null = null,
): Promise<Seed> {
  const original = new Uint8Array(await decodeSteps(encoded, [stepOf(codec, byteLength)], label));
  return { label, step: stepOf(codec, original.length), encoded, original };
}
