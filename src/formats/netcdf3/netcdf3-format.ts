import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { workThrough } from "../../event-loop/work-through.js";
import { type JsonObject, type JsonValue, setEntry } from "../../json/json-value.js";
import { parseDataType } from "../../model/data-type.js";
import { fillItemToJson } from "../../model/fill-value.js";
import { comparePaths, printablePath, type Refusal } from "../../zarr/stored-tree.js";
import type { FileBlocks, FileFormat } from "../file-format.js";
import {
  CHUNK_BYTES,
  cutChunks,
  type FileArray,
  type FileGroup,
  type FileIndex,
  NO_CHUNKS,
  type PlacedChunks,
  type PlacedItems,
  placeItems,
  stridedChunks,
  stridesOf,
} from "../file-index.js";
import {
  invalid,
  type Netcdf3Attribute,
  type Netcdf3Header,
  type Netcdf3Variable,
  netcdf3VersionOf,
  readNetcdf3Header,
  valuesSteps,
} from "./header.js";

/** Names of the versions, as netCDF's documentation has them. */
const FORMAT_NAMES = { 1: "NetCDF-3", 2: "NetCDF-3 (64-bit offset)", 5: "NetCDF-3 (64-bit data)" } as const;

/**
 * NetCDF-3 in its three versions, CDF-1, CDF-2 and CDF-5 (NetCDF Classic Format Specification). Values are big-endian and not
 * compressed, so all chunks are served as they are stored.
 */
export const netcdf3Format: FileFormat = {
  id: "netcdf3",
  revision: 2,
  recognizes: (head) => netcdf3VersionOf(head) !== undefined,
  async readIndex(file) {
    return runCooperatively(indexSteps(await readNetcdf3Header(file), file.byteLength));
  },
  makeChunk: (file, recipe, [chunkNumber = 0]) => gatherRecords(file, recipe as RecordsRecipe, chunkNumber),
};

/** @throws ZpublishError `invalid-metadata` */
function* indexSteps(header: Netcdf3Header, fileLength: number): CooperativeTask<FileIndex> {
  const records = recordLayout(header, fileLength);
  const counts = new Map<string, number>();
  for (const { name } of header.variables) counts.set(name, (counts.get(name) ?? 0) + 1);
  const arrays: FileArray[] = [];
  const refused: Refusal[] = [];
  for (const variable of header.variables) {
    yield;
    const isDouble = counts.get(variable.name) !== 1;
    const reason = isDouble ? "several variables have this name" : problemOf(variable, header.byteLength);
    if (reason === undefined) arrays.push(yield* variableArraySteps(variable, records));
    else refused.push({ path: printablePath(variable.name), reason });
  }
  const root: FileGroup = {
    path: "/",
    attrs: yield* attributesSteps(header.attributes),
    arrays: yield* sortCooperatively(arrays, (a, b) => comparePaths(a.name, b.name)),
  };
  const unlimited = header.variables
    .filter(hasRecords)
    .flatMap(({ dimensions }) => dimensions[0]?.name ?? []);
  return {
    ...{ format: FORMAT_NAMES[header.version], unlimited: unlimited.slice(0, 1) },
    ...{ groups: [root], refused, warnings: [] },
  };
}

/** Returns why a variable cannot be served; undefined if it can. */
function problemOf({ dimensions, begin }: Netcdf3Variable, headerBytes: number): string | undefined {
  const tooLong = dimensions.find(({ length }) => !Number.isSafeInteger(length));
  if (tooLong !== undefined) return `expected dimensions below 2^53, received ${tooLong.length}`;
  return begin < headerBytes
    ? `expected its data behind the header of ${headerBytes} bytes, received an offset of ${begin}`
    : undefined;
}

const FILL_ATTRIBUTE = "_FillValue";

/** Makes the array of a variable in steps. Characters stay `|S1`, with the axis of a string's characters. */
function* variableArraySteps(variable: Netcdf3Variable, records: RecordLayout): CooperativeTask<FileArray> {
  const { name, type, dimensions, begin } = variable;
  const isGrowing = hasRecords(variable);
  const shape = dimensions.map(({ length }) => (length === 0 ? records.count : length));
  const items: PlacedItems = { begin, shape, itemSize: type.itemSize };
  const isApart = isGrowing && !records.isAlone;
  const mark = variable.attributes.find((attribute) => attribute.name === FILL_ATTRIBUTE);
  // A mark of another type or length stays an attribute, which xarray understands as well.
  const isServed = mark?.type === type && mark.bytes.length === type.itemSize;
  // As a JSON text, xarray would take NaN for a mark of integers, and decode to another type than it does from the file.
  const isNothing = mark !== undefined && !/[fS]/.test(type.dtype) && isNotANumber(mark);
  const attributes = variable.attributes.filter(
    ({ name }) => !(isServed || isNothing) || name !== FILL_ATTRIBUTE,
  );
  return {
    name,
    shape,
    ...(isApart ? placeRecords(items, records.stride) : placeItems(items, isGrowing)),
    dtype: type.dtype,
    codecs: [],
    compressorCount: 0,
    fill: {
      served: isServed ? fillItemToJson(mark.bytes, parseDataType(type.dtype)) : null,
      // Every chunk is stored, so none is ever filled.
      item: null,
      absentIsServed: true,
    },
    dimNames: dimensions.map((dimension) => dimension.name),
    attrs: yield* attributesSteps(attributes),
  };
}

/** Converts attributes in steps. The first of several with one name counts, as for netCDF-C. */
function* attributesSteps(attributes: readonly Netcdf3Attribute[]): CooperativeTask<JsonObject> {
  const values: Record<string, JsonValue> = {};
  for (const { name, type, bytes } of attributes) {
    yield;
    if (!Object.hasOwn(values, name)) setEntry(values, name, yield* valuesSteps(type, bytes));
  }
  return values;
}

/** Tells whether an attribute is one NaN. */
function isNotANumber({ type, bytes }: Netcdf3Attribute): boolean {
  if (type.read === undefined || bytes.length !== type.itemSize) return false;
  return Number.isNaN(type.read(new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), 0));
}

/** Where the records of a file are. */
interface RecordLayout {
  readonly count: number;
  /** Bytes from one record to the next. */
  readonly stride: number;
  /** True if only one variable has records. They are not padded then, and adjoin. */
  readonly isAlone: boolean;
}

/** Finds out where the records are, and checks that the file has every item of every variable. */
function recordLayout({ variables, recordCount }: Netcdf3Header, fileLength: number): RecordLayout {
  for (const { name, dimensions } of variables) {
    if (dimensions.slice(1).some(({ length }) => length === 0))
      throw invalid(`expected the record dimension to be the first of variable '${printablePath(name)}'`);
  }
  const withRecords = variables.filter(hasRecords);
  const isAlone = withRecords.length === 1;
  const padding = isAlone ? 1 : 4;
  const stride = withRecords.reduce((sum, each) => sum + Math.ceil(storedBytes(each) / padding) * padding, 0);
  const layout = { count: recordCount, stride, isAlone };
  for (const variable of variables) {
    const end = endOf(variable, layout);
    // netCDF-C reads zeros there. A file that is still being copied would be served with values that it does not have.
    if (!(end <= fileLength))
      throw invalid(
        `expected ${end} bytes, since variable '${printablePath(variable.name)}' ends there, received ${fileLength}`,
      );
  }
  return layout;
}

/** Tells if the first dimension of a variable is the record dimension. */
function hasRecords({ dimensions }: Netcdf3Variable): boolean {
  return dimensions[0]?.length === 0;
}

/** Returns the offset behind the last item of a variable, padding left out. */
function endOf(variable: Netcdf3Variable, { count, stride }: RecordLayout): number {
  const bytes = storedBytes(variable);
  if (!hasRecords(variable)) return variable.begin + bytes;
  return count === 0 ? 0 : variable.begin + (count - 1) * stride + bytes;
}

/** Bytes of a variable, or of one of its records, without padding. Inexact beyond 2^53. */
function storedBytes({ dimensions, type }: Netcdf3Variable): number {
  return dimensions.reduce((bytes, { length }) => (length === 0 ? bytes : bytes * length), type.itemSize);
}

/** Length from which a record is a chunk of its own, though chunks of several records would be closer to 1 MiB. */
const LARGE_RECORD_BYTES = 64 * 1024;
/** Bytes that may be read for a chunk of gathered records, if a read of its own costs as much as the bytes of the second bound. */
const GATHERED_READ_BYTES = 256 * 2 ** 20;
const SINGLE_READ_BYTES = 32 * 1024;

/**
 * Places the chunks of an array whose first axis counts records that lie apart. Large records are chunks, or cut into them; small
 * ones are gathered.
 * @param stride Bytes from one record to the next.
 */
function placeRecords(items: PlacedItems, stride: number): PlacedChunks {
  const { begin, shape, itemSize } = items;
  const [count = 0, ...recordShape] = shape;
  const cut = cutChunks(recordShape, itemSize, false);
  if (count === 0) return { chunkShape: [1, ...cut.chunkShape], chunks: NO_CHUNKS };
  const recordBytes = recordShape.reduce((bytes, length) => bytes * length, itemSize);
  if (recordBytes >= LARGE_RECORD_BYTES) {
    const chunkShape = [1, ...cut.chunkShape];
    const itemStrides = [stride, ...stridesOf(recordShape, itemSize)];
    return { chunkShape, chunks: stridedChunks(items, chunkShape, itemStrides, cut.axis + 1) };
  }
  const readBytes = Math.min(stride, SINGLE_READ_BYTES);
  const most = Math.floor(Math.min(CHUNK_BYTES / recordBytes, GATHERED_READ_BYTES / readBytes));
  const recipe: RecordsRecipe = { begin, stride, recordBytes, count, chunkRecords: Math.min(count, most) };
  return { chunkShape: [recipe.chunkRecords, ...recordShape], chunks: { kind: "made", recipe } };
}

/** Records of an array that are put together to chunks. */
interface RecordsRecipe {
  /** Offset of the first record in the file. */
  readonly begin: number;
  /** Bytes from one record to the next. */
  readonly stride: number;
  readonly recordBytes: number;
  readonly count: number;
  readonly chunkRecords: number;
}

/** Bytes between two records that are read and dropped: they cost less than another read. */
const MAX_GAP_BYTES = 32 * 1024;
/** Longest read of several records. */
const MAX_READ_BYTES = 2 ** 20;
const READS_AT_ONCE = 16;

/** Gathers the records of a chunk. The last chunk is padded with zeros. */
async function gatherRecords(
  file: FileBlocks,
  { begin, stride, recordBytes, count, chunkRecords }: RecordsRecipe,
  chunkNumber: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunk = new Uint8Array(chunkRecords * recordBytes);
  const first = chunkNumber * chunkRecords;
  const end = Math.min(count, first + chunkRecords);
  const isDense = stride - recordBytes <= MAX_GAP_BYTES;
  const recordsPerRead = isDense ? Math.max(1, Math.floor(MAX_READ_BYTES / stride)) : 1;

  function* reads(): Generator<number> {
    for (let record = first; record < end; record += recordsPerRead) yield record;
  }
  await workThrough(reads(), READS_AT_ONCE, async (record) => {
    const records = Math.min(recordsPerRead, end - record);
    const bytes = await file.readOnce(begin + record * stride, (records - 1) * stride + recordBytes);
    for (let i = 0; i < records; i++) {
      const item = bytes.subarray(i * stride, i * stride + recordBytes);
      chunk.set(item, (record - first + i) * recordBytes);
    }
  });
  return chunk;
}
