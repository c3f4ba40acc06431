import { startCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { ByteCursor, bufferOf, check, invalidFile, roundUp, unsupportedFile } from "./bytes.js";
import { integerAt, parseDatatype } from "./datatypes.js";
import type { Hdf5Attribute, Hdf5Item, Hdf5Type } from "./hdf5-model.js";
import { type GlobalHeap, type HeapCollection, openIndexedHeap } from "./heaps.js";
import {
  cursorOf,
  type HeaderMessage,
  itemCount,
  MESSAGE,
  type ObjectReader,
  parseDataspace,
} from "./objects.js";

/** Records of the B-tree that has attributes by name, and their bytes: heap id, flags, creation order, hash. */
const ATTRIBUTES_BY_NAME = 8;
const RECORD_BYTES = 17;
const ID_BYTES = 8;

/** Bounds for the values of one attribute. They are decoded in one go. */
const LIMITS: Readonly<ItemBudget> = { items: 300_000, bytes: 16 * 1024 * 1024 };

/** Flag of messages whose content is elsewhere. */
const IS_SHARED = 0x02;

/**
 * Reads the attributes of an object: those of its header, and those in a heap.
 * @throws ZpublishError `source-unreadable`, `source-changed`; `invalid-metadata`, `unsupported` if the list cannot be read. An
 * attribute whose values cannot be read has a `problem`; one without a name is counted among the file's warnings.
 */
export async function readAttributes(
  reader: ObjectReader,
  path: string,
  messages: readonly HeaderMessage[],
): Promise<Map<string, Hdf5Attribute>> {
  const attributes = new Map<string, Hdf5Attribute>();
  for (const message of await attributeMessages(reader, messages)) {
    const pause = reader.input.pause();
    if (pause !== undefined) await pause;
    try {
      const [name, attribute] = await readAttribute(reader, await message());
      attributes.set(name, attribute);
    } catch (error) {
      reader.warn(`'${path}': an attribute cannot be read: ${reader.reasonOf(error)}`);
    }
  }
  return attributes;
}

/** A function that finds the content of an attribute message. */
type AttributeMessage = () => ByteCursor | Promise<ByteCursor>;

async function attributeMessages(reader: ObjectReader, messages: readonly HeaderMessage[]) {
  const found: AttributeMessage[] = [];
  for (const message of messages) {
    if (message.type === MESSAGE.attribute) found.push(() => reader.shared.resolve(message, "attribute"));
    else if (message.type === MESSAGE.attributeInfo) {
      for (const dense of await readDense(reader, cursorOf(message, "attribute info"))) found.push(dense);
    }
  }
  return found;
}

/** Finds the attributes of a heap, in the order of their creation. */
async function readDense(reader: ObjectReader, info: ByteCursor): Promise<AttributeMessage[]> {
  const entries: { readonly id: ByteCursor; readonly isShared: boolean; readonly order: number }[] = [];
  const types = [ATTRIBUTES_BY_NAME, RECORD_BYTES] as const;
  const heap = await openIndexedHeap(reader.input, info, 2, types, (record) => {
    const id = record.part(ID_BYTES, "fractal heap");
    entries.push({ id, isShared: (record.u8() & IS_SHARED) !== 0, order: record.u32() });
  });
  if (heap === undefined) return [];
  const sorted = await startCooperatively(sortCooperatively(entries, (a, b) => a.order - b.order));
  return sorted.map(({ id, isShared }) => async () => {
    if (isShared) throw unsupportedFile("it is in a heap of shared messages, which is not read");
    return new ByteCursor(await heap.read(id), "attribute");
  });
}

/** Reads the name and content of an attribute message (HDF5 File Format Specification, IV.A.2.m). */
async function readAttribute(reader: ObjectReader, cursor: ByteCursor): Promise<[string, Hdf5Attribute]> {
  const version = cursor.version(1, 3);
  const flags = version === 1 ? cursor.u8() & 0 : cursor.u8();
  // Names, types and spaces are padded to 8 bytes in version 1.
  const padded = (byteLength: number): number => (version === 1 ? roundUp(byteLength) : byteLength);
  const nameBytes = padded(cursor.u16());
  const typeBytes = padded(cursor.u16());
  const spaceBytes = padded(cursor.u16());
  // Charset of the name: ASCII is UTF-8, too.
  if (version === 3) cursor.skip(1);
  const name = cursor.text(nameBytes);
  const typePart = cursor.part(typeBytes, "datatype");
  const spacePart = cursor.part(spaceBytes, "dataspace");
  const { shared } = reader;
  const type = (flags & 1) === 0 ? parseDatatype(typePart) : await shared.datatype(typePart);
  const { shape } = (flags & 2) === 0 ? parseDataspace(spacePart) : await shared.dataspace(spacePart);
  try {
    return [name, { type, shape, items: await readValues(reader, cursor, type, shape) }];
  } catch (error) {
    return [name, { type, shape, items: undefined, problem: reader.reasonOf(error) }];
  }
}

/** @param cursor At the values of an attribute message. */
async function readValues(
  reader: ObjectReader,
  cursor: ByteCursor,
  type: Hdf5Type,
  shape: Hdf5Attribute["shape"],
): Promise<Hdf5Item[]> {
  const count = itemCount(shape);
  const byteLength = count * type.size;
  check(byteLength <= cursor.left, "attribute", `values of ${byteLength} bytes`, cursor.left);
  const ofFile = reader.budget;
  const most = { items: Math.min(LIMITS.items, ofFile.items), bytes: Math.min(LIMITS.bytes, ofFile.bytes) };
  const budget = { ...most };
  try {
    return await readHeapItems(reader.heap, type, cursor.bytes, count, budget, cursor.at);
  } finally {
    // What a failure has used counts, too.
    ofFile.items -= most.items - budget.items;
    ofFile.bytes -= most.bytes - budget.bytes;
  }
}

/** What stored items may become. It is reduced by what was used. */
interface ItemBudget {
  /** Items that may be made, those inside of others included. */
  items: number;
  /** Bytes of all strings, lists and opaque items; also of the heap's collections that hold them, which are not counted as used. */
  bytes: number;
}

/** State while items are decoded. */
interface Decoding {
  readonly baseAddress: number;
  readonly budget: ItemBudget;
  readonly collections: ReadonlyMap<number, HeapCollection> | undefined;
  /** Addresses of collections that have to be loaded first; undefined if there are none. */
  missing: Set<number> | undefined;
}

/**
 * Decodes stored items, and reads those of variable length from the heap.
 * @param bytes `count` items one after the other.
 * @param start Offset of the first item in `bytes`. Default: 0
 * @returns Array types become flat lists in C order, complex numbers lists of two parts.
 * @throws ZpublishError `unsupported` if the type cannot be decoded, or there is more than `budget` allows; `invalid-metadata`,
 * `source-unreadable`, `source-changed`
 */
export async function readHeapItems(
  heap: GlobalHeap,
  type: Hdf5Type,
  bytes: Uint8Array,
  count: number,
  budget: ItemBudget,
  start = 0,
): Promise<Hdf5Item[]> {
  const left = bytes.length - start;
  check(count * type.size <= left, "values", `${count} items of ${type.size} bytes`, `${left} bytes`);
  const buffer = bufferOf(bytes);
  const { items: maxItems, bytes: maxBytes } = budget;
  let collections: Map<number, HeapCollection> | undefined;
  let loadedBytes = 0;
  // Lists of lists need a pass for each level: the places of inner ones are known when the outer ones are loaded.
  for (;;) {
    budget.items = maxItems;
    budget.bytes = maxBytes;
    const state: Decoding = { baseAddress: heap.input.baseAddress, budget, collections, missing: undefined };
    const items = decodeMany(type, buffer, start, count, state);
    if (state.missing === undefined) return items;
    for (const address of state.missing) {
      await heap.input.pause();
      const { collection, byteLength } = await heap.load(address);
      loadedBytes += byteLength;
      if (loadedBytes > maxBytes) throw tooLarge(`collections of at most ${maxBytes} bytes`);
      collections ??= new Map();
      collections.set(address, collection);
    }
  }
}

function tooLarge(limit: string): Error {
  return unsupportedFile(`the values are too large: expected ${limit}`);
}

function decodeMany(
  type: Hdf5Type,
  bytes: Buffer,
  start: number,
  count: number,
  state: Decoding,
): Hdf5Item[] {
  spendItems(state, count);
  const items = new Array<Hdf5Item>(count);
  for (let i = 0; i < count; i++) items[i] = decodeItem(type, bytes, start + i * type.size, state);
  return items;
}

/** Decodes the item at an offset of `bytes`. */
function decodeItem(type: Hdf5Type, bytes: Buffer, at: number, state: Decoding): Hdf5Item {
  switch (type.kind) {
    case "integer":
      return decodeInteger(type, bytes, at);
    case "float":
      return decodeFloat(type, bytes, at);
    case "enum":
      return decodeItem(type.base, bytes, at, state);
    case "string":
      spendBytes(state, type.size);
      return decodeString(bytes, at, at + type.size, type.padding);
    case "vlen-string": {
      const object = objectAt(bytes, at, 1, state);
      return decodeString(object, 0, object.length, "null-terminated");
    }
    case "vlen": {
      const object = objectAt(bytes, at, type.base.size, state);
      return decodeMany(type.base, object, 0, object.length / type.base.size, state);
    }
    case "array":
      return decodeMany(type.base, bytes, at, type.size / type.base.size, state);
    case "compound": {
      spendItems(state, type.fields.length);
      const fields = new Map<string, Hdf5Item>();
      for (const field of type.fields) {
        fields.set(field.name, decodeItem(field.type, bytes, at + field.offset, state));
      }
      return { fields };
    }
    case "opaque":
      spendBytes(state, type.size);
      return new Uint8Array(bytes.subarray(at, at + type.size));
    case "object-reference": {
      const address = bytes.readBigUInt64LE(at);
      return {
        address: address === 0n || address > MAX_ADDRESS ? null : Number(address) + state.baseAddress,
      };
    }
    case "other":
      throw unsupportedFile(`values are ${type.description}`);
  }
}

const MAX_ADDRESS = BigInt(Number.MAX_SAFE_INTEGER);

function decodeInteger(
  type: Extract<Hdf5Type, { kind: "integer" }>,
  bytes: Buffer,
  at: number,
): number | bigint {
  const { size, isSigned } = type;
  const isLittle = type.byteOrder === "<";
  if (size === 8 || type.precision !== size * 8) {
    const value = integerAt(bytes, at, type);
    return size === 8 ? value : Number(value);
  }
  if (isSigned) return isLittle ? bytes.readIntLE(at, size) : bytes.readIntBE(at, size);
  return isLittle ? bytes.readUIntLE(at, size) : bytes.readUIntBE(at, size);
}

function decodeFloat(type: Extract<Hdf5Type, { kind: "float" }>, bytes: Buffer, at: number): number {
  const isLittle = type.byteOrder === "<";
  if (type.size === 8) return isLittle ? bytes.readDoubleLE(at) : bytes.readDoubleBE(at);
  if (type.size === 4) return isLittle ? bytes.readFloatLE(at) : bytes.readFloatBE(at);
  return halfFloat(isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
}

function halfFloat(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  return sign * (1024 + mantissa) * 2 ** (exponent - 25);
}

const NO_OBJECT = Buffer.alloc(0);

/**
 * Returns the object of an item of variable length: number of elements, address of a collection, index in it.
 * @returns No bytes if it is empty, or if its collection has to be loaded first.
 */
function objectAt(bytes: Buffer, at: number, elementBytes: number, state: Decoding): Buffer {
  const length = bytes.readUInt32LE(at);
  const address = bytes.readBigUInt64LE(at + 4);
  if (length === 0 || address === 0n) return NO_OBJECT;
  if (address > MAX_ADDRESS) throw invalidFile("global heap: an address has more than 53 bits");
  const collection = state.collections?.get(Number(address));
  if (collection === undefined) {
    state.missing ??= new Set();
    state.missing.add(Number(address));
    return NO_OBJECT;
  }
  const index = bytes.readUInt32LE(at + 12);
  const object = collection.get(index);
  if (object === undefined) throw invalidFile(`global heap: there is no object ${index}`);
  const byteLength = length * elementBytes;
  check(byteLength <= object.length, "global heap", `an object of ${byteLength} bytes`, object.length);
  spendBytes(state, byteLength);
  return object.subarray(0, byteLength);
}

function spendItems(state: Decoding, count: number): void {
  state.budget.items -= count;
  if (state.budget.items < 0) throw tooLarge("fewer items");
}

function spendBytes(state: Decoding, byteLength: number): void {
  state.budget.bytes -= byteLength;
  if (state.budget.bytes < 0) throw tooLarge("fewer bytes");
}

const NUL = 0x00;
const SPACE = 0x20;

/** Decodes a string without its padding. Bytes that are no UTF-8 become U+FFFD, as in netCDF4-python. */
function decodeString(
  bytes: Buffer,
  start: number,
  end: number,
  padding: Extract<Hdf5Type, { kind: "string" }>["padding"],
): string {
  let last = end;
  if (padding === "null-terminated") {
    last = start;
    while (last < end && bytes[last] !== NUL) last++;
  } else {
    const pad = padding === "space-padded" ? SPACE : NUL;
    while (last > start && bytes[last - 1] === pad) last--;
  }
  return bytes.toString("utf8", start, last);
}
