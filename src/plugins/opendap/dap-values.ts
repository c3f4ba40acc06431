import {
  type ArrayView,
  createColumn,
  type DatasetView,
  type ExportedVariable,
  elementCount,
  type FileColumn,
  NC,
  type NcType,
  type NumericArray,
  swapWords,
  type ValueBlock,
  type Values,
  ZpublishError,
} from "../../plugin-api.js";
import type { Slice } from "./constraint.js";

/** A variable as clients of one protocol see it. Its shape has the axes that they cut. */
export interface DapVariable extends Omit<ExportedVariable, "source"> {
  readonly array: ArrayView;
  /** The type, as netCDF names it. */
  readonly type: NcType;
  /** What texts are made of; undefined for numbers, and for characters that DAP4 sends one by one. */
  readonly text: TextForm | undefined;
}

/** How the texts of a variable are stored, and how long they are. */
export interface TextForm {
  /** Bytes of each text as it is stored; undefined if values are texts. */
  readonly itemBytes: number | undefined;
  /** Whether characters along the last axis make a text. */
  readonly isOfCharacters: boolean;
  readonly encoding: "utf8" | "latin1";
  /** Greatest length in bytes that a text can have, at least 1. Undefined if they have to be read for it, as is done for DAP2. */
  readonly maxBytes: number | undefined;
}

/** A piece of a variable that is sent. */
export type DapSlice = Slice<DapVariable>;

/** Where values are read. */
export interface ValuesOf {
  readonly snapshot: DatasetView;
  readonly values: Values;
  readonly signal?: AbortSignal;
}

/** The protocols. The first sends big-endian words (XDR, RFC 4506), the other little-endian items of any size. */
export type Protocol = "dap2" | "dap4";

/** How numbers become the bytes that are sent: as they are read in a byte order, or as wider numbers. */
interface NumberCoding {
  readonly itemBytes: number;
  readonly convert?: (block: ValueBlock) => NumericArray;
}

function codingOf({ dataType, type, shape }: DapVariable, protocol: Protocol): NumberCoding {
  const { kind, itemSize } = dataType;
  if (kind === "f" && itemSize === 2)
    return { itemBytes: 4, convert: ({ values }) => new Float32Array(values as Float32Array) };
  if (protocol === "dap4") return { itemBytes: itemSize };
  // A byte that is no array takes a word: libdap and netCDF-C read the last byte of it, and pydap the first.
  if (type === NC.ubyte && shape.length === 0)
    return { itemBytes: 4, convert: ({ bytes: [byte = 0] }) => Uint8Array.of(byte, 0, 0, byte) };
  if (type === NC.double && kind !== "f") return { itemBytes: 8, convert: exactFloats };
  if (itemSize >= 4 || type === NC.ubyte) return { itemBytes: itemSize };
  // In XDR, all integers but bytes have four bytes.
  return { itemBytes: 4, convert: ({ values }) => new Int32Array(values as Int16Array) };
}

/** Returns the bytes of the column of a slice; of texts, what they take where they are read, a guess if they have no fixed size. */
export function valuesByteLength(values: Values, slice: DapSlice, protocol: Protocol): number {
  const { variable, shape } = slice;
  if (variable.text !== undefined) return values.cost(variable.array, selectionOf(slice)).byteLength;
  return elementCount(shape) * codingOf(variable, protocol).itemBytes;
}

/** Returns the memory that reading a slice takes. */
export function heldBytesOf(values: Values, slice: DapSlice): number {
  const { array, text } = slice.variable;
  if (text === undefined) return values.cost(array, selectionOf(slice)).streamBytes;
  const pieceBytes = textPieceBytes(slice);
  return values.cost(array, selectionOf(slice), { pieceBytes }).streamBytes + 4 * pieceBytes;
}

/** Returns the selection of a slice. Clients of DAP2 do not cut the axis of characters. */
function selectionOf({ variable: { array, text }, axes }: DapSlice): DapSlice["axes"] {
  const isLess = axes.length < array.variable.shape.length;
  return isLess ? [...axes, { begin: 0, count: text!.itemBytes!, step: 1 }] : axes;
}

/** The values of a slice as they are sent. */
export interface DapColumn extends FileColumn {
  readonly byteLength: number;
}

/** Reads the values of a slice as a protocol sends them: numbers swapped in the pool, unless they are widened here. */
export async function columnOf(source: ValuesOf, slice: DapSlice, protocol: Protocol): Promise<DapColumn> {
  const { variable, axes, shape } = slice;
  if (variable.text !== undefined) return textsOf(source, slice, protocol);
  const { itemBytes, convert } = codingOf(variable, protocol);
  const dataset = { snapshot: source.snapshot, isDecoded: false, attrs: {}, dims: new Map(), variables: [] };
  const exported = {
    ...variable,
    shape,
    source: { array: variable.array, selection: axes, kept: [...axes.keys()] },
  };
  const form = function* (block: ValueBlock) {
    const bytes = new Uint8Array(convert!(block).buffer);
    if (protocol === "dap2") swapWords(bytes, itemBytes);
    yield bytes;
  };
  const order = protocol === "dap2" ? "big" : "little";
  const column = createColumn(dataset, exported, source.values, itemBytes, convert ? form : order);
  return { ...column, byteLength: elementCount(shape) * itemBytes };
}

/** Converts integers of 64 bits to floats. @throws ZpublishError `invalid-query` naming the first one that is none */
export function exactFloats({ values }: Pick<ValueBlock, "values">): Float64Array<ArrayBuffer> {
  const integers = values as BigInt64Array | BigUint64Array;
  const { buffer, byteOffset, length } = integers;
  // Words of 32 bits are read many times as fast as bigints.
  const low = new Uint32Array(buffer, byteOffset, 2 * length);
  const high = integers instanceof BigInt64Array ? new Int32Array(buffer, byteOffset, 2 * length) : low;
  const floats = new Float64Array(length);
  for (let i = 0; i < length; i += 1) {
    const above = high[2 * i + 1]! * 2 ** 32;
    const below = low[2 * i]!;
    const float = above + below;
    // The difference of floats so near to one another is exact.
    if (float - above !== below)
      throw new ZpublishError(
        "invalid-query",
        `DAP2 has no integers of 64 bits, and its Float64 cannot hold ${integers[i]}; DAP4 has it`,
      );
    floats[i] = float;
  }
  return floats;
}

/** Bytes of texts that are read at once: each text is an object of its own, on the server's thread. */
const TEXT_PIECE_BYTES = 2 ** 18;

/** Reads the texts of a slice as their bytes, without the zeros that pad them, some hundred kilobytes at a time. */
export async function* readTexts(
  { snapshot, values, signal }: ValuesOf,
  slice: DapSlice,
): AsyncGenerator<readonly Uint8Array[]> {
  const { array, text } = slice.variable;
  const { itemBytes, encoding } = text!;
  const options = { signal, pieceBytes: textPieceBytes(slice) };
  let rest: Uint8Array = new Uint8Array();
  for await (const block of values.stream(snapshot, array, selectionOf(slice), options))
    if (itemBytes === undefined)
      yield (block.values as readonly string[]).map((each) => Buffer.from(each, encoding));
    else {
      // A piece may end within the characters of a text.
      const bytes = Buffer.concat([rest, block.bytes]);
      const count = Math.floor(bytes.length / itemBytes);
      yield Array.from({ length: count }, (_, index) => unpadded(bytes, index * itemBytes, itemBytes));
      rest = bytes.subarray(count * itemBytes);
    }
}

function textPieceBytes({ variable: { text } }: DapSlice): number {
  return Math.max(TEXT_PIECE_BYTES, text?.itemBytes ?? 0);
}

function unpadded(bytes: Uint8Array, begin: number, itemBytes: number): Uint8Array {
  let end = begin + itemBytes;
  while (end > begin && bytes[end - 1] === 0) end -= 1;
  return bytes.subarray(begin, end);
}

/** Makes the texts of a slice as a protocol sends them, each after its length. They are read once before, to know how many bytes these are. */
async function textsOf(source: ValuesOf, slice: DapSlice, protocol: Protocol): Promise<DapColumn> {
  let byteLength = 0;
  for await (const texts of readTexts(source, slice)) byteLength += bytesOf(texts, protocol).length;
  return {
    byteLength,
    // They are read from the first one on.
    itemBytes: Math.max(1, byteLength),
    heldBytes: () => heldBytesOf(source.values, slice),
    async *read(_, signal) {
      for await (const texts of readTexts({ ...source, signal }, slice)) yield bytesOf(texts, protocol);
    },
  };
}

/** DAP2 has lengths of 4 bytes, and whole words; DAP4 has lengths of 8 bytes. */
function bytesOf(texts: readonly Uint8Array[], protocol: Protocol): Uint8Array {
  const sizeOf = ({ length }: Uint8Array) => (protocol === "dap2" ? 4 + length + (-length & 3) : 8 + length);
  const bytes = Buffer.alloc(texts.reduce((sum, text) => sum + sizeOf(text), 0));
  let at = 0;
  for (const text of texts) {
    if (protocol === "dap2") bytes.writeUInt32BE(text.length, at);
    else bytes.writeUInt32LE(text.length, at);
    bytes.set(text, at + (protocol === "dap2" ? 4 : 8));
    at += sizeOf(text);
  }
  return bytes;
}
