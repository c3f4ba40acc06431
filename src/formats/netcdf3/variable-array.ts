import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { type JsonObject, type JsonValue, setEntry } from "../../json/json-value.js";
import { parseDataType } from "../../model/data-type.js";
import { fillItemToJson } from "../../model/fill-value.js";
import { type FileArray, type PlacedItems, placeItems } from "../file-index.js";
import { valuesSteps } from "./netcdf3-type.js";
import { placeRecords } from "./place-records.js";
import type { Netcdf3Attribute, Netcdf3Variable } from "./read-header.js";
import { hasRecords, type RecordLayout } from "./record-layout.js";

const FILL_ATTRIBUTE = "_FillValue";

/** Makes the array of a variable in steps. Characters stay `|S1`, with the axis of a string's characters. */
export function* variableArraySteps(
  variable: Netcdf3Variable,
  records: RecordLayout,
): CooperativeTask<FileArray> {
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
export function* attributesSteps(attributes: readonly Netcdf3Attribute[]): CooperativeTask<JsonObject> {
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
