import type { CodecStep } from "../../zarr/codec-step.js";
import { bloscShuffleOf } from "../../zarr/plan/codec-rules.js";
import { type Codec, checkEncodable } from "../codec.js";
import type { InnerCodec } from "./blosc-frame.js";
import { decodeBlosc } from "./decode-blosc.js";
import { type BloscOptions, encodeBlosc } from "./encode-blosc.js";

/** Chunks of larger items are encoded as bytes. */
const MAX_TYPE_SIZE = 255;

const SHUFFLES = ["none", "byte", "bit"] as const;

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
    shuffle: SHUFFLES[bloscShuffleOf(codec.shuffle, itemSize)]!,
    typeSize: itemSize >= 1 && itemSize <= MAX_TYPE_SIZE ? itemSize : 1,
    forcedBlockSize: codec.blocksize as number,
  };
}
