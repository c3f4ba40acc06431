import { deflateSync } from "node:zlib";
import { encodeSteps } from "../../src/codec/run-steps.js";
import type { CodecSpec, CodecStep } from "../../src/zarr/codec-step.js";
import { encodedCodec } from "../../src/zarr/plan/codec-steps.js";
import {
  encodeLzw,
  encodePackbits,
  predictFloats,
  predictItems,
  type Rows,
} from "../../test/support/codec/tiff-encoders.js";
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
  const ofFile = (await encodeHdf5(bytes, step.codec)) ?? encodeTiff(bytes, step.codec);
  if (ofFile !== undefined) return ofFile;
  if (encodedCodec(step.codec) === step.codec) return encodeSteps(bytes, [step], step.codec.id);
  const codec = await loadNumcodecsJs(step.codec);
  if (codec === undefined) throw new Error(`expected a codec of numcodecs.js, received ${step.codec.id}`);
  return codec.encode(bytes);
}

/** Encodes a chunk with a codec of TIFF; undefined if it is none of them. */
function encodeTiff(bytes: Uint8Array, codec: CodecSpec): Uint8Array | undefined {
  const rows = codec as unknown as Rows;
  switch (codec.id) {
    case "tiff-packbits":
      return encodePackbits(bytes);
    case "tiff-deflate":
      return deflateSync(bytes);
    case "tiff-lzw":
      return encodeLzw(bytes);
    case "tiff-predictor":
      return codec.predictor === 3 ? predictFloats(bytes, rows) : predictItems(bytes, rows);
    default:
      return undefined;
  }
}
