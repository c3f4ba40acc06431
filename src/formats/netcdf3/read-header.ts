import type { FileBlocks } from "../file-format.js";
import { HeaderCursor, invalid, type Netcdf3Version } from "./header-cursor.js";
import type { Netcdf3Type } from "./netcdf3-type.js";

/** The header of a file, as it is written (NetCDF Classic Format Specification). */
export interface Netcdf3Header {
  readonly version: Netcdf3Version;
  /** Undefined if the writer did not know it (`STREAMING`): as many as the file has. */
  readonly recordCount: number | undefined;
  readonly dimensions: readonly Netcdf3Dimension[];
  readonly attributes: readonly Netcdf3Attribute[];
  readonly variables: readonly Netcdf3Variable[];
  readonly byteLength: number;
}

/** A dimension. The length of the record dimension is 0. */
export interface Netcdf3Dimension {
  readonly name: string;
  readonly length: number;
}

/** An attribute with its items. */
export interface Netcdf3Attribute {
  readonly name: string;
  readonly type: Netcdf3Type;
  readonly bytes: Uint8Array;
}

/** A variable. Its `vsize` is left out: it may be less than the size, which the shape tells. */
export interface Netcdf3Variable {
  readonly name: string;
  readonly dimensions: readonly Netcdf3Dimension[];
  readonly attributes: readonly Netcdf3Attribute[];
  readonly type: Netcdf3Type;
  /** Offset of the first item in the file. */
  readonly begin: number;
}

const DIMENSION_TAG = 10;
const VARIABLE_TAG = 11;
const ATTRIBUTE_TAG = 12;
/** Most axes of a variable (`NC_MAX_VAR_DIMS`). */
const MAX_AXES = 1024;
/** Estimates of the memory that is kept for an item of a list. */
const MEMORY = { dimension: 128, attribute: 512, variable: 1024, axis: 32, character: 2, number: 16 };

/** Returns the version that the first bytes of a file tell; undefined if they are no NetCDF-3. */
export function versionOf(head: Uint8Array): Netcdf3Version | undefined {
  const version = head[3];
  const isClassic = head[0] === 0x43 && head[1] === 0x44 && head[2] === 0x46;
  return isClassic && (version === 1 || version === 2 || version === 5) ? version : undefined;
}

/**
 * Reads the header of a file.
 * @throws ZpublishError `invalid-metadata`, `unsupported` if the header is too long; `source-unreadable`, `source-changed`
 */
export async function readHeader(file: FileBlocks): Promise<Netcdf3Header> {
  const cursor = new HeaderCursor(file);
  const version = await cursor.item(() => versionOf(cursor.bytes(4)));
  if (version === undefined) throw invalid("expected the file to begin with CDF and 1, 2 or 5");
  cursor.setVersion(version);
  const records = await cursor.item(() => cursor.count());
  const dimensions = await readList(cursor, DIMENSION_TAG, 8, MEMORY.dimension, () =>
    cursor.item(() => ({ name: cursor.name(), length: cursor.count() })),
  );
  const attributes = await readAttributes(cursor);
  const variables = await readList(cursor, VARIABLE_TAG, 28, MEMORY.variable, () =>
    readVariable(cursor, dimensions),
  );
  const recordCount = cursor.isStreaming(records) ? undefined : records;
  return { version, recordCount, dimensions, attributes, variables, byteLength: cursor.offset };
}

/** Reads a list, which is the tag of its items, their number and the items, or zeros if there is none (`ABSENT`). */
async function readList<T>(
  cursor: HeaderCursor,
  tag: number,
  itemBytes: number,
  itemMemory: number,
  readItem: () => Promise<T>,
): Promise<T[]> {
  const count = await cursor.item(() => {
    const received = cursor.word();
    if (received !== tag && received !== 0)
      throw invalid(`expected a list with tag ${tag} or 0, received ${received}`);
    const count = cursor.list(itemBytes, itemMemory);
    if (received === 0 && count > 0)
      throw invalid(`expected no items in a list without tag, received ${count}`);
    return count;
  });
  const items: T[] = [];
  while (items.length < count) items.push(await readItem());
  return items;
}

function readAttributes(cursor: HeaderCursor): Promise<Netcdf3Attribute[]> {
  return readList(cursor, ATTRIBUTE_TAG, 12, MEMORY.attribute, () =>
    cursor.item(() => {
      const name = cursor.name();
      const type = cursor.type();
      const memory = type.read === undefined ? MEMORY.character : MEMORY.number;
      return { name, type, bytes: cursor.bytes(cursor.list(type.itemSize, memory) * type.itemSize) };
    }),
  );
}

async function readVariable(
  cursor: HeaderCursor,
  all: readonly Netcdf3Dimension[],
): Promise<Netcdf3Variable> {
  const { name, dimensions } = await cursor.item(() => {
    const name = cursor.name();
    const rank = cursor.list(4, MEMORY.axis);
    if (rank > MAX_AXES) throw invalid(`expected at most ${MAX_AXES} dimensions, received ${rank}`);
    const dimensions = Array.from({ length: rank }, () => {
      const id = cursor.count();
      const dimension = all[id];
      if (dimension === undefined)
        throw invalid(`expected the number of a dimension below ${all.length}, received ${id}`);
      return dimension;
    });
    return { name, dimensions };
  });
  const attributes = await readAttributes(cursor);
  return cursor.item(() => {
    const type = cursor.type();
    cursor.count();
    return { name, dimensions, attributes, type, begin: cursor.place() };
  });
}
