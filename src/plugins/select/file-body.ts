import type { ByteRange, DataType, JsonObject, JsonValue, ValueBlock } from "../../plugin-api.js";

/** A variable of an answer, by its name in the file. */
export interface OutputVariable {
  /** Unique in the file, without slashes. */
  readonly name: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Type of the values that {@link OutputVariable.read} gives. */
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  /** Number that stands for a missing value; null if none does. */
  readonly fill: JsonValue;
  /** Greatest length of a text in bytes of UTF-8, if it is known. Default: four bytes a character. Needed for texts without a fixed size. */
  readonly textBytes?: number;
  /**
   * Reads the values in C order, from an item on, in blocks of some megabytes at most.
   * @param byteOrder Order of `bytes` in the blocks.
   */
  read(firstItem: number, byteOrder: "little" | "big", signal: AbortSignal): AsyncIterable<ValueBlock>;
}

/** A file whose length is known before any value is read. */
export interface FileBody {
  readonly byteLength: number;
  /** Makes a range of the file. Only what lies in the range is read. Default: all of it. */
  pieces(range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

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
export interface FileLayout {
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

/** Makes a range of a file. */
export async function* piecesOf(
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
    taker: createTaker(itemsOf(each, firstRow * each.rowBytes, Number.MAX_SAFE_INTEGER, signal)),
  }));
  try {
    let collected: Uint8Array[] = [];
    let collectedBytes = 0;
    let skipped = start - rowsBegin - firstRow * rowLength;
    let rest = end - start;
    while (rest > 0) {
      for (const [index, { taker, rowBytes, at }] of readers.entries()) {
        const parts = await taker.take(rowBytes);
        const next = readers[index + 1]?.at ?? rowLength;
        if (next - at > rowBytes) parts.push(new Uint8Array(next - at - rowBytes));
        for (const bytes of parts) {
          const piece = bytes.subarray(skipped, skipped + rest);
          skipped = Math.max(0, skipped - bytes.length);
          rest -= piece.length;
          collected.push(piece);
          collectedBytes += piece.length;
        }
      }
      if (collectedBytes < COLLECTED_BYTES && rest > 0) continue;
      yield collected.length === 1 ? collected[0]! : Buffer.concat(collected);
      collected = [];
      collectedBytes = 0;
    }
  } finally {
    for (const { taker } of readers) await taker.end();
  }
}

/** Takes given numbers of bytes from pieces of any length. */
function createTaker(pieces: AsyncGenerator<Uint8Array>) {
  let current: Uint8Array = new Uint8Array();
  return {
    async take(byteLength: number): Promise<Uint8Array[]> {
      const taken: Uint8Array[] = [];
      for (let rest = byteLength; rest > 0; ) {
        if (current.length === 0) {
          const next = await pieces.next();
          if (next.done) throw new Error(`expected ${rest} more bytes of a variable`);
          current = next.value;
        }
        const part = current.subarray(0, rest);
        current = current.subarray(part.length);
        rest -= part.length;
        taken.push(part);
      }
      return taken;
    },
    end: () => pieces.return(undefined),
  };
}

/** Writes texts as UTF-8, each filled with zeros to the same length. @throws if one is longer. */
export function bytesOfTexts(texts: readonly string[], itemBytes: number): Uint8Array {
  const bytes = new Uint8Array(texts.length * itemBytes);
  for (const [index, text] of texts.entries()) {
    const encoded = Buffer.from(text);
    if (encoded.length > itemBytes)
      throw new Error(`expected a text of at most ${itemBytes} bytes, received ${encoded.length}`);
    bytes.set(encoded, index * itemBytes);
  }
  return bytes;
}
