import type { CodecSpec } from "../../zarr/codec-spec.js";
import type { CodecStep } from "../../zarr/encoding-plan.js";
import type { Codec } from "../codec.js";
import type { Kernel } from "../kernel/kernel.js";
import { zlib } from "../zlib.js";
import { zstd } from "../zstd.js";
import type { InnerCodec } from "./blosc-blocks.js";

/** Encodes one stream of a block: in the kernel, at once, or apart, to memory of its own. */
export type StreamEncoder =
  | { readonly place: "kernel"; readonly encode: EncodeInto }
  | { readonly place: "apart"; readonly encode: (source: Uint8Array) => Promise<Uint8Array> };

/** @returns Bytes at the beginning of the target; 0: they do not fit into it. */
export type EncodeInto = (source: Uint8Array, target: Uint8Array) => number;

/**
 * @param level 1 to 9.
 * @param isSplit Whether the chunk's blocks are split, which BloscLZ goes by, also for a last block that is not; default
 * false.
 * @returns Undefined: nothing here encodes such streams.
 */
export function streamEncoder(
  kernel: Kernel,
  inner: InnerCodec,
  level: number,
  isSplit = false,
): StreamEncoder | undefined {
  const encode = kernelEncoder(kernel, inner, level, isSplit);
  if (encode !== undefined) return { place: "kernel", encode };
  const codec = innerCodecSpec(inner, level);
  return codec && { place: "apart", encode: (source) => encodeApart(codec, source) };
}

function kernelEncoder(
  { encodeLz4, encodeLz4hc, encodeBlosclz }: Kernel,
  inner: InnerCodec,
  level: number,
  isSplit: boolean,
): EncodeInto | undefined {
  if (inner === "lz4" && encodeLz4 !== undefined) {
    // The acceleration is c-blosc's.
    return (source, target) => encodeLz4(source, target, 10 - level);
  }
  if (inner === "lz4hc" && encodeLz4hc !== undefined) {
    return (source, target) => encodeLz4hc(source, target, level);
  }
  if (inner === "blosclz" && encodeBlosclz !== undefined) {
    return (source, target) => encodeBlosclz(source, target, level, isSplit);
  }
  return undefined;
}

const MAX_ZSTD_LEVEL = 22;

/** The codec of numcodecs that writes the same streams; undefined where they are no codec of its own. */
export function innerCodecSpec(inner: InnerCodec, level: number): CodecSpec | undefined {
  if (inner === "zlib") return { id: "zlib", level };
  if (inner !== "zstd") return undefined;
  // As c-blosc has it.
  const zstdLevel = level === 9 ? MAX_ZSTD_LEVEL : level === 8 ? MAX_ZSTD_LEVEL - 2 : level * 2 - 1;
  return { id: "zstd", level: zstdLevel };
}

const APART: Readonly<Record<string, Codec["encode"]>> = { zlib: zlib.encode, zstd: zstd.encode };

async function encodeApart(codec: CodecSpec, source: Uint8Array): Promise<Uint8Array> {
  return (await APART[codec.id]?.(source, streamStep(codec, source.length))) as Uint8Array;
}

/** A stream as a step of a plan of its own. */
export function streamStep(codec: CodecSpec, decodedByteLength: number): CodecStep {
  return { codec, decodedByteLength, maxDecodedByteLength: decodedByteLength, itemSize: 1 };
}
