import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { JsonValue } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";

/** A type of the classic formats. Items are big-endian. */
export interface Netcdf3Type {
  /** As in a v2 `.zarray`. */
  readonly dtype: string;
  readonly itemSize: number;
  /** Reads an item; undefined for characters, whose attributes are texts. */
  readonly read?: (view: DataView, offset: number) => JsonValue;
}

/** Types by their number (NetCDF Classic Format Specification, `nc_type`); those from 7 on came with CDF-5. */
export const NETCDF3_TYPES: ReadonlyMap<number, Netcdf3Type> = new Map<number, Netcdf3Type>([
  [1, { dtype: "|i1", itemSize: 1, read: (view, offset) => view.getInt8(offset) }],
  [2, { dtype: "|S1", itemSize: 1 }],
  [3, { dtype: ">i2", itemSize: 2, read: (view, offset) => view.getInt16(offset) }],
  [4, { dtype: ">i4", itemSize: 4, read: (view, offset) => view.getInt32(offset) }],
  [5, { dtype: ">f4", itemSize: 4, read: (view, offset) => float(view.getFloat32(offset)) }],
  [6, { dtype: ">f8", itemSize: 8, read: (view, offset) => float(view.getFloat64(offset)) }],
  [7, { dtype: "|u1", itemSize: 1, read: (view, offset) => view.getUint8(offset) }],
  [8, { dtype: ">u2", itemSize: 2, read: (view, offset) => view.getUint16(offset) }],
  [9, { dtype: ">u4", itemSize: 4, read: (view, offset) => view.getUint32(offset) }],
  [10, { dtype: ">i8", itemSize: 8, read: (view, offset) => integer(view.getBigInt64(offset)) }],
  [11, { dtype: ">u8", itemSize: 8, read: (view, offset) => integer(view.getBigUint64(offset)) }],
]);

/** Items or bytes that are converted in one step, which takes a fraction of a millisecond. */
const STEP_ITEMS = 1024;
const STEP_BYTES = 64 * 1024;

/**
 * Converts the values of an attribute in steps, as netCDF4-python does: characters to a text, one number to itself, several or none
 * to a list.
 */
export function* valuesSteps(type: Netcdf3Type, bytes: Uint8Array): CooperativeTask<JsonValue> {
  const { read, itemSize } = type;
  if (read === undefined) return yield* textSteps(bytes);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length === itemSize) return read(view, 0);
  const values: JsonValue[] = [];
  for (let offset = 0; offset < bytes.length; offset += itemSize) {
    if (values.length % STEP_ITEMS === 0) yield;
    values.push(read(view, offset));
  }
  return values;
}

/** Decodes a text in steps. Null characters are left out wherever they are, as netCDF4-python does. */
function* textSteps(bytes: Uint8Array): CooperativeTask<string> {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  let text = "";
  for (let offset = 0; offset < bytes.length; offset += STEP_BYTES) {
    yield;
    text += decoder.decode(bytes.subarray(offset, offset + STEP_BYTES), { stream: true });
  }
  return (text + decoder.decode()).replaceAll("\0", "");
}

/** Returns a float that stays one for Python, even if it is integral. */
function float(value: number): JsonValue {
  return Number.isFinite(value) ? pythonFloat(value) : value;
}

function integer(value: bigint): JsonValue {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}
