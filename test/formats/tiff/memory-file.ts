import { ZpublishError } from "../../../src/errors.js";
import type { FileBlocks } from "../../../src/formats/file-format.js";

/** A file in memory. */
export function memoryFile(bytes: Uint8Array, name = "image.tif"): FileBlocks {
  const view = (offset: number, byteLength: number): Uint8Array => {
    if (!(offset >= 0 && byteLength >= 0 && offset + byteLength <= bytes.length)) {
      throw new ZpublishError(
        "invalid-metadata",
        `${name}: expected ${byteLength} bytes at ${offset}, received a file of ${bytes.length}`,
      );
    }
    return bytes.subarray(offset, offset + byteLength);
  };
  return {
    name,
    byteLength: bytes.length,
    read: async (offset, byteLength) => view(offset, byteLength),
    readNow: view,
    readOnce: async (offset, byteLength) => new Uint8Array(view(offset, byteLength)),
  };
}
