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
    const unused = 64n - BigInt(Number(precision));
    const above = unused - BigInt(Number(offset));
    for (let at = 0; at < bytes.length; at += itemSize) {
      const shifted = BigInt.asUintN(64, readItem(source, at, itemSize, isLittle) << above);
      const value = signed === true ? BigInt.asIntN(64, shifted) >> unused : shifted >> unused;
      writeItem(target, at, itemSize, isLittle, value);
    }
    return new Uint8Array(target.buffer);
  },
};

function readItem(view: DataView, at: number, itemSize: number, isLittle: boolean): bigint {
  if (itemSize === 8) return view.getBigUint64(at, isLittle);
  if (itemSize === 4) return BigInt(view.getUint32(at, isLittle));
  return BigInt(itemSize === 2 ? view.getUint16(at, isLittle) : view.getUint8(at));
}

function writeItem(view: DataView, at: number, itemSize: number, isLittle: boolean, value: bigint): void {
  if (itemSize === 8) view.setBigInt64(at, value, isLittle);
  else if (itemSize === 4) view.setInt32(at, Number(BigInt.asIntN(32, value)), isLittle);
  else if (itemSize === 2) view.setInt16(at, Number(BigInt.asIntN(16, value)), isLittle);
  else view.setInt8(at, Number(BigInt.asIntN(8, value)));
}
