import { corrupt } from "../../../codec/codec.js";
import { decodeSnappyBlock } from "../../../codec/plain/block-decoders.js";
import { zstd } from "../../../codec/zstd.js";

const UNCOMPRESSED = 0;
const SNAPPY = 1;
const ZSTD = 6;

const MAX_PAGE_BYTES = 256 * 2 ** 20;
/** A copy of Snappy makes 64 bytes of three. */
const MAX_SNAPPY_RATIO = 32;

/**
 * Decompresses a page of a Parquet file.
 * @param codec Number of the codec in the column's metadata.
 * @param byteLength Length that the page's header announces.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function decompressPage(
  codec: number,
  bytes: Uint8Array,
  byteLength: number,
): Promise<Uint8Array> {
  if (byteLength < 0 || byteLength > MAX_PAGE_BYTES) {
    throw corrupt(`expected a page of at most ${MAX_PAGE_BYTES} bytes, received ${byteLength}`);
  }
  const decoded = byteLength === 0 ? new Uint8Array(0) : await decode(codec, bytes, byteLength);
  if (decoded.length !== byteLength)
    throw corrupt(`expected a page of ${byteLength} bytes, received ${decoded.length}`);
  return decoded;
}

async function decode(codec: number, bytes: Uint8Array, byteLength: number): Promise<Uint8Array> {
  if (codec === UNCOMPRESSED) return bytes;
  if (codec === SNAPPY) return decodeSnappy(bytes, byteLength);
  if (codec !== ZSTD)
    throw corrupt(`expected a page without compression, of zstd or of snappy, received codec ${codec}`);
  return zstd.decode(bytes, {
    codec: { id: "zstd" },
    decodedByteLength: byteLength,
    maxDecodedByteLength: byteLength,
    itemSize: 1,
  });
}

function decodeSnappy(bytes: Uint8Array, byteLength: number): Uint8Array {
  if (byteLength > (bytes.length + 1) * MAX_SNAPPY_RATIO) {
    throw corrupt(`snappy: ${bytes.length} bytes cannot decode to ${byteLength}`);
  }
  const decoded = new Uint8Array(byteLength);
  if (!decodeSnappyBlock(bytes, decoded))
    throw corrupt(`snappy: expected ${byteLength} bytes, received others`);
  return decoded;
}
