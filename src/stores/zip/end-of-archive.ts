import { ZpublishError } from "../../errors.js";
import type { ByteStore, ObjectBytes } from "../byte-store.js";

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
export interface Tail extends ObjectBytes {
  /** Their place in the archive. */
  readonly offset: number;
}

/** Place of an archive's central directory, as the records at its end say. */
export interface DirectoryPlace {
  readonly offset: number;
  readonly byteLength: number;
  /** Number of entries; modulo 65,536 if `isZip64` is false, since old writers count so. */
  readonly entries: number;
  readonly isZip64: boolean;
  /** Bytes before the archive, such as a program that unpacks it. Offsets in the directory do not count them. */
  readonly prepended: number;
}

/**
 * Reads the end of an archive.
 * @throws ZpublishError `source-unreadable` if there is no such object.
 */
export async function readTail(container: ByteStore, key: string): Promise<Tail> {
  const read = await container.read(key, { range: { last: TAIL_BYTES } }).catch((error: unknown) => {
    // The whole archive may be shorter.
    if (!(error instanceof ZpublishError) || error.code !== "corrupt-chunk") throw error;
    return container.read(key, { maxByteLength: TAIL_BYTES });
  });
  if (read === undefined)
    throw new ZpublishError("source-unreadable", `'${key}' expected an archive, found nothing`);
  return { ...read, offset: read.objectByteLength - read.bytes.length };
}

/**
 * Finds the central directory (APPNOTE.TXT 4.3.14 to 4.3.16).
 * @throws ZpublishError `invalid-metadata`; `unsupported` if the archive has several parts.
 */
export function findDirectory(key: string, tail: Tail): DirectoryPlace {
  const { bytes, offset } = tail;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (let at = bytes.length - END_BYTES; at >= 0; at--) {
    // The comment fills the rest, or these bytes are part of it.
    if (view.getUint32(at, true) !== END_SIGNATURE) continue;
    if (at + END_BYTES + view.getUint16(at + 20, true) !== bytes.length) continue;
    return placeOf(key, view, at, offset);
  }
  throw invalid(
    key,
    "expected the directory of a zip archive at its end, found none; it may still be written",
  );
}

function placeOf(key: string, view: DataView, at: number, tailOffset: number): DirectoryPlace {
  const locator = at - LOCATOR_BYTES;
  const isZip64 = locator >= 0 && view.getUint32(locator, true) === LOCATOR_SIGNATURE;
  const end = isZip64 ? end64At(key, view, locator, tailOffset) : at;
  const wide = (place: number): number => toNumber(key, view.getBigUint64(place, true));
  const [disk, firstDisk, here, entries, byteLength, offset] = isZip64
    ? [
        view.getUint32(end + 16, true),
        view.getUint32(end + 20, true),
        wide(end + 24),
        wide(end + 32),
        wide(end + 40),
        wide(end + 48),
      ]
    : [
        view.getUint16(at + 4, true),
        view.getUint16(at + 6, true),
        view.getUint16(at + 8, true),
        view.getUint16(at + 10, true),
        view.getUint32(at + 12, true),
        view.getUint32(at + 16, true),
      ];
  if (disk !== 0 || firstDisk !== 0 || here !== entries) {
    throw new ZpublishError(
      "unsupported",
      `'${key}': expected an archive in one part, received one in several`,
    );
  }
  // The directory ends where the records begin, whatever was put before the archive.
  const start = tailOffset + end - byteLength;
  const prepended = start - offset;
  if (start < 0 || prepended < 0) {
    throw invalid(
      key,
      `expected a directory before byte ${tailOffset + end}, received ${byteLength} bytes from ${offset}`,
    );
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
export function toNumber(key: string, value: bigint): number {
  const number = Number(value);
  if (Number.isSafeInteger(number)) return number;
  throw invalid(key, `expected lengths and offsets below 2^53, received ${value}`);
}

/** Creates an error about the structure of an archive. */
export function invalid(key: string, problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'${key}': ${problem}`, { details: { key } });
}
