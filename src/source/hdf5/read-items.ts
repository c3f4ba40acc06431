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
  readonly collections: ReadonlyMap<number, HeapCollection>;
  /** Addresses of collections that have to be loaded first. */
  readonly missing: Set<number>;
  readonly budget: ItemBudget;
}

/**
 * Decodes stored items, and reads those of variable length from the heap.
 * @param bytes `count` items one after the other.
 * @returns The items; a promise if collections have to be loaded. Array types become flat lists in C order, complex numbers lists of two parts.
 * @throws ZpublishError `unsupported` if the type cannot be decoded, or there is more than `budget` allows; `invalid-metadata`,
 * `source-unreadable`, `source-changed`
 */
export function readItems(
  heap: GlobalHeap,
  type: Hdf5Type,
  bytes: Uint8Array,
  count: number,
  budget: ItemBudget,
): Hdf5Item[] | Promise<Hdf5Item[]> {
  if (count * type.size > bytes.length) {
    throw invalidFile(`expected ${count} items of ${type.size} bytes, received ${bytes.length} bytes`);
  }
  const collections = new Map<number, HeapCollection>();
  const whole = { ...budget };
  const missing = new Set<number>();
  const state: Decoding = { baseAddress: heap.input.baseAddress, collections, missing, budget };
  const buffer = bufferOf(bytes);
  const items = decodeMany(type, buffer, 0, count, state);
  return missing.size === 0 ? items : loadAndDecode();

  /** Lists of lists need a pass for each level: the places of inner ones are known when the outer ones are loaded. */
  async function loadAndDecode(): Promise<Hdf5Item[]> {
    let loadedBytes = 0;
    while (missing.size > 0) {
      for (const address of missing) {
        const { collection, byteLength } = await heap.load(address);
        loadedBytes += byteLength;
        if (loadedBytes > whole.bytes) throw tooLarge(`${whole.bytes} bytes of collections`);
        collections.set(address, collection);
        if (heap.input.isPauseDue) await heap.input.pause();
      }
      missing.clear();
      Object.assign(budget, whole);
      const found = decodeMany(type, buffer, 0, count, state);
      if (missing.size === 0) return found;
    }
    return items;
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
  const decode = decoderOf(type, bytes, state);
  for (let i = 0; i < count; i++) items[i] = decode(start + i * type.size);
  return items;
}

/** Returns a function that decodes the item at an offset of `bytes`. */
function decoderOf(type: Hdf5Type, bytes: Buffer, state: Decoding): (at: number) => Hdf5Item {
  switch (type.kind) {
    case "integer":
      return integerDecoder(type, bytes);
    case "float":
      return floatDecoder(type, bytes);
    case "enum":
      return decoderOf(type.base, bytes, state);
    case "string":
      return (at) => {
        spendBytes(state, type.size);
        return decodeString(bytes, at, at + type.size, type.padding);
      };
    case "vlen-string":
      return (at) => {
        const object = objectAt(bytes, at, 1, state)?.object;
        return object === undefined ? "" : decodeString(object, 0, object.length, "null-terminated");
      };
    case "vlen":
      return (at) => {
        const found = objectAt(bytes, at, type.base.size, state);
        return found === undefined ? [] : decodeMany(type.base, found.object, 0, found.length, state);
      };
    case "array":
      return (at) => decodeMany(type.base, bytes, at, type.size / type.base.size, state);
    case "complex":
      return (at) => decodeMany(type.base, bytes, at, 2, state);
    case "compound": {
      const fields = type.fields.map((field) => ({ ...field, decode: decoderOf(field.type, bytes, state) }));
      return (at) => {
        spendItems(state, fields.length);
        return { fields: new Map(fields.map(({ name, offset, decode }) => [name, decode(at + offset)])) };
      };
    }
    case "opaque":
      return (at) => {
        spendBytes(state, type.size);
        return Uint8Array.from(bytes.subarray(at, at + type.size));
      };
    case "object-reference":
      return (at) => {
        const address = bytes.readBigUInt64LE(at);
        return {
          address: address === 0n || address > MAX_ADDRESS ? null : Number(address) + state.baseAddress,
        };
      };
    case "other":
      throw unsupportedFile(`values are ${type.description}`);
  }
}

const MAX_ADDRESS = BigInt(Number.MAX_SAFE_INTEGER);

function integerDecoder(
  type: Extract<Hdf5Type, { kind: "integer" }>,
  bytes: Buffer,
): (at: number) => number | bigint {
  const { size, isSigned } = type;
  if (type.precision !== size * 8) {
    return (at) => {
      const value = integerAt(bytes, at, type);
      return size === 8 ? value : Number(value);
    };
  }
  const isLittle = type.byteOrder === "<";
  switch (size) {
    case 1:
      return isSigned ? (at) => bytes.readInt8(at) : (at) => bytes.readUInt8(at);
    case 2:
      if (isLittle) return isSigned ? (at) => bytes.readInt16LE(at) : (at) => bytes.readUInt16LE(at);
      return isSigned ? (at) => bytes.readInt16BE(at) : (at) => bytes.readUInt16BE(at);
    case 4:
      if (isLittle) return isSigned ? (at) => bytes.readInt32LE(at) : (at) => bytes.readUInt32LE(at);
      return isSigned ? (at) => bytes.readInt32BE(at) : (at) => bytes.readUInt32BE(at);
    default:
      if (isLittle) return isSigned ? (at) => bytes.readBigInt64LE(at) : (at) => bytes.readBigUInt64LE(at);
      return isSigned ? (at) => bytes.readBigInt64BE(at) : (at) => bytes.readBigUInt64BE(at);
  }
}

function floatDecoder(type: Extract<Hdf5Type, { kind: "float" }>, bytes: Buffer): (at: number) => number {
  const isLittle = type.byteOrder === "<";
  if (type.size === 8) return isLittle ? (at) => bytes.readDoubleLE(at) : (at) => bytes.readDoubleBE(at);
  if (type.size === 4) return isLittle ? (at) => bytes.readFloatLE(at) : (at) => bytes.readFloatBE(at);
  return (at) => halfFloat(isLittle ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
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
