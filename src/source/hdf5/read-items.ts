import { invalidFile, unsupportedFile } from "./byte-cursor.js";
import { decodeString } from "./decode-string.js";
import type { GlobalHeap, HeapCollection } from "./global-heap.js";
import type { Hdf5Item, Hdf5Type } from "./hdf5-model.js";
import { integerAt } from "./parse-datatype.js";

/** Bounds for what becomes of stored items. */
export interface ItemLimits {
  /** Maximum number of items, those inside of others included. */
  readonly items: number;
  /** Maximum bytes of all strings and opaque items, and of the heap's collections that hold them. */
  readonly bytes: number;
}

/** State while items are decoded. */
interface Decoding {
  readonly baseAddress: number;
  readonly collections: ReadonlyMap<number, HeapCollection>;
  /** Addresses of collections that have to be loaded first. */
  readonly missing: Set<number>;
  itemsLeft: number;
  bytesLeft: number;
}

/** Bytes of an item of variable length: number of elements, address of a collection, index in it. */
const VLEN_BYTES = 16;

/**
 * Decodes stored items, and reads those of variable length from the heap.
 * @param bytes `count` items one after the other.
 * @returns The items; a promise if collections have to be loaded. Array types become flat lists in C order, complex numbers lists of two parts.
 * @throws ZpublishError `unsupported` if the type cannot be decoded, or there is more than `limits` say; `invalid-metadata`,
 * `source-unreadable`, `source-changed`
 */
export function readItems(
  heap: GlobalHeap,
  type: Hdf5Type,
  bytes: Uint8Array,
  count: number,
  limits: ItemLimits,
): Hdf5Item[] | Promise<Hdf5Item[]> {
  if (count * type.size > bytes.length) {
    throw invalidFile(`expected ${count} items of ${type.size} bytes, received ${bytes.length} bytes`);
  }
  const collections = new Map<number, HeapCollection>();
  const { items: itemsLeft, bytes: bytesLeft } = limits;
  const { baseAddress } = heap.input;
  const missing = new Set<number>();
  const items = decodeMany(type, bytes, 0, count, {
    baseAddress,
    collections,
    missing,
    itemsLeft,
    bytesLeft,
  });
  return missing.size === 0 ? items : loadAndDecode();

  /** Lists of lists need a pass for each level: the places of inner ones are known when the outer ones are loaded. */
  async function loadAndDecode(): Promise<Hdf5Item[]> {
    let loadedBytes = 0;
    while (missing.size > 0) {
      for (const address of missing) {
        const { collection, byteLength } = await heap.load(address);
        loadedBytes += byteLength;
        if (loadedBytes > limits.bytes) throw tooLarge(`${limits.bytes} bytes of collections`);
        collections.set(address, collection);
        if (heap.input.isPauseDue) await heap.input.pause();
      }
      missing.clear();
      const state = { baseAddress, collections, missing, itemsLeft, bytesLeft };
      const found = decodeMany(type, bytes, 0, count, state);
      if (missing.size === 0) return found;
    }
    return items;
  }
}

function tooLarge(limit: string): Error {
  return unsupportedFile(`expected values of at most ${limit}`);
}

function decodeMany(
  type: Hdf5Type,
  bytes: Uint8Array,
  start: number,
  count: number,
  state: Decoding,
): Hdf5Item[] {
  state.itemsLeft -= count;
  if (state.itemsLeft < 0) throw tooLarge("so many items");
  const items = new Array<Hdf5Item>(count);
  const decode = decoderOf(type, bytes, state);
  for (let i = 0; i < count; i++) items[i] = decode(start + i * type.size);
  return items;
}

/** Returns a function that decodes the item at an offset of `bytes`. */
function decoderOf(type: Hdf5Type, bytes: Uint8Array, state: Decoding): (at: number) => Hdf5Item {
  switch (type.kind) {
    case "integer":
      return integerDecoder(type, bytes);
    case "float":
      return floatDecoder(type, bytes);
    case "enum":
      return decoderOf(type.base, bytes, state);
    case "string":
      return (at) => {
        spend(state, type.size);
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
    case "compound":
      return (at) => ({
        fields: new Map(
          type.fields.map((field) => {
            const [item] = decodeMany(field.type, bytes, at + field.offset, 1, state);
            return [field.name, item as Hdf5Item];
          }),
        ),
      });
    case "opaque":
      return (at) => {
        spend(state, type.size);
        return Uint8Array.from(bytes.subarray(at, at + type.size));
      };
    case "object-reference":
      return (at) => {
        const address = unsignedAt(bytes, at);
        return {
          address: address === 0n || address > MAX_ADDRESS ? null : Number(address) + state.baseAddress,
        };
      };
    case "other":
      throw unsupportedFile(`values are ${type.description}`);
  }
}

const MAX_ADDRESS = BigInt(Number.MAX_SAFE_INTEGER);

function unsignedAt(bytes: Uint8Array, at: number): bigint {
  return viewOf(bytes).getBigUint64(at, true);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function integerDecoder(
  type: Extract<Hdf5Type, { kind: "integer" }>,
  bytes: Uint8Array,
): (at: number) => number | bigint {
  const { size, isSigned } = type;
  if (type.precision !== size * 8) {
    return (at) => {
      const value = integerAt(bytes, at, type);
      return size === 8 ? value : Number(value);
    };
  }
  const view = viewOf(bytes);
  const isLittle = type.byteOrder === "<";
  if (size === 1) return isSigned ? (at) => view.getInt8(at) : (at) => view.getUint8(at);
  if (size === 2)
    return isSigned ? (at) => view.getInt16(at, isLittle) : (at) => view.getUint16(at, isLittle);
  if (size === 4)
    return isSigned ? (at) => view.getInt32(at, isLittle) : (at) => view.getUint32(at, isLittle);
  return isSigned ? (at) => view.getBigInt64(at, isLittle) : (at) => view.getBigUint64(at, isLittle);
}

function floatDecoder(type: Extract<Hdf5Type, { kind: "float" }>, bytes: Uint8Array): (at: number) => number {
  const view = viewOf(bytes);
  const isLittle = type.byteOrder === "<";
  if (type.size === 8) return (at) => view.getFloat64(at, isLittle);
  if (type.size === 4) return (at) => view.getFloat32(at, isLittle);
  return (at) => halfFloat(view.getUint16(at, isLittle));
}

function halfFloat(bits: number): number {
  const sign = (bits & 0x8000) === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 0x1f;
  const mantissa = bits & 0x3ff;
  if (exponent === 0x1f) return mantissa === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * mantissa * 2 ** -24;
  return sign * (1024 + mantissa) * 2 ** (exponent - 25);
}

/** Returns the object of an item of variable length; undefined if it is empty, or if its collection has to be loaded first. */
function objectAt(
  bytes: Uint8Array,
  at: number,
  elementBytes: number,
  state: Decoding,
): { readonly object: Uint8Array; readonly length: number } | undefined {
  const view = new DataView(bytes.buffer, bytes.byteOffset + at, VLEN_BYTES);
  const length = view.getUint32(0, true);
  const address = view.getBigUint64(4, true);
  if (length === 0 || address === 0n || address > MAX_ADDRESS) return undefined;
  const collection = state.collections.get(Number(address));
  if (collection === undefined) {
    state.missing.add(Number(address));
    return undefined;
  }
  const index = view.getUint32(12, true);
  const object = collection.get(index);
  if (object === undefined) throw invalidFile(`global heap: there is no object ${index}`);
  const byteLength = length * elementBytes;
  if (byteLength > object.length) {
    throw invalidFile(`global heap: expected an object of ${byteLength} bytes, received ${object.length}`);
  }
  spend(state, byteLength);
  return { object: object.subarray(0, byteLength), length };
}

function spend(state: Decoding, byteLength: number): void {
  state.bytesLeft -= byteLength;
  if (state.bytesLeft < 0) throw tooLarge("so many bytes");
}
