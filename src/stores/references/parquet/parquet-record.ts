import { messageOf, ZpublishError } from "../../../errors.js";
import { createSlice } from "../../../event-loop/cooperative-task.js";
import type { Reference } from "../reference-store.js";
import { createReferenceTable } from "../reference-table.js";
import { type ParquetValue, readColumns } from "./read-columns.js";

/** References by row. */
export type ParquetRecord = (row: number) => Reference | undefined;

const COLUMNS = ["path", "offset", "size", "raw"] as const;

/**
 * Reads a file of references: the columns `path`, `offset`, `size` and `raw`. A row without path and raw is absent; offset and
 * size of 0 mean the whole object.
 * @param name For messages.
 * @throws ZpublishError `invalid-metadata`
 */
export async function readParquetRecord(name: string, bytes: Uint8Array): Promise<ParquetRecord> {
  try {
    return await readRows(bytes);
  } catch (error) {
    throw new ZpublishError("invalid-metadata", `'${name}': ${messageOf(error)}`, { cause: error });
  }
}

async function readRows(bytes: Uint8Array): Promise<ParquetRecord> {
  const { path, offset, size, raw } = await readColumns(bytes, COLUMNS);
  const table = createReferenceTable();
  const slice = createSlice();
  for (let row = 0; row < Math.max(path.length, raw.length); row++) {
    if (slice.isOver()) await slice.next();
    const reference = referenceOf(row, path[row], offset[row], size[row], raw[row]);
    if (reference !== undefined) table.set(String(row), reference);
  }
  return (row) => table.find(String(row));
}

function referenceOf(
  row: number,
  path: ParquetValue,
  offset: ParquetValue = 0,
  size: ParquetValue = 0,
  raw: ParquetValue,
): Reference | undefined {
  const url = path instanceof Uint8Array ? Buffer.from(path).toString() : "";
  // Some writers have no null for bytes.
  if (raw instanceof Uint8Array && (raw.length > 0 || url === "")) return { inline: raw };
  if (url === "") return undefined;
  if (offset === 0 && size === 0) return { url, part: undefined };
  const [from, byteLength] = [Number(offset), Number(size)];
  if (from >= 0 && byteLength >= 0 && Number.isSafeInteger(from + byteLength)) {
    return { url, part: { offset: from, byteLength } };
  }
  throw new Error(`row ${row}: expected an offset and a size, received ${offset} and ${size}`);
}
