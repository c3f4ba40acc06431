import { crc32, inflateRaw } from "node:zlib";
import { messageOf, ZpublishError } from "../../errors.js";
import { type CooperativeTask, startCooperatively } from "../../event-loop/cooperative-task.js";
import type { ObjectBytes, ReadObjectOptions } from "../byte-store.js";
import { allocateOwn } from "../open-file.js";
import { type ResolvedRange, resolveRange } from "../resolve-range.js";
import { ENCRYPTED, OTHER_PART, type ZipEntries } from "./central-directory.js";
import { type Archive, corrupt, readData } from "./entry-data.js";

const STORED = 0;
const DEFLATED = 8;
/** Deflate makes at most 1,032 bytes of one (zlib's "Technical Details"). */
const MAX_DEFLATE_RATIO = 1032;
/** Bytes of a checksum's step. */
const STEP_BYTES = 1024 * 1024;

/**
 * Reads an entry, or part of it.
 * @param name Its key, for messages.
 * @throws ZpublishError `unsupported` if it is encrypted or compressed by a method other than deflate; `corrupt-chunk`; what the
 * container throws.
 */
export async function readEntry(
  archive: Archive,
  entries: ZipEntries,
  number: number,
  name: string,
  options: ReadObjectOptions,
): Promise<ObjectBytes> {
  assertReadable(entries.methods[number] as number, name);
  const objectByteLength = entries.byteLengths[number] as number;
  const range = resolveRange(name, objectByteLength, options);
  const isStored = entries.methods[number] === STORED;
  const bytes = isStored
    ? await readStored(archive, entries, number, name, range, options)
    : await readDeflated(archive, entries, number, name, range, options);
  return { bytes, version: archive.version, objectByteLength };
}

function assertReadable(method: number, name: string): void {
  if (method === STORED || method === DEFLATED) return;
  const found =
    method === ENCRYPTED
      ? "it is encrypted"
      : method === OTHER_PART
        ? "it is in another part of the archive"
        : `method ${method}`;
  throw new ZpublishError(
    "unsupported",
    `'${name}': expected a stored or deflated entry, received another: ${found}`,
    {
      details: { key: name },
    },
  );
}

async function readStored(
  archive: Archive,
  entries: ZipEntries,
  number: number,
  name: string,
  range: ResolvedRange,
  { allocate = allocateOwn, signal }: ReadObjectOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const byteLength = entries.byteLengths[number] as number;
  const storedByteLength = entries.storedByteLengths[number] as number;
  if (byteLength !== storedByteLength) {
    throw corrupt(name, `expected a stored entry of ${byteLength} bytes, received ${storedByteLength}`);
  }
  const bytes = await readData(archive, entries, number, name, range, { allocate, signal });
  if (range.byteLength === byteLength) await assertChecksum(bytes, entries.checksums[number] as number, name);
  return bytes;
}

/** Inflates a whole entry on one of libuv's threads. */
async function readDeflated(
  archive: Archive,
  entries: ZipEntries,
  number: number,
  name: string,
  { offset, byteLength }: ResolvedRange,
  { allocate = allocateOwn, signal }: ReadObjectOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const expected = entries.byteLengths[number] as number;
  const storedByteLength = entries.storedByteLengths[number] as number;
  if (expected > storedByteLength * MAX_DEFLATE_RATIO) {
    throw corrupt(
      name,
      `expected at most ${storedByteLength * MAX_DEFLATE_RATIO} bytes, announced are ${expected}`,
    );
  }
  resolveRange(name, expected, {});
  const whole = { offset: 0, byteLength: storedByteLength };
  const deflated = await readData(archive, entries, number, name, whole, { allocate: allocateOwn, signal });
  const inflated = await inflate(deflated, expected, name);
  if (inflated.length !== expected) {
    throw corrupt(name, `expected ${expected} bytes, inflated are ${inflated.length}`);
  }
  await assertChecksum(inflated, entries.checksums[number] as number, name);
  const bytes = allocate(byteLength);
  bytes.set(inflated.subarray(offset, offset + byteLength));
  return bytes;
}

function inflate(bytes: Uint8Array, expected: number, name: string): Promise<Uint8Array> {
  // With a little room zlib needs one pass; with none it needs an empty second one.
  const options = { maxOutputLength: Math.max(1, expected), chunkSize: expected + 64 };
  return new Promise((resolve, reject) => {
    inflateRaw(bytes, options, (error, inflated) => {
      if (error === null) resolve(inflated);
      else reject(corrupt(name, `cannot be inflated to ${expected} bytes (${messageOf(error)})`));
    });
  });
}

async function assertChecksum(bytes: Uint8Array, expected: number, name: string): Promise<void> {
  const received = await startCooperatively(checksumSteps(bytes));
  if (received !== expected) throw corrupt(name, `expected CRC-32 ${expected}, received ${received}`);
}

function* checksumSteps(bytes: Uint8Array): CooperativeTask<number> {
  let checksum = 0;
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    checksum = crc32(bytes.subarray(at, at + STEP_BYTES), checksum);
    yield;
  }
  return checksum;
}
