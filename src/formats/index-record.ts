import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";
import { isLosslessNumber, LosslessNumber } from "lossless-json";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
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
export interface StampedIndex {
  readonly stamp: string;
  readonly index: FileIndex;
}

/**
 * Writes an index as bytes, one array at a time.
 * @param stamp As in {@link writeRecord}.
 */
export function writeIndexRecord(stamp: string, index: FileIndex): CooperativeTask<Buffer[]> {
  const { groups, ...rest } = index;
  const head: IndexHead = {
    index: rest,
    groups: groups.map(({ path, attrs, arrays }) => ({ path, attrs, arrayCount: arrays.length })),
  };
  return writeRecord(stamp, [head, ...groups.flatMap(({ arrays }) => arrays)]);
}

/** Reads the record of an index; undefined if it is damaged, has none of the stamps, or another layout. */
export function* readIndexRecord(
  stamps: readonly string[],
  record: Buffer,
): CooperativeTask<StampedIndex | undefined> {
  const found = yield* readRecord(stamps, record);
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
export function* writeRecord(stamp: string, items: Iterable<unknown>): CooperativeTask<Buffer[]> {
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
    yield;
    write(item);
  }
  const begin = Buffer.alloc(HEAD_BYTES);
  begin.set(MAGIC);
  begin.writeUInt32LE(checksum, MAGIC.length);
  return [begin, ...pieces];
}

/** The items of a record, and the stamp that it was written with. */
export interface StampedItems {
  readonly stamp: string;
  readonly items: readonly unknown[];
}

/** Reads a record; undefined if it is damaged, has none of the stamps, or another layout. */
export function* readRecord(
  stamps: readonly string[],
  record: Buffer,
): CooperativeTask<StampedItems | undefined> {
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
    while (at < record.length) {
      yield;
      items.push(next());
    }
    return { stamp, items };
  } catch {
    // Node.js of a later version wrote it.
    return undefined;
  }
}

/** Replaces numbers that keep their text, whose class would be lost, by maps, which no index has. */
function toPlain(value: unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (isLosslessNumber(value)) return new Map([["number", value.value]]);
  if (Array.isArray(value)) return value.map(toPlain);
  return mapValues(value, toPlain);
}

function fromPlain(value: unknown): unknown {
  if (typeof value !== "object" || value === null || ArrayBuffer.isView(value)) return value;
  if (value instanceof Map) return new LosslessNumber(value.get("number"));
  if (Array.isArray(value)) return value.map(fromPlain);
  return mapValues(value, fromPlain);
}

function mapValues(object: object, map: (value: unknown) => unknown): object {
  // Also of a key `__proto__`.
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, map(value)]));
}
