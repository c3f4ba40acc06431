import { ZpublishError } from "../../errors.js";
import type { ByteStore, ObjectVersion } from "../byte-store.js";
import { assertKnownVersion } from "../known-version.js";
import type { ResolvedRange } from "../resolve-range.js";
import type { ZipEntries } from "./central-directory.js";

const HEADER_SIGNATURE = 0x04034b50;
const HEADER_BYTES = 30;
/** Ranges up to here are read together with the header; before others, the header is read alone. */
const MAX_JOINT_BYTES = 64 * 1024;
/** Many writers put more into the local header than into the directory: times, or lengths of 64 bits. */
const MIN_EXTRA_SLACK = 32;
const MAX_EXTRA_SLACK = 4 * 1024;

/** An archive whose entries are read. */
export interface Archive {
  readonly container: ByteStore;
  readonly key: string;
  /** The version that every read demands. */
  readonly version: ObjectVersion;
  readonly objectByteLength: number;
  /** Bytes by which extra fields of local headers were longer than those in the directory, at most. */
  extraSlack: number;
}

/**
 * Reads a range of an entry's bytes as they are stored. At the first time that includes its local header, which alone says
 * where they begin.
 */
export async function readData(
  archive: Archive,
  entries: ZipEntries,
  number: number,
  name: string,
  { offset, byteLength }: ResolvedRange,
  {
    allocate,
    signal,
  }: { readonly allocate: (byteLength: number) => Uint8Array<ArrayBuffer>; signal?: AbortSignal | undefined },
): Promise<Uint8Array<ArrayBuffer>> {
  let place = entries.places[number] as number;
  if (place < 0) {
    const header = -1 - place;
    const slack = entries.extraByteLengths[number]! + Math.max(MIN_EXTRA_SLACK, archive.extraSlack);
    const nameByteLength = Buffer.byteLength(entries.index.keyOf(number));
    const guess = HEADER_BYTES + nameByteLength + slack;
    const isJoint = offset === 0 || offset + byteLength <= MAX_JOINT_BYTES;
    const end = Math.min(header + guess + (isJoint ? offset + byteLength : 0), archive.objectByteLength);
    const read = await readArchive(archive, header, end - header, signal);
    place = header + dataOffset(archive, entries, number, name, header, read);
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
  { container, key, version }: Archive,
  offset: number,
  byteLength: number,
  signal: AbortSignal | undefined,
  allocate?: (byteLength: number) => Uint8Array<ArrayBuffer>,
): Promise<Uint8Array<ArrayBuffer>> {
  const read = await container.read(key, { range: { offset, byteLength }, version, signal, allocate });
  if (read !== undefined) return read.bytes;
  throw new ZpublishError("source-unreadable", `'${key}' is no longer there`, { details: { key } });
}

/** Returns where the data begins after a local header (APPNOTE.TXT 4.3.7). @param read Bytes from the header on. */
function dataOffset(
  archive: Archive,
  entries: ZipEntries,
  number: number,
  name: string,
  header: number,
  read: Uint8Array,
): number {
  const view = new DataView(read.buffer, read.byteOffset, read.byteLength);
  if (read.length < HEADER_BYTES || view.getUint32(0, true) !== HEADER_SIGNATURE) {
    throw corrupt(
      name,
      "expected its header in the place that the archive's directory says, found something else",
    );
  }
  const nameEnd = HEADER_BYTES + view.getUint16(26, true);
  const extraByteLength = view.getUint16(28, true);
  const found = Buffer.from(read.subarray(HEADER_BYTES, nameEnd)).toString();
  const isNamed = found === entries.index.keyOf(number);
  if (!isNamed || view.getUint16(8, true) !== entries.methods[number]) {
    throw corrupt(name, "expected the header of the same entry, found that of another");
  }
  const start = nameEnd + extraByteLength;
  const end = header + start + (entries.storedByteLengths[number] as number);
  if (end > archive.objectByteLength) {
    throw corrupt(
      name,
      `expected its end at byte ${archive.objectByteLength} of the archive at most, received ${end}`,
    );
  }
  const slack = extraByteLength - entries.extraByteLengths[number]!;
  archive.extraSlack = Math.min(Math.max(archive.extraSlack, slack), MAX_EXTRA_SLACK);
  return start;
}

/** Creates an error about the bytes of an entry. */
export function corrupt(name: string, problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `'${name}': ${problem}`, { details: { key: name } });
}
