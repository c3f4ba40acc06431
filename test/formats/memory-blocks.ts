import { ZpublishError } from "../../src/errors.js";
import type { FileBlocks } from "../../src/formats/file-format.js";

/**
 * Serves the bytes of a file from memory.
 * @param isCold Whether bytes have to be fetched before `readNow` has them.
 * @param onRead Receives each read.
 */
export function memoryBlocks(
  bytes: Uint8Array,
  isCold = false,
  onRead: (offset: number, byteLength: number) => void = () => {},
): FileBlocks & { readonly reads: number } {
  let reads = 0;
  const known = new Set<number>();
  const blockOf = (offset: number): number => Math.floor(offset / 4096);
  const isInside = (offset: number, byteLength: number): boolean =>
    Number.isSafeInteger(offset) && offset >= 0 && byteLength >= 0 && offset + byteLength <= bytes.length;
  async function read(offset: number, byteLength: number): Promise<Uint8Array<ArrayBuffer>> {
    if (!isInside(offset, byteLength)) {
      throw new ZpublishError(
        "invalid-metadata",
        `expected bytes inside the file, received ${byteLength} bytes at ${offset}`,
      );
    }
    await Promise.resolve();
    onRead(offset, byteLength);
    if (!known.has(blockOf(offset))) reads++;
    for (let block = blockOf(offset); block <= blockOf(offset + byteLength); block++) known.add(block);
    return new Uint8Array(bytes.subarray(offset, offset + byteLength));
  }
  return {
    name: "file.h5",
    byteLength: bytes.length,
    get reads() {
      return reads;
    },
    read,
    readOnce: read,
    readNow(offset, byteLength) {
      if (!isInside(offset, byteLength)) return undefined;
      for (let block = blockOf(offset); block <= blockOf(offset + byteLength); block++) {
        if (isCold && !known.has(block)) return undefined;
      }
      return bytes.subarray(offset, offset + byteLength);
    },
  };
}
