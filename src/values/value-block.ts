import type { DataType } from "../model/data-type.js";
import { halfNumbers } from "../model/fill-value.js";
import type { NumericArray, ValueBlock } from "./values.js";

/** Values of one piece of a result: bytes, or texts if items have no fixed size. */
export interface ItemsMade {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly texts: readonly string[] | undefined;
}

const NATIVE = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1 ? "<" : ">";

/** Creates a block, whose values are made at the first look. */
export function createBlock(
  shape: readonly number[],
  dataType: DataType,
  { bytes, texts }: ItemsMade,
): ValueBlock {
  let values: ValueBlock["values"];
  let isMade = false;
  return {
    ...{ shape, dataType, bytes },
    get values() {
      if (!isMade) values = texts ?? viewValues(bytes, dataType);
      isMade = true;
      return values;
    },
  };
}

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

function viewValues(
  bytes: Uint8Array<ArrayBuffer>,
  { kind, itemSize, byteOrder }: DataType,
): ValueBlock["values"] {
  if (byteOrder !== "|" && byteOrder !== NATIVE) return undefined;
  if (kind === "S" || kind === "U") return textsOf(bytes, kind, itemSize);
  const { buffer, byteOffset, byteLength } = bytes;
  if (kind === "f" && itemSize === 2) {
    const table = halfNumbers();
    return Float32Array.from(new Uint16Array(buffer, byteOffset, byteLength / 2), (bits) => table[bits]!);
  }
  const View = VIEWS[`${kind}${itemSize}` as keyof typeof VIEWS];
  return View === undefined
    ? undefined
    : (new View(buffer, byteOffset, byteLength / itemSize) as NumericArray);
}

function textsOf(bytes: Uint8Array<ArrayBuffer>, kind: "S" | "U", itemSize: number): string[] {
  const count = itemSize === 0 ? 0 : bytes.length / itemSize;
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const wide = kind === "U" ? new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / 4) : undefined;
  return Array.from({ length: count }, (_, item) => {
    const begin = item * itemSize;
    if (wide === undefined) {
      let end = begin + itemSize;
      while (end > begin && buffer[end - 1] === 0) end--;
      return buffer.toString("utf8", begin, end);
    }
    const codes = wide.subarray(begin / 4, (begin + itemSize) / 4);
    let text = "";
    for (const code of codes.subarray(0, codes.findLastIndex((each) => each !== 0) + 1))
      text += code <= 0x10ffff ? String.fromCodePoint(code) : "\ufffd";
    return text;
  });
}

/** Reads texts that a worker wrote: their number, then each after its length. */
export function readTexts(bytes: Uint8Array<ArrayBuffer>): string[] {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  const texts = new Array<string>(buffer.readUInt32LE(0));
  let at = 4;
  for (let i = 0; i < texts.length; i++) {
    const end = at + 4 + buffer.readUInt32LE(at);
    texts[i] = buffer.toString("utf8", at + 4, end);
    at = end;
  }
  return texts;
}
