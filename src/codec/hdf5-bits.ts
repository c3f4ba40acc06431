import { type Codec, corrupt } from "./codec.js";

/**
 * Integers of HDF5 of which only `precision` bits count, from `offset` on: they are moved to the lower end, and get their sign
 * (`signed`) in all bits. `size` is that of an item in bytes, `endian` its byte order, `little` or `big`.
 */
export const hdf5Bits: Codec = {
  decode(bytes, { codec }) {
    const { size, precision, offset, signed, endian } = codec;
    const itemSize = Number(size);
    if (bytes.length % itemSize !== 0) {
      throw corrupt(`hdf5-bits: expected items of ${itemSize} bytes, received ${bytes.length} bytes`);
    }
    const source = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    const target = new DataView(new ArrayBuffer(bytes.length));
    const isLittle = endian === "little";
    const bits = Number(precision);
    const shift = { above: 8 * itemSize - bits - Number(offset), unused: 8 * itemSize - bits };
    if (itemSize === 8) moveLongs(source, target, isLittle, shift, signed === true);
    else moveWords(source, target, itemSize, isLittle, shift, signed === true);
    return new Uint8Array(target.buffer);
  },
};

/** Bits of an item above those that count, and all that do not count. */
interface Shift {
  readonly above: number;
  readonly unused: number;
}

/** Moves the bits of items of up to 4 bytes, at the upper end of 32 bits. */
function moveWords(
  source: DataView,
  target: DataView,
  itemSize: number,
  isLittle: boolean,
  { above, unused }: Shift,
  isSigned: boolean,
): void {
  const outside = 32 - 8 * itemSize;
  for (let at = 0; at < source.byteLength; at += itemSize) {
    const item =
      itemSize === 4
        ? source.getUint32(at, isLittle)
        : itemSize === 2
          ? source.getUint16(at, isLittle)
          : source.getUint8(at);
    const upper = item << (outside + above);
    const value = isSigned ? upper >> (outside + unused) : upper >>> (outside + unused);
    if (itemSize === 4) target.setInt32(at, value, isLittle);
    else if (itemSize === 2) target.setInt16(at, value, isLittle);
    else target.setInt8(at, value);
  }
}

/** Moves the bits of items of 8 bytes. */
function moveLongs(
  source: DataView,
  target: DataView,
  isLittle: boolean,
  { above, unused }: Shift,
  isSigned: boolean,
): void {
  for (let at = 0; at < source.byteLength; at += 8) {
    const upper = source.getBigUint64(at, isLittle) << BigInt(above);
    const value = isSigned
      ? BigInt.asIntN(64, upper) >> BigInt(unused)
      : BigInt.asUintN(64, upper) >> BigInt(unused);
    target.setBigInt64(at, value, isLittle);
  }
}
