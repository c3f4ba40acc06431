import type { CodecSpec, CodecStep } from "../../zarr/codec-step.js";
import type { Codec } from "../codec.js";
import { zlib } from "../deflate.js";
import type { Kernel } from "../kernel/kernel.js";
import { zstd } from "../zstd.js";
import type { InnerCodec } from "./blosc-frame.js";

/** The encoder of one stream: synchronous in the kernel, or into memory of its own. */
export type StreamEncoder =
  | { readonly place: "kernel"; readonly encode: EncodeInto }
  | { readonly place: "apart"; readonly encode: (source: Uint8Array) => Promise<Uint8Array> };

/** Encodes a stream. @returns Bytes at the beginning of the target; 0 if they do not fit. */
export type EncodeInto = (source: Uint8Array, target: Uint8Array) => number;

/** Selects the encoder of a block's streams. @param level 1 to 9. */
export function streamEncoder(kernel: Kernel, inner: InnerCodec, level: number): StreamEncoder {
  const codec = innerCodecSpec(inner, level);
  if (codec !== undefined) return { place: "apart", encode: (source) => encodeInner(codec, source) };
  // The acceleration is c-blosc's.
  return { place: "kernel", encode: (source, target) => kernel.encodeLz4(source, target, 10 - level) };
}

const MAX_ZSTD_LEVEL = 22;

/** The codec of numcodecs that writes the same streams; undefined for lz4, whose codec adds a header. */
export function innerCodecSpec(inner: InnerCodec, level: number): CodecSpec | undefined {
  if (inner === "zlib") return { id: "zlib", level };
  if (inner !== "zstd") return undefined;
  // As in c-blosc.
  const zstdLevel = level === 9 ? MAX_ZSTD_LEVEL : level === 8 ? MAX_ZSTD_LEVEL - 2 : level * 2 - 1;
  return { id: "zstd", level: zstdLevel };
}

const APART: Readonly<Record<string, Codec["encode"]>> = { zlib: zlib.encode, zstd: zstd.encode };

async function encodeInner(codec: CodecSpec, source: Uint8Array): Promise<Uint8Array> {
  return (await APART[codec.id]?.(source, streamStep(codec, source.length))) as Uint8Array;
}

/** The step that decodes or encodes one stream. */
export function streamStep(codec: CodecSpec, decodedByteLength: number): CodecStep {
  return { codec, decodedByteLength, maxDecodedByteLength: decodedByteLength, itemSize: 1 };
}
