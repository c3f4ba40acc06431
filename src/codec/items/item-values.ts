import type { DataType } from "../../model/data-type.js";
import { halfNumbers } from "../../model/fill-value.js";
import { IS_LITTLE_ENDIAN, swapWords } from "../item-reader.js";
import { wordSizeOf } from "./decode-numbers.js";

const VIEWS = {
  b1: Uint8Array,
  i1: Int8Array,
  u1: Uint8Array,
  i2: Int16Array,
  u2: Uint16Array,
  i4: Int32Array,
  u4: Uint32Array,
  i8: BigInt64Array,
  u8: BigUint64Array,
  M8: BigInt64Array,
  m8: BigInt64Array,
  f4: Float32Array,
  f8: Float64Array,
} as const;

/** A typed array of the numbers of one type. */
export type NumericArray = InstanceType<(typeof VIEWS)[keyof typeof VIEWS]>;

/** Tells whether items are in this machine's byte order. */
export function isNative({ byteOrder }: Pick<DataType, "byteOrder">): boolean {
  return byteOrder === "|" || (byteOrder === "<") === IS_LITTLE_ENDIAN;
}

/**
 * Returns the values of items: integers of 64 bits and times as `bigint`s, half floats widened, truth values as 0 and 1; texts without the
 * zeros that pad them, of UTF-8, or of Latin-1 if they are none. Undefined for complex numbers, long doubles, records and items without a fixed size.
 * @param bytes Whole items. The result is a view of them if they are aligned and in this machine's byte order.
 */
export function itemValues(bytes: Uint8Array, dataType: DataType): NumericArray | string[] | undefined {
  const { kind, itemSize } = dataType;
  const wordSize = wordSizeOf({ ...dataType, byteOrder: "<" });
  const isAligned = bytes.byteOffset % Math.max(1, wordSize) === 0;
  // A buffer of Node.js would be cut, not copied, by `slice`.
  const native = isAligned && isNative(dataType) ? bytes : new Uint8Array(bytes);
  if (!isNative(dataType)) swapWords(native, wordSize);
  if (kind === "S" || kind === "U") return textsOf(native, kind, itemSize);
  const { buffer, byteOffset, byteLength } = native as Uint8Array<ArrayBuffer>;
  if (kind === "f" && itemSize === 2) {
    const table = halfNumbers();
    return Float32Array.from(new Uint16Array(buffer, byteOffset, byteLength / 2), (bits) => table[bits]!);
  }
  const View = VIEWS[`${kind}${itemSize}` as keyof typeof VIEWS];
  return View && new View(buffer, byteOffset, Math.floor(byteLength / itemSize));
}

const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Without the zeros that pad them; bytes that are no UTF-8 as Latin-1. */
function textsOf(bytes: Uint8Array, kind: "S" | "U", itemSize: number): string[] {
  const count = itemSize === 0 ? 0 : bytes.length / itemSize;
  const wide = kind === "U" ? new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4) : undefined;
  return Array.from({ length: count }, (_, item) => {
    const begin = item * itemSize;
    if (wide === undefined) {
      let end = begin + itemSize;
      while (end > begin && bytes[end - 1] === 0) end--;
      const part = bytes.subarray(begin, end);
      try {
        return utf8.decode(part);
      } catch {
        return String.fromCharCode(...part);
      }
    }
    const codes = wide.subarray(begin / 4, (begin + itemSize) / 4);
    let text = "";
    for (const code of codes.subarray(0, codes.findLastIndex((each) => each !== 0) + 1))
      text += code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
    return text;
  });
}

/** Returns items of variable length. @param bytes As vlen-utf8 and vlen-bytes write one chunk. */
export function variableTexts(bytes: Uint8Array, encoding: "utf8" | "latin1" = "utf8"): string[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const texts = new Array<string>(buffer.readUInt32LE(0));
  let at = 4;
  for (let i = 0; i < texts.length; i++) {
    const end = at + 4 + buffer.readUInt32LE(at);
    texts[i] = buffer.toString(encoding, at + 4, end);
    at = end;
  }
  return texts;
}
