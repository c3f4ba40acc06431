import { elementCount } from "../../model/data-tree.js";
import { readAttributes } from "./attributes.js";
import { type ByteCursor, check, type Hdf5Input, invalidFile, roundUp, unsupportedFile } from "./bytes.js";
import { MAX_RANK, parseDatatype } from "./datatypes.js";
import type { Hdf5ChunkedLayout, Hdf5ChunkIndex, Hdf5Dataset, Hdf5Filter, Hdf5Layout } from "./hdf5-model.js";
import {
  cursorOf,
  type HeaderMessage,
  itemCount,
  MESSAGE,
  type ObjectReader,
  parseDataspace,
} from "./objects.js";

/** Maximum number of filters in a pipeline (HDF5's `H5Z_MAX_NFILTERS`). */
const MAX_FILTERS = 32;

/** First id of filters that are not HDF5's own: in version 2 only these have a name. */
const FIRST_NAMED_FILTER = 256;

/** Bytes of the largest chunk (HDF5 reference of `H5Pset_chunk`). Version 5 allows more. */
const MAX_CHUNK_BYTES = 0xffff_ffff;

/**
 * Reads a dataset.
 * @param address Its address in the file.
 * @param path For warnings.
 */
export async function datasetOfMessages(
  reader: ObjectReader,
  address: number,
  path: string,
  messages: readonly HeaderMessage[],
): Promise<Hdf5Dataset> {
  const { shared, input } = reader;
  const find = (type: number): HeaderMessage | undefined => messages.find((message) => message.type === type);
  const [space, datatype, layout] = [find(MESSAGE.dataspace), find(MESSAGE.datatype), find(MESSAGE.layout)];
  if (space === undefined || datatype === undefined || layout === undefined) {
    throw invalidFile("dataset: expected a dataspace, a datatype and a layout, received less");
  }
  const { shape, maxShape } = parseDataspace(cursorOf(space, "dataspace"));
  const typeCursor = cursorOf(datatype, "datatype");
  const type = datatype.isShared ? await shared.datatype(typeCursor) : parseDatatype(typeCursor);
  // Writers that want to be read by old libraries store both fill values.
  const fill = find(MESSAGE.fill) ?? find(MESSAGE.oldFill);
  const filters = find(MESSAGE.filters);
  const place: Hdf5Layout =
    find(MESSAGE.externalFiles) === undefined
      ? parseLayout(input, cursorOf(layout, "layout"), { shape, type })
      : { kind: "unsupported", reason: "its data are in other files" };
  return {
    address: address + input.baseAddress,
    shape,
    maxShape,
    type,
    fill: fill === undefined ? null : parseFill(cursorOf(fill, "fill value"), fill.type, type.size),
    layout: place,
    filters: filters === undefined ? [] : parseFilters(cursorOf(filters, "filters")),
    attributes: await readAttributes(reader, path, messages),
  };
}

/** Parses a fill value message of the new or the old kind (HDF5 File Format Specification, IV.A.2.f and IV.A.2.e). */
function parseFill(cursor: ByteCursor, messageType: number, itemSize: number): Uint8Array | null {
  if (messageType === MESSAGE.fill) {
    const version = cursor.version(1, 3);
    if (version === 3) {
      if ((cursor.u8() & 0x20) === 0) return null;
    } else {
      // When space is allocated, and when the value is written.
      cursor.skip(2);
      const isDefined = cursor.u8() !== 0;
      if (version === 2 && !isDefined) return null;
    }
  }
  const byteLength = cursor.u32();
  // A negative size means that no value is defined.
  if (byteLength === 0 || byteLength > 0x7fff_ffff) return null;
  check(byteLength === itemSize, "fill value", `${itemSize} bytes`, byteLength);
  return Uint8Array.from(cursor.take(byteLength));
}

/** Parses a filter pipeline message (IV.A.2.l). */
function parseFilters(cursor: ByteCursor): Hdf5Filter[] {
  const version = cursor.version(1, 2);
  const count = cursor.u8();
  check(count <= MAX_FILTERS, "filters", `at most ${MAX_FILTERS}`, count);
  if (version === 1) cursor.skip(6);
  return Array.from({ length: count }, () => parseFilter(cursor, version));
}

function parseFilter(cursor: ByteCursor, version: number): Hdf5Filter {
  const id = cursor.u16();
  const hasName = version === 1 || id >= FIRST_NAMED_FILTER;
  const nameBytes = hasName ? cursor.u16() : 0;
  // Whether a chunk may be stored without it: the chunk's mask says so, too.
  cursor.skip(2);
  const valueCount = cursor.u16();
  const name = cursor.text(version === 1 ? roundUp(nameBytes) : nameBytes);
  check(valueCount * 4 <= cursor.left, "filters", `${valueCount} values`, `${cursor.left} bytes`);
  const values = Array.from({ length: valueCount }, () => cursor.u32());
  if (version === 1 && valueCount % 2 === 1) cursor.skip(4);
  return { id, name, values };
}

/** What a layout has to agree with. */
type LayoutOwner = Pick<Hdf5Dataset, "shape" | "type">;

/** What a layout message says of chunks. */
interface ChunkedMessage extends Pick<Hdf5ChunkedLayout, "address" | "index"> {
  /** Lengths of a chunk, and the size of an item. */
  readonly lengths: readonly number[];
}

/** Parses a layout message, and compares it with the dataset (IV.A.2.i). */
function parseLayout(input: Hdf5Input, cursor: ByteCursor, owner: LayoutOwner): Hdf5Layout {
  const version = cursor.version(1, 5);
  if (version < 3) return parseOldLayout(input, cursor, owner);
  const layoutClass = cursor.u8();
  switch (layoutClass) {
    case 0:
      return compact(cursor, cursor.u16(), owner);
    case 1:
      return contiguous(input, cursor.optional(), owner);
    case 2: {
      const message = version === 3 ? parseChunked3(cursor) : parseChunked4(cursor);
      if (message !== undefined) return chunked(input, message, owner);
      return {
        kind: "unsupported",
        reason: "its chunks at the edge of the array are stored without filters",
      };
    }
    case 3:
      return { kind: "unsupported", reason: "it is a virtual dataset, made of others" };
    default:
      return { kind: "unsupported", reason: `its layout has the unknown class ${layoutClass}` };
  }
}

/** Parses versions 1 and 2, which HDF5 wrote before 1.6. */
function parseOldLayout(input: Hdf5Input, cursor: ByteCursor, owner: LayoutOwner): Hdf5Layout {
  const rank = parseRank(cursor);
  const layoutClass = cursor.u8();
  cursor.skip(5);
  const address = layoutClass === 0 ? null : cursor.optional();
  const lengths = Array.from({ length: rank }, () => cursor.u32());
  if (layoutClass === 0) return compact(cursor, cursor.u32(), owner);
  if (layoutClass === 1) return contiguous(input, address, owner);
  check(layoutClass === 2, "layout", "class 0 to 2", layoutClass);
  return chunked(input, { lengths, address, index: { kind: "b-tree-1" } }, owner);
}

function parseChunked3(cursor: ByteCursor): ChunkedMessage {
  const rank = parseRank(cursor);
  const address = cursor.optional();
  const lengths = Array.from({ length: rank }, () => cursor.u32());
  return { lengths, address, index: { kind: "b-tree-1" } };
}

/** @returns Undefined if chunks at the edge have no filters ("don't filter partial edge chunks"). */
function parseChunked4(cursor: ByteCursor): ChunkedMessage | undefined {
  const flags = cursor.u8();
  if ((flags & 1) !== 0) return undefined;
  const rank = parseRank(cursor);
  const lengthBytes = cursor.u8();
  check(lengthBytes >= 1 && lengthBytes <= 8, "layout", "lengths of 1 to 8 bytes", lengthBytes);
  const lengths = Array.from({ length: rank }, () => cursor.uint(lengthBytes));
  const index = parseIndex(cursor, flags);
  return { lengths, address: cursor.optional(), index };
}

/** Parses the number of lengths: those of a chunk, and the size of an item. */
function parseRank(cursor: ByteCursor): number {
  const rank = cursor.u8();
  check(rank <= MAX_RANK + 1, "layout", `at most ${MAX_RANK + 1} lengths`, rank);
  return rank;
}

/** Parses the kind of a chunk index. Parameters that its own header repeats are skipped. */
function parseIndex(cursor: ByteCursor, flags: number): Hdf5ChunkIndex {
  const kind = cursor.u8();
  switch (kind) {
    case 1: {
      const isFiltered = (flags & 2) !== 0;
      const byteLength = isFiltered ? cursor.u64() : null;
      return { kind: "single", byteLength, filterMask: isFiltered ? cursor.u32() : 0 };
    }
    case 2:
      return { kind: "implicit" };
    case 3:
      cursor.skip(1);
      return { kind: "fixed-array" };
    case 4:
      cursor.skip(5);
      return { kind: "extensible-array" };
    case 5:
      cursor.skip(6);
      return { kind: "b-tree-2" };
    default:
      throw unsupportedFile(`layout: the index of chunks has the unknown kind ${kind}`);
  }
}

function compact(cursor: ByteCursor, byteLength: number, owner: LayoutOwner): Hdf5Layout {
  const expected = itemCount(owner.shape) * owner.type.size;
  check(byteLength >= expected, "layout", `${expected} bytes of compact data`, byteLength);
  // A copy, because the model outlives the file's blocks.
  return { kind: "compact", bytes: Uint8Array.from(cursor.take(expected)) };
}

function contiguous(input: Hdf5Input, address: number | null, owner: LayoutOwner): Hdf5Layout {
  const byteLength = itemCount(owner.shape) * owner.type.size;
  // Files that were never written beyond their metadata have no such address.
  if (address === null || byteLength === 0) return { kind: "contiguous", address: null, byteLength };
  input.checkInside(address, byteLength, "contiguous data");
  return { kind: "contiguous", address: address + input.baseAddress, byteLength };
}

function chunked(input: Hdf5Input, message: ChunkedMessage, owner: LayoutOwner): Hdf5Layout {
  const { lengths, address, ...rest } = message;
  const chunkShape = lengths.slice(0, -1);
  const itemSize = lengths.at(-1) ?? 0;
  const rank = owner.shape?.length ?? 0;
  check(chunkShape.length === rank && rank > 0, "layout", `chunks of ${rank} axes`, chunkShape.length);
  check(itemSize === owner.type.size, "layout", `items of ${owner.type.size} bytes`, itemSize);
  const chunkBytes = elementCount(lengths);
  const isSane = chunkBytes > 0 && chunkBytes <= MAX_CHUNK_BYTES;
  check(isSane, "layout", `chunks of 1 to ${MAX_CHUNK_BYTES} bytes`, chunkBytes);
  if (address !== null) input.checkInside(address, 1, "index of chunks");
  return {
    kind: "chunked",
    chunkShape,
    itemSize,
    address: address === null ? null : address + input.baseAddress,
    baseAddress: input.baseAddress,
    ...rest,
  };
}
