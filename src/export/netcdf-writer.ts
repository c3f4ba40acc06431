import { wrongParameter } from "../http/query.js";
import type { JsonObject } from "../json/json-value.js";
import { elementCount } from "../model/data-tree.js";
import type { ValueBlock } from "../values/values.js";
import {
  bytesOfTexts,
  createFileBody,
  type DatasetWriter,
  type FileBody,
  type FilePart,
  type OutputVariable,
  outputOf,
} from "./file-body.js";
import { NC, type NcAttribute, type NcType, type NcVersion, netcdfAttributes } from "./netcdf-attributes.js";

/** A file as it will be: its length is known before any value is read. */
export interface NetcdfFile extends FileBody {
  /** Version of the format, as the byte behind `CDF` says it: 1, 2 (64-bit offsets) or 5 (64-bit sizes and integers). */
  readonly version: NcVersion;
}

/** A variable with its place in the file. */
interface PlacedVariable {
  readonly variable: OutputVariable;
  readonly type: NcType;
  /** Dimensions as the file has them: those of characters included. */
  readonly dims: readonly string[];
  readonly attributes: readonly NcAttribute[];
  /** Bytes of one item of the variable in the file: of all its characters if it is text. */
  readonly itemBytes: number;
  /** Bytes of the variable, or of one record of it, without padding. */
  readonly byteLength: number;
  readonly isRecord: boolean;
}

/** Greatest size of a variable in versions 1 and 2, and of an offset in version 1. */
const MAX_CLASSIC_SIZE = 2 ** 32 - 4;
const MAX_OFFSET = 2 ** 31 - 1;
const DIMENSION_TAG = 10;
const VARIABLE_TAG = 11;
const ATTRIBUTE_TAG = 12;

/** Writes a dataset as NetCDF. An unlimited dimension stays one. */
export const writeNetcdf: DatasetWriter = async (dataset, values, signal) => {
  const { variables, snapshot, dims, attrs } = dataset;
  const outputs = await Promise.all(variables.map((each) => outputOf(dataset, each, values, signal)));
  return createNetcdf(
    outputs,
    attrs,
    snapshot.unlimited?.find((dim) => dims.has(dim)),
  );
};

/**
 * Lays out a NetCDF file: in the classic format (version 1 or 2) if it can say everything, else in version 5, which has unsigned and
 * 64-bit integers. Source: NetCDF Classic Format Specification.
 * @param unlimited Dimension that the file may grow along; used if it is the first of every variable that has it.
 * @throws ZpublishError `invalid-query` if a variable has a type that NetCDF does not have, such as complex numbers.
 */
export function createNetcdf(
  variables: readonly OutputVariable[],
  attrs: JsonObject,
  unlimited: string | undefined,
): NetcdfFile {
  const lengths = new Map<string, number>();
  for (const { dims, shape } of variables)
    for (const [axis, dim] of dims.entries()) lengths.set(dim, shape[axis]!);
  const isFirst = variables.every(({ dims }) => dims.lastIndexOf(unlimited ?? "") <= 0);
  const record = unlimited !== undefined && isFirst && lengths.has(unlimited) ? unlimited : undefined;
  const placed = variables.map((variable) => placeVariable(variable, lengths, record));
  const globals = netcdfAttributes(attrs, undefined);
  const typed = [...globals, ...placed, ...placed.flatMap(({ attributes }) => attributes)];
  const needs64 = typed.some(({ type }) => type.code > NC.double.code);
  const lists = { lengths, record, placed, globals };
  for (const version of needs64 ? ([5] as const) : ([1, 2, 5] as const)) {
    const file = layOut(version, lists);
    if (file !== undefined) return file;
  }
  throw new Error("version 5 holds every file");
}

function placeVariable(
  variable: OutputVariable,
  lengths: Map<string, number>,
  record: string | undefined,
): PlacedVariable {
  const { dataType, attrs } = variable;
  const { type, charCount, more } = storageOf(variable);
  const dims = [...variable.dims];
  if (charCount !== undefined) {
    let dim = `string${charCount}`;
    while ((lengths.get(dim) ?? charCount) !== charCount) dim += "_";
    lengths.set(dim, charCount);
    dims.push(dim);
  }
  const isRecord = record !== undefined && variable.dims[0] === record;
  const itemBytes = type.itemSize * (charCount ?? 1);
  const count = elementCount(variable.shape.slice(isRecord ? 1 : 0));
  const { _FillValue: fill, ...others } = attrs;
  const isNumber = "iufMm".includes(dataType.kind);
  const attributes = netcdfAttributes(
    { ...(isNumber ? attrs : others), ...more },
    charCount === undefined && dataType.kind !== "b" ? type : undefined,
  );
  return { variable, type, dims, attributes, itemBytes, byteLength: itemBytes * count, isRecord };
}

/** Returns the type in the file, the number of characters of a text, and attributes that say what the type does not. */
function storageOf({ name, dims, dataType, textBytes }: OutputVariable): {
  readonly type: NcType;
  readonly charCount?: number;
  readonly more?: JsonObject;
} {
  const { kind, itemSize, timeUnit } = dataType;
  if (kind === "b") return { type: NC.byte, more: { dtype: "bool" } };
  if (kind === "i") return { type: [NC.byte, NC.short, NC.int, NC.int64][Math.log2(itemSize)]! };
  if (kind === "u") return { type: [NC.ubyte, NC.ushort, NC.uint, NC.uint64][Math.log2(itemSize)]! };
  if (kind === "f" && itemSize <= 8) return { type: itemSize === 8 ? NC.double : NC.float };
  // Characters have the axis of their texts already.
  if (kind === "S" && itemSize === 1 && dims.length > 0) return { type: NC.char };
  if (kind === "S") return { type: NC.char, charCount: Math.max(1, itemSize) };
  if (kind === "U" || kind === "O") {
    const charCount = Math.max(1, textBytes ?? itemSize);
    return { type: NC.char, charCount, more: { _Encoding: "utf-8" } };
  }
  const unit = UNITS[timeUnit ?? ""];
  if (kind === "M" && unit !== undefined) {
    return { type: NC.int64, more: { units: `${unit} since 1970-01-01`, calendar: "proleptic_gregorian" } };
  }
  if (kind === "m" && unit !== undefined) return { type: NC.int64, more: { units: unit } };
  const expected = `a type that NetCDF has; variable '${name}' is ${dataType.numpyName}, which f=npy has`;
  throw wrongParameter("f", "unsupported_type", expected, "nc");
}

const UNITS: Readonly<Record<string, string>> = {
  ...{ D: "days", h: "hours", m: "minutes", s: "seconds" },
  ...{ ms: "milliseconds", us: "microseconds", ns: "nanoseconds" },
};

/** Everything that a header lists. */
interface HeaderLists {
  readonly lengths: ReadonlyMap<string, number>;
  readonly record: string | undefined;
  readonly placed: readonly PlacedVariable[];
  readonly globals: readonly NcAttribute[];
}

/** Lays a file out in a version. Undefined if sizes or offsets are too large for it. */
function layOut(version: NcVersion, lists: HeaderLists): NetcdfFile | undefined {
  const { lengths, record, placed } = lists;
  const fixed = placed.filter(({ isRecord }) => !isRecord);
  const records = placed.filter(({ isRecord }) => isRecord);
  // A single variable with records is not padded if it has small items.
  const paddedRecord = (each: PlacedVariable) =>
    records.length === 1 && each.type.itemSize < 4 ? each.byteLength : padded(each.byteLength);
  const begins = new Map<PlacedVariable, number>();
  const headerLength = writeHeader(version, lists, begins).length;
  let offset = headerLength;
  const parts: FilePart[] = [];
  for (const each of fixed) {
    begins.set(each, offset);
    parts.push({ begin: offset, byteLength: each.byteLength, ...readerOf(each) });
    offset += padded(each.byteLength);
  }
  const recordsBegin = offset;
  for (const each of records) {
    begins.set(each, offset);
    offset += paddedRecord(each);
  }
  const recordLength = offset - recordsBegin;
  const recordCount = record === undefined ? 0 : lengths.get(record)!;
  const byteLength = recordsBegin + recordLength * (records.length === 0 ? 0 : recordCount);
  if (version < 5 && placed.some((each) => each.byteLength > MAX_CLASSIC_SIZE)) return undefined;
  if (version === 1 && Math.max(0, ...begins.values()) > MAX_OFFSET) return undefined;
  const header = writeHeader(version, lists, begins);
  const rows = records.map((each) => ({
    ...readerOf(each),
    rowBytes: each.byteLength,
    at: begins.get(each)! - recordsBegin,
  }));
  const layout = { header, parts, rows, rowsBegin: recordsBegin, rowLength: recordLength, byteLength };
  return { version, ...createFileBody(layout) };
}

/** Tells how the bytes of a variable come out of its values. */
function readerOf({ variable, itemBytes }: PlacedVariable): Pick<FilePart, "itemBytes" | "read"> {
  const { kind, itemSize } = variable.dataType;
  const isText = kind === "U" || kind === "O";
  const isHalf = kind === "f" && itemSize === 2;
  return {
    itemBytes,
    async *read(firstItem, signal) {
      for await (const block of variable.read(firstItem, isText || isHalf ? "little" : "big", signal)) {
        if (isText) yield* bytesOfTexts(block.values as readonly string[], itemBytes);
        else if (isHalf) yield wideFloats(block);
        else yield block.bytes;
      }
    },
  };
}

/** Widens half floats to floats, big-endian. */
function wideFloats({ values = [] }: ValueBlock): Uint8Array {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  for (let i = 0; i < values.length; i++) view.setFloat32(4 * i, values[i] as number);
  return new Uint8Array(view.buffer);
}

function padded(byteLength: number): number {
  return Math.ceil(byteLength / 4) * 4;
}

/** Writes the header. @param begins Offsets of variables; those that are not known yet are written as 0. */
function writeHeader(
  version: NcVersion,
  { lengths, record, placed, globals }: HeaderLists,
  begins: ReadonlyMap<PlacedVariable, number>,
): Uint8Array {
  const parts: Buffer[] = [Buffer.from([0x43, 0x44, 0x46, version])];
  const integer = (byteLength: 4 | 8) => (value: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigUInt64BE(BigInt(value));
    parts.push(bytes.subarray(8 - byteLength));
  };
  const [word, long] = [integer(4), integer(8)];
  // NON_NEG is 8 bytes in version 5, OFFSET in versions 2 and 5.
  const count = version === 5 ? long : word;
  const offset = version === 1 ? word : long;
  const bytes = (data: Uint8Array) => {
    parts.push(Buffer.from(data), Buffer.alloc(padded(data.length) - data.length));
  };
  const name = (text: string) => {
    const data = Buffer.from(text);
    count(data.length);
    bytes(data);
  };
  const list = <T>(tag: number, items: readonly T[], write: (item: T) => void) => {
    word(items.length === 0 ? 0 : tag);
    count(items.length);
    for (const item of items) write(item);
  };
  const attributes = (items: readonly NcAttribute[]) =>
    list(ATTRIBUTE_TAG, items, ({ name: key, type, bytes: data }) => {
      name(key);
      word(type.code);
      count(data.length / type.itemSize);
      bytes(data);
    });
  const dims = [...lengths.keys()];
  count(record === undefined ? 0 : lengths.get(record)!);
  list(DIMENSION_TAG, dims, (dim) => {
    name(dim);
    count(dim === record ? 0 : lengths.get(dim)!);
  });
  attributes(globals);
  list(VARIABLE_TAG, placed, (each) => {
    name(each.variable.name);
    count(each.dims.length);
    for (const dim of each.dims) count(dims.indexOf(dim));
    attributes(each.attributes);
    word(each.type.code);
    const size = padded(each.byteLength);
    // Readers compute it again; the greatest value stands for what does not fit.
    count(version < 5 ? Math.min(size, 2 ** 32 - 1) : size);
    offset(begins.get(each) ?? 0);
  });
  return Buffer.concat(parts);
}
