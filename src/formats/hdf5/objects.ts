import { isDamage, ZpublishError } from "../../errors.js";
import { elementCount } from "../../model/data-tree.js";
import type { FileBlocks } from "../file-format.js";
import { ByteCursor, check, checkChecksum, type Hdf5Input, invalidFile, unsupportedFile } from "./bytes.js";
import { MAX_RANK, parseDatatype } from "./datatypes.js";
import type { Hdf5Type } from "./hdf5-model.js";
import { GlobalHeap } from "./heaps.js";

const SIGNATURE = Uint8Array.of(0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a);

/** Offset of the first superblock behind a user block; further ones are at the powers of two. */
const FIRST_USER_BLOCK = 512;

/** Bytes of the longest superblock: version 1 has 100. */
const SUPERBLOCK_BYTES = 100;

/** The only size of addresses and lengths that is read. The library writes others if a program insists. */
const FIELD_BYTES = 8;

/** A program that has the file open for writing. */
const OPEN_FOR_WRITING = 0x01;

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
 * Finds and reads the superblock (HDF5 File Format Specification, II.A). Addresses in it are relative to its own offset.
 * @throws ZpublishError `invalid-metadata` if there is none, or if the file is cut short; `unsupported`, `source-unreadable`,
 * `source-changed`
 */
export async function readSuperblock(file: FileBlocks) {
  for (let at = 0; at + SIGNATURE.length <= file.byteLength; at = nextPlace(at)) {
    const byteLength = Math.min(SUPERBLOCK_BYTES, file.byteLength - at);
    const bytes = file.readNow(at, byteLength) ?? (await file.read(at, byteLength));
    if (hasSignature(bytes, 0)) return parseSuperblock(file, bytes, at);
  }
  throw invalidFile("expected a superblock, received a file without its signature");
}

function parseSuperblock(file: FileBlocks, bytes: Uint8Array, place: number) {
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
  // The address of driver information (HDF5 File Format Specification, II.B).
  if (version < 2 && cursor.optional() !== null) {
    throw unsupportedFile("the file is one of several, written by a driver of its own");
  }
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

function hasSignature(bytes: Uint8Array, at: number): boolean {
  return SIGNATURE.every((byte, i) => bytes[at + i] === byte);
}

function nextPlace(place: number): number {
  return place === 0 ? FIRST_USER_BLOCK : place * 2;
}

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

/** An object header whose messages are being read. */
interface OpenHeader {
  readonly version: 1 | 2;
  /** Bytes in front of a message's content. */
  readonly messageHeader: number;
  messagesLeft: number;
  readonly messages: HeaderMessage[];
  readonly continuations: { readonly address: number; readonly byteLength: number }[];
}

/** Reads the messages of an object, without empty ones and continuations. */
export async function readObjectHeader(input: Hdf5Input, address: number): Promise<HeaderMessage[]> {
  const structure = "object header";
  const prefixBytes = Math.min(PREFIX_BYTES, Math.max(input.bytesFrom(address), 1));
  const prefix = await input.read(address, prefixBytes, structure);
  const { header, byteLength, start } =
    prefix.bytes[0] === 0x4f ? parsePrefix2(prefix) : parsePrefix1(prefix);
  const read = (at: number, length: number, signature: string) =>
    header.version === 1
      ? input.read(at, length, structure)
      : input.readChecked(at, length, signature, structure);
  const { messages, continuations } = header;
  const first = await read(address, byteLength, "OHDR");
  first.at = start;
  parsePart(first, header);
  const seen = new Set<number>();
  for (let next = continuations.pop(); next !== undefined; next = continuations.pop()) {
    if (seen.has(next.address)) throw invalidFile("object header: a continuation leads back to itself");
    seen.add(next.address);
    parsePart(await read(next.address, next.byteLength, "OCHK"), header);
  }
  return messages;
}

function openHeader(version: 1 | 2, messageHeader: number, messagesLeft: number): OpenHeader {
  return { version, messageHeader, messagesLeft, messages: [], continuations: [] };
}

/** Version 1 (IV.A.1.a): 12 bytes, and 4 that align the messages to 8 bytes. */
function parsePrefix1(cursor: ByteCursor) {
  cursor.version(1, 1);
  cursor.skip(1);
  const count = cursor.u16();
  cursor.skip(4);
  const byteLength = cursor.u32();
  return { header: openHeader(1, 8, count), byteLength: 16 + byteLength, start: 16 };
}

/** Version 2 (IV.A.1.b). */
function parsePrefix2(cursor: ByteCursor) {
  cursor.signature("OHDR");
  cursor.version(2, 2);
  const flags = cursor.u8();
  // Times of access, modification, change and birth; numbers at which attributes move to a heap.
  if ((flags & 0x20) !== 0) cursor.skip(16);
  if ((flags & 0x10) !== 0) cursor.skip(4);
  const byteLength = cursor.uint(1 << (flags & 3));
  const header = openHeader(2, (flags & 0x04) !== 0 ? 6 : 4, MAX_MESSAGES);
  return { header, byteLength: cursor.at + byteLength + 4, start: cursor.at };
}

function parsePart(cursor: ByteCursor, header: OpenHeader): void {
  const { version, messageHeader, messages, continuations } = header;
  // Fewer bytes than a message's header are a gap.
  while (cursor.left >= messageHeader) {
    if (header.messagesLeft === 0) {
      if (version === 1) return;
      throw unsupportedFile(`an object header has more than ${MAX_MESSAGES} messages`);
    }
    header.messagesLeft -= 1;
    const type = version === 1 ? cursor.u16() : cursor.u8();
    const byteLength = cursor.u16();
    const flags = cursor.u8();
    cursor.skip(version === 1 ? 3 : messageHeader - 4);
    const start = cursor.at;
    cursor.skip(byteLength);
    if (type === 0) continue;
    if (type === MESSAGE.continuation) {
      const content = new ByteCursor(cursor.bytes, "object header continuation", start, cursor.at);
      continuations.push({ address: content.address(), byteLength: content.u64() });
      continue;
    }
    if ((type > LAST_KNOWN || type === BOGUS) && (flags & MUST_BE_KNOWN) !== 0) {
      throw unsupportedFile(`object header: message ${type} is not known, but must be`);
    }
    const isShared = (flags & IS_SHARED) !== 0;
    messages.push({ type, isShared, bytes: cursor.bytes, start, end: cursor.at });
  }
}

/** A dataspace. */
export interface Dataspace {
  /** Null if it has no items. */
  readonly shape: readonly number[] | null;
  /** Null along axes without limit. */
  readonly maxShape: readonly (number | null)[];
}

/**
 * Parses a dataspace message (HDF5 File Format Specification, IV.A.2.b).
 * @throws ZpublishError `invalid-metadata`, `unsupported`
 */
export function parseDataspace(cursor: ByteCursor): Dataspace {
  const version = cursor.version(1, 2);
  const rank = cursor.u8();
  const flags = cursor.u8();
  const kind = cursor.u8();
  if (version === 1) cursor.skip(4);
  check(rank <= MAX_RANK, "dataspace", `at most ${MAX_RANK} axes`, rank);
  if (version === 2 && kind === 2) return { shape: null, maxShape: [] };
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) shape.push(cursor.u64());
  if ((flags & 1) === 0) return { shape, maxShape: shape };
  const maxShape: (number | null)[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const limit = cursor.optional();
    const length = shape[axis]!;
    check(limit === null || limit >= length, "dataspace", `an axis of at most ${limit} items`, length);
    maxShape.push(limit);
  }
  return { shape, maxShape };
}

/**
 * Returns the number of items of a shape; 0 for null.
 * @throws ZpublishError `invalid-metadata` if the number has more than 53 bits
 */
export function itemCount(shape: readonly number[] | null): number {
  if (shape === null || shape.includes(0)) return 0;
  const count = elementCount(shape);
  check(count <= Number.MAX_SAFE_INTEGER, "dataspace", "less than 2^53 items", `[${shape.join(", ")}]`);
  return count;
}

/** Place of a shared message, if it is in the heap of shared messages. */
const IN_HEAP = 1;

/** Messages and datatypes that several objects share (HDF5 File Format Specification, IV.A.2.c). Each is part of another object. */
class SharedMessages {
  private readonly types = new Map<number, Hdf5Type>();

  constructor(private readonly input: Hdf5Input) {}

  /** Reads the messages of an object. Shared ones are replaced by those that they lead to, except datatypes. */
  async readObject(address: number): Promise<readonly HeaderMessage[]> {
    const messages = await readObjectHeader(this.input, address);
    for (const [i, message] of messages.entries()) {
      const { type, isShared } = message;
      // An attribute that is shared is followed when it is read, so that the others can be read if it cannot.
      if (!isShared || type === MESSAGE.datatype || type === MESSAGE.attribute) continue;
      const { bytes, at, end } = await this.resolve(message, "shared message");
      messages[i] = { type, isShared: false, bytes, start: at, end };
    }
    return messages;
  }

  /** Returns the content of a message, and follows it to where it is. */
  resolve(message: HeaderMessage, structure: string): ByteCursor | Promise<ByteCursor> {
    const cursor = cursorOf(message, structure);
    return message.isShared ? this.follow(parsePlace(cursor), message.type, structure) : cursor;
  }

  /** Parses a dataspace that is shared. @param cursor At the place of the message. */
  async dataspace(cursor: ByteCursor): Promise<Dataspace> {
    return parseDataspace(await this.follow(parsePlace(cursor), MESSAGE.dataspace, cursor.structure));
  }

  /** Returns a committed datatype, which is parsed once. @param cursor At the place of the message. */
  async datatype(cursor: ByteCursor): Promise<Hdf5Type> {
    const address = parsePlace(cursor);
    const known = this.types.get(address);
    if (known !== undefined) return known;
    const type = parseDatatype(await this.follow(address, MESSAGE.datatype, "datatype"));
    this.types.set(address, type);
    return type;
  }

  private async follow(address: number, type: number, structure: string): Promise<ByteCursor> {
    const messages = await readObjectHeader(this.input, address);
    const found = messages.find((message) => message.type === type);
    if (found === undefined || found.isShared) {
      throw invalidFile(`${structure}: expected the shared message in another object, received none`);
    }
    return cursorOf(found, structure);
  }
}

/** Returns a cursor over the content of a message that is not shared. */
export function cursorOf(message: HeaderMessage, structure: string): ByteCursor {
  return new ByteCursor(message.bytes, structure, message.start, message.end);
}

/** Returns the address of the object that has a shared message. */
function parsePlace(cursor: ByteCursor): number {
  const version = cursor.version(1, 3);
  const kind = cursor.u8();
  // Version 1 has 6 reserved bytes, and a symbol table entry, which begins with the offset of a name.
  if (version === 1) cursor.skip(14);
  if (version !== 3 || kind !== IN_HEAP) return cursor.address();
  throw unsupportedFile(`${cursor.structure}: it is in a heap of shared messages, which is not read`);
}

/** Maximum number of warnings about attributes. */
const MAX_WARNINGS = 100;

/** Parts of a file that its objects share, while they are read. */
export class ObjectReader {
  readonly shared: SharedMessages;
  readonly heap: GlobalHeap;
  readonly warnings: string[] = [];
  /** What the values of all attributes may still become. Several attributes may have the same bytes, so a small file could have many. */
  readonly budget = { items: 8_000_000, bytes: 128 * 1024 * 1024 };

  constructor(readonly input: Hdf5Input) {
    this.shared = new SharedMessages(input);
    this.heap = new GlobalHeap(input);
  }

  /** Adds a warning about the file, unless it has many already. */
  warn(warning: string): void {
    if (this.warnings.length < MAX_WARNINGS) this.warnings.push(warning);
  }

  /**
   * Returns why an object, link or attribute cannot be read, if the rest of the file can.
   * @throws the error itself if the file as a whole cannot be read
   */
  reasonOf(error: unknown): string {
    const isOwn = error instanceof ZpublishError && !this.input.isExhausted;
    if (isOwn && isDamage(error)) return error.message;
    throw error;
  }
}
