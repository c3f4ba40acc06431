import { crc32 } from "node:zlib";
import {
  createFileBody,
  elementCount,
  type FileBody,
  type FileColumn,
  ZpublishError,
} from "../../plugin-api.js";
import type { DapColumn, DapSlice } from "./dap-values.js";

/** Greatest count of items that XDR can say. */
const MAX_COUNT = 2 ** 31 - 1;

/**
 * Lays out the answer of `.dods`: the DDS, `Data:`, then the variables in XDR (RFC 4506).
 * @param values One column per slice.
 */
export function createDods(dds: string, slices: readonly DapSlice[], values: readonly DapColumn[]): FileBody {
  const columns: DapColumn[] = [];
  for (const [index, { variable, shape }] of slices.entries()) {
    const count = elementCount(shape);
    const expected = `at most ${MAX_COUNT} values of '${variable.name}'`;
    if (count > MAX_COUNT) throw new ZpublishError("too-large", `Expected ${expected}, received ${count}`);
    // The count comes twice, but of texts once.
    const counts = variable.text === undefined ? [word(count), word(count)] : [word(count)];
    if (shape.length > 0) columns.push(constant(Buffer.concat(counts)));
    columns.push(values[index]!);
  }
  return bodyOf(Buffer.from(`${dds}\nData:\n`), columns, 4);
}

/**
 * Lays out the answer of `.dap`: the DMR, then the variables, in chunks of DAP4 (OPeNDAP, DAP4 specification, volume 1, section 8).
 * @param values Columns of the variables in the order of the DMR.
 */
export function createDap(dmr: string, values: readonly DapColumn[], hasChecksums: boolean): FileBody {
  const columns = hasChecksums ? values.map(withChecksum) : values;
  return inChunks(Buffer.from(`${dmr}\r\n`), bodyOf(new Uint8Array(), columns, 1), hasChecksums);
}

/** Puts columns together, with zeros behind each up to a whole word. */
function bodyOf(header: Uint8Array, columns: readonly DapColumn[], wordSize: number): FileBody {
  const sections = columns.map((column) => ({
    ...{ rowCount: 1, rowLength: Math.ceil(column.byteLength / wordSize) * wordSize },
    columns: [{ ...column, at: 0, rowBytes: column.byteLength }],
  }));
  return createFileBody(header, sections);
}

function constant(bytes: Uint8Array): DapColumn {
  return {
    byteLength: bytes.length,
    itemBytes: bytes.length,
    heldBytes: () => bytes.length,
    async *read() {
      yield bytes;
    },
  };
}

/** Puts its checksum behind a column, which is read from its begin on for any range of it. */
function withChecksum(column: DapColumn): DapColumn {
  const byteLength = column.byteLength + 4;
  return {
    ...column,
    byteLength,
    itemBytes: byteLength,
    read: (_, ...rest) => checked(column.read(0, ...rest)),
  };
}

async function* checked(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let checksum = 0;
  for await (const bytes of pieces) {
    checksum = crc32(bytes, checksum);
    yield bytes;
  }
  yield word(checksum).reverse();
}

function word(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(number);
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
function inChunks(dmr: Uint8Array, data: FileBody, hasChecksums: boolean): FileBody {
  const flags = LITTLE_ENDIAN | (hasChecksums ? 0 : NO_CHECKSUM);
  const header = (length: number, more = 0) => word((flags | more) * 2 ** 24 + length);
  const head = Buffer.concat([header(dmr.length), dmr]);
  const { byteLength = 0, heldByteLength = 0 } = data;
  if (dmr.length >= 2 ** 24)
    throw new ZpublishError("too-large", `Expected a DMR of less than 16 MiB, received ${dmr.length} bytes`);

  const rowCount = Math.max(1, Math.ceil(byteLength / CHUNK_BYTES));
  const headers: FileColumn = {
    ...{ itemBytes: 4, heldBytes: () => 0 },
    async *read(first) {
      for (let row = first; row < rowCount - 1; row += 1) yield header(CHUNK_BYTES);
      yield header(byteLength - (rowCount - 1) * CHUNK_BYTES, LAST);
    },
  };
  const bytes: FileColumn = {
    ...{ itemBytes: 1, heldBytes: () => heldByteLength },
    read: (start, signal) => data.pieces({ start, byteLength: byteLength - start }, signal),
  };
  const columns = [
    { ...headers, at: 0, rowBytes: 4 },
    { ...bytes, at: 4, rowBytes: CHUNK_BYTES },
  ];
  const rows = { rowCount, rowLength: 4 + CHUNK_BYTES, columns, byteLength: byteLength + 4 * rowCount };
  return createFileBody(head, [rows]);
}
