import { isDamage, ZpublishError } from "../../errors.js";
import type { FileBlocks } from "../file-format.js";
import { ByteCursor, checkChecksum, type Hdf5Input, invalidFile, unsupportedFile } from "./bytes.js";
import { MAX_RANK, parseDatatype } from "./datatypes.js";
import type { Hdf5Type } from "./hdf5-model.js";
import { FractalHeap, GlobalHeap } from "./heaps.js";

const SIGNATURE = Uint8Array.of(0x89, 0x48, 0x44, 0x46, 0x0d, 0x0a, 0x1a, 0x0a);

/** Offset of the first superblock behind a user block; further ones are at the powers of two. */
const FIRST_USER_BLOCK = 512;

/** Bytes of the longest superblock: version 1 has 100. */
const SUPERBLOCK_BYTES = 100;

/** The only size of addresses and lengths that is read. The library writes others if a program insists. */
const FIELD_BYTES = 8;

/** Bytes of driver information that are read: its header, with the name of the driver. */
const DRIVER_BYTES = 16;

/** A program that has the file open for writing. */
const OPEN_FOR_WRITING = 0x01;

/** The superblock (HDF5 File Format Specification, II.A). Addresses are as stored. */
interface Superblock {
  /** Offset in the file that all addresses count from: that of the superblock, which need not be as stored. */
  readonly baseAddress: number;
  readonly rootAddress: number;
  /** Object header with messages about the file; null if there is none. */
  readonly extensionAddress: number | null;
  /** True if a program has not closed the file yet (version 3). */
  readonly isOpenForWriting: boolean;
}

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
 * Finds and reads the superblock.
 * @throws ZpublishError `invalid-metadata` if there is none, or if the file is cut short; `unsupported`, `source-unreadable`,
 * `source-changed`
 */
export async function readSuperblock(file: FileBlocks): Promise<Superblock> {
  for (let at = 0; at + SIGNATURE.length <= file.byteLength; at = nextPlace(at)) {
    const byteLength = Math.min(SUPERBLOCK_BYTES, file.byteLength - at);
    const bytes = file.readNow(at, byteLength) ?? (await file.read(at, byteLength));
    if (hasSignature(bytes, 0)) return parseSuperblock(file, bytes, at);
  }
  throw invalidFile("expected a superblock, received a file without its signature");
}

async function parseSuperblock(file: FileBlocks, bytes: Uint8Array, place: number): Promise<Superblock> {
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
  // Files of drivers have addresses of others: these are refused first.
  if (version < 2) await checkDriver(file, place, cursor.optional());
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

/** @throws ZpublishError `unsupported` if a driver spreads the file over several (HDF5 File Format Specification, II.B) */
async function checkDriver(file: FileBlocks, place: number, address: number | null): Promise<void> {
  if (address === null) return;
  const cursor = new ByteCursor(await file.read(place + address, DRIVER_BYTES), "driver information");
  cursor.version(0, 0);
  cursor.skip(7);
  throw unsupportedFile(
    `the file is one of several, written by the driver ${JSON.stringify(cursor.text(8))}`,
  );
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
  const structure = "object header";
  const prefixBytes = Math.min(PREFIX_BYTES, Math.max(input.bytesFrom(address), 1));
  const prefix = await input.read(address, prefixBytes, structure);
  const { format, byteLength, start } =
    prefix.bytes[0] === 0x4f ? parsePrefix2(prefix) : parsePrefix1(prefix);
  const read = (at: number, length: number, signature: string) =>
    format.version === 1
      ? input.read(at, length, structure)
      : input.readChecked(at, length, signature, structure);
  const messages: HeaderMessage[] = [];
  const continuations: { address: number; byteLength: number }[] = [];
  const first = await read(address, byteLength, "OHDR");
  first.at = start;
  parsePart(first, format, messages, continuations);
  const seen = new Set<number>();
  for (let next = continuations.pop(); next !== undefined; next = continuations.pop()) {
    if (seen.has(next.address)) throw invalidFile("object header: a continuation leads back to itself");
    seen.add(next.address);
    parsePart(await read(next.address, next.byteLength, "OCHK"), format, messages, continuations);
  }
  return messages;
}

/** Version 1 (IV.A.1.a): 12 bytes, and 4 that align the messages to 8 bytes. */
function parsePrefix1(cursor: ByteCursor) {
  cursor.version(1, 1);
  cursor.skip(1);
  const count = cursor.u16();
  cursor.skip(4);
  const byteLength = cursor.u32();
  const format: HeaderFormat = { version: 1, messageHeader: 8, messagesLeft: count };
  return { format, byteLength: 16 + byteLength, start: 16 };
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
  const messageHeader = (flags & 0x04) !== 0 ? 6 : 4;
  const format: HeaderFormat = { version: 2, messageHeader, messagesLeft: MAX_MESSAGES };
  return { format, byteLength: cursor.at + byteLength + 4, start: cursor.at };
}

function parsePart(
  cursor: ByteCursor,
  format: HeaderFormat,
  messages: HeaderMessage[],
  continuations: { address: number; byteLength: number }[],
): void {
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
  if (rank > MAX_RANK) throw invalidFile(`dataspace: expected at most ${MAX_RANK} axes, received ${rank}`);
  if (version === 2 && kind === 2) return { shape: null, maxShape: [] };
  const shape: number[] = [];
  for (let axis = 0; axis < rank; axis++) shape.push(cursor.u64());
  if ((flags & 1) === 0) return { shape, maxShape: shape };
  const maxShape: (number | null)[] = [];
  for (let axis = 0; axis < rank; axis++) {
    const limit = cursor.optional();
    const length = shape[axis]!;
    if (limit !== null && limit < length) {
      throw invalidFile(`dataspace: expected an axis of at most ${limit} items, received ${length}`);
    }
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
  const count = shape.reduce((product, length) => product * length, 1);
  if (count <= Number.MAX_SAFE_INTEGER) return count;
  throw invalidFile(`dataspace: expected less than 2^53 items, received the shape [${shape.join(", ")}]`);
}

/** Maximum number of indexes of shared messages (HDF5's `H5O_SHMESG_MAX_NINDEXES`). */
const MAX_INDEXES = 8;

/** Bytes of an index in the master table. */
const INDEX_BYTES = 30;

/** Bytes of a shared message's id. */
const SHARED_ID_BYTES = 8;

/** Place of a shared message, if it is in the heap of shared messages. */
const IN_HEAP = 1;

/** Messages and datatypes that several objects share (HDF5 File Format Specification, IV.A.2.c, IV.A.2.p, III.H). */
class SharedMessages {
  private readonly types = new Map<number, Hdf5Type>();
  /** Heaps, and the bits of the kinds of messages that are in them. */
  private heaps: { readonly kinds: number; readonly heap: FractalHeap }[] = [];

  constructor(private readonly input: Hdf5Input) {}

  /**
   * Reads the master table of the heaps of shared messages.
   * @param message The shared message table message, from the superblock's extension.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  async readTable(message: HeaderMessage): Promise<void> {
    const place = cursorOf(message, "shared message table");
    place.version(0, 0);
    const address = place.address();
    const count = place.u8();
    if (count > MAX_INDEXES) {
      throw invalidFile(`shared message table: expected at most ${MAX_INDEXES} indexes, received ${count}`);
    }
    const structure = "shared message table";
    const cursor = await this.input.readChecked(address, 8 + count * INDEX_BYTES, "SMTB", structure);
    for (let i = 0; i < count; i++) {
      cursor.skip(2);
      const kinds = cursor.u16();
      // Bounds of messages and indexes, and the index, which only writers need.
      cursor.skip(18);
      const heapAddress = cursor.optional();
      if (heapAddress !== null)
        this.heaps.push({ kinds, heap: await FractalHeap.open(this.input, heapAddress) });
    }
  }

  /**
   * Reads the messages of an object. Shared ones are replaced by those that they lead to, except datatypes and attributes.
   * @throws ZpublishError as {@link resolve}
   */
  async readObject(address: number): Promise<readonly HeaderMessage[]> {
    const messages = await readObjectHeader(this.input, address);
    for (const [i, message] of messages.entries()) {
      if (!message.isShared || message.type === MESSAGE.datatype || message.type === MESSAGE.attribute)
        continue;
      const content = await this.follow(cursorOf(message, "shared message"), message.type);
      messages[i] = {
        type: message.type,
        isShared: false,
        bytes: content.bytes,
        start: content.at,
        end: content.end,
      };
    }
    return messages;
  }

  /**
   * Returns the content of a message, and follows it to where it is.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  resolve(message: HeaderMessage, structure: string): ByteCursor | Promise<ByteCursor> {
    const cursor = cursorOf(message, structure);
    return message.isShared ? this.follow(cursor, message.type) : cursor;
  }

  /**
   * Returns the type of a datatype message. A committed datatype is parsed once.
   * @param isShared True if the content only says where the message is.
   * @throws ZpublishError as {@link resolve}
   */
  datatype(cursor: ByteCursor, isShared: boolean): Hdf5Type | Promise<Hdf5Type> {
    return isShared ? this.sharedDatatype(cursor) : parseDatatype(cursor);
  }

  private async sharedDatatype(cursor: ByteCursor): Promise<Hdf5Type> {
    const start = cursor.at;
    const { address } = parsePlace(cursor);
    const known = address === undefined ? undefined : this.types.get(address);
    if (known !== undefined) return known;
    cursor.at = start;
    const type = parseDatatype(await this.follow(cursor, MESSAGE.datatype));
    if (address !== undefined) this.types.set(address, type);
    return type;
  }

  /** Follows a shared dataspace or other message. */
  async follow(cursor: ByteCursor, type: number): Promise<ByteCursor> {
    const place = parsePlace(cursor);
    if (place.id !== undefined) return this.readFromHeap(place.id, type, cursor.structure);
    const messages = await readObjectHeader(this.input, place.address);
    const found = messages.find((message) => message.type === type);
    if (found === undefined || found.isShared) {
      throw invalidFile(`${cursor.structure}: expected the shared message in another object, received none`);
    }
    return cursorOf(found, cursor.structure);
  }

  /** Reads a message from the heap of shared messages of its kind. @throws ZpublishError as {@link resolve} */
  async readFromHeap(id: ByteCursor, type: number, structure: string): Promise<ByteCursor> {
    const found = this.heaps.find(({ kinds }) => ((kinds >> type) & 1) === 1);
    if (found === undefined) throw unsupportedFile(`${structure}: there is no heap of such shared messages`);
    return new ByteCursor(await found.heap.read(id), structure);
  }
}

/** Returns a cursor over the content of a message that is not shared. */
export function cursorOf(message: HeaderMessage, structure: string): ByteCursor {
  return new ByteCursor(message.bytes, structure, message.start, message.end);
}

type Place =
  | { readonly address: number; readonly id?: undefined }
  | { readonly id: ByteCursor; readonly address?: undefined };

function parsePlace(cursor: ByteCursor): Place {
  const version = cursor.version(1, 3);
  const kind = cursor.u8();
  // Version 1 has 6 reserved bytes, and a symbol table entry, which begins with the offset of a name.
  if (version === 1) cursor.skip(14);
  if (version === 3 && kind === IN_HEAP) return { id: cursor.part(SHARED_ID_BYTES, "fractal heap") };
  return { address: cursor.address() };
}

/** Bounds for the values of all attributes of a file. Several attributes may have the same bytes, so a small file could have many. */
const MAX_ATTRIBUTE_ITEMS = 8_000_000;
const MAX_ATTRIBUTE_BYTES = 128 * 1024 * 1024;

/** Maximum number of warnings about attributes. */
const MAX_WARNINGS = 100;

/** Parts of a file that its objects share, while they are read. */
export class ObjectReader {
  readonly shared: SharedMessages;
  readonly heap: GlobalHeap;
  readonly warnings: string[] = [];
  private itemsLeft = MAX_ATTRIBUTE_ITEMS;
  private bytesLeft = MAX_ATTRIBUTE_BYTES;

  constructor(readonly input: Hdf5Input) {
    this.shared = new SharedMessages(input);
    this.heap = new GlobalHeap(input);
  }

  /** Counts values of attributes. */
  spend(items: number, bytes: number): void {
    this.itemsLeft -= items;
    this.bytesLeft -= bytes;
  }

  /** @throws ZpublishError `unsupported` if the file's attributes had too many values already */
  checkBudget(): void {
    if (this.itemsLeft > 0 && this.bytesLeft > 0) return;
    throw unsupportedFile(
      `expected at most ${MAX_ATTRIBUTE_ITEMS} items and ${MAX_ATTRIBUTE_BYTES} bytes in all attributes, received more`,
    );
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
