import { elementCount } from "../model/data-tree.js";
import { PIECE_BYTES, type ValueBlock, type Values } from "../values/values.js";
import {
  type ExportedDataset,
  type ExportedVariable,
  exportedByteLength,
  type FileBody,
} from "./exported-dataset.js";
import { streamVariable } from "./read-variable.js";

/** The bytes of a variable as a file has them. */
export interface FileColumn {
  /** Bytes of an item in the file. */
  readonly itemBytes: number;
  /** @param pieceBytes Largest piece of values that is made ahead. */
  read(firstItem: number, signal: AbortSignal, pieceBytes: number): AsyncIterable<Uint8Array>;
  /** Returns the memory that reading takes. */
  heldBytes(pieceBytes: number): number;
}

/** Rows that follow one another, each with so many bytes of every column: records of NetCDF. Other variables are one row of one column. */
export interface FileRows<Column extends FileColumn = FileColumn> {
  readonly rowCount: number;
  readonly rowLength: number;
  /** Bytes of all rows, the last of which may be shorter. Default: all are whole. */
  readonly byteLength?: number;
  /** In the order of their places in a row; gaps of up to 3 bytes behind them are zeros. */
  readonly columns: readonly (Column & { readonly at: number; readonly rowBytes: number })[];
}

/** Bytes that are collected from small pieces before they are sent. */
const COLLECTED_BYTES = 256 * 1024;
const MAX_GAP = 3;
/** Bytes of texts that are filled with zeros at a time. */
const TEXT_PIECE_BYTES = 2 ** 22;

/** Creates a file: a header, then rows of one kind after the other. */
export function createFileBody(header: Uint8Array, sections: readonly FileRows[]): FileBody {
  const lengthOf = ({ rowCount, rowLength, byteLength = rowCount * rowLength }: FileRows) => byteLength;
  const total = sections.reduce((sum, rows) => sum + lengthOf(rows), header.length);
  const held = sections.map(({ columns }) =>
    columns.reduce((sum, column) => sum + column.heldBytes(PIECE_BYTES / columns.length), 0),
  );
  async function* pieces(start: number, end: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    if (start < header.length) yield header.subarray(start, end);
    let begin = header.length;
    for (const rows of sections) {
      const [from, to] = [Math.max(0, start - begin), Math.min(lengthOf(rows), end - begin)];
      if (from < to) yield* rowPieces(rows, from, to, signal);
      begin += lengthOf(rows);
    }
  }
  return {
    byteLength: total,
    heldByteLength: Math.max(0, ...held) + header.length + 2 * COLLECTED_BYTES,
    pieces: ({ start, byteLength } = { start: 0, byteLength: total }, signal) =>
      joinPieces(pieces(start, start + byteLength, signal), byteLength),
  };
}

/**
 * Joins small pieces, so that a header of up to 256 KiB is sent with the first values: an error in reading these is answered as any
 * other, not by a broken connection.
 */
async function* joinPieces(
  pieces: AsyncIterable<Uint8Array>,
  byteLength: number,
): AsyncGenerator<Uint8Array> {
  const joined = new Uint8Array(Math.min(COLLECTED_BYTES, byteLength));
  let length = 0;
  for await (const piece of pieces) {
    if (length > 0 && length + piece.length > COLLECTED_BYTES) {
      yield joined.subarray(0, length);
      length = 0;
    }
    if (piece.length > COLLECTED_BYTES) yield piece;
    else {
      joined.set(piece, length);
      length += piece.length;
    }
  }
  if (length > 0) yield joined.subarray(0, length);
}

/**
 * Puts rows together, from one byte to another. Each column is read once, from its first byte in the range on; all of them share the memory
 * of what is made ahead.
 */
async function* rowPieces(
  { rowLength, columns }: FileRows,
  from: number,
  to: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const firstRow = Math.floor(from / rowLength);
  const readers = columns.map((column, index) => {
    const inRow = Math.min(Math.max(0, from - firstRow * rowLength - column.at), column.rowBytes);
    const pieceBytes = PIECE_BYTES / columns.length;
    const pieces = bytesFrom(column, firstRow * column.rowBytes + inRow, signal, pieceBytes);
    const gapEnd = columns[index + 1]?.at ?? rowLength;
    const next = undefined as Promise<Uint8Array> | undefined;
    return { ...column, gapEnd, pieces, next, rest: new Uint8Array() as Uint8Array };
  });
  const collected = new Uint8Array(Math.min(COLLECTED_BYTES, to - from) + MAX_GAP);
  let length = 0;
  try {
    for (let row = firstRow * rowLength; row < to; row += rowLength)
      for (const reader of readers) {
        const end = Math.min(to, row + reader.at + reader.rowBytes);
        for (let at = Math.max(from, row + reader.at); at < end; ) {
          if (reader.rest.length === 0) {
            reader.rest = await (reader.next ?? nextOf(reader.pieces));
            reader.next = undefined;
          }
          const piece = reader.rest.subarray(0, end - at);
          reader.rest = reader.rest.subarray(piece.length);
          at += piece.length;
          if (length > 0 && length + piece.length > COLLECTED_BYTES) {
            yield collected.subarray(0, length);
            length = 0;
          }
          if (piece.length > COLLECTED_BYTES) yield piece;
          else {
            collected.set(piece, length);
            length += piece.length;
          }
        }
        const gap = Math.max(0, Math.min(to, row + reader.gapEnd) - Math.max(from, end));
        collected.fill(0, length, length + gap);
        length += gap;
        if (reader.rest.length > 0 || readers.length === 1 || row + rowLength + reader.at >= to) continue;
        // It is made while other columns are sent.
        reader.next = nextOf(reader.pieces);
        reader.next.catch(() => undefined);
      }
    if (length > 0) yield collected.subarray(0, length);
  } finally {
    for (const { pieces } of readers) await pieces.return(undefined);
  }
}

/** Reads the bytes of a column, from a byte on that may lie within an item. */
async function* bytesFrom(
  { itemBytes, read }: FileColumn,
  from: number,
  signal: AbortSignal,
  pieceBytes: number,
): AsyncGenerator<Uint8Array, void, undefined> {
  let skipped = from % itemBytes;
  for await (const bytes of read(Math.floor(from / itemBytes), signal, pieceBytes)) {
    if (skipped < bytes.length) yield bytes.subarray(skipped);
    skipped = Math.max(0, skipped - bytes.length);
  }
}

async function nextOf(pieces: AsyncIterator<Uint8Array, void>): Promise<Uint8Array> {
  const { done, value } = await pieces.next();
  if (done || value === undefined) throw new Error("expected more bytes of a variable");
  return value;
}

/**
 * Creates the column of a variable.
 * @param form Byte order of its items in the file; or what makes bytes of a block of values in this machine's order.
 */
export function createColumn(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  itemBytes: number,
  form: "little" | "big" | ((block: ValueBlock, itemBytes: number) => Iterable<Uint8Array>),
): FileColumn {
  return {
    itemBytes,
    heldBytes(pieceBytes) {
      const { source } = variable;
      if ("block" in source || source.textLength !== undefined || source.points?.length)
        return exportedByteLength({ ...dataset, variables: [variable] });
      const options = { decode: dataset.isDecoded, pieceBytes };
      return values.cost(source.array, source.selection, options).streamBytes;
    },
    async *read(firstItem, signal, pieceBytes) {
      const byteOrder = typeof form === "string" ? form : "little";
      const options = { firstItem, byteOrder, signal, pieceBytes, reusesMemory: true };
      for await (const block of streamVariable(dataset, variable, values, options))
        if (typeof form === "string") yield block.bytes;
        else yield* form(block, itemBytes);
    },
  };
}

/** Returns the greatest length of the texts of a variable in bytes of UTF-8. Those without a fixed size are read for it. */
export async function longestText(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  signal: AbortSignal,
): Promise<number> {
  const { dataType, shape } = variable;
  let longest = dataType.itemSize;
  if (dataType.kind === "O" && elementCount(shape) > 0)
    for await (const { values: texts } of streamVariable(dataset, variable, values, {
      signal,
      reusesMemory: true,
    }))
      for (const text of (texts ?? []) as readonly string[])
        longest = Math.max(longest, Buffer.byteLength(text));
  return Math.max(1, longest);
}

/** Writes texts as UTF-8, each filled with zeros to the same length, some megabytes at a time. @throws if one is longer. */
export function* bytesOfTexts({ values }: ValueBlock, itemBytes: number): Generator<Uint8Array> {
  const texts = values as readonly string[];
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
