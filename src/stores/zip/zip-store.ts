import { isUtf8 } from "node:buffer";
import { crc32 } from "node:zlib";
import { ZpublishError } from "../../errors.js";
import {
  type CooperativeTask,
  runCooperatively,
  startCooperatively,
} from "../../event-loop/cooperative-task.js";
import { HIDDEN, placeOfPart } from "../../zarr/chunk-reader.js";
import { printablePath } from "../../zarr/stored-tree.js";
import {
  assertKnownVersion,
  type ByteStore,
  childPlace,
  type ObjectBytes,
  type ObjectVersion,
  type ReadObjectOptions,
  type ResolvedRange,
  resolveObjectRange,
} from "../byte-store.js";
import { allocateOwn } from "../file-calls.js";
import { createKeyIndex, type KeyIndex } from "../key-index.js";
import { type DeflatedEntry, inflateAtOnce, MAX_AT_ONCE_BYTES, readInflated } from "./inflated-entries.js";

/** Longer directories, of five million entries, are refused before memory is allocated. */
const MAX_DIRECTORY_BYTES = 512 * 2 ** 20;

/**
 * Tells if an object looks like a zip archive.
 * @param bytes Its first four bytes, or more. Archives behind other data, such as a program, are not told by them.
 */
export function isZip(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, 4)).toString("latin1");
  return start === "PK\x03\x04" || start === "PK\x05\x06";
}

/** A zip archive as a byte store. Its keys are the names of entries. */
export interface ZipStore extends ByteStore {
  /** Version of the archive, under which its directory was read. All entries have it, and no other one is ever read. */
  readonly version: ObjectVersion;
  /** Entries that are left out because of their names, as text for the operator. */
  readonly warnings: readonly string[];
}

/**
 * Opens a zip archive: reads its directory, usually with one request. An entry that is stored without compression is read by
 * range, in place. Every read throws `source-changed` once the archive has another version; then it has to be opened again.
 *
 * If all entries lie in one folder `….zarr`, keys are without it.
 * @throws ZpublishError `source-unreadable` if there is no archive; `invalid-metadata` if it is none, or cut short;
 * `unsupported` if it has several parts.
 */
export async function openZipStore(container: ByteStore, key: string): Promise<ZipStore> {
  const archive = await openArchive(container, key);
  const { version, entries } = archive;
  const folder = wrappingFolder(entries);
  const { index } = entries;

  async function read(name: string, options: ReadObjectOptions = {}) {
    if (options.version !== undefined && options.version.token !== version.token) {
      const details = { key: name };
      throw new ZpublishError("source-changed", `'${name}': '${key}' has another version`, { details });
    }
    const number = index.find(folder + name);
    if (number >= 0) return readEntry(archive, number, name, options);
    // An archive that was replaced may have it.
    return assertKnownVersion(container, key, version, options.signal).then(() => undefined);
  }

  return {
    ...childPlace(container, key),
    version,
    warnings: entries.warnings,
    async stat(name, signal) {
      const number = index.find(folder + name);
      await assertKnownVersion(container, key, version, signal);
      return number < 0 ? undefined : { version, byteLength: entries.byteLengths[number]! };
    },
    read,
    async readIfChanged(name, known, options = {}) {
      if (known.token !== version.token || index.find(folder + name) < 0) return read(name, options);
      await assertKnownVersion(container, key, version, options.signal);
      return "unchanged";
    },
    list: (prefix) => index.list(folder + prefix),
    objectOf(name) {
      if (index.find(folder + name) < 0) return undefined;
      return container.objectOf === undefined ? key : container.objectOf(key);
    },
    async placeOf(name) {
      const number = index.find(folder + name);
      const byteLength = entries.byteLengths[number];
      if (byteLength === undefined || entries.methods[number] !== STORED) return undefined;
      // The local header says where the data begins.
      if (entries.places[number]! < 0)
        await read(name, { range: { offset: 0, byteLength: Math.min(byteLength, 1) } });
      const place = placeOfPart(await container.placeOf?.(key), {
        offset: entries.places[number]!,
        byteLength,
      });
      return place === HIDDEN ? undefined : place;
    },
  };
}

/** Reads the directory. A function of its own, so that the store does not retain the bytes from which it was read. */
async function openArchive(container: ByteStore, key: string): Promise<Archive> {
  const tail = await readTail(container, key);
  const { version, objectByteLength } = tail;
  const place = findDirectory(key, tail);
  const { offset, byteLength } = place;
  if (byteLength > MAX_DIRECTORY_BYTES)
    throw invalid(
      key,
      `expected a directory of ${MAX_DIRECTORY_BYTES} bytes at most, received ${byteLength}`,
    );
  const from = offset - tail.offset;
  const bytes =
    from >= 0
      ? tail.bytes.subarray(from, from + byteLength)
      : await readArchive({ container, key, version }, offset, byteLength);
  const entries = await runCooperatively(readDirectory(key, bytes, place));
  return { container, key, version, objectByteLength, entries };
}

/** Returns the folder `….zarr/` if it holds all entries; else an empty string. */
function wrappingFolder({ index }: ZipEntries): string {
  if (index.size === 0) return "";
  const first = index.keyOf(0);
  const folder = first.slice(0, first.indexOf("/") + 1);
  if (!/\.zarr\/$/i.test(folder)) return "";
  for (let number = 1; number < index.size; number++) if (!index.keyOf(number).startsWith(folder)) return "";
  return folder;
}

const END_SIGNATURE = 0x06054b50;
const END_BYTES = 22;
const LOCATOR_SIGNATURE = 0x07064b50;
const LOCATOR_BYTES = 20;
const END64_SIGNATURE = 0x06064b50;
const END64_BYTES = 56;
const MAX_COMMENT_BYTES = 0xffff;

/** The records at the end of an archive with the longest comment. */
const TAIL_BYTES = END64_BYTES + LOCATOR_BYTES + END_BYTES + MAX_COMMENT_BYTES;

/** The last bytes of an archive. */
interface Tail extends ObjectBytes {
  /** Their place in the archive. */
  readonly offset: number;
}

/** Place of an archive's central directory, as the records at its end say. */
interface DirectoryPlace {
  readonly offset: number;
  readonly byteLength: number;
  /** Number of entries; modulo 65,536 if `isZip64` is false, since old writers count so. */
  readonly entries: number;
  readonly isZip64: boolean;
  /** Bytes before the archive, such as a program that unpacks it. Offsets in the directory do not count them. */
  readonly prepended: number;
}

/** Reads the end of an archive. */
async function readTail(container: ByteStore, key: string): Promise<Tail> {
  const read = await container.read(key, { range: { last: TAIL_BYTES } }).catch((error: unknown) => {
    // The whole archive may be shorter.
    if (!(error instanceof ZpublishError) || error.code !== "corrupt-chunk") throw error;
    return container.read(key, { maxByteLength: TAIL_BYTES });
  });
  if (read === undefined)
    throw new ZpublishError("source-unreadable", `'${key}' expected an archive, found nothing`);
  return { ...read, offset: read.objectByteLength - read.bytes.length };
}

/** Finds the central directory (APPNOTE.TXT 4.3.14 to 4.3.16). */
function findDirectory(key: string, tail: Tail): DirectoryPlace {
  const { bytes, offset } = tail;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = bytes.length - END_BYTES; at >= 0; at--) {
    // The comment fills the rest, or these bytes are part of it.
    if (view.getUint32(at, true) !== END_SIGNATURE) continue;
    if (at + END_BYTES + view.getUint16(at + 20, true) !== bytes.length) continue;
    return placeOf(key, view, at, offset);
  }
  throw invalid(key, "expected the directory of a zip archive at its end, found none: it may be incomplete");
}

function placeOf(key: string, view: DataView, at: number, tailOffset: number): DirectoryPlace {
  const locator = at - LOCATOR_BYTES;
  const isZip64 = locator >= 0 && view.getUint32(locator, true) === LOCATOR_SIGNATURE;
  const end = isZip64 ? end64At(key, view, locator, tailOffset) : at;
  const u16 = (place: number): number => view.getUint16(place, true);
  const u32 = (place: number): number => view.getUint32(place, true);
  const u64 = (place: number): number => toNumber(key, view.getBigUint64(place, true));
  const [disk, firstDisk, here, entries, byteLength, offset] = isZip64
    ? ([u32(end + 16), u32(end + 20), u64(end + 24), u64(end + 32), u64(end + 40), u64(end + 48)] as const)
    : ([u16(at + 4), u16(at + 6), u16(at + 8), u16(at + 10), u32(at + 12), u32(at + 16)] as const);
  if (disk !== 0 || firstDisk !== 0 || here !== entries) {
    const message = `'${key}': expected an archive in one part, received one in several`;
    throw new ZpublishError("unsupported", message);
  }
  // The directory ends where the records begin, whatever was put before the archive.
  const start = tailOffset + end - byteLength;
  const prepended = start - offset;
  if (start < 0 || prepended < 0) {
    const received = `${byteLength} bytes from ${offset}`;
    throw invalid(key, `expected a directory before byte ${tailOffset + end}, received ${received}`);
  }
  return { offset: start, byteLength, entries, isZip64, prepended };
}

/** Finds the ZIP64 record: right before its locator, or in the place that this says. */
function end64At(key: string, view: DataView, locator: number, tailOffset: number): number {
  const isRecord = (at: number): boolean =>
    at >= 0 && at + END64_BYTES <= locator && view.getUint32(at, true) === END64_SIGNATURE;
  const before = locator - END64_BYTES;
  if (isRecord(before)) return before;
  const said = toNumber(key, view.getBigUint64(locator + 8, true)) - tailOffset;
  if (isRecord(said)) return said;
  throw invalid(key, "expected a ZIP64 record before its locator, found none");
}

/** Converts an unsigned 64-bit integer. @throws ZpublishError `invalid-metadata` above 2^53 - 1. */
function toNumber(key: string, value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw invalid(key, `expected lengths and offsets below 2^53, received ${value}`);
}

/** Creates an error about the structure of an archive. */
function invalid(key: string, problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'${key}': ${problem}`, { details: { key } });
}

const ENTRY_SIGNATURE = 0x02014b50;
const ENTRY_BYTES = 46;
const ZIP64_FIELD = 0x0001;
const ENCRYPTED_FLAG = 0x0001;
const MAX_32 = 0xffff_ffff;
const MAX_16 = 0xffff;
/** Entries that are read in one step. */
const STEP_ENTRIES = 128;
const MAX_WARNINGS = 20;
const SLASH = 0x2f;
const RESOURCE_FORKS = Buffer.from("__MACOSX/");

/** Method of an entry that is encrypted, whatever it is compressed with. */
const ENCRYPTED = 0x1_0000;
/** Method of an entry that lies in another part of the archive. */
const OTHER_PART = 0x1_0001;

/** Entries of an archive, by their number in `index`: about 75 bytes for each. */
interface ZipEntries {
  readonly index: KeyIndex;
  /** Offset of the local header in the object as -1 - offset; once it has been read, the offset of the data. */
  readonly places: Float64Array;
  readonly storedByteLengths: Float64Array;
  readonly byteLengths: Float64Array;
  readonly checksums: Uint32Array;
  /** 0: stored; 8: deflated; {@link ENCRYPTED}; {@link OTHER_PART}; other methods are unknown. */
  readonly methods: Uint32Array;
  /** Length of the extra fields in the directory, from which that in the local header is guessed. */
  readonly extraByteLengths: Uint16Array;
  /** Entries that were left out, as text for the operator. */
  readonly warnings: readonly string[];
}

/**
 * Reads the central directory in steps (APPNOTE.TXT 4.3.12). Directories and resource forks of macOS are left out. The last of
 * several entries of one name counts, since Python's writers append a chunk that is written again.
 */
function* readDirectory(
  key: string,
  bytes: Uint8Array,
  { entries, isZip64, prepended, offset: directoryOffset }: DirectoryPlace,
): CooperativeTask<ZipEntries> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // The announced number is not believed: each entry takes some bytes.
  const most = Math.floor(bytes.length / ENTRY_BYTES);
  const read = createEntries(isZip64 ? Math.min(most, entries) : most);
  let leftOut = 0;
  let count = 0;
  for (let at = 0; at < bytes.length; count++) {
    if (count % STEP_ENTRIES === 0) yield;
    if (at + ENTRY_BYTES > bytes.length || view.getUint32(at, true) !== ENTRY_SIGNATURE) break;
    const nameEnd = at + ENTRY_BYTES + view.getUint16(at + 28, true);
    const extraEnd = nameEnd + view.getUint16(at + 30, true);
    const end = extraEnd + view.getUint16(at + 32, true);
    if (end > bytes.length)
      throw invalid(key, `expected ${end} bytes of directory, received ${bytes.length}`);
    const flags = view.getUint16(at + 8, true);
    const name = bytes.subarray(at + ENTRY_BYTES, nameEnd);
    const place = at;
    at = end;
    if (name[name.length - 1] === SLASH || RESOURCE_FORKS.equals(name.subarray(0, RESOURCE_FORKS.length)))
      continue;
    const problem = entryNameProblem(name);
    if (problem !== undefined) {
      const shown = printablePath(Buffer.from(name).toString());
      if (++leftOut <= MAX_WARNINGS) read.warnings.push(`'${shown}' in '${key}' is left out: ${problem}`);
      continue;
    }
    const wide = wideFields(key, view, place, nameEnd, extraEnd);
    const header = wide.offset + prepended;
    if (header + wide.storedByteLength > directoryOffset) {
      const shown = printablePath(Buffer.from(name).toString());
      const received = `${wide.storedByteLength} bytes from ${header}`;
      throw invalid(key, `expected '${shown}' before byte ${directoryOffset}, received ${received}`);
    }
    const number = read.index.add(Buffer.from(name).toString());
    read.places[number] = -1 - header;
    read.storedByteLengths[number] = wide.storedByteLength;
    read.byteLengths[number] = wide.byteLength;
    read.checksums[number] = view.getUint32(place + 16, true);
    read.methods[number] = methodOf(wide.disk, flags, view.getUint16(place + 10, true));
    read.extraByteLengths[number] = extraEnd - nameEnd;
  }
  if (count !== entries && (isZip64 || (count & MAX_16) !== entries)) {
    throw invalid(key, `expected ${entries} entries in the directory, found ${count}`);
  }
  if (leftOut > MAX_WARNINGS) read.warnings.push(`and ${leftOut - MAX_WARNINGS} more entries in '${key}'`);
  return read;
}

/** Returns why an entry is not read; undefined if it is. Names are UTF-8, whether their flag says so or not. */
function entryNameProblem(name: Uint8Array): string | undefined {
  if (!isUtf8(name)) return "it is no valid UTF-8";
  const text = Buffer.from(name).toString();
  if (/[\\\0]/.test(text)) return "it has a backslash or a null character";
  return /(?:^|\/)\.{0,2}(?:\/|$)/.test(text) ? "it has a part that is empty or of dots" : undefined;
}

function createEntries(capacity: number): ZipEntries & { warnings: string[] } {
  return {
    index: createKeyIndex(),
    places: new Float64Array(capacity),
    storedByteLengths: new Float64Array(capacity),
    byteLengths: new Float64Array(capacity),
    checksums: new Uint32Array(capacity),
    methods: new Uint32Array(capacity),
    extraByteLengths: new Uint16Array(capacity),
    warnings: [],
  };
}

function methodOf(disk: number, flags: number, method: number): number {
  if (disk !== 0) return OTHER_PART;
  return (flags & ENCRYPTED_FLAG) !== 0 ? ENCRYPTED : method;
}

/** Reads the fields of an entry that stand in the ZIP64 extra field if they do not fit (APPNOTE.TXT 4.5.3). */
function wideFields(key: string, view: DataView, at: number, extraAt: number, extraEnd: number) {
  const fields = {
    byteLength: view.getUint32(at + 24, true),
    storedByteLength: view.getUint32(at + 20, true),
    offset: view.getUint32(at + 42, true),
    disk: view.getUint16(at + 34, true),
  };
  const { byteLength, storedByteLength, offset, disk } = fields;
  if (byteLength !== MAX_32 && storedByteLength !== MAX_32 && offset !== MAX_32 && disk !== MAX_16)
    return fields;
  for (let from = extraAt; from + 4 <= extraEnd; ) {
    const end = from + 4 + view.getUint16(from + 2, true);
    if (view.getUint16(from, true) === ZIP64_FIELD && end <= extraEnd) {
      let next = from + 4;
      const take = (): number => {
        if (next + 8 > end) throw invalid(key, "expected a longer ZIP64 field of an entry");
        next += 8;
        return toNumber(key, view.getBigUint64(next - 8, true));
      };
      if (byteLength === MAX_32) fields.byteLength = take();
      if (storedByteLength === MAX_32) fields.storedByteLength = take();
      if (offset === MAX_32) fields.offset = take();
      if (disk === MAX_16 && next + 4 <= end) fields.disk = view.getUint32(next, true);
      break;
    }
    from = end;
  }
  return fields;
}

const STORED = 0;
const DEFLATED = 8;
/** Deflate makes at most 1,032 bytes of one (zlib's "Technical Details"). */
const MAX_DEFLATE_RATIO = 1032;
/** Bytes of a checksum's step. */
const STEP_BYTES = 1024 * 1024;

/** An entry that is read. */
interface Entry {
  /** In the index of the archive. */
  readonly number: number;
  /** Its key, for messages. */
  readonly name: string;
  readonly byteLength: number;
  readonly storedByteLength: number;
  readonly checksum: number;
}

/** Reads an entry, or part of it. */
async function readEntry(
  archive: Archive,
  number: number,
  name: string,
  options: ReadObjectOptions,
): Promise<ObjectBytes> {
  const { entries, version } = archive;
  const method = entries.methods[number]!;
  assertReadable(method, name);
  const objectByteLength = entries.byteLengths[number]!;
  const entry: Entry = {
    number,
    name,
    byteLength: objectByteLength,
    storedByteLength: entries.storedByteLengths[number]!,
    checksum: entries.checksums[number]!,
  };
  const range = resolveObjectRange(name, objectByteLength, options);
  const bytes = await (method === STORED ? readStored : readDeflated)(archive, entry, range, options);
  return { bytes, version, objectByteLength };
}

function assertReadable(method: number, name: string): void {
  if (method === STORED || method === DEFLATED) return;
  let found = `method ${method}`;
  if (method === ENCRYPTED) found = "it is encrypted";
  if (method === OTHER_PART) found = "it is in another part of the archive";
  const message = `'${name}': expected a stored or deflated entry, received another: ${found}`;
  throw new ZpublishError("unsupported", message, { details: { key: name } });
}

async function readStored(
  archive: Archive,
  entry: Entry,
  range: ResolvedRange,
  { allocate = allocateOwn, signal }: ReadObjectOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const { name, byteLength, storedByteLength } = entry;
  if (byteLength !== storedByteLength)
    throw corrupt(name, `expected a stored entry of ${byteLength} bytes, received ${storedByteLength}`);
  const bytes = await readData(archive, entry, range, allocate, signal);
  if (range.byteLength === byteLength) await assertChecksum(bytes, entry);
  return bytes;
}

/** Inflates a whole entry on one of libuv's threads; if it is long, or a range is wanted, together with other reads of it. */
async function readDeflated(
  archive: Archive,
  entry: Entry,
  range: ResolvedRange,
  { allocate = allocateOwn, signal }: ReadObjectOptions,
): Promise<Uint8Array<ArrayBuffer>> {
  const { name, byteLength: expected, storedByteLength } = entry;
  const most = storedByteLength * MAX_DEFLATE_RATIO;
  if (expected > most) throw corrupt(name, `expected at most ${most} bytes, announced are ${expected}`);
  if (range.byteLength < expected || expected > MAX_AT_ONCE_BYTES)
    return readTogether(archive, entry, range, allocate, signal);
  const whole = { offset: 0, byteLength: storedByteLength };
  const deflated = await readData(archive, entry, whole, allocateOwn, signal);
  const inflated = await inflateAtOnce(deflated, expected, name);
  if (inflated.length !== expected)
    throw corrupt(name, `expected ${expected} bytes, inflated are ${inflated.length}`);
  await assertChecksum(inflated, entry);
  const bytes = allocate(expected);
  bytes.set(inflated);
  return bytes;
}

async function readTogether(
  archive: Archive,
  entry: Entry,
  range: ResolvedRange,
  allocate: (byteLength: number) => Uint8Array<ArrayBuffer>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const { container, key, version } = archive;
  // What is kept needs no reading.
  await assertKnownVersion(container, key, version, signal);
  const id = `${container.identity}\n${key}\n${version.token}\n${entry.number}`;
  const readStored: DeflatedEntry["readStored"] = (piece) =>
    readData(archive, entry, piece, allocateOwn, undefined);
  const bytes = allocate(range.byteLength);
  await readInflated({ ...entry, id, readStored }, { ...range, into: bytes, signal });
  return bytes;
}

async function assertChecksum(bytes: Uint8Array, { checksum, name }: Entry): Promise<void> {
  const received = await startCooperatively(checksumSteps(bytes));
  if (received !== checksum) throw corrupt(name, `expected CRC-32 ${checksum}, received ${received}`);
}

function* checksumSteps(bytes: Uint8Array): CooperativeTask<number> {
  let checksum = 0;
  for (let at = 0; at < bytes.length; at += STEP_BYTES) {
    checksum = crc32(bytes.subarray(at, at + STEP_BYTES), checksum);
    yield;
  }
  return checksum;
}

const HEADER_SIGNATURE = 0x04034b50;
const HEADER_BYTES = 30;
/** Ranges up to here are read together with the header; before others, the header is read alone. */
const MAX_JOINT_BYTES = 64 * 1024;
/** Many writers put more into the local header than into the directory: times, or lengths of 64 bits. */
const EXTRA_SLACK = 128;

/** An archive whose entries are read. */
interface Archive {
  readonly container: ByteStore;
  readonly key: string;
  /** The version that every read demands. */
  readonly version: ObjectVersion;
  readonly objectByteLength: number;
  readonly entries: ZipEntries;
}

/**
 * Reads a range of an entry's bytes as they are stored. At the first time that includes its local header, which alone says
 * where they begin.
 */
async function readData(
  archive: Archive,
  entry: Entry,
  { offset, byteLength }: ResolvedRange,
  allocate: (byteLength: number) => Uint8Array<ArrayBuffer>,
  signal: AbortSignal | undefined,
): Promise<Uint8Array<ArrayBuffer>> {
  const { entries } = archive;
  const { number } = entry;
  let place = entries.places[number]!;
  if (place < 0) {
    const header = -1 - place;
    const slack = entries.extraByteLengths[number]! + EXTRA_SLACK;
    const nameByteLength = Buffer.byteLength(entries.index.keyOf(number));
    const guess = HEADER_BYTES + nameByteLength + slack;
    const isJoint = offset === 0 || offset + byteLength <= MAX_JOINT_BYTES;
    const end = Math.min(header + guess + (isJoint ? offset + byteLength : 0), archive.objectByteLength);
    const read = await readArchive(archive, header, end - header, signal);
    place = header + dataOffset(archive, entry, header, read);
    // Another request may have found it meanwhile, in the same place.
    entries.places[number] = place;
    if (isJoint) {
      const bytes = allocate(byteLength);
      const have = read.subarray(place - header + offset, place - header + offset + byteLength);
      bytes.set(have);
      if (have.length < byteLength) {
        const rest = place + offset + have.length;
        bytes.set(await readArchive(archive, rest, byteLength - have.length, signal), have.length);
      }
      return bytes;
    }
  }
  if (byteLength === 0) {
    await assertKnownVersion(archive.container, archive.key, archive.version, signal);
    return allocate(0);
  }
  return readArchive(archive, place + offset, byteLength, signal, allocate);
}

async function readArchive(
  { container, key, version }: Pick<Archive, "container" | "key" | "version">,
  offset: number,
  byteLength: number,
  signal?: AbortSignal,
  allocate?: (byteLength: number) => Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const read = await container.read(key, { range: { offset, byteLength }, version, signal, allocate });
  if (read !== undefined) return read.bytes;
  throw new ZpublishError("source-unreadable", `'${key}' is no longer there`, { details: { key } });
}

/** Returns where the data begins after a local header (APPNOTE.TXT 4.3.7). @param read Bytes from the header on. */
function dataOffset(
  archive: Archive,
  { number, name, storedByteLength }: Entry,
  header: number,
  read: Uint8Array,
): number {
  const { entries, objectByteLength } = archive;
  const view = new DataView(read.buffer, read.byteOffset, read.byteLength);
  if (read.length < HEADER_BYTES || view.getUint32(0, true) !== HEADER_SIGNATURE)
    throw corrupt(name, "expected its header in the place that the directory says, found something else");
  const nameEnd = HEADER_BYTES + view.getUint16(26, true);
  const found = Buffer.from(read.subarray(HEADER_BYTES, nameEnd)).toString();
  const isNamed = found === entries.index.keyOf(number);
  if (!isNamed || view.getUint16(8, true) !== entries.methods[number])
    throw corrupt(name, "expected the header of the same entry, found that of another");
  const start = nameEnd + view.getUint16(28, true);
  const end = header + start + storedByteLength;
  if (end > objectByteLength)
    throw corrupt(name, `expected its end at byte ${objectByteLength} at most, received ${end}`);
  return start;
}

/** Creates an error about the bytes of an entry. */
function corrupt(name: string, problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `'${name}': ${problem}`, { details: { key: name } });
}
