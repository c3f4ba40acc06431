import { ByteCursor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import type { Hdf5Input } from "./hdf5-input.js";
import { checkChecksum } from "./lookup3.js";

/** Maximum number of messages in an object header. */
const MAX_MESSAGES = 262_144;

/** Bytes of the longest prefix of an object header, which is that of version 2. */
const PREFIX_BYTES = 34;

/** Kinds of header messages that are read (HDF5 File Format Specification, IV.A.2). */
export const MESSAGE = {
  dataspace: 0x01,
  linkInfo: 0x02,
  datatype: 0x03,
  oldFill: 0x04,
  fill: 0x05,
  link: 0x06,
  externalFiles: 0x07,
  layout: 0x08,
  groupInfo: 0x0a,
  filters: 0x0b,
  attribute: 0x0c,
  sharedTable: 0x0f,
  continuation: 0x10,
  symbolTable: 0x11,
  driverInfo: 0x14,
  attributeInfo: 0x15,
} as const;

/** Kinds beyond these are not known, nor is one that tests of HDF5 use. A writer may forbid to read on without knowing them. */
const LAST_KNOWN = 0x18;
const BOGUS = 0x09;

/** Flags of a message: its content is elsewhere; readers that do not know it must not go on. */
const IS_SHARED = 0x02;
const MUST_BE_KNOWN = 0x80;

/** A header message. */
export interface HeaderMessage {
  readonly type: number;
  /** True if the content only says where the message is. */
  readonly isShared: boolean;
  /** Its content, in the bytes of the header. */
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** A part of an object header. */
interface HeaderPart {
  readonly bytes: Uint8Array;
  readonly start: number;
  readonly end: number;
}

/** Rules of one object header. */
interface HeaderFormat {
  readonly version: 1 | 2;
  /** Bytes in front of a message's content. */
  readonly messageHeader: number;
  /** Messages that are left to be read. */
  messagesLeft: number;
}

/**
 * Reads the messages of an object, without empty ones and continuations.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
 */
export async function readObjectHeader(input: Hdf5Input, address: number): Promise<HeaderMessage[]> {
  const prefixBytes = Math.min(PREFIX_BYTES, Math.max(input.bytesFrom(address), 1));
  const prefixRead = input.read(address, prefixBytes, "object header");
  const prefix = prefixRead instanceof Uint8Array ? prefixRead : await prefixRead;
  const { format, byteLength, start } = prefix[0] === 0x4f ? parsePrefix2(prefix) : parsePrefix1(prefix);
  const read = input.read(address, byteLength, "object header");
  const bytes = read instanceof Uint8Array ? read : await read;
  const messages: HeaderMessage[] = [];
  const continuations: { address: number; byteLength: number }[] = [];
  parsePart(partOf(bytes, start, format), format, messages, continuations);
  const seen = new Set<number>();
  for (let next = continuations.pop(); next !== undefined; next = continuations.pop()) {
    if (seen.has(next.address)) throw invalidFile("object header: a continuation leads back to itself");
    seen.add(next.address);
    const more = await input.read(next.address, next.byteLength, "object header continuation");
    parsePart(continuationOf(more, format), format, messages, continuations);
  }
  return messages;
}

/** Version 1 (IV.A.1.a): 12 bytes, and 4 that align the messages to 8 bytes. */
function parsePrefix1(bytes: Uint8Array) {
  const cursor = new ByteCursor(bytes, "object header");
  cursor.version(1, 1);
  cursor.skip(1);
  const count = cursor.u16();
  cursor.skip(4);
  const byteLength = cursor.u32();
  const format: HeaderFormat = { version: 1, messageHeader: 8, messagesLeft: count };
  return { format, byteLength: 16 + byteLength, start: 16 };
}

/** Version 2 (IV.A.1.b). */
function parsePrefix2(bytes: Uint8Array) {
  const cursor = new ByteCursor(bytes, "object header");
  cursor.signature("OHDR");
  cursor.version(2, 2);
  const flags = cursor.u8();
  // Times of access, modification, change and birth; numbers at which attributes move to a heap.
  if ((flags & 0x20) !== 0) cursor.skip(16);
  if ((flags & 0x10) !== 0) cursor.skip(4);
  const byteLength = cursor.uint(1 << (flags & 3));
  const messageHeader = (flags & 0x04) !== 0 ? 6 : 4;
  const format: HeaderFormat = { version: 2, messageHeader, messagesLeft: MAX_MESSAGES };
  return { format, byteLength: cursor.at + byteLength + 4, start: cursor.at };
}

function partOf(bytes: Uint8Array, start: number, format: HeaderFormat): HeaderPart {
  if (format.version === 1) return { bytes, start, end: bytes.length };
  checkChecksum(bytes, "object header");
  return { bytes, start, end: bytes.length - 4 };
}

function continuationOf(bytes: Uint8Array, format: HeaderFormat): HeaderPart {
  if (format.version === 1) return { bytes, start: 0, end: bytes.length };
  new ByteCursor(bytes, "object header continuation").signature("OCHK");
  checkChecksum(bytes, "object header continuation");
  return { bytes, start: 4, end: bytes.length - 4 };
}

function parsePart(
  part: HeaderPart,
  format: HeaderFormat,
  messages: HeaderMessage[],
  continuations: { address: number; byteLength: number }[],
): void {
  const cursor = new ByteCursor(part.bytes, "object header", part.start, part.end);
  // Fewer bytes than a message's header are a gap.
  while (cursor.left >= format.messageHeader) {
    if (format.messagesLeft === 0) {
      if (format.version === 1) return;
      throw unsupportedFile(`an object header has more than ${MAX_MESSAGES} messages`);
    }
    format.messagesLeft -= 1;
    const type = format.version === 1 ? cursor.u16() : cursor.u8();
    const byteLength = cursor.u16();
    const flags = cursor.u8();
    cursor.skip(format.version === 1 ? 3 : format.messageHeader - 4);
    const start = cursor.at;
    cursor.skip(byteLength);
    if (type === 0) continue;
    if (type === MESSAGE.continuation) {
      const content = new ByteCursor(part.bytes, "object header continuation", start, cursor.at);
      continuations.push({ address: content.address(), byteLength: content.u64() });
      continue;
    }
    if ((type > LAST_KNOWN || type === BOGUS) && (flags & MUST_BE_KNOWN) !== 0) {
      throw unsupportedFile(`object header: message ${type} is not known, but must be`);
    }
    const isShared = (flags & IS_SHARED) !== 0;
    messages.push({ type, isShared, bytes: part.bytes, start, end: cursor.at });
  }
}
