import { BLOSC_SHUFFLE_NAMES } from "../../zarr/plan/codec-rules.js";
import type { CodecStep } from "../../zarr/plan/encoding-plan.js";
import { type Codec, checkEncodable } from "../codec.js";
import type { InnerCodec } from "./blosc-blocks.js";
import { decodeBlosc } from "./decode-blosc.js";
import { type BloscOptions, encodeBlosc } from "./encode-blosc.js";

/** Chunks of larger items are encoded as bytes. */
const MAX_TYPE_SIZE = 255;

const SHUFFLES = ["none", "byte", "bit"] as const;
const AUTO_SHUFFLE = -1;

/** `blosc` of numcodecs. */
export const blosc: Codec = {
  decode: decodeBlosc,
  encode(bytes, step, memory) {
    checkEncodable("blosc", bytes);
    return encodeBlosc(bytes, bloscOptions(step), memory);
  },
};

function bloscOptions({ codec, itemSize }: CodecStep): BloscOptions {
  return {
    inner: codec.cname as InnerCodec,
    level: codec.clevel as number,
    shuffle: SHUFFLES[shuffleOf(codec.shuffle, itemSize)]!,
    typeSize: itemSize >= 1 && itemSize <= MAX_TYPE_SIZE ? itemSize : 1,
    forcedBlockSize: codec.blocksize as number,
  };
}

/** Resolves "automatic" by item size, as numcodecs does before it calls Blosc. */
function shuffleOf(shuffle: unknown, itemSize: number): number {
  if (shuffle === AUTO_SHUFFLE) return itemSize === 1 ? SHUFFLES.indexOf("bit") : SHUFFLES.indexOf("byte");
  return typeof shuffle === "number" ? shuffle : BLOSC_SHUFFLE_NAMES.indexOf(shuffle as string);
}
