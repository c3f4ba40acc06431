import { isUtf8 } from "node:buffer";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { printablePath } from "../../zarr/stored-tree.js";
import { createKeyIndex, type KeyIndex } from "../key-index.js";
import { type DirectoryPlace, invalid, toNumber } from "./end-of-archive.js";

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
const BACKSLASH = 0x5c;
const DOT = 0x2e;
const RESOURCE_FORKS = Buffer.from("__MACOSX/");

/** Method of an entry that is encrypted, whatever it is compressed with. */
export const ENCRYPTED = 0x1_0000;
/** Method of an entry that lies in another part of the archive. */
export const OTHER_PART = 0x1_0001;

/** Entries of an archive, by their number in `index`: about 75 bytes for each. */
export interface ZipEntries {
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
 * @param key Name of the archive, for messages.
 * @param bytes The directory.
 * @throws ZpublishError `invalid-metadata`
 */
export function* readDirectory(
  key: string,
  bytes: Uint8Array,
  { entries, isZip64, prepended, offset: directoryOffset }: DirectoryPlace,
): CooperativeTask<ZipEntries> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  // The announced number is not believed: each entry takes some bytes.
  const most = Math.floor(bytes.length / ENTRY_BYTES);
  const capacity = isZip64 ? Math.min(most, entries) : most;
  const read: ZipEntries & { warnings: string[] } = {
    index: createKeyIndex(capacity),
    places: new Float64Array(capacity),
    storedByteLengths: new Float64Array(capacity),
    byteLengths: new Float64Array(capacity),
    checksums: new Uint32Array(capacity),
    methods: new Uint32Array(capacity),
    extraByteLengths: new Uint16Array(capacity),
    warnings: [],
  };
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
      if (++leftOut <= MAX_WARNINGS) {
        read.warnings.push(
          `'${printablePath(Buffer.from(name).toString())}' in '${key}' is left out: ${problem}`,
        );
      }
      continue;
    }
    const wide = wideFields(key, view, place, nameEnd, extraEnd);
    const header = wide.offset + prepended;
    if (header + wide.storedByteLength > directoryOffset) {
      throw invalid(
        key,
        `expected '${printablePath(Buffer.from(name).toString())}' before byte ${directoryOffset}, ` +
          `received ${wide.storedByteLength} bytes from ${header}`,
      );
    }
    const number = read.index.add(name);
    read.places[number] = -1 - header;
    read.storedByteLengths[number] = wide.storedByteLength;
    read.byteLengths[number] = wide.byteLength;
    read.checksums[number] = view.getUint32(place + 16, true);
    read.methods[number] =
      wide.disk !== 0
        ? OTHER_PART
        : (flags & ENCRYPTED_FLAG) !== 0
          ? ENCRYPTED
          : view.getUint16(place + 10, true);
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
  if (name[0] === SLASH) return "it begins with a slash";
  let segment = 0;
  for (let at = 0; at <= name.length; at++) {
    const byte = name[at];
    if (byte === BACKSLASH) return "it has a backslash";
    if (byte === 0) return "it has a null character";
    if (byte !== SLASH && at < name.length) continue;
    const byteLength = at - segment;
    if (byteLength === 0) return "it has an empty part";
    if (byteLength <= 2 && name[segment] === DOT && name[at - 1] === DOT) return "it has a part of dots";
    segment = at + 1;
  }
  return undefined;
}

interface WideFields {
  byteLength: number;
  storedByteLength: number;
  offset: number;
  disk: number;
}

/** Reads the fields of an entry that stand in the ZIP64 extra field if they do not fit (APPNOTE.TXT 4.5.3). */
function wideFields(key: string, view: DataView, at: number, extraAt: number, extraEnd: number): WideFields {
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
