import { elementCount } from "../model/data-tree.js";
import { encodeFillItem } from "../model/fill-value.js";
import type { ValueBlock, Values } from "../values/values.js";
import type { DatasetWriter, ExportedDataset, ExportedVariable, FileBody } from "./exported-dataset.js";
import {
  bytesOfTexts,
  createColumn,
  createFileBody,
  type FileColumn,
  type FileRows,
  longestText,
} from "./file-body.js";
import {
  NC,
  type NcAttribute,
  type NcType,
  type NcVersion,
  netcdfAttributes,
  netcdfStorage,
} from "./netcdf-types.js";

/** A variable as the file has it. */
interface FileVariable extends FileColumn {
  readonly name: string;
  readonly type: NcType;
  /** Dimensions as the file has them: those of characters included. */
  readonly dims: readonly string[];
  readonly attributes: readonly NcAttribute[];
  /** Bytes of the variable, or of one record of it, without padding. */
  readonly rowBytes: number;
  readonly isRecord: boolean;
}

/** Everything that a header lists. */
interface HeaderLists {
  readonly lengths: ReadonlyMap<string, number>;
  readonly record: string | undefined;
  readonly placed: readonly FileVariable[];
  readonly globals: readonly NcAttribute[];
  /** Places of variables behind the header, by name. */
  readonly begins: ReadonlyMap<string, number>;
}

/** Greatest size of a variable in versions 1 and 2, and of an offset in version 1. */
const MAX_CLASSIC_SIZE = 2 ** 32 - 4;
const MAX_OFFSET = 2 ** 31 - 1;
const DIMENSION_TAG = 10;
const VARIABLE_TAG = 11;
const ATTRIBUTE_TAG = 12;

/**
 * Writes a dataset as NetCDF: in the classic format (version 1 or 2) if it can say everything, else in version 5, which has unsigned and
 * 64-bit integers. A dimension that the dataset may grow along is one of the file if it is the first of every variable that has it.
 * Source: NetCDF Classic Format Specification.
 */
export const writeNetcdf: DatasetWriter = async (dataset, values, signal) => {
  const { variables, snapshot } = dataset;
  const textBytes = await Promise.all(variables.map((each) => longestText(dataset, each, values, signal)));
  const lengths = new Map<string, number>();
  for (const { dims, shape } of variables)
    for (const [axis, dim] of dims.entries()) lengths.set(dim, shape[axis]!);
  const unlimited = snapshot.unlimited?.find((dim) => lengths.has(dim));
  const isFirst = variables.every(({ dims }) => dims.lastIndexOf(unlimited ?? "") <= 0);
  const record = isFirst ? unlimited : undefined;
  const placed = variables.map((variable, index) =>
    placeVariable(dataset, variable, values, textBytes[index]!, lengths, record),
  );
  const globals = netcdfAttributes(dataset.attrs, undefined);
  const records = placed.filter(({ isRecord }) => isRecord);
  const sections = placed.filter((each) => !records.includes(each)).map((each) => rowsOf([each], 1));
  if (record !== undefined) sections.push(rowsOf(records, lengths.get(record)!));
  return layOut({ lengths, record, placed, globals, begins: beginsOf(sections) }, sections);
};

function placeVariable(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  textBytes: number,
  lengths: Map<string, number>,
  record: string | undefined,
): FileVariable {
  const { name, dataType, attrs, shape } = variable;
  const { kind, itemSize } = dataType;
  const { type, charCount, more } = netcdfStorage(variable, textBytes);
  const dims = [...variable.dims];
  if (charCount !== undefined) {
    let dim = `string${charCount}`;
    while ((lengths.get(dim) ?? charCount) !== charCount) dim += "_";
    lengths.set(dim, charCount);
    dims.push(dim);
  }
  const isRecord = record !== undefined && dims[0] === record;
  const itemBytes = type.itemSize * (charCount ?? 1);
  const rowBytes = itemBytes * elementCount(shape.slice(isRecord ? 1 : 0));
  const { _FillValue: fill, ...others } = attrs;
  const attributes = netcdfAttributes(
    { ...("iuf".includes(kind) ? attrs : others), ...more },
    charCount === undefined && kind !== "b" ? type : undefined,
  );
  const form =
    kind === "U" || kind === "O" ? bytesOfTexts : kind === "f" && itemSize === 2 ? wideFloats : "big";
  const column = createColumn(dataset, variable, values, itemBytes, form);
  return { ...column, name, type, dims, attributes, rowBytes, isRecord };
}

/** Places variables in a row, each padded to 4 bytes, but for a single one with records. */
function rowsOf(variables: readonly FileVariable[], rowCount: number): FileRows<FileVariable> {
  const [{ isRecord } = { isRecord: false }, ...others] = variables;
  let rowLength = 0;
  const columns = variables.map((each) => {
    const at = rowLength;
    rowLength += isRecord && others.length === 0 ? each.rowBytes : padded(each.rowBytes);
    return { ...each, at };
  });
  return { rowCount, rowLength, columns };
}

function beginsOf(sections: readonly FileRows<FileVariable>[]): Map<string, number> {
  const begins = new Map<string, number>();
  let begin = 0;
  for (const { columns, rowCount, rowLength } of sections) {
    for (const { name, at } of columns) begins.set(name, begin + at);
    begin += rowCount * rowLength;
  }
  return begins;
}

/** Makes the file in the first version that has all types, and whose sizes and offsets are large enough. */
function layOut(lists: HeaderLists, sections: readonly FileRows[]): FileBody {
  const { placed, globals, begins } = lists;
  const typed = [...globals, ...placed, ...placed.flatMap(({ attributes }) => attributes)];
  const needs64 = typed.some(({ type }) => type.code > NC.double.code);
  const isLarge = placed.some(({ rowBytes }) => rowBytes > MAX_CLASSIC_SIZE);
  const { length } = writeHeader(1, lists, 0);
  const isFar = length + Math.max(0, ...begins.values()) > MAX_OFFSET;
  const version = needs64 || isLarge ? 5 : isFar ? 2 : 1;
  const header = writeHeader(version, lists, writeHeader(version, lists, 0).length);
  return createFileBody(header, sections);
}

/** Widens half floats to floats, big-endian. */
function* wideFloats({ values = [] }: ValueBlock): Generator<Uint8Array> {
  const view = new DataView(new ArrayBuffer(4 * values.length));
  for (let i = 0; i < values.length; i++) view.setFloat32(4 * i, values[i] as number);
  yield new Uint8Array(view.buffer);
}

function padded(byteLength: number): number {
  return Math.ceil(byteLength / 4) * 4;
}

/** Writes the header. @param length Its own length, which offsets begin at. */
function writeHeader(
  version: NcVersion,
  { lengths, record, placed, globals, begins }: HeaderLists,
  length: number,
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
    list(ATTRIBUTE_TAG, items, ({ name: key, type, values }) => {
      name(key);
      word(type.code);
      const items =
        typeof values === "string" ? [] : values.map((each) => encodeFillItem(each, type.dataType));
      const data = typeof values === "string" ? Buffer.from(values) : Buffer.concat(items);
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
    name(each.name);
    count(each.dims.length);
    for (const dim of each.dims) count(dims.indexOf(dim));
    attributes(each.attributes);
    word(each.type.code);
    const size = padded(each.rowBytes);
    // Readers compute it again; the greatest value stands for what does not fit.
    count(version < 5 ? Math.min(size, 2 ** 32 - 1) : size);
    offset(length + begins.get(each.name)!);
  });
  return Buffer.concat(parts);
}
