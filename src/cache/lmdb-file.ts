import { type FileHandle, readFile } from "node:fs/promises";

/**
 * The outer layout of an LMDB file, data version 2 as lmdb 3.5.6 writes it: `mdb.c` (MDB_page, MDB_meta, MDB_db).
 * Little-endian. A page begins with 24 bytes of header.
 */
export const PAGE_HEADER_BYTES = 24;
/** A page with what lmdb finds its way by: header, MDB_meta. */
export const META_BYTES = PAGE_HEADER_BYTES + 168;
/** Offsets in it. */
export const META_PAGE_SIZE = 48;
export const META_FREE_ROOT = 88;
export const META_MAIN_ROOT = 136;
export const META_TXNID = 152;
const MAGIC = 0xbeefc0de;
const DATA_VERSION = 2;
const FLAG_META = 8;
/** Of the first page of a value that takes several. */
export const FLAG_OVERFLOW = 4;
const OVERLAPPING_SYNC = 0x1000;

/** One tree as its parent describes it. */
export interface LmdbTree {
  readonly name: string;
  readonly depth: number;
  readonly branchPages: number;
  readonly leafPages: number;
  readonly overflowPages: number;
  readonly entries: number;
  readonly root: number;
}

/** A snapshot: where its trees begin. */
export interface LmdbMeta {
  readonly free: LmdbTree;
  readonly main: LmdbTree;
  readonly overlapping: boolean;
  readonly lastPage: number;
  readonly txnid: number;
  readonly bootId: number;
}

/** What is read is not what LMDB would have written. */
export class Damage extends Error {}

/**
 * Bytes per page.
 * @throws Damage Where it is no LMDB file of the version we know.
 */
export async function readPageSize(file: FileHandle): Promise<number> {
  const first = await readAt(file, 0, META_BYTES);
  if (first.readUInt32LE(24) !== MAGIC) throw new Damage("it does not begin like an LMDB file");
  const version = first.readUInt32LE(28) & 0xffff;
  if (version !== DATA_VERSION) throw new Damage(`data version ${DATA_VERSION} expected, found ${version}`);
  const pageSize = first.readUInt32LE(META_PAGE_SIZE);
  if (pageSize < 512 || pageSize > 65_536 || (pageSize & (pageSize - 1)) !== 0) {
    throw new Damage(`impossible page size ${pageSize}`);
  }
  return pageSize;
}

/** Number of the last commit, to notice one. */
export async function lastTransaction(file: FileHandle): Promise<string> {
  const first = await readUpTo(file, 0, META_BYTES);
  if (first.length < META_BYTES) return `${first.length}`;
  const second = await readUpTo(file, first.readUInt32LE(48), META_BYTES);
  return `${uint64(first, 152)} ${second.length < META_BYTES ? 0 : uint64(second, 152)}`;
}

/** The metadata page that lmdb will choose: `mdb_pick_meta`, with its third one at half a page for flushed commits. */
export async function currentMeta(file: FileHandle, pageSize: number): Promise<LmdbMeta> {
  const [a, b, flushed] = await Promise.all([
    readMeta(file, 0, true),
    readMeta(file, pageSize, true),
    readMeta(file, pageSize / 2, false),
  ]);
  const latest = a.txnid >= b.txnid ? a : b;
  const bootId = await readBootId();
  if (bootId === undefined || b.txnid === 0) return bootId === undefined ? latest : a;
  return pickMeta(pickMeta(a, b, bootId), flushed, bootId);
}

function pickMeta(a: LmdbMeta, b: LmdbMeta, bootId: number): LmdbMeta {
  if (b.txnid === 0) return a;
  const latest = a.txnid >= b.txnid ? a : b;
  if ((latest.bootId !== 0 && latest.bootId === bootId) || !latest.overlapping) return latest;
  return a.txnid > b.txnid ? b : a;
}

async function readBootId(): Promise<number | undefined> {
  try {
    return Number.parseInt(await readFile("/proc/sys/kernel/random/boot_id", "ascii"), 16);
  } catch {
    return undefined;
  }
}

async function readMeta(file: FileHandle, position: number, isPage: boolean): Promise<LmdbMeta> {
  const page = await readAt(file, position, META_BYTES);
  if (isPage) {
    if ((page.readUInt16LE(18) & FLAG_META) === 0) throw new Damage(`no metadata page at ${position}`);
    if (page.readUInt32LE(24) !== MAGIC)
      throw new Damage(`metadata page at ${position} has a wrong magic number`);
  }
  return {
    free: treeAt(page, 48, "list of free pages"),
    main: treeAt(page, 96, "main"),
    overlapping: (page.readUInt16LE(52) & OVERLAPPING_SYNC) !== 0,
    lastPage: uint64(page, 144),
    txnid: uint64(page, META_TXNID),
    bootId: uint64(page, 160),
  };
}

/** The MDB_db at `offset`. */
export function treeAt(bytes: Buffer, offset: number, name: string): LmdbTree {
  return {
    name,
    depth: bytes.readUInt16LE(offset + 6),
    branchPages: uint64(bytes, offset + 8),
    leafPages: uint64(bytes, offset + 16),
    overflowPages: uint64(bytes, offset + 24),
    entries: uint64(bytes, offset + 32),
    root: uint64(bytes, offset + 40),
  };
}

/** Exactly `byteLength` bytes. @throws Damage Where the file ends before. */
export async function readAt(file: FileHandle, position: number, byteLength: number): Promise<Buffer> {
  const bytes = await readUpTo(file, position, byteLength);
  if (bytes.length < byteLength)
    throw new Damage(`it is cut short: ${byteLength} bytes expected at ${position}`);
  return bytes;
}

async function readUpTo(file: FileHandle, position: number, byteLength: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(byteLength), 0, byteLength, position);
  return buffer.subarray(0, bytesRead);
}

/** Loses digits beyond 2^53, where only damage gets. */
export function uint64(bytes: Buffer, offset: number): number {
  return bytes.readUInt32LE(offset) + bytes.readUInt32LE(offset + 4) * 2 ** 32;
}
