import type { ByteRange } from "../http/reply.js";
import type { JsonObject } from "../json/json-value.js";
import { elementCount } from "../model/data-tree.js";
import type { DataType } from "../model/data-type.js";
import type { ValueBlock, Values } from "../values/values.js";
import type { ExportedDataset, ExportedVariable } from "./exported-dataset.js";
import { readStream } from "./table.js";

/** A variable of an answer, by its name in the file. */
export interface OutputVariable {
  /** Unique in the file, without slashes. */
  readonly name: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Type of the values that {@link OutputVariable.read} gives. */
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  /** Greatest length of a text in bytes of UTF-8, if it is known. Default: four bytes a character. Needed for texts without a fixed size. */
  readonly textBytes?: number;
  /**
   * Reads the values in C order, from an item on, in blocks of some megabytes at most. The memory of a block may be used again when the
   * next one is asked for.
   * @param byteOrder Order of `bytes` in the blocks.
   */
  read(firstItem: number, byteOrder: "little" | "big", signal: AbortSignal): AsyncIterable<ValueBlock>;
}

/** A file. */
export interface FileBody {
  /** Known of NetCDF and npy before any value is read. */
  readonly byteLength?: number;
  /**
   * Makes a range of the file, of which the length is known. Only what lies in the range is read. Default: all of it. The memory of a piece may be used again when the
   * next one is asked for.
   */
  pieces(range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * Lays out a dataset in a format. Nothing is read, but texts of any length for the longest of them if the format has the length of a file.
 * @throws ZpublishError `invalid-query` if the format cannot hold the dataset
 */
export type DatasetWriter = (
  dataset: ExportedDataset,
  values: Values,
  signal: AbortSignal,
) => Promise<FileBody>;

/** Bytes of one variable that follow each other. */
export interface FilePart extends ItemReader {
  /** Place of the first byte in the file. */
  readonly begin: number;
  readonly byteLength: number;
}

/** Reads the bytes of a variable as the file has them. */
interface ItemReader {
  /** Bytes of an item in the file. */
  readonly itemBytes: number;
  read(firstItem: number, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/** A file: a header, variables one after the other, then rows (records) that have a piece of each of the other variables. */
interface FileLayout {
  readonly header: Uint8Array;
  /** In the order of their places; gaps between them are zeros. */
  readonly parts: readonly FilePart[];
  /** Variables with records: bytes of each in a row, and their place there. */
  readonly rows?: readonly (ItemReader & { readonly rowBytes: number; readonly at: number })[];
  readonly rowsBegin?: number;
  readonly rowLength?: number;
  readonly byteLength: number;
}

/** Bytes that are collected from small rows before they are sent. */
const COLLECTED_BYTES = 256 * 1024;
/** Bytes of texts that are filled with zeros at a time. */
const TEXT_PIECE_BYTES = 2 ** 22;

/** Creates the body of a file. */
export function createFileBody(layout: FileLayout): FileBody {
  const { byteLength } = layout;
  return {
    byteLength,
    pieces: (range = { start: 0, byteLength }, signal) => piecesOf(layout, range, signal),
  };
}

async function* piecesOf(
  layout: FileLayout,
  { start, byteLength }: ByteRange,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const end = start + byteLength;
  const { header, parts, rows = [], rowsBegin = layout.byteLength } = layout;
  let at = start;
  if (at < header.length) {
    yield header.subarray(at, end);
    at = header.length;
  }
  for (const part of parts) {
    const partEnd = part.begin + part.byteLength;
    if (at >= end || part.begin >= end) break;
    if (at >= partEnd) continue;
    if (at < part.begin) yield new Uint8Array(part.begin - at);
    at = Math.max(at, part.begin);
    yield* itemsOf(part, at - part.begin, Math.min(end, partEnd) - at, signal);
    at = partEnd;
  }
  if (at < Math.min(end, rowsBegin)) yield new Uint8Array(Math.min(end, rowsBegin) - at);
  if (end > rowsBegin && rows.length > 0) yield* rowsOf(layout, Math.max(start, rowsBegin), end, signal);
}

/** Reads bytes of a variable, from a byte on that may lie within an item. */
async function* itemsOf(
  { itemBytes, read }: ItemReader,
  from: number,
  byteLength: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  let skipped = from % itemBytes;
  let rest = byteLength;
  if (rest <= 0) return;
  for await (const bytes of read(Math.floor(from / itemBytes), signal)) {
    const piece = bytes.subarray(skipped, skipped + rest);
    skipped = Math.max(0, skipped - bytes.length);
    rest -= piece.length;
    if (piece.length > 0) yield piece;
    if (rest === 0) return;
  }
  throw new Error(`expected ${byteLength} bytes of a variable, received ${byteLength - rest}`);
}

/** Puts rows together: each variable with records is read once, from its first record in the range on. */
async function* rowsOf(
  { rows = [], rowsBegin = 0, rowLength = 0 }: FileLayout,
  start: number,
  end: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const firstRow = Math.floor((start - rowsBegin) / rowLength);
  const readers = rows.map((each) => ({
    ...each,
    pieces: itemsOf(each, firstRow * each.rowBytes, Number.MAX_SAFE_INTEGER, signal),
    current: new Uint8Array() as Uint8Array,
  }));
  let collected = new Uint8Array(COLLECTED_BYTES);
  let length = 0;
  let skipped = start - rowsBegin - firstRow * rowLength;
  let rest = end - start;
  try {
    while (rest > 0)
      for (const [index, reader] of readers.entries()) {
        const { at, rowBytes, pieces } = reader;
        const padding = (readers[index + 1]?.at ?? rowLength) - at - rowBytes;
        for (let missing = rowBytes + padding; missing > 0 && rest > 0; ) {
          const isPadding = missing <= padding;
          if (!isPadding && reader.current.length === 0) reader.current = await nextOf(pieces);
          const bytes = isPadding ? new Uint8Array(missing) : reader.current.subarray(0, missing - padding);
          if (!isPadding) reader.current = reader.current.subarray(bytes.length);
          missing -= bytes.length;
          const piece = bytes.subarray(skipped, skipped + rest);
          skipped = Math.max(0, skipped - bytes.length);
          rest -= piece.length;
          if (length + piece.length > COLLECTED_BYTES) {
            yield collected.subarray(0, length);
            collected = new Uint8Array(COLLECTED_BYTES);
            length = 0;
          }
          if (piece.length > COLLECTED_BYTES) yield piece;
          else {
            collected.set(piece, length);
            length += piece.length;
          }
        }
      }
    yield collected.subarray(0, length);
  } finally {
    for (const { pieces } of readers) await pieces.return(undefined);
  }
}

async function nextOf(pieces: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  const { done, value } = await pieces.next();
  if (done) throw new Error("expected more bytes of a variable");
  return value;
}

/** Writes texts as UTF-8, each filled with zeros to the same length, some megabytes at a time. @throws if one is longer. */
export function* bytesOfTexts(texts: readonly string[], itemBytes: number): Generator<Uint8Array> {
  const step = Math.max(1, Math.floor(TEXT_PIECE_BYTES / itemBytes));
  for (let begin = 0; begin < texts.length; begin += step) {
    const part = texts.slice(begin, begin + step);
    const bytes = new Uint8Array(part.length * itemBytes);
    for (const [index, text] of part.entries()) {
      const encoded = Buffer.from(text);
      if (encoded.length > itemBytes)
        throw new Error(`expected a text of at most ${itemBytes} bytes, received ${encoded.length}`);
      bytes.set(encoded, index * itemBytes);
    }
    yield bytes;
  }
}

/** Adapts a variable. Texts without a fixed size are read once for the length of the longest. */
export async function outputOf(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  signal: AbortSignal,
): Promise<OutputVariable> {
  const { name, dims, shape, dataType, attrs } = variable;
  const read: OutputVariable["read"] = (firstItem, byteOrder, wanted) =>
    readStream(dataset, variable, values, { firstItem, byteOrder, signal: wanted, reusesMemory: true });
  const output = { name, dims, shape, dataType, attrs, read };
  if (dataType.kind !== "O" || elementCount(shape) === 0) return output;
  let textBytes = 0;
  for await (const { values: texts } of read(0, "little", signal))
    for (const text of (texts ?? []) as readonly string[])
      textBytes = Math.max(textBytes, Buffer.byteLength(text));
  return { ...output, textBytes };
}
