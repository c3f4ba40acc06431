import { encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec } from "../../src/zarr/codec-spec.js";
import type { CodecStep } from "../../src/zarr/plan/encoding-plan.js";
import { encodedCodec } from "../../src/zarr/plan/served-codecs.js";
import { encodeLzw, encodePackbits } from "../../test/codec/tiff-encoders.js";
import { encodeHdf5 } from "./hdf5-encoder.js";

/** A codec of numcodecs.js. Its Blosc takes every item for four bytes wide. */
export interface NumcodecsJs {
  decode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
  encode(bytes: Uint8Array): Uint8Array | Promise<Uint8Array>;
}

/** The others that it has know no filters. */
const IDS: readonly string[] = ["blosc", "lz4", "zstd", "gzip", "zlib"];

/** Loads a codec of numcodecs.js; undefined if it has none of that id. */
export async function loadNumcodecsJs(codec: CodecSpec): Promise<NumcodecsJs | undefined> {
  if (!IDS.includes(codec.id)) return undefined;
  const { default: Codec } = (await import(`numcodecs/${codec.id}`)) as {
    default: { fromConfig(config: CodecSpec): NumcodecsJs };
  };
  return Codec.fromConfig(codec);
}

/** Encodes a chunk to be decoded: by numcodecs.js if Blosc has an inner codec that is only decoded here. */
export async function encodeChunk(bytes: Uint8Array, step: CodecStep): Promise<Uint8Array> {
  const filtered = (await encodeHdf5(bytes, step.codec)) ?? encodeTiff(bytes, step.codec);
  if (filtered !== undefined) return filtered;
  if (encodedCodec(step.codec) === step.codec) return encodeSteps(bytes, [step], step.codec.id);
  const codec = await loadNumcodecsJs(step.codec);
  if (codec === undefined) throw new Error(`expected a codec of numcodecs.js, received ${step.codec.id}`);
  return codec.encode(bytes);
}

/** Encodes a chunk with a codec of TIFF, which is only decoded by the server; undefined if it is none. */
function encodeTiff(bytes: Uint8Array, { id }: CodecSpec): Uint8Array | undefined {
  if (id === "packbits") return encodePackbits(bytes);
  return id === "tiff-lzw" ? encodeLzw(bytes) : undefined;
}
