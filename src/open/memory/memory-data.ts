import { endianness } from "node:os";

/** Kind and size of the items of each typed array, as numpy names them. It has no clamped type. */
const ITEM_TYPES: Readonly<Record<string, string>> = {
  Int8Array: "i1",
  Uint8Array: "u1",
  Buffer: "u1",
  Int16Array: "i2",
  Uint16Array: "u2",
  Int32Array: "i4",
  Uint32Array: "u4",
  BigInt64Array: "i8",
  BigUint64Array: "u8",
  Float16Array: "f2",
  Float32Array: "f4",
  Float64Array: "f8",
};

/** Returns the v2 dtype of a typed array, in the machine's byte order; undefined for other views. */
export function typeOfTypedArray(data: ArrayBufferView): string | undefined {
  const { name } = data.constructor;
  if (!Object.hasOwn(ITEM_TYPES, name)) return undefined;
  return `${endianness() === "LE" ? "<" : ">"}${ITEM_TYPES[name]}`;
}

/** Bytes in memory that all threads share. */
export interface SharedBytes {
  readonly buffer: SharedArrayBuffer;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** Returns the bytes of a view in shared memory: the same memory if it is shared, else a copy. */
export function shareBytes(data: ArrayBufferView): SharedBytes {
  const { buffer, byteOffset, byteLength } = data;
  if (buffer instanceof SharedArrayBuffer) return { buffer, byteOffset, byteLength };
  const shared = new SharedArrayBuffer(byteLength);
  new Uint8Array(shared).set(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
  return { buffer: shared, byteOffset: 0, byteLength };
}
