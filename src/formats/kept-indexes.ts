import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";
import { isLosslessNumber, LosslessNumber } from "lossless-json";
import { createSlice } from "../event-loop/cooperative-task.js";
import { joined } from "../event-loop/joined.js";
import { workThrough } from "../event-loop/work-through.js";
import type { ByteStore } from "../stores/byte-store.js";
import type { FileArray, FileGroup, FileIndex } from "./file-index.js";

/** Begins every record; another number for another layout. */
const MAGIC = Buffer.from("zpindex2");
/** Bytes of the magic number and the checksum of all that follows. */
const HEAD_BYTES = 12;
const LENGTH_BYTES = 4;

/** Part of an index before its arrays. */
interface IndexHead {
  readonly index: Omit<FileIndex, "groups">;
  readonly groups: readonly (Omit<FileGroup, "arrays"> & { readonly arrayCount: number })[];
}

/** An index, and the stamp that it was written with. */
interface StampedIndex {
  readonly stamp: string;
  readonly index: FileIndex;
}

/** Writes an index as bytes, one array at a time. @param stamp As in {@link writeRecord}. */
export function writeIndexRecord(stamp: string, index: FileIndex): Promise<Buffer[]> {
  const { groups, ...rest } = index;
  const head: IndexHead = {
    index: rest,
    groups: groups.map(({ path, attrs, arrays }) => ({ path, attrs, arrayCount: arrays.length })),
  };
  return writeRecord(stamp, [head, ...groups.flatMap(({ arrays }) => arrays)]);
}

/** Reads the record of an index; undefined if it is damaged, has none of the stamps, or another layout. */
export async function readIndexRecord(
  stamps: readonly string[],
  record: Buffer,
): Promise<StampedIndex | undefined> {
  const found = await readRecord(stamps, record);
  if (found === undefined) return undefined;
  const [head, ...arrays] = found.items as [IndexHead, ...FileArray[]];
  let at = 0;
  const groups = head.groups.map(({ path, attrs, arrayCount }): FileGroup => {
    at += arrayCount;
    return { path, attrs, arrays: arrays.slice(at - arrayCount, at) };
  });
  return { stamp: found.stamp, index: { ...head.index, groups } };
}

/**
 * Writes plain data as bytes, one item at a time.
 * @param stamp Text that names what was read, its version and the format: a record with another one is not read.
 */
async function writeRecord(stamp: string, items: Iterable<unknown>): Promise<Buffer[]> {
  const slice = createSlice();
  const pieces: Buffer[] = [];
  let checksum = 0;

  function write(item: unknown): void {
    const bytes = serialize(toPlain(item));
    const length = Buffer.alloc(LENGTH_BYTES);
    length.writeUInt32LE(bytes.length);
    checksum = crc32(bytes, crc32(length, checksum));
    pieces.push(length, bytes);
  }

  write(stamp);
  for (const item of items) {
    if (slice.isOver()) await slice.next();
    write(item);
  }
  const begin = Buffer.alloc(HEAD_BYTES);
  begin.set(MAGIC);
  begin.writeUInt32LE(checksum, MAGIC.length);
  return [begin, ...pieces];
}

/** The items of a record, and the stamp that it was written with. */
interface StampedItems {
  readonly stamp: string;
  readonly items: readonly unknown[];
}

/** Reads a record; undefined if it is damaged, has none of the stamps, or another layout. */
async function readRecord(stamps: readonly string[], record: Buffer): Promise<StampedItems | undefined> {
  if (record.length < HEAD_BYTES || !record.subarray(0, MAGIC.length).equals(MAGIC)) return undefined;
  if (record.readUInt32LE(MAGIC.length) !== crc32(record.subarray(HEAD_BYTES))) return undefined;
  let at = HEAD_BYTES;

  function next(): unknown {
    const length = record.readUInt32LE(at);
    const bytes = record.subarray(at + LENGTH_BYTES, at + LENGTH_BYTES + length);
    at += LENGTH_BYTES + length;
    return fromPlain(deserialize(bytes));
  }

  try {
    const stamp = next() as string;
    if (!stamps.includes(stamp)) return undefined;
    const items: unknown[] = [];
    const slice = createSlice();
    while (at < record.length) {
      if (slice.isOver()) await slice.next();
      items.push(next());
    }
    return { stamp, items };
  } catch {
    // Node.js of a later version wrote it.
    return undefined;
  }
}

/**
 * Replaces numbers that keep their text, whose class would be lost, by maps, which no index has. An object that is there twice is one in
 * the copy, too, so that it is written once.
 */
function toPlain(value: unknown, copies = new Map<object, unknown>()): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  const known = copies.get(value);
  if (known !== undefined) return known;
  const copy = isLosslessNumber(value)
    ? new Map([["number", value.value]])
    : Array.isArray(value)
      ? value.map((each) => toPlain(each, copies))
      : // Also of a key `__proto__`.
        Object.fromEntries(Object.entries(value).map(([key, each]) => [key, toPlain(each, copies)]));
  copies.set(value, copy);
  return copy;
}

/** The opposite of {@link toPlain}. Objects stay the same. */
function fromPlain(value: unknown, seen = new Set<object>()): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value) || seen.has(value))
    return value;
  if (value instanceof Map) return new LosslessNumber(value.get("number"));
  seen.add(value);
  const members = value as Record<string, unknown>;
  for (const key in members) {
    const plain = fromPlain(members[key], seen);
    if (plain !== members[key]) members[key] = plain;
  }
  return value;
}

/** Folder below the cache's directory. */
const FOLDER = "zpublish-indexes";
/** Bound of all indexes together; an index takes some kilobytes, and 13 bytes per chunk. */
const MAX_BYTES = 2 ** 30;
/** Longest index that is kept. */
const MAX_INDEX_BYTES = 256 * 2 ** 20;
/** Indexes that are written before their total is looked at again. */
const WRITES_PER_SWEEP = 1_000;
/** Files that are looked at at a time. */
const CONCURRENCY = 8;
/** Age at which a file that another process has begun to write counts as abandoned. */
const ABANDONED_AFTER_MS = 60 * 60_000;
/** Indexes are deleted in the order of their times, which need not be exact. */
const TOUCH_AFTER_MS = 60 * 60_000;
const TEMPORARY = ".new";

/** Returns the text that names a file: it differs between files, and has no credentials. */
export function indexedFileOf(store: Pick<ByteStore, "identity">, key: string): string {
  return `${store.identity}\n${key}`;
}

/** Indexes of files on a disk, so that files need not be read again after a restart. All processes of a machine share them. */
export interface KeptIndexes {
  /**
   * Tells whether there is an index of a file, of any version.
   * @param file As {@link indexedFileOf} returns it.
   */
  has(file: string): Promise<boolean>;
  /**
   * Reads the index of a file; undefined if there is none that is whole and has one of the stamps. Never throws.
   * @param stamps Texts that name the version of the file, and a format and its revision.
   */
  get(file: string, stamps: readonly string[]): Promise<StampedIndex | undefined>;
  /** Writes an index in place of another one of the same file. What cannot be written is left out: never throws. */
  set(file: string, written: StampedIndex): Promise<void>;
  /** Reads what {@link setItems} wrote under a name; undefined as for {@link get}. */
  getItems(name: string, stamps: readonly string[]): Promise<readonly unknown[] | undefined>;
  /**
   * Writes other plain data that took long to read, in place of what has the same name. Never throws.
   * @param items Read one at a time, between which the event loop may run.
   */
  setItems(name: string, stamp: string, items: Iterable<unknown>): Promise<void>;
}

/**
 * Creates the indexes below a directory, without any I/O.
 * @param directory Directory of the cache; it need not exist.
 * @param maxBytes Bound of all indexes together. Those that were not used for the longest time are deleted. Default 1 GiB.
 */
export function createKeptIndexes(directory: string, maxBytes = MAX_BYTES): KeptIndexes {
  const folder = join(directory, FOLDER);
  let written = 0;

  function pathOf(file: string): string {
    return join(folder, createHash("sha256").update(file).digest("hex").slice(0, 32));
  }

  /** Deletes the oldest indexes beyond the bound, and what processes left behind that died while they wrote. */
  const sweep = joined(async () => {
    const found: { readonly path: string; readonly size: number; readonly mtimeMs: number }[] = [];
    await workThrough(await readdir(folder), CONCURRENCY, async (name) => {
      const path = join(folder, name);
      const { size, mtimeMs } = await stat(path).catch(() => ({ size: 0, mtimeMs: Number.NaN }));
      if (name.includes(TEMPORARY) && Date.now() - mtimeMs > ABANDONED_AFTER_MS)
        await rm(path, { force: true });
      else found.push({ path, size, mtimeMs });
    });
    let total = found.reduce((sum, { size }) => sum + size, 0);
    for (const { path, size } of found.sort((a, b) => a.mtimeMs - b.mtimeMs)) {
      if (total <= maxBytes) break;
      await rm(path, { force: true });
      total -= size;
    }
  });

  async function read<T>(
    name: string,
    parse: (record: Buffer) => Promise<T | undefined>,
  ): Promise<T | undefined> {
    try {
      const path = pathOf(name);
      const { size, mtimeMs } = await stat(path);
      if (size > MAX_INDEX_BYTES) return undefined;
      const found = await parse(await readFile(path));
      const now = Date.now();
      if (found !== undefined && now - mtimeMs > TOUCH_AFTER_MS) await utimes(path, now / 1_000, now / 1_000);
      return found;
    } catch {
      return undefined;
    }
  }

  async function write(name: string, writing: Promise<Buffer[]>): Promise<void> {
    const path = pathOf(name);
    const temporary = `${path}${TEMPORARY}-${process.pid}-${++written}`;
    try {
      const record = await writing;
      const byteLength = record.reduce((sum, { length }) => sum + length, 0);
      if (byteLength > Math.min(MAX_INDEX_BYTES, maxBytes)) return;
      // Not `recursive`: that never returns if the system answers ENOENT to everything, as below /proc.
      for (const path of [dirname(directory), directory, folder]) await mkdir(path).catch(() => undefined);
      await writeFile(temporary, record);
      await rename(temporary, path);
      if (written % WRITES_PER_SWEEP !== 1) return;
      await sweep();
    } catch {
      await rm(temporary, { force: true }).catch(() => undefined);
    }
  }

  return {
    async has(file) {
      return stat(pathOf(file)).then(
        () => true,
        () => false,
      );
    },
    get: (file, stamps) => read(file, (record) => readIndexRecord(stamps, record)),
    set: (file, { stamp, index }) => write(file, writeIndexRecord(stamp, index)),
    async getItems(name, stamps) {
      return (await read<StampedItems>(name, (record) => readRecord(stamps, record)))?.items;
    },
    setItems: (name, stamp, items) => write(name, writeRecord(stamp, items)),
  };
}
