import { bufferOf, invalidFile, unsupportedFile } from "./byte-cursor.js";
import { decodeString } from "./decode-string.js";
import type { GlobalHeap, HeapCollection } from "./global-heap.js";
import type { Hdf5Item, Hdf5Type } from "./hdf5-model.js";
import { integerAt } from "./parse-datatype.js";

/** What stored items may become. It is reduced by what was used. */
export interface ItemBudget {
  /** Items that may be made, those inside of others included. */
  items: number;
  /** Bytes of all strings, lists and opaque items; also of the heap's collections that hold them, which are not counted as used. */
  bytes: number;
}

/** State while items are decoded. */
interface Decoding {
  readonly baseAddress: number;
  readonly budget: ItemBudget;
  readonly collections: ReadonlyMap<number, HeapCollection>;
  /** Addresses of collections that have to be loaded first; undefined if there are none. */
  missing: Set<number> | undefined;
}

const NO_COLLECTIONS: ReadonlyMap<number, HeapCollection> = new Map();

/**
 * Decodes stored items, and reads those of variable length from the heap.
 * @param bytes `count` items one after the other.
 * @param start Offset of the first item in `bytes`. Default: 0
 * @returns The items; a promise if collections have to be loaded. Array types become flat lists in C order, complex numbers lists
 * of two parts.
 * @throws ZpublishError `unsupported` if the type cannot be decoded, or there is more than `budget` allows; `invalid-metadata`,
 * `source-unreadable`, `source-changed`
 */
export function readItems(
  heap: GlobalHeap,
  type: Hdf5Type,
  bytes: Uint8Array,
  count: number,
  budget: ItemBudget,
  start = 0,
): Hdf5Item[] | Promise<Hdf5Item[]> {
  if (start + count * type.size > bytes.length) {
    throw invalidFile(
      `expected ${count} items of ${type.size} bytes, received ${bytes.length - start} bytes`,
    );
  }
  const { baseAddress } = heap.input;
  const state: Decoding = { baseAddress, budget, collections: NO_COLLECTIONS, missing: undefined };
  const { items: itemsLeft, bytes: bytesLeft } = budget;
  const buffer = bufferOf(bytes);
  const items = decodeMany(type, buffer, start, count, state);
  if (state.missing === undefined) return items;
  const decodeAgain = (collections: ReadonlyMap<number, HeapCollection>) => {
    budget.items = itemsLeft;
    budget.bytes = bytesLeft;
    const next: Decoding = { baseAddress, budget, collections, missing: undefined };
    return { items: decodeMany(type, buffer, start, count, next), missing: next.missing };
  };
  return loadAndDecode(heap, state.missing, bytesLeft, decodeAgain);
}

/**
 * Loads collections, and decodes with them. Lists of lists need a pass for each level: the places of inner ones are known when the
 * outer ones are loaded.
 */
async function loadAndDecode(
  heap: GlobalHeap,
  firstMissing: ReadonlySet<number>,
  maxBytes: number,
  decode: (collections: ReadonlyMap<number, HeapCollection>) => {
    readonly items: Hdf5Item[];
    readonly missing: ReadonlySet<number> | undefined;
  },
): Promise<Hdf5Item[]> {
  const collections = new Map<number, HeapCollection>();
  let loadedBytes = 0;
  for (let missing = firstMissing; ; ) {
    for (const address of missing) {
      const { collection, byteLength } = await heap.load(address);
      loadedBytes += byteLength;
      if (loadedBytes > maxBytes) throw tooLarge(`collections of at most ${maxBytes} bytes`);
      collections.set(address, collection);
      if (heap.input.isPauseDue) await heap.input.pause();
    }
    const pass = decode(collections);
    if (pass.missing === undefined) return pass.items;
    missing = pass.missing;
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
      const object = objectAt(bytes, at, 1, state)?.object;
      return object === undefined ? "" : decodeString(object, 0, object.length, "null-terminated");
    }
    case "vlen": {
      const found = objectAt(bytes, at, type.base.size, state);
      return found === undefined ? [] : decodeMany(type.base, found.object, 0, found.length, state);
    }
    case "array":
      return decodeMany(type.base, bytes, at, type.size / type.base.size, state);
    case "complex":
      return decodeMany(type.base, bytes, at, 2, state);
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
  if (type.precision !== size * 8) {
    const value = integerAt(bytes, at, type);
    return size === 8 ? value : Number(value);
  }
  const isLittle = type.byteOrder === "<";
  switch (size) {
    case 1:
      return isSigned ? bytes.readInt8(at) : bytes.readUInt8(at);
    case 2:
      if (isLittle) return isSigned ? bytes.readInt16LE(at) : bytes.readUInt16LE(at);
      return isSigned ? bytes.readInt16BE(at) : bytes.readUInt16BE(at);
    case 4:
      if (isLittle) return isSigned ? bytes.readInt32LE(at) : bytes.readUInt32LE(at);
      return isSigned ? bytes.readInt32BE(at) : bytes.readUInt32BE(at);
    default:
      if (isLittle) return isSigned ? bytes.readBigInt64LE(at) : bytes.readBigUInt64LE(at);
      return isSigned ? bytes.readBigInt64BE(at) : bytes.readBigUInt64BE(at);
  }
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

/**
 * Returns the object of an item of variable length: number of elements, address of a collection, index in it.
 * @returns Undefined if it is empty, or if its collection has to be loaded first.
 */
function objectAt(
  bytes: Buffer,
  at: number,
  elementBytes: number,
  state: Decoding,
): { readonly object: Buffer; readonly length: number } | undefined {
  const length = bytes.readUInt32LE(at);
  const address = bytes.readBigUInt64LE(at + 4);
  if (length === 0 || address === 0n) return undefined;
  if (address > MAX_ADDRESS) throw invalidFile("global heap: an address has more than 53 bits");
  const collection = state.collections.get(Number(address));
  if (collection === undefined) {
    state.missing ??= new Set();
    state.missing.add(Number(address));
    return undefined;
  }
  const index = bytes.readUInt32LE(at + 12);
  const object = collection.get(index);
  if (object === undefined) throw invalidFile(`global heap: there is no object ${index}`);
  const byteLength = length * elementBytes;
  if (byteLength > object.length) {
    throw invalidFile(`global heap: expected an object of ${byteLength} bytes, received ${object.length}`);
  }
  spendBytes(state, byteLength);
  return { object: object.subarray(0, byteLength), length };
}

function spendItems(state: Decoding, count: number): void {
  state.budget.items -= count;
  if (state.budget.items < 0) throw tooLarge("fewer items");
}

function spendBytes(state: Decoding, byteLength: number): void {
  state.budget.bytes -= byteLength;
  if (state.budget.bytes < 0) throw tooLarge("fewer bytes");
}
