import { encodeChunk } from "../../../bench/codecs/numcodecs-js.js";
import { createRandom } from "../../../bench/random.js";
import { CODECS } from "../../../src/codec/codecs.js";
import { hasJpeg } from "../../../src/codec/file-formats/jpeg.js";
import { currentKernel } from "../../../src/codec/kernel/kernel.js";
import { decodeSteps } from "../../../src/codec/run-steps.js";
import { isNumcodecsWornOut } from "../../../src/codec/zstd.js";
import { messageOf, ZpublishError } from "../../../src/errors.js";
import type { CodecSpec, CodecStep } from "../../../src/zarr/codec-step.js";
import { codecRule, completeCodec } from "../../../src/zarr/plan/codec-rules.js";
import { bloscFrame, FLAG, flagsOf, INNER, snappyStream } from "../../support/codec/blosc-frame.js";
import { chunkOfTile, JPEG_TILES } from "../../support/codec/jpeg-tiles.js";
import { mutations } from "../../support/codec/mutate-chunk.js";
import type { FuzzKind, FuzzSubject } from "./fuzz.js";

/** Decodes a chunk as a plan says. @returns Bytes in their own memory. @throws ZpublishError */
export type Decode = (bytes: Uint8Array, step: CodecStep) => Promise<Uint8Array>;

/** A decoder, and good chunks for it. */
export interface DecoderTarget {
  /** `blosc lz4, shuffle 1, items of 4 bytes`. */
  readonly name: string;
  readonly chunks: readonly GoodChunk[];
}

/** A chunk that decodes, as a plan would have it decoded. */
interface GoodChunk {
  readonly encoded: Uint8Array;
  readonly decoded: Uint8Array;
  readonly step: CodecStep;
}

/** Damaged chunks and noise for every decoder: refused as corrupt, or decoded to the planned length. */
export const codecFuzz: FuzzKind = {
  // More than chunks as small as these can need, and less than a header may promise.
  maxAllocationBytes: 16 * 2 ** 20,
  maxResidentBytes: 1024 * 2 ** 20,
  // As a worker of the server does: nothing else gives back the memory that numcodecs.js leaks.
  isWornOut: isNumcodecsWornOut,
  async open() {
    const { targets, notes } = await createDecoderTargets();
    return { subjects: targets.map((target) => decoderSubject(target)), notes };
  },
};

/** Feeds a decoder. @param decode Default: as a worker decodes. */
export function decoderSubject(target: DecoderTarget, decode: Decode = decodeInLease): FuzzSubject {
  const { name, chunks } = target;
  return {
    name,
    row: name,
    good: chunks[0]!.encoded,
    async begin(random) {
      const chunk = chunks[Math.floor(random() * chunks.length)]!;
      return {
        context: chunk.step,
        damages: mutations(
          chunk.encoded,
          chunks.map(({ encoded }) => encoded),
          random,
        ),
        async attempt({ bytes }) {
          const outcome = await outcomeOf(decode, bytes, chunk.step);
          return {
            counts: { decoded: "bytes" in outcome ? 1 : 0, refused: "refusal" in outcome ? 1 : 0 },
            problem: "problem" in outcome ? outcome.problem : undefined,
          };
        },
        async after() {
          const outcome = await outcomeOf(decode, new Uint8Array(chunk.encoded), chunk.step);
          if ("bytes" in outcome && Buffer.compare(outcome.bytes, chunk.decoded) === 0) return undefined;
          return `expected the bytes that were encoded, received ${"bytes" in outcome ? "others" : Object.values(outcome)[0]}`;
        },
      };
    },
  };
}

/** What a decoder made of a chunk. */
type Outcome = { readonly bytes: Uint8Array } | { readonly refusal: string } | { readonly problem: string };

async function outcomeOf(decode: Decode, bytes: Uint8Array, step: CodecStep): Promise<Outcome> {
  let decoded: Uint8Array;
  try {
    decoded = await decode(bytes, step);
  } catch (error) {
    if (error instanceof ZpublishError && error.code === "corrupt-chunk") return { refusal: error.message };
    const code = error instanceof ZpublishError ? `${error.code}: ` : "";
    return { problem: `expected corrupt-chunk, received ${code}${messageOf(error)}` };
  }
  const { decodedByteLength, maxDecodedByteLength } = step;
  const isPlanned =
    decodedByteLength === null
      ? decoded.length <= maxDecodedByteLength
      : decoded.length === decodedByteLength;
  if (isPlanned) return { bytes: decoded };
  return {
    problem: `expected ${decodedByteLength ?? `at most ${maxDecodedByteLength}`} bytes, received ${decoded.length}`,
  };
}

/** Bytes in front of the input that the decoder must not write to. */
const GUARD_BYTES = 64;
const GUARD = 0xa5;

/** Decodes as a worker does: from the kernel's memory into the kernel's memory. */
export async function decodeInLease(bytes: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  const lease = currentKernel().lease();
  try {
    const place = lease.allocate(GUARD_BYTES + bytes.length);
    place.fill(GUARD, 0, GUARD_BYTES);
    const input = place.subarray(GUARD_BYTES);
    input.set(bytes);
    const decoded = await decodeSteps(input, [step], "a damaged chunk", lease).catch((error: unknown) => ({
      error,
    }));
    const isWhole = place.subarray(0, GUARD_BYTES).every((byte) => byte === GUARD);
    if (!isWhole || Buffer.compare(input, bytes) !== 0) throw new Error("memory of others was written to");
    if ("error" in decoded) throw decoded.error;
    return decoded.slice();
  } finally {
    lease.end();
  }
}

/** How a target's chunks come about. */
interface TargetRule {
  readonly codec: CodecSpec;
  readonly itemSize: number;
  /** `ours`: by `encodeChunk`. `snappy`: by hand. `raw`: any bytes of a length are a chunk. `tiles`: GDAL wrote them. */
  readonly from: "ours" | "snappy" | "raw" | "tiles";
}

/** Whole items of 1, 2, 3, 4, 8 and 16 bytes; the last one is longer than the offsets of LZ4 reach. */
const BYTE_LENGTHS = [48, 1_056, 20_160, 67_200] as const;
/** Bytes before they are padded. */
const PADDED_BYTES = 40;

function blosc(cname: string, shuffle: number, itemSize: number, blocksize = 0): TargetRule {
  return {
    codec: { id: "blosc", cname, clevel: 5, shuffle, blocksize },
    itemSize,
    from: cname === "snappy" ? "snappy" : "ours",
  };
}

const ours = (codec: CodecSpec): TargetRule => ({ codec, itemSize: 1, from: "ours" });
const raw = (codec: CodecSpec): TargetRule => ({ codec, itemSize: 1, from: "raw" });

/** Rows of 48 bytes, of two bands. */
function predictor(predictor: number, itemSize: number, isBigEndian: boolean): TargetRule {
  return ours({ id: "tiff-predictor", predictor, itemSize, rowItems: 48 / itemSize, step: 2, isBigEndian });
}

const TARGETS: readonly TargetRule[] = [
  ...[0, 1, 2].flatMap((shuffle) => [1, 2, 4, 8, 16, 3].map((size) => blosc("lz4", shuffle, size))),
  ...[0, 1, 2].map((shuffle) => blosc("lz4", shuffle, 4, 1_024)),
  blosc("lz4hc", 1, 4),
  ...[0, 1, 2].flatMap((shuffle) =>
    ["blosclz", "zstd", "zlib", "snappy"].map((cname) => blosc(cname, shuffle, 4)),
  ),
  ours({ id: "lz4", acceleration: 1 }),
  ours({ id: "gzip", level: 1 }),
  ours({ id: "zlib", level: 6 }),
  ours({ id: "zstd", level: 3 }),
  ...[2, 3, 4, 8].map((elementsize) => ours({ id: "shuffle", elementsize })),
  ...["|u1", "<i2", ">i4", "<i8"].map((dtype) => ours({ id: "delta", dtype })),
  raw({ id: "delta", dtype: "<f4" }),
  raw({ id: "bitround", keepbits: 3 }),
  raw({ id: "quantize", digits: 2, dtype: "<f4", astype: "<f4" }),
  raw({ id: "fixedscaleoffset", dtype: "<f4", astype: "<f4", scale: 10, offset: 3 }),
  ...["crc32", "adler32", "crc32c"].map((id) => ours({ id })),
  ...["hdf5-fletcher32", "hdf5-lz4", "lzf"].map((id) => ours({ id })),
  ...["lz4", "zstd", null].map((cname) =>
    ours({ id: "hdf5-bitshuffle", elementsize: 4, blocksize: 1_024, cname }),
  ),
  ours({ id: "hdf5-shuffle", elementsize: 5 }),
  ours({ id: "hdf5-filters", filters: [{ id: 1, values: [6] }] }),
  raw({ id: "hdf5-text", itemSize: 6, padding: "null-terminated" }),
  raw({ id: "hdf5-text", itemSize: 5, padding: "space-padded" }),
  ours({
    id: "repack",
    itemSize: 12,
    pieces: [
      [0, 4, 1],
      [8, 2, 2],
    ],
  }),
  raw({ id: "pad", byteLength: PADDED_BYTES }),
  raw({ id: "fixed-text", dtype: "|S4", filter: "vlen-bytes", byteLength: PADDED_BYTES }),
  ours({ id: "tiff-packbits" }),
  ours({ id: "tiff-deflate", maxByteLength: 2 ** 20 }),
  ours({ id: "tiff-lzw" }),
  ...[1, 2, 4, 8].map((itemSize) => predictor(2, itemSize, false)),
  predictor(2, 2, true),
  ...[2, 4, 8].map((itemSize) => predictor(3, itemSize, false)),
  { codec: { id: "jpeg" }, itemSize: 1, from: "tiles" },
  raw({
    id: "cast_value",
    ...{
      dtype: "<f4",
      astype: "<i4",
      rounding: "towards-zero",
      out_of_range: "refuse",
      decode: [["0", "9.0"]],
    },
  }),
  raw({ id: "scale_offset", dtype: "<f4", astype: "<f4", scale: "10", offset: "3" }),
  raw({ id: "v3-packbits", componentSize: 1, firstBit: 0, bits: 8, isSigned: false, padding: "none" }),
  raw({ id: "hdf5-bits", size: 4, precision: 20, offset: 3, signed: true, endian: "big" }),
];

/** Every decoder there is, with good chunks of several lengths and kinds. @returns They, and what is left out and why. */
export async function createDecoderTargets(): Promise<{
  readonly targets: readonly DecoderTarget[];
  readonly notes: readonly string[];
}> {
  for (const id of Object.keys(CODECS)) {
    if (!TARGETS.some(({ codec }) => codec.id === id))
      throw new Error(`expected damaged chunks for every codec, received none for ${id}`);
  }
  const rules = TARGETS.filter(({ from }) => from !== "tiles" || hasJpeg());
  const targets = rules.map(async (rule) => ({ name: nameOf(rule), chunks: await chunksOf(rule) }));
  const notes = hasJpeg() ? [] : ["Without jpeg, whose optional package is not installed."];
  return { targets: await Promise.all(targets), notes };
}

async function chunksOf(rule: TargetRule): Promise<GoodChunk[]> {
  if (rule.from === "tiles") return jpegChunks();
  const chunks: GoodChunk[] = [];
  for (const [i, content] of contents().entries()) {
    const step = stepOf(rule, content.length, i % 4 === 3);
    const encoded =
      rule.from === "raw"
        ? content.subarray(0, rule.codec.byteLength as number | undefined)
        : rule.from === "snappy"
          ? snappyChunk(content)
          : await encodeChunk(content, step);
    const decoded = rule.from === "ours" ? content : await decodedOf(encoded, step);
    chunks.push({ encoded: new Uint8Array(encoded), decoded, step });
  }
  return chunks;
}

/** The first bytes of a content again and again, in one block. */
function snappyChunk(content: Uint8Array): Uint8Array {
  const stream = snappyStream(content.subarray(0, 60), content.length);
  return bloscFrame({
    flags: flagsOf(INNER.snappy, FLAG.notSplit),
    byteLength: content.length,
    blocks: [[stream]],
  });
}

/** @param isOpen As where the items are strings: a plan knows no length then, only a bound. */
function stepOf({ codec, itemSize }: TargetRule, byteLength: number, isOpen: boolean): CodecStep {
  const complete = completeCodec(codec);
  return (isOpen && codecRule(codec.id)?.askedAs === "compressor") || codec.id === "fixed-text"
    ? { codec: complete, decodedByteLength: null, maxDecodedByteLength: 2 * byteLength, itemSize }
    : { codec: complete, decodedByteLength: byteLength, maxDecodedByteLength: byteLength, itemSize };
}

function nameOf({ codec: { id, ...options }, itemSize }: TargetRule): string {
  if (id !== "blosc") return [id, ...Object.values(options).map(String)].join(" ");
  const blocks = options.blocksize === 0 ? "" : `, blocks of ${options.blocksize}`;
  return `blosc ${options.cname}, shuffle ${options.shuffle}, items of ${itemSize}${blocks}`;
}

/** Smooth, random, constant and repeating bytes of every length. */
function contents(): Uint8Array[] {
  const random = createRandom(1);
  return BYTE_LENGTHS.flatMap((byteLength) => [
    new Uint8Array(Float32Array.from({ length: byteLength / 4 }, (_, i) => Math.sin(i / 50) * 100).buffer),
    new Uint8Array(byteLength).map(() => random() * 256),
    new Uint8Array(byteLength),
    new Uint8Array(byteLength).map((_, i) => (i % 7) * (i % 100 < 90 ? 1 : i)),
  ]);
}

async function jpegChunks(): Promise<GoodChunk[]> {
  const chunks = JPEG_TILES.map(chunkOfTile).map(async ({ encoded, step }) => {
    return { encoded, decoded: await decodedOf(encoded, step), step };
  });
  return Promise.all(chunks);
}

/** What bytes that are any chunk decode to: other values, if the codec computes. */
async function decodedOf(encoded: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  return new Uint8Array(await decodeSteps(encoded, [step], step.codec.id));
}
