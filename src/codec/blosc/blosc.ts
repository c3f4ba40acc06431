import { messageOf, ZpublishError } from "../../errors.js";
import { BLOSC_SHUFFLE_NAMES } from "../../zarr/codec-rules.js";
import type { CodecStep } from "../../zarr/encoding-plan.js";
import type { Codec } from "../codec.js";
import { checkEncodable, runNumcodecs } from "../numcodecs-module.js";
import type { InnerCodec } from "./blosc-blocks.js";
import { HEADER_BYTES } from "./blosc-header.js";
import { decodeBlosc } from "./decode-blosc.js";
import { type BloscOptions, canEncodeBlosc, encodeBlosc } from "./encode-blosc.js";

/** Larger items are taken for bytes. */
const MAX_TYPE_SIZE = 255;

const SHUFFLES = ["none", "byte", "bit"] as const;
const AUTO_SHUFFLE = -1;

/** `blosc` of numcodecs. What cannot be encoded here is encoded by numcodecs.js, which takes all items for four bytes wide. */
export const blosc: Codec = {
  decode: decodeBlosc,
  encode(bytes, step, memory) {
    checkEncodable("blosc", bytes);
    const options = bloscOptions(step);
    return canEncodeBlosc(options) ? encodeBlosc(bytes, options, memory) : encodeByNumcodecs(bytes, options);
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

/** numcodecs resolves "automatic" by item size before Blosc sees it. */
function shuffleOf(shuffle: unknown, itemSize: number): number {
  if (shuffle === AUTO_SHUFFLE) return itemSize === 1 ? SHUFFLES.indexOf("bit") : SHUFFLES.indexOf("byte");
  return typeof shuffle === "number" ? shuffle : BLOSC_SHUFFLE_NAMES.indexOf(shuffle as string);
}

async function encodeByNumcodecs(
  bytes: Uint8Array,
  { inner, level, shuffle, forcedBlockSize }: BloscOptions,
): Promise<Uint8Array> {
  let encoded: Uint8Array;
  try {
    encoded = await runNumcodecs(
      "blosc",
      "encode",
      { cname: inner, clevel: level, shuffle: SHUFFLES.indexOf(shuffle), blocksize: forcedBlockSize },
      bytes,
    );
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    throw new ZpublishError("codec-failed", `blosc: ${messageOf(error)}`, { cause: error });
  }
  // A failure inside Blosc is a length of zero or less, which does not come out as an error.
  if (encoded.length < HEADER_BYTES) {
    throw new ZpublishError("codec-failed", `blosc: could not encode ${bytes.length} bytes with ${inner}`);
  }
  return encoded;
}
