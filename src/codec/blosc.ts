import { messageOf, ZpublishError } from "../errors.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import { decodeBlosc } from "./blosc-container.js";
import type { Codec } from "./codec.js";
import { checkEncodable, runNumcodecs } from "./numcodecs-module.js";

const NO_SHUFFLE = 0;
const BYTE_SHUFFLE = 1;
const BIT_SHUFFLE = 2;
const AUTO_SHUFFLE = -1;

/** Smallest header of a chunk that is not empty. */
const HEADER_BYTES = 16;

/** `blosc` of numcodecs. Decoded here, with every bound checked; encoded by numcodecs.js. */
export const blosc: Codec = {
  decode: decodeBlosc,
  async encode(bytes, step) {
    checkEncodable("blosc", bytes);
    const { cname, clevel, blocksize } = step.codec;
    let encoded: Uint8Array;
    try {
      encoded = await runNumcodecs(
        "blosc",
        "encode",
        { cname, clevel, shuffle: shuffleOf(step), blocksize },
        bytes,
      );
    } catch (error) {
      if (error instanceof ZpublishError) throw error;
      throw new ZpublishError("codec-failed", `blosc: ${messageOf(error)}`, { cause: error });
    }
    // A failure inside Blosc is a length of zero or less, which does not come out as an error.
    if (encoded.length < HEADER_BYTES) {
      throw new ZpublishError("codec-failed", `blosc: could not encode ${bytes.length} bytes with ${cname}`);
    }
    return encoded;
  },
};

/** numcodecs resolves "automatic" by item size before Blosc sees it; the build inside numcodecs.js fails on -1. */
function shuffleOf({ codec, itemSize }: CodecStep): number {
  if (codec.shuffle === AUTO_SHUFFLE) return itemSize === 1 ? BIT_SHUFFLE : BYTE_SHUFFLE;
  return typeof codec.shuffle === "number" ? codec.shuffle : NO_SHUFFLE;
}
