import { measureZstd } from "../codec/zstd-frame.js";
import type { ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";

/** Offset of the byte length of a whole Blosc chunk in its header (c-blosc, "Blosc Header Format"). */
const BLOSC_LENGTH_OFFSET = 12;
const BLOSC_HEADER_BYTES = 16;

/**
 * Refuses a stored chunk of the wrong length: it was cut short, or belongs to another array. Chunks that are passed through
 * are not decoded here, and some clients read missing bytes as zeros, or read beyond the end.
 * @param byteLength Length of the stored chunk.
 * @throws ZpublishError `corrupt-chunk`
 */
export function checkStoredLength(
  plan: EncodingPlan,
  chunkCoords: readonly number[],
  byteLength: number,
): void {
  const { storedByteLength } = plan;
  if (storedByteLength === null ? byteLength > 0 : byteLength === storedByteLength) return;
  const expected = storedByteLength === null ? "some" : storedByteLength;
  throw corrupt(plan, chunkCoords, `expected ${expected} stored bytes, received ${byteLength}`);
}

/**
 * Refuses a stored chunk whose frame is incomplete, if its codec tells that without decoding: it was cut short, or
 * partly overwritten.
 * @throws ZpublishError `corrupt-chunk`
 */
export function checkStoredFrame(
  { document, plan }: ServedArray,
  chunkCoords: readonly number[],
  bytes: Uint8Array,
): void {
  const id = document.compressor?.id;
  if (id === "blosc") checkBlosc(plan, chunkCoords, bytes);
  else if (id === "zstd" && measureZstd(bytes) === undefined)
    throw corrupt(
      plan,
      chunkCoords,
      `zstd: expected whole frames, received ${bytes.length} bytes that are not`,
    );
}

function checkBlosc(plan: EncodingPlan, chunkCoords: readonly number[], bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const expected =
    bytes.length < BLOSC_HEADER_BYTES ? BLOSC_HEADER_BYTES : view.getUint32(BLOSC_LENGTH_OFFSET, true);
  if (bytes.length >= expected) return;
  throw corrupt(plan, chunkCoords, `blosc: expected ${expected} bytes, received ${bytes.length}`);
}

function corrupt({ path }: EncodingPlan, chunkCoords: readonly number[], problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `'${path}' chunk ${chunkCoords.join(".")}: ${problem}`);
}
