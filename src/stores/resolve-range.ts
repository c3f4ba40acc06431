import { ZpublishError } from "../errors.js";
import type { ObjectBytes, ObjectRange, ObjectVersion, ReadObjectOptions } from "./byte-store.js";
import { allocateOwn } from "./open-file.js";

/** More bytes than this are not read at once. */
const MAX_READ_BYTES = 2 ** 31 - 1;

/** Bytes of an object that a read asks for. */
export interface ResolvedRange {
  readonly offset: number;
  readonly byteLength: number;
}

/**
 * Resolves the range of a read against the length of the object, before memory is allocated.
 * @throws ZpublishError `corrupt-chunk` if the object has not these bytes, or they are more than may be read.
 */
export function resolveRange(
  key: string,
  objectByteLength: number,
  { range, maxByteLength = MAX_READ_BYTES }: ReadObjectOptions,
): ResolvedRange {
  const resolved =
    range === undefined ? { offset: 0, byteLength: objectByteLength } : placeOf(range, objectByteLength);
  const { offset, byteLength } = resolved;
  if (range !== undefined && (offset < 0 || offset + byteLength > objectByteLength)) {
    const expected = "last" in range ? range.last : range.offset + range.byteLength;
    throw new ZpublishError(
      "corrupt-chunk",
      `'${key}': expected at least ${expected} bytes, received ${objectByteLength}`,
      { details: { key, expected, received: objectByteLength } },
    );
  }
  if (byteLength > maxByteLength) {
    throw new ZpublishError(
      "corrupt-chunk",
      `'${key}': expected at most ${maxByteLength} bytes, received ${byteLength}`,
      { details: { key, expected: maxByteLength, received: byteLength } },
    );
  }
  return resolved;
}

function placeOf(range: ObjectRange, objectByteLength: number): ResolvedRange {
  return "last" in range ? { offset: objectByteLength - range.last, byteLength: range.last } : range;
}

/**
 * Returns what a read asks for of an object that is in memory, copied into the memory that it gives.
 * @param object All of its bytes.
 * @throws ZpublishError `corrupt-chunk`, as {@link resolveRange}.
 */
export function sliceOf(
  key: string,
  object: Uint8Array,
  version: ObjectVersion,
  options: ReadObjectOptions,
): ObjectBytes {
  const { offset, byteLength } = resolveRange(key, object.length, options);
  const bytes = (options.allocate ?? allocateOwn)(byteLength);
  bytes.set(object.subarray(offset, offset + byteLength));
  return { bytes, version, objectByteLength: object.length };
}
