import type { FileBlocks } from "../file-format.js";
import { ByteCursor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import { checkChecksum } from "./lookup3.js";

const SIGNATURE = Uint8Array.of(0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a);

/** Offset of the first superblock behind a user block; further ones are at the powers of two. */
const FIRST_USER_BLOCK = 512;

/** Bytes of the longest superblock: version 1 has 100. */
const SUPERBLOCK_BYTES = 100;

/** The only size of addresses and lengths that is read. The library writes others if a program insists. */
const FIELD_BYTES = 8;

/** Bytes of driver information that are read: its header, with the name of the driver. */
const DRIVER_BYTES = 16;

/** A program that has the file open for writing. */
const OPEN_FOR_WRITING = 0x01;

/** The superblock (HDF5 File Format Specification, II.A). Addresses are as stored. */
export interface Superblock {
  /** Offset in the file that all addresses count from: that of the superblock, which need not be as stored. */
  readonly baseAddress: number;
  readonly rootAddress: number;
  /** Object header with messages about the file; null if there is none. */
  readonly extensionAddress: number | null;
  /** True if a program has not closed the file yet (version 3). */
  readonly isOpenForWriting: boolean;
}

/**
 * Tells if a file is HDF5.
 * @param head First 4,096 bytes of the file, or all of a shorter one. So a user block may have 2,048 bytes.
 */
export function isHdf5(head: Uint8Array): boolean {
  for (let at = 0; at + SIGNATURE.length <= head.length; at = nextPlace(at)) {
    if (hasSignature(head, at)) return true;
  }
  return false;
}

/**
 * Finds and reads the superblock.
 * @throws ZpublishError `invalid-metadata` if there is none, or if the file is cut short; `unsupported`, `source-unreadable`,
 * `source-changed`
 */
export async function readSuperblock(file: FileBlocks): Promise<Superblock> {
  for (let at = 0; at + SIGNATURE.length <= file.byteLength; at = nextPlace(at)) {
    const byteLength = Math.min(SUPERBLOCK_BYTES, file.byteLength - at);
    const bytes = file.readNow(at, byteLength) ?? (await file.read(at, byteLength));
    if (hasSignature(bytes, 0)) return parseSuperblock(file, bytes, at);
  }
  throw invalidFile("expected a superblock, received a file without its signature");
}

async function parseSuperblock(file: FileBlocks, bytes: Uint8Array, place: number): Promise<Superblock> {
  const cursor = new ByteCursor(bytes, "superblock");
  cursor.skip(SIGNATURE.length);
  const version = cursor.version(0, 3);
  if (version < 2) cursor.skip(4);
  const [addressBytes, lengthBytes] = [cursor.u8(), cursor.u8()];
  if (addressBytes !== FIELD_BYTES || lengthBytes !== FIELD_BYTES) {
    throw unsupportedFile(
      `expected addresses and lengths of ${FIELD_BYTES} bytes, received ${addressBytes} and ${lengthBytes}`,
    );
  }
  const flags = cursor.u8();
  // Version 0 and 1: ranks of B-trees and flags, which a reader does not need.
  if (version < 2) cursor.skip(version === 0 ? 8 : 12);
  const storedBase = cursor.address();
  // The address of free space or of the extension.
  const second = cursor.optional();
  const endAt = cursor.at;
  cursor.skip(8);
  // Files of drivers have addresses of others: these are refused first.
  if (version < 2) await checkDriver(file, place, cursor.optional());
  // Versions 0 and 1 have a symbol table entry, which begins with the offset of a name.
  if (version < 2) cursor.skip(8);
  const rootAddress = cursor.address();
  if (version >= 2) checkChecksum(bytes.subarray(0, cursor.at + 4), "superblock");
  // A user block that was added or removed moves the end, too.
  const end = new ByteCursor(bytes, "superblock", endAt).address() + place - storedBase;
  if (end > file.byteLength) {
    throw invalidFile(`the file is cut short: expected at least ${end} bytes, received ${file.byteLength}`);
  }
  return {
    baseAddress: place,
    rootAddress,
    extensionAddress: version < 2 ? null : second,
    isOpenForWriting: version === 3 && (flags & OPEN_FOR_WRITING) !== 0,
  };
}

/** @throws ZpublishError `unsupported` if a driver spreads the file over several (HDF5 File Format Specification, II.B) */
async function checkDriver(file: FileBlocks, place: number, address: number | null): Promise<void> {
  if (address === null) return;
  const cursor = new ByteCursor(await file.read(place + address, DRIVER_BYTES), "driver information");
  cursor.version(0, 0);
  cursor.skip(7);
  throw unsupportedFile(
    `the file is one of several, written by the driver ${JSON.stringify(cursor.text(8))}`,
  );
}

function hasSignature(bytes: Uint8Array, at: number): boolean {
  return SIGNATURE.every((byte, i) => bytes[at + i] === byte);
}

function nextPlace(place: number): number {
  return place === 0 ? FIRST_USER_BLOCK : place * 2;
}
