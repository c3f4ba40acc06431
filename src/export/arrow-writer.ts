import { Builder } from "flatbuffers";
import { wrongParameter } from "../http/query.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import type { ValueBlock } from "../values/values.js";
import type { DatasetWriter } from "./exported-dataset.js";
import { type TableColumn, type TableRows, tableColumns, tableRows, withDatetimes } from "./table.js";

type ArrowColumn = Pick<TableColumn, "name" | "dataType">;

/** Type of a column in Arrow's Schema.fbs. */
interface ArrowType {
  /** Number in the union of types. */
  readonly id: number;
  /** Writes the fields of the type. */
  readonly write: (builder: Builder) => void;
  /** Makes the buffers of a column behind its validity bitmap, which is the first. */
  readonly buffers: (block: ValueBlock) => readonly Uint8Array[];
}

const METADATA_V5 = 4;
const SCHEMA_HEADER = 1;
const RECORD_BATCH_HEADER = 3;
const CONTINUATION = 0xffff_ffff;
const TIME_UNITS = ["s", "ms", "us", "ns"];
/** Seconds of units that Arrow does not have. */
const SECONDS: Readonly<Record<string, bigint>> = { D: 86_400n, h: 3_600n, m: 60n };

/** Writes a dataset as a table in Arrow's format of streams. */
export const writeArrow: DatasetWriter = async (dataset, values, signal) => {
  const texts = tableColumns(dataset);
  // Columns of a type that Arrow does not have are refused before anything is read.
  writeArrowStream(texts, (async function* () {})());
  const columns = await Promise.all(texts.map((each) => withDatetimes(dataset, each, values, signal)));
  return {
    pieces: (_, wanted) => writeArrowStream(columns, tableRows(dataset, columns, values, wanted)),
  };
};

/**
 * Writes a table as an IPC stream (Apache Arrow columnar format 1.0, metadata version 5): schema, record batches, end.
 * Times that are NaT are null; NaN stays what it is.
 * @throws ZpublishError `invalid-query`, before any row is asked for, if a column has a type that Arrow does not have.
 */
export function writeArrowStream(
  columns: readonly ArrowColumn[],
  rows: AsyncIterable<TableRows>,
): AsyncIterable<Uint8Array> {
  const types = columns.map(arrowTypeOf);
  return (async function* () {
    yield schemaMessage(columns, types);
    for await (const block of rows) yield* recordBatch(block, types);
    yield new Uint8Array(Uint32Array.of(CONTINUATION, 0).buffer);
  })();
}

function arrowTypeOf({ name, dataType }: ArrowColumn): ArrowType {
  const { kind, itemSize, timeUnit } = dataType;
  const fixed = ({ bytes }: ValueBlock) => [bytes];
  const none = () => {};
  if (kind === "b")
    return { id: 6, write: none, buffers: ({ bytes }) => [bitmap(bytes.length, (i) => bytes[i] !== 0)] };
  if (kind === "i" || kind === "u") {
    const write = (builder: Builder) => {
      builder.addFieldInt32(0, 8 * itemSize, 0);
      builder.addFieldInt8(1, kind === "i" ? 1 : 0, 0);
    };
    return { id: 2, write, buffers: fixed };
  }
  const short = (value: number, byDefault: number) => (builder: Builder) =>
    builder.addFieldInt16(0, value, byDefault);
  // HALF, SINGLE, DOUBLE.
  if (kind === "f" && itemSize <= 8)
    return { id: 3, write: short(Math.log2(itemSize) - 1, 0), buffers: fixed };
  if (kind === "S" || kind === "U" || kind === "O") return { id: 5, write: none, buffers: textBuffers };
  if ((kind === "M" || kind === "m") && timeUnit !== undefined) {
    const factor = SECONDS[timeUnit];
    const unit = TIME_UNITS.indexOf(factor === undefined ? timeUnit : "s");
    const buffers = factor === undefined ? fixed : (block: ValueBlock) => [inSeconds(block, factor)];
    // The default of a duration's unit is the millisecond, of a timestamp's the second.
    if (unit >= 0) return { id: kind === "M" ? 10 : 18, write: short(unit, kind === "M" ? 0 : 1), buffers };
  }
  const expected = `a type that Arrow has; variable '${name}' is ${dataType.numpyName}`;
  throw wrongParameter("f", "unsupported_type", expected, "arrow");
}

function inSeconds({ values }: ValueBlock, factor: bigint): Uint8Array {
  const seconds = BigInt64Array.from(values as BigInt64Array, (each) =>
    each === NOT_A_TIME ? NOT_A_TIME : each * factor,
  );
  return new Uint8Array(seconds.buffer);
}

/** Makes the offsets of texts, and their bytes. */
function textBuffers({ values }: ValueBlock): Uint8Array[] {
  const texts = values as readonly string[];
  const encoded = texts.map((text) => Buffer.from(text));
  const offsets = new Int32Array(texts.length + 1);
  for (const [index, { length }] of encoded.entries()) offsets[index + 1] = offsets[index]! + length;
  return [new Uint8Array(offsets.buffer), Buffer.concat(encoded)];
}

/** Makes a bitmap, least significant bit first. */
function bitmap(length: number, isSet: (index: number) => boolean): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(length / 8));
  for (let i = 0; i < length; i++) if (isSet(i)) bytes[i >> 3]! |= 1 << (i & 7);
  return bytes;
}

function schemaMessage(columns: readonly ArrowColumn[], types: readonly ArrowType[]): Uint8Array {
  const builder = new Builder(1024);
  const fields = columns.map(({ name }, index) => {
    const { id, write } = types[index]!;
    const title = builder.createString(name);
    builder.startObject(2);
    write(builder);
    const type = builder.endObject();
    const children = offsetVector(builder, []);
    builder.startObject(7);
    builder.addFieldOffset(0, title, 0);
    builder.addFieldInt8(1, 1, 0);
    builder.addFieldInt8(2, id, 0);
    builder.addFieldOffset(3, type, 0);
    builder.addFieldOffset(5, children, 0);
    return builder.endObject();
  });
  const list = offsetVector(builder, fields);
  builder.startObject(4);
  builder.addFieldOffset(1, list, 0);
  return message(builder, SCHEMA_HEADER, builder.endObject(), 0);
}

function offsetVector(builder: Builder, offsets: readonly number[]): number {
  builder.startVector(4, offsets.length, 4);
  for (const offset of offsets.toReversed()) builder.addOffset(offset);
  return builder.endVector();
}

function* recordBatch({ rowCount, columns }: TableRows, types: readonly ArrowType[]): Generator<Uint8Array> {
  const buffers: Uint8Array[] = [];
  const nodes: [bigint, bigint][] = [];
  for (const [index, block] of columns.entries()) {
    const missing = missingOf(block);
    const isValid = bitmap(missing === undefined ? 0 : rowCount, (row) => missing?.[row] === 0);
    buffers.push(isValid, ...types[index]!.buffers(block));
    nodes.push([BigInt(rowCount), BigInt(missing?.reduce((sum, each) => sum + each, 0) ?? 0)]);
  }
  let offset = 0;
  const places = buffers.map(({ length }): [bigint, bigint] => {
    const begin = offset;
    offset += padded(length);
    return [BigInt(begin), BigInt(length)];
  });
  const builder = new Builder(1024);
  const placeList = pairVector(builder, places);
  const nodeList = pairVector(builder, nodes);
  builder.startObject(4);
  builder.addFieldInt64(0, BigInt(rowCount), 0n);
  builder.addFieldOffset(1, nodeList, 0);
  builder.addFieldOffset(2, placeList, 0);
  yield message(builder, RECORD_BATCH_HEADER, builder.endObject(), offset);
  for (const bytes of buffers) {
    if (bytes.length > 0) yield bytes;
    if (padded(bytes.length) > bytes.length) yield new Uint8Array(padded(bytes.length) - bytes.length);
  }
}

/** Tells which dates are NaT: 1 for those, else 0; undefined if none is. */
function missingOf({ dataType, values }: ValueBlock): Uint8Array | undefined {
  if (dataType.kind !== "M" && dataType.kind !== "m") return undefined;
  const missing = Uint8Array.from(values as BigInt64Array as ArrayLike<unknown>, (each) =>
    each === NOT_A_TIME ? 1 : 0,
  );
  return missing.includes(1) ? missing : undefined;
}

/** Writes a vector of structs of two longs. */
function pairVector(builder: Builder, pairs: readonly (readonly [bigint, bigint])[]): number {
  builder.startVector(16, pairs.length, 8);
  for (const [first, second] of pairs.toReversed()) {
    builder.prep(8, 16);
    builder.writeInt64(second);
    builder.writeInt64(first);
  }
  return builder.endVector();
}

/** Writes a message, which is followed by a body: continuation mark, length, metadata; a multiple of 8 bytes in all. */
function message(builder: Builder, headerType: number, header: number, bodyLength: number): Uint8Array {
  builder.startObject(5);
  builder.addFieldInt16(0, METADATA_V5, 0);
  builder.addFieldInt8(1, headerType, 0);
  builder.addFieldOffset(2, header, 0);
  builder.addFieldInt64(3, BigInt(bodyLength), 0n);
  builder.finish(builder.endObject());
  const metadata = builder.asUint8Array();
  const bytes = new Uint8Array(8 + padded(metadata.length));
  const view = new DataView(bytes.buffer);
  view.setUint32(0, CONTINUATION, true);
  view.setUint32(4, padded(metadata.length), true);
  bytes.set(metadata, 8);
  return bytes;
}

function padded(byteLength: number): number {
  return Math.ceil(byteLength / 8) * 8;
}
