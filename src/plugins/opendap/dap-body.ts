import { crc32 } from "node:zlib";
import {
  createFileBody,
  elementCount,
  type FileBody,
  type FileColumn,
  NC,
  ZpublishError,
} from "../../plugin-api.js";
import { type DapSlice, numbersOf, readTexts, type ValuesOf } from "./dap-values.js";

/** A body whose length is known before any number is read. */
export type DapBody = FileBody & { readonly byteLength: number };

/** A part of a body, which is filled up to whole words in DAP2. */
interface Part extends FileColumn {
  readonly byteLength: number;
}

/** Greatest count of items that XDR can say. */
const MAX_COUNT = 2 ** 31 - 1;

/** Lays out the answer of `.dods`: the DDS, `Data:`, then the variables in XDR (RFC 4506). */
export async function createDods(
  source: ValuesOf,
  dds: string,
  slices: readonly DapSlice[],
): Promise<DapBody> {
  const parts: Part[] = [];
  for (const slice of slices) {
    const { variable, shape } = slice;
    const count = elementCount(shape);
    const expected = `at most ${MAX_COUNT} values of '${variable.name}'`;
    if (count > MAX_COUNT) throw new ZpublishError("too-large", `Expected ${expected}, received ${count}`);
    const texts = await textsOf(source, slice);
    // The count comes twice, but of texts once.
    const counts = texts === undefined ? [count, count] : [count];
    if (shape.length > 0) parts.push(constant(counts.map(word)));
    if (texts !== undefined)
      parts.push(
        constant(texts.flatMap((text) => [word(text.length), text, Buffer.alloc(-text.length & 3)])),
      );
    else {
      const numbers = numbersOf(source, slice, "dap2");
      const isOneByte = shape.length === 0 && variable.type === NC.ubyte;
      parts.push(isOneByte ? oneByte(numbers) : { ...numbers, byteLength: count * numbers.itemBytes });
    }
  }
  return bodyOf(Buffer.from(`${dds}\nData:\n`), parts, 4);
}

/**
 * Lays out the answer of `.dap`: the DMR, then the variables, in chunks of DAP4 (OPeNDAP, DAP4 specification, volume 1, section 8).
 * @param slices In the order of the DMR.
 */
export async function createDap(
  source: ValuesOf,
  dmr: string,
  slices: readonly DapSlice[],
  hasChecksums: boolean,
): Promise<DapBody> {
  const parts: Part[] = [];
  for (const slice of slices) {
    const texts = await textsOf(source, slice);
    const numbers = numbersOf(source, slice, "dap4");
    const part =
      texts === undefined
        ? { ...numbers, byteLength: elementCount(slice.shape) * numbers.itemBytes }
        : constant(texts.flatMap((text) => [longWord(text.length), text]));
    parts.push(part);
    if (hasChecksums) parts.push(checksumOf(part));
  }
  return inChunks(Buffer.from(`${dmr}\r\n`), bodyOf(Buffer.alloc(0), parts, 1), hasChecksums);
}

async function textsOf(
  source: ValuesOf,
  { variable: { array, text }, axes }: DapSlice,
): Promise<readonly Uint8Array[] | undefined> {
  return text === undefined ? undefined : readTexts(source, array, text, axes);
}

/** Puts parts together, with zeros behind each up to a whole word. */
function bodyOf(header: Uint8Array, parts: readonly Part[], wordSize: number): DapBody {
  const sections = parts
    .filter(({ byteLength }) => byteLength > 0)
    .map((part) => ({
      ...{ rowCount: 1, rowLength: Math.ceil(part.byteLength / wordSize) * wordSize },
      columns: [{ ...part, at: 0, rowBytes: part.byteLength }],
    }));
  const body = createFileBody(header, sections);
  return { ...body, byteLength: body.byteLength! };
}

function constant(pieces: readonly Uint8Array[]): Part {
  const bytes = Buffer.concat(pieces);
  return {
    byteLength: bytes.length,
    itemBytes: Math.max(1, bytes.length),
    heldBytes: () => bytes.length,
    async *read() {
      yield bytes;
    },
  };
}

/** A byte that is no array takes a word: libdap and netCDF-C read the last byte of it, and pydap the first. */
function oneByte(column: FileColumn): Part {
  return {
    ...{ ...column, byteLength: 4, itemBytes: 4 },
    async *read(_, ...rest) {
      for await (const [byte = 0] of column.read(0, ...rest)) yield Uint8Array.of(byte, 0, 0, byte);
    },
  };
}

/** The checksum of a variable, which is read again for it: a range may leave out parts of the variable. */
function checksumOf(column: FileColumn): Part {
  return {
    ...{ ...column, byteLength: 4, itemBytes: 4 },
    async *read(_, ...rest) {
      let checksum = 0;
      for await (const bytes of column.read(0, ...rest)) checksum = crc32(bytes, checksum);
      yield word(checksum).reverse();
    },
  };
}

function word(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
  return bytes;
}

function longWord(number: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(number));
  return bytes;
}

/** Bytes of data in each chunk but the last; the format has 24 bits for it. */
const CHUNK_BYTES = 2 ** 22;
const LAST = 1;
const LITTLE_ENDIAN = 4;
/**
 * A bit of netCDF-C's own. Without it, netCDF-C 4.9.0 takes the four bytes behind each variable for its checksum if there is none, and
 * reads wrong values of all others.
 */
const NO_CHECKSUM = 8;

/** Cuts a body into chunks, after one with the DMR. */
function inChunks(dmr: Uint8Array, data: DapBody, hasChecksums: boolean): DapBody {
  const flags = LITTLE_ENDIAN | (hasChecksums ? 0 : NO_CHECKSUM);
  const header = (length: number, more = 0) => word((flags | more) * 2 ** 24 + length);
  const head = Buffer.concat([header(dmr.length), dmr]);
  const count = Math.max(1, Math.ceil(data.byteLength / CHUNK_BYTES));
  const byteLength = head.length + data.byteLength + 4 * count;
  if (dmr.length >= 2 ** 24)
    throw new ZpublishError("too-large", `Expected a DMR of less than 16 MiB, received ${dmr.length} bytes`);

  async function* chunksFrom(first: number, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    if (first === 0) yield head;
    if (data.byteLength === 0) yield header(0, LAST);
    const start = first * CHUNK_BYTES;
    let at = start;
    for await (const piece of data.pieces({ start, byteLength: data.byteLength - start }, signal))
      for (let offset = 0; offset < piece.length; ) {
        const rest = data.byteLength - at;
        if (at % CHUNK_BYTES === 0) yield header(Math.min(CHUNK_BYTES, rest), rest <= CHUNK_BYTES ? LAST : 0);
        const part = piece.subarray(offset, offset + CHUNK_BYTES - (at % CHUNK_BYTES));
        yield part;
        offset += part.length;
        at += part.length;
      }
  }

  return {
    ...{ ...data, byteLength },
    async *pieces({ start, byteLength: wanted } = { start: 0, byteLength }, signal) {
      const end = start + wanted;
      const first = Math.max(0, Math.floor((start - head.length) / (CHUNK_BYTES + 4)));
      let at = first === 0 ? 0 : head.length + first * (CHUNK_BYTES + 4);
      for await (const bytes of chunksFrom(first, signal)) {
        const part = bytes.subarray(Math.max(0, start - at), Math.max(0, end - at));
        at += bytes.length;
        if (part.length > 0) yield part;
        if (at >= end) return;
      }
    },
  };
}
