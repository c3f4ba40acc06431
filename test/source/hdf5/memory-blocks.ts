import { ZpublishError } from "../../../src/errors.js";
import type { FileBlocks } from "../../../src/source/formats/file-format.js";

/** Returns a file that is in memory. `isSlow` makes every read wait. */
export function memoryBlocks(bytes: Uint8Array, isSlow = false): FileBlocks {
  const isInside = (offset: number, byteLength: number): boolean =>
    Number.isSafeInteger(offset) && offset >= 0 && byteLength >= 0 && offset + byteLength <= bytes.length;
  const view = (offset: number, byteLength: number): Uint8Array => {
    if (isInside(offset, byteLength)) return bytes.subarray(offset, offset + byteLength);
    throw new ZpublishError("invalid-metadata", `no bytes ${offset} to ${offset + byteLength} in the file`);
  };
  return {
    name: "memory",
    byteLength: bytes.length,
    readNow: (offset, byteLength) =>
      isSlow || !isInside(offset, byteLength) ? undefined : view(offset, byteLength),
    read: async (offset, byteLength) => view(offset, byteLength),
    readOnce: async (offset, byteLength) => Uint8Array.from(view(offset, byteLength)),
  };
}
