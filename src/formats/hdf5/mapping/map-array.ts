import { decodeSteps } from "../../../codec/run-steps.js";
import { ZpublishError } from "../../../errors.js";
import type { JsonObject, JsonValue } from "../../../json/json-value.js";
import { type DataType, parseDataType } from "../../../model/data-type.js";
import { createSteps } from "../../../zarr/plan/codec-steps.js";
import type { FileBlocks } from "../../file-format.js";
import type { FileArray } from "../../file-index.js";
import type { Hdf5Dataset, Hdf5Fill } from "../hdf5-model.js";
import { openHeap, readTexts } from "../make-text-chunk.js";
import { mapAttributes } from "./map-attributes.js";
import { mapFill, textItem } from "./map-fill.js";
import { mapLayout } from "./map-layout.js";
import { type MappedType, mapType } from "./map-type.js";
import type { NetcdfVariable } from "./netcdf-file.js";
import { itemCodecs } from "./stored-codecs.js";
import { textLayout } from "./text-recipe.js";

/**
 * Maps a variable to an array of Zarr, and reads where its chunks are.
 * @param problems Receives a line for each attribute that is left out.
 * @throws ZpublishError `unsupported`, `invalid-metadata` if it cannot be served; `source-unreadable`, `source-changed`
 */
export async function mapArray(
  file: FileBlocks,
  variable: NetcdfVariable,
  problems: string[],
): Promise<FileArray> {
  const { dataset, dims } = variable;
  const type = mapType(dataset.type);
  const dataType = parseDataType(type.dtype);
  // An unlimited dimension may be longer than the variable is.
  const shape = dims.map((dimension) => dimension?.length ?? 0);
  const places = await mapLayout({ file, variable, type, shape });
  const { hasAbsent, ...layout } = type.isText
    ? textLayout(places, shape, await textFill(file, dataset.fill))
    : places;
  let all = mapAttributes(dataset.attributes, problems);
  let mark = Object.hasOwn(all, "_FillValue") ? (all._FillValue as JsonValue) : undefined;
  if (mark !== undefined && dataType.kind === "V") {
    // xarray would compare items with each number of the list that JSON makes of it.
    problems.push(
      'attribute "_FillValue" is left out: JSON has no form for a compound that marks missing values',
    );
    mark = undefined;
    all = without(all, "_FillValue");
  }
  const { fill, isAttribute } = mapFill(dataType, await fillItem(dataset, type, dataType), mark, hasAbsent);
  return {
    name: variable.name,
    shape,
    dtype: type.dtype,
    fill,
    dimNames: dims.map((dimension) => dimension?.name ?? ""),
    attrs: withFlags(isAttribute ? without(all, "_FillValue") : all, type.flags),
    ...layout,
  };
}

/** Reads the text of strings that were never written. */
async function textFill(file: FileBlocks, { item }: Hdf5Fill): Promise<string> {
  if (item === null) return "";
  const [text] = await readTexts(await openHeap(file), item);
  return text ?? "";
}

/** The item that absent chunks hold, in the array's type; null for zeros. */
async function fillItem(
  { fill: { item }, type: stored }: Hdf5Dataset,
  type: MappedType,
  dataType: DataType,
): Promise<Uint8Array | null> {
  // Strings are never absent: `makeChunk` makes every chunk.
  if (type.isText) return textItem("");
  if (item === null) return null;
  if (item.length === 0 || item.length % type.storedSize !== 0) {
    throw new ZpublishError(
      "invalid-metadata",
      `fill value: expected ${type.storedSize} bytes, received ${item.length}`,
    );
  }
  // That of an array type has an item for each element. Zarr has one for all.
  const first = item.subarray(0, type.storedSize);
  for (let at = type.storedSize; at < item.length; at += type.storedSize) {
    if (Buffer.compare(first, item.subarray(at, at + type.storedSize)) !== 0) {
      throw new ZpublishError(
        "unsupported",
        "fill values that differ from element to element are not served",
      );
    }
  }
  const { codecs } = itemCodecs(stored, type);
  const steps = createSteps({ path: "fill value", dataType }, codecs, [], type.storedSize);
  return Uint8Array.from(await decodeSteps(first, steps.reverse(), "fill value"));
}

function without(attrs: JsonObject, name: string): JsonObject {
  return Object.fromEntries(Object.entries(attrs).filter(([key]) => key !== name));
}

/** Adds the names of an enumeration's values, unless the variable has flags of its own. */
function withFlags(attrs: JsonObject, flags: JsonObject): JsonObject {
  const hasOwn = ["flag_values", "flag_masks", "flag_meanings"].some((name) => Object.hasOwn(attrs, name));
  return hasOwn ? attrs : { ...attrs, ...flags };
}
