import { ZpublishError } from "../../../errors.js";
import { createSlice } from "../../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../../file-format.js";
import { lookup3 } from "../bytes.js";

/** Longest node or block. HDF5 writes some 100 KB at most, unless the writer asked for enormous B-tree nodes. */
const MAX_BLOCK_BYTES = 4 * 2 ** 20;
/** Blocks that are fetched at a time if they are not in memory. */
const FETCHED_AT_ONCE = 8;
const CHECKSUM_BYTES = 4;

/** The blocks that one index of chunks consists of. Addresses are as the index has them. */
export interface IndexBlocks {
  /**
   * Reads a block without a checksum.
   * @param what Name of the block for messages.
   * @throws ZpublishError `invalid-metadata` if it is too long, or not inside the file, or if the blocks of the index together
   * are longer than the file; else as `FileBlocks.read`.
   */
  read(address: number, byteLength: number, what: string): Promise<DataView>;
  /**
   * Reads a block, checks its signature (if any) and the checksum at its end, and returns it without the checksum.
   * @throws As `read`, and if the block is damaged.
   */
  readChecked(address: number, byteLength: number, signature: string, what: string): Promise<DataView>;
  /** Fetches the beginnings of some blocks at once, from that at `from` on, if this one is not in memory. */
  prefetch(addresses: readonly number[], from: number, byteLength: number): Promise<void>;
  /** Lets the event loop run if it has waited for some milliseconds: for long loops without a read. */
  pause(): Promise<void>;
}

/** Creates a reader of the blocks of one index. @param baseAddress Offset in the file that addresses count from. */
export function createIndexBlocks(file: FileBlocks, baseAddress: number): IndexBlocks {
  const slice = createSlice();
  // Blocks of an index do not overlap, so that its whole is shorter than the file. This ends every kind of loop.
  let bytesLeft = file.byteLength;

  async function read(address: number, byteLength: number, what: string): Promise<DataView> {
    if (byteLength > MAX_BLOCK_BYTES) {
      throw damaged(`expected a ${what} of at most ${MAX_BLOCK_BYTES} bytes, received ${byteLength}`);
    }
    bytesLeft -= byteLength;
    if (bytesLeft < 0) throw damaged("expected an index shorter than the file, received a longer one");
    if (slice.isOver()) await slice.next();
    const offset = baseAddress + address;
    const bytes = file.readNow(offset, byteLength) ?? (await file.read(offset, byteLength));
    return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  return {
    read,
    async pause() {
      if (slice.isOver()) await slice.next();
    },
    async readChecked(address, byteLength, signature, what) {
      const view = await read(address, byteLength, what);
      checkSignature(view, signature, what);
      const end = byteLength - CHECKSUM_BYTES;
      const expected = view.getUint32(end, true);
      const received = lookup3(new Uint8Array(view.buffer, view.byteOffset, end));
      if (received !== expected) {
        throw damaged(`expected a ${what} with checksum ${hex(expected)}, received ${hex(received)}`);
      }
      return new DataView(view.buffer, view.byteOffset, end);
    },
    async prefetch(addresses, from, byteLength) {
      const first = addresses[from];
      if (first === undefined || file.readNow(baseAddress + first, byteLength) !== undefined) return;
      const next = addresses.slice(from, from + FETCHED_AT_ONCE).map((address) => baseAddress + address);
      const inside = next.filter((offset) => offset + byteLength <= file.byteLength);
      await Promise.all(inside.map((offset) => file.read(offset, byteLength)));
    },
  };
}

/** Checks the four letters that a block begins with. @throws ZpublishError `invalid-metadata` */
export function checkSignature(view: DataView, signature: string, what: string): void {
  for (let i = 0; i < signature.length; i++) {
    if (view.getUint8(i) === signature.charCodeAt(i)) continue;
    throw damaged(`expected a ${what} with the signature ${signature}, received other bytes`);
  }
}

/** Creates an error about an index of chunks. */
export function damaged(problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `index of chunks: ${problem}`);
}

/** Reads a little-endian unsigned integer of up to 8 bytes; it is inexact above 2^53. */
export function uintAt(view: DataView, at: number, byteLength: number): number {
  if (byteLength === 8) return view.getUint32(at, true) + view.getUint32(at + 4, true) * 2 ** 32;
  let value = 0;
  for (let i = byteLength - 1; i >= 0; i--) value = value * 256 + view.getUint8(at + i);
  return value;
}

/** Reads an address of 8 bytes; null if it is undefined (all bits are ones). */
export function addressAt(view: DataView, at: number): number | null {
  const low = view.getUint32(at, true);
  const high = view.getUint32(at + 4, true);
  return low === 0xffffffff && high === 0xffffffff ? null : low + high * 2 ** 32;
}

function hex(value: number): string {
  return value.toString(16).padStart(8, "0");
}
