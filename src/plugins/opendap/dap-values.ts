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
  wrongParameter,
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
  /** Length of the longest one in bytes, at least 1. */
  readonly maxBytes: number;
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

function codingOf({ dataType: { kind, itemSize }, type }: DapVariable, protocol: Protocol): NumberCoding {
  if (kind === "f" && itemSize === 2)
    return { itemBytes: 4, convert: ({ values }) => new Float32Array(values as Float32Array) };
  if (protocol === "dap4") return { itemBytes: itemSize };
  if (type === NC.double && kind !== "f") return { itemBytes: 8, convert: exactFloats };
  if (itemSize >= 4 || type === NC.ubyte) return { itemBytes: itemSize };
  // In XDR, all integers but bytes have four bytes.
  return { itemBytes: 4, convert: ({ values }) => new Int32Array(values as Int16Array) };
}

/** Returns the bytes that the values of a slice take; of texts, about as many as they can be. */
export function wireByteLength({ variable, shape }: DapSlice, protocol: Protocol): number {
  const { text } = variable;
  return (
    elementCount(shape) * (text === undefined ? codingOf(variable, protocol).itemBytes : 8 + text.maxBytes)
  );
}

/** Reads the numbers of a slice as a protocol sends them: swapped in the pool, unless they are widened here. */
export function numbersOf(
  { snapshot, values }: ValuesOf,
  { variable, axes, shape }: DapSlice,
  protocol: Protocol,
): FileColumn {
  const { itemBytes, convert } = codingOf(variable, protocol);
  const dataset = { snapshot, isDecoded: false, attrs: {}, dims: new Map(), variables: [] };
  const source = { array: variable.array, selection: axes, kept: [...axes.keys()] };
  const form = function* (block: ValueBlock) {
    const bytes = new Uint8Array(convert!(block).buffer);
    if (protocol === "dap2") swapWords(bytes, itemBytes);
    yield bytes;
  };
  const order = protocol === "dap2" ? "big" : "little";
  return createColumn(dataset, { ...variable, shape, source }, values, itemBytes, convert ? form : order);
}

/** Converts integers of 64 bits to floats. @throws ZpublishError `invalid-query` naming the first one that is none */
export function exactFloats({ values }: Pick<ValueBlock, "values">): Float64Array<ArrayBuffer> {
  const integers = values as BigInt64Array | BigUint64Array;
  const words = new Int32Array(integers.buffer, integers.byteOffset, 2 * integers.length);
  const floats = new Float64Array(integers.length);
  for (let i = 0; i < floats.length; i += 1) {
    const [low, high] = [words[2 * i]! >>> 0, words[2 * i + 1]!];
    const isSmall = high >= 0 ? high < 2 ** 21 : high >= -(2 ** 21) && integers instanceof BigInt64Array;
    floats[i] = isSmall ? high * 2 ** 32 + low : Number(integers[i]);
    if (!isSmall && BigInt(floats[i]!) !== integers[i])
      throw wrongParameter("type", "inexact", "integers that Float64 holds, or DAP4", `${integers[i]}`);
  }
  return floats;
}

/** Texts that are read at once: more than any file is known to have. */
const MAX_TEXT_BYTES = 2 ** 26;

/** Each text is sent as an object of its own, on the server's thread. */
const MAX_TEXTS = 2 ** 20;

/**
 * Reads texts as their bytes, without the zeros that pad them.
 * @throws ZpublishError `too-large` if they take more than 64 MiB, or are more than 1,048,576
 */
export async function readTexts(
  { snapshot, values, signal }: ValuesOf,
  array: ArrayView,
  { isOfCharacters, itemBytes, encoding }: Omit<TextForm, "maxBytes">,
  axes: DapSlice["axes"],
): Promise<readonly Uint8Array[]> {
  const { shape } = array.variable;
  // In DAP2, clients do not cut the axis of characters.
  const selection = axes.length < shape.length ? [...axes, { begin: 0, count: itemBytes!, step: 1 }] : axes;
  const block = await values.read(snapshot, array, selection, { signal, maxBytes: MAX_TEXT_BYTES });
  const count = elementCount(block.shape.slice(0, isOfCharacters ? -1 : undefined));
  if (count > MAX_TEXTS)
    throw new ZpublishError("too-large", `Expected at most ${MAX_TEXTS} texts at once, received ${count}`);
  if (itemBytes === undefined)
    return (block.values as readonly string[]).map((text) => Buffer.from(text, encoding));
  return Array.from({ length: count }, (_, index) => {
    let end = (index + 1) * itemBytes;
    while (end > index * itemBytes && block.bytes[end - 1] === 0) end -= 1;
    return block.bytes.subarray(index * itemBytes, end);
  });
}
