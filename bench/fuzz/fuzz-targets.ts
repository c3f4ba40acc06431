import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CODECS } from "../../src/codec/codecs.js";
import { decodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import { codecRule, completeCodec } from "../../src/zarr/plan/codec-rules.js";
import type { CodecStep } from "../../src/zarr/plan/encoding-plan.js";
import { startNative } from "../codecs/codec-subjects.js";
import { encodeChunk } from "../codecs/numcodecs-js.js";
import { createRandom } from "../random.js";

/** A decoder with what it is to decode. */
export interface FuzzTarget {
  /** `blosc lz4, shuffle 1, items of 4 bytes`. */
  readonly name: string;
  readonly chunks: readonly GoodChunk[];
}

/** A chunk that decodes, as a plan would have it decoded. */
export interface GoodChunk {
  readonly encoded: Uint8Array;
  readonly decoded: Uint8Array;
  readonly step: CodecStep;
}

/** How a target's chunks come about. */
interface TargetRule {
  readonly codec: CodecSpec;
  readonly itemSize: number;
  /** `ours`: by `encodeChunk`. `native`: by native numcodecs. `raw`: any bytes of a length are a chunk. */
  readonly from: "ours" | "native" | "raw";
}

/** Whole items of 1, 2, 3, 4, 8 and 16 bytes; the last one is longer than the offsets of LZ4 reach. */
const BYTE_LENGTHS = [48, 1_056, 20_160, 67_200] as const;

function blosc(cname: string, shuffle: number, itemSize: number, blocksize = 0): TargetRule {
  return {
    codec: { id: "blosc", cname, clevel: 5, shuffle, blocksize },
    itemSize,
    from: cname === "snappy" ? "native" : "ours",
  };
}

const ours = (codec: CodecSpec): TargetRule => ({ codec, itemSize: 1, from: "ours" });
const raw = (codec: CodecSpec): TargetRule => ({ codec, itemSize: 1, from: "raw" });

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
  ...["packbits", "tiff-lzw"].map((id) => ours({ id })),
  ...[
    { predictor: 2, itemSize: 1, rowItems: 24, step: 3, isBigEndian: false },
    { predictor: 2, itemSize: 2, rowItems: 12, step: 1, isBigEndian: true },
    { predictor: 3, itemSize: 4, rowItems: 6, step: 2, isBigEndian: false },
  ].map((rows) => raw({ id: "tiff-predictor", ...rows })),
  raw({ id: "hdf5-text", itemSize: 8, padding: "space-padded" }),
  ours({
    id: "repack",
    itemSize: 9,
    pieces: [
      [0, 2],
      [5, 2],
    ],
  }),
  ours({ id: "pad" }),
  raw({ id: "hdf5-bits", size: 4, precision: 20, offset: 3, signed: true, endian: "big" }),
];

/** Codecs that are not damaged here, and why. */
export const LEFT_OUT: Readonly<Record<string, string>> = {
  jpeg: "test/codec/jpeg.test.ts damages it, if its optional package is installed",
};
/** Zero bytes that `pad` appends. */
const PADDING_BYTES = 24;

/**
 * Every decoder there is, with good chunks of several lengths and kinds.
 * @param folder For files that are handed to native numcodecs.
 * @returns They, and what is left out and why.
 * @throws Error where a codec of `CODECS` is not among them.
 */
export async function createFuzzTargets(
  folder: string,
): Promise<{ readonly targets: readonly FuzzTarget[]; readonly notes: readonly string[] }> {
  for (const id of Object.keys(CODECS)) {
    if (!Object.hasOwn(LEFT_OUT, id) && !TARGETS.some(({ codec }) => codec.id === id))
      throw new Error(`expected damaged chunks for every codec, received none for ${id}`);
  }
  mkdirSync(folder, { recursive: true });
  const native = await startNative();
  const notes: string[] = [];
  if ("missing" in native)
    notes.push(`Without blosc snappy, which only native numcodecs writes: ${native.missing}.`);
  const targets: FuzzTarget[] = [];
  try {
    for (const rule of TARGETS) {
      if (rule.from === "native" && "missing" in native) continue;
      const chunks: GoodChunk[] = [];
      for (const [i, decoded] of contents().entries()) {
        if (rule.codec.id === "pad") decoded.fill(0, -PADDING_BYTES);
        const step = stepOf(rule, decoded.length, i % 4 === 3);
        const encoded =
          rule.from === "raw"
            ? decoded
            : rule.from === "ours" || "missing" in native
              ? await encodeChunk(decoded, step)
              : await encodeNative(rule, decoded, native.ask, folder);
        chunks.push({
          encoded: new Uint8Array(encoded),
          decoded: await decodedOf(rule, decoded, step),
          step,
        });
      }
      targets.push({ name: nameOf(rule), chunks });
    }
  } finally {
    if (!("missing" in native)) await native.stop();
  }
  return { targets, notes };
}

/** @param isOpen As where the items are strings: a plan knows no length then, only a bound. */
function stepOf({ codec, itemSize }: TargetRule, byteLength: number, isOpen: boolean): CodecStep {
  // Only the array's reader knows the length of a shorter chunk.
  const length = codec.id === "pad" ? { byteLength: byteLength - PADDING_BYTES } : {};
  const complete = completeCodec({ ...codec, ...length });
  return isOpen && codecRule(codec.id)?.askedAs === "compressor"
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

/** What bytes that are any chunk decode to: other values, where the codec computes. */
async function decodedOf({ from }: TargetRule, decoded: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  return from === "raw" ? new Uint8Array(await decodeSteps(decoded, [step], step.codec.id)) : decoded;
}

async function encodeNative(
  { codec, itemSize }: TargetRule,
  decoded: Uint8Array,
  ask: Exclude<Awaited<ReturnType<typeof startNative>>, { missing: string }>["ask"],
  folder: string,
): Promise<Uint8Array> {
  const [input, output] = [join(folder, "decoded"), join(folder, "encoded")];
  writeFileSync(input, decoded);
  const answer = await ask({
    job: "encode",
    codec,
    dtype: `<u${itemSize}`,
    itemSize,
    decodedByteLength: decoded.length,
    inputs: [input],
    outputs: [output],
  });
  if (!("chunks" in answer))
    throw new Error(`native ${codec.id}: ${"error" in answer ? answer.error : answer.missing}`);
  return readFileSync(output);
}
