import { readHalf, writeHalf } from "../../../src/model/fill-value.js";
import type { NumberName } from "./exact-numbers.js";

/** Reads little-endian items; integers are big ones. */
export function itemsOf(bytes: Uint8Array, type: NumberName): (number | bigint)[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const size = Number(type[1]);
  return Array.from({ length: bytes.length / size }, (_, index) => {
    const at = index * size;
    if (type === "f2") return readHalf(new DataView(bytes.buffer, bytes.byteOffset + at, 2), true);
    if (type[0] === "f") return size === 4 ? view.getFloat32(at, true) : view.getFloat64(at, true);
    let value = 0n;
    for (let byte = size - 1; byte >= 0; byte--) value = (value << 8n) | BigInt(view.getUint8(at + byte));
    return type[0] === "i" ? BigInt.asIntN(8 * size, value) : value;
  });
}

/** Writes items; floats that a type does not have are rounded to the nearest. */
export function bytesOfItems(items: readonly (number | bigint)[], type: NumberName): Uint8Array {
  const size = Number(type[1]);
  const bytes = new Uint8Array(items.length * size);
  const view = new DataView(bytes.buffer);
  items.forEach((item, index) => {
    const at = index * size;
    if (type === "f2") writeHalf(new DataView(bytes.buffer, at, 2), Number(item), true);
    else if (type === "f4") view.setFloat32(at, Number(item), true);
    else if (type === "f8") view.setFloat64(at, Number(item), true);
    else
      for (let byte = 0; byte < size; byte++)
        bytes[at + byte] = Number((BigInt(item) >> BigInt(8 * byte)) & 255n);
  });
  return bytes;
}

/** Encodes as `packbits` of Zarr v3's registry: bits of little-endian items of so many bytes, as a text of digits. */
export function packedBits(
  items: readonly bigint[],
  { first, width, padding }: { readonly first: number; readonly width: number; readonly padding: string },
): Uint8Array {
  const bits = items.flatMap((item) =>
    Array.from({ length: width }, (_, bit) => Number((item >> BigInt(first + bit)) & 1n)),
  );
  const unused = (8 - (bits.length % 8)) % 8;
  const bytes = Array.from({ length: Math.ceil(bits.length / 8) }, (_, byte) =>
    bits.slice(8 * byte, 8 * byte + 8).reduce((sum, bit, index) => sum + bit * 2 ** index, 0),
  );
  if (padding === "first_byte") bytes.unshift(unused);
  if (padding === "last_byte") bytes.push(unused);
  return Uint8Array.from(bytes);
}
