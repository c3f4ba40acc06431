import { decodeSteps } from "../../codec/run-steps.js";
import { isDamage, ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { mapInLots } from "../../event-loop/maybe-promise.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { elementCount, gridShapeOf } from "../../model/data-tree.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { encodeFillItem, fillItemToJson } from "../../model/fill-value.js";
import { DEFAULT_COMPRESSOR } from "../../zarr/codec-step.js";
import { createSteps } from "../../zarr/plan/codec-steps.js";
import type { StoredFill } from "../../zarr/stored-array.js";
import { comparePaths, type Refusal } from "../../zarr/stored-tree.js";
import type { FileBlocks, FileFormat } from "../file-format.js";
import {
  cutChunks,
  type FileArray,
  type FileGroup,
  type FileIndex,
  NO_CHUNKS,
  placeItems,
} from "../file-index.js";
import { readChunkIndex } from "./chunk-index.js";
import type { Hdf5Chunks } from "./chunk-list.js";
import { innerShapeOf, type MappedType, mapType } from "./datatypes.js";
import { itemCodecs, storedCodecs } from "./filters.js";
import { readHdf5 } from "./groups.js";
import type { Hdf5ChunkedLayout, Hdf5Dataset, Hdf5File } from "./hdf5-model.js";
import {
  axisSteps,
  mapAttributes,
  type NetcdfGroup,
  type NetcdfVariable,
  netcdfFileSteps,
  pathOf,
} from "./netcdf.js";
import { isHdf5 } from "./objects.js";
import { makeTextChunk, openHeap, readHeapTexts, type TextRecipe } from "./text.js";

/** HDF5, and NetCDF-4, which is HDF5 with conventions about dimensions. */
export const hdf5Format: FileFormat = {
  id: "hdf5",
  revision: 4,
  recognizes: isHdf5,
  readIndex: async (file) => mapFile(file, await readHdf5(file)),
  makeChunk: (file, recipe, chunkCoords) => makeTextChunk(file, recipe as TextRecipe, chunkCoords),
};

/** Variables whose chunks are looked for at a time: those of remote files wait for each other's blocks otherwise. */
const AT_ONCE = 16;

/** The input of a mapping, and what it says besides the arrays. */
interface Mapping {
  readonly file: FileBlocks;
  readonly refused: Refusal[];
  readonly warnings: string[];
}

/** Maps a file to groups and arrays of Zarr, by netCDF's conventions if it follows them. */
async function mapFile(file: FileBlocks, model: Hdf5File): Promise<FileIndex> {
  const mapping: Mapping = { file, refused: [...model.refused], warnings: [...model.warnings] };
  const netcdf = await runCooperatively(netcdfFileSteps(model));
  mapping.warnings.push(...(await runCooperatively(axisSteps(netcdf))));
  const groups: FileGroup[] = [];
  for (const group of netcdf.groups) groups.push(await mapGroup(mapping, group));
  groups.sort((a, b) => comparePaths(a.path, b.path));
  const { refused, warnings } = mapping;
  const dims = netcdf.groups.flatMap(({ variables }) => variables.flatMap((variable) => variable.dims));
  const unlimited = new Set(dims.flatMap((dim) => (dim?.isUnlimited === true ? dim.name : [])));
  return { format: formatName(netcdf.groups), unlimited: [...unlimited], groups, refused, warnings };
}

async function mapGroup(
  mapping: Mapping,
  { group, path: slashed, variables }: NetcdfGroup,
): Promise<FileGroup> {
  const path = slashed.slice(1);
  for (const [name, { shape }] of group.datasets) {
    const at = path === "" ? name : `${path}/${name}`;
    if (shape === null)
      mapping.refused.push({ path: at, reason: "a dataset without items (null dataspace)" });
  }
  const problems: string[] = [];
  const attrs = mapAttributes(group.attributes, problems);
  warn(mapping, path, problems);
  const mapped = await mapInLots(variables, AT_ONCE, (variable) => mapVariable(mapping, variable));
  const arrays = mapped.filter((array) => array !== undefined);
  arrays.sort((a, b) => (a.name < b.name ? -1 : 1));
  return { path: slashed, attrs, arrays };
}

/** Maps a variable; undefined if it is refused. */
async function mapVariable(mapping: Mapping, variable: NetcdfVariable): Promise<FileArray | undefined> {
  const path = pathOf(variable);
  try {
    const problems: string[] = [];
    const array = await mapArray(mapping.file, variable, problems);
    warn(mapping, path, problems);
    return array;
  } catch (error) {
    if (!(error instanceof ZpublishError && isDamage(error))) throw error;
    mapping.refused.push({ path, reason: error.message });
    return undefined;
  }
}

function warn({ warnings }: Mapping, path: string, problems: readonly string[]): void {
  for (const problem of problems) warnings.push(`'${path}': ${problem}`);
}

/** The format as people say it. */
function formatName(groups: readonly NetcdfGroup[]): string {
  const hasIds = ({ group }: NetcdfGroup): boolean =>
    [...group.datasets.values()].some(({ attributes }) => attributes.has("_Netcdf4Dimid"));
  const isNetcdf = groups[0]?.group.attributes.has("_NCProperties") === true || groups.some(hasIds);
  return isNetcdf ? "NetCDF-4" : "HDF5";
}

/**
 * Maps a variable to an array of Zarr, and reads where its chunks are.
 * @param problems Receives a line for each attribute that is left out.
 */
async function mapArray(file: FileBlocks, variable: NetcdfVariable, problems: string[]): Promise<FileArray> {
  const { dataset, dims } = variable;
  const type = mapType(dataset.type);
  const dataType = parseDataType(type.dtype);
  // An unlimited dimension may be longer than the variable is.
  const shape = dims.map((dimension) => dimension?.length ?? 0);
  const places = await mapLayout(file, variable, type, shape);
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
async function textFill(file: FileBlocks, item: Uint8Array | null): Promise<string> {
  if (item === null) return "";
  const [text] = await readHeapTexts(await openHeap(file), item);
  return text ?? "";
}

/** The item that absent chunks hold, in the array's type; null for zeros. */
async function fillItem(
  { fill: item, type: stored }: Hdf5Dataset,
  type: MappedType,
  dataType: DataType,
): Promise<Uint8Array | null> {
  // Strings are never absent: `makeChunk` makes every chunk.
  if (type.isText) return textItem("");
  if (item === null) return null;
  if (item.length === 0 || item.length % type.storedSize !== 0) {
    throw invalid(`fill value: expected ${type.storedSize} bytes, received ${item.length}`);
  }
  // That of an array type has an item for each element. Zarr has one for all.
  const first = item.subarray(0, type.storedSize);
  for (let at = type.storedSize; at < item.length; at += type.storedSize) {
    if (Buffer.compare(first, item.subarray(at, at + type.storedSize)) !== 0) {
      throw unsupported("fill values that differ from element to element are not served");
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

/**
 * Keeps three fill values apart: the one of absent chunks (HDF5's), the one of missing values (`_FillValue`), and `fill_value` of
 * the `.zarray`, which xarray takes for `_FillValue`.
 *
 * The attribute is served as `fill_value` even if absent chunks have other items: the server fills them then, and no client
 * applies `fill_value` itself. In the attributes it would come as a JSON text if it is NaN or bytes.
 * @param item What absent chunks hold, in the array's type; null for zeros.
 * @param attribute Value of `_FillValue`; undefined if there is none.
 * @returns `isAttribute` is true if `_FillValue` is no attribute of the array: it is `fill.served`, or it is NaN among integers.
 */
export function mapFill(
  type: DataType,
  item: Uint8Array | null,
  attribute: JsonValue | undefined,
  hasAbsent: boolean,
): { readonly fill: StoredFill; readonly isAttribute: boolean } {
  const marked = attribute === undefined ? undefined : encodeMark(attribute, type);
  if (marked === undefined) {
    // As a JSON text, xarray would take it for a mark, and decode to another type than it does from the file.
    const isNothing = (type.kind === "i" || type.kind === "u") && Number.isNaN(attribute);
    return { fill: { served: null, item, absentIsServed: !hasAbsent }, isAttribute: isNothing };
  }
  const served = type.kind === "O" ? (attribute as JsonValue) : fillItemToJson(marked, type);
  const isSame = sameItem(marked, item, type);
  return {
    fill: { served, item: hasAbsent ? item : marked, absentIsServed: isSame || !hasAbsent },
    isAttribute: true,
  };
}

/** Encodes one text as an item of a variable-length type (`StoredFill.item`). */
export function textItem(text: string): Uint8Array {
  const bytes = Buffer.from(text);
  const item = new Uint8Array(4 + bytes.length);
  new DataView(item.buffer).setUint32(0, bytes.length, true);
  item.set(bytes, 4);
  return item;
}

/** Encodes `_FillValue` as an item; undefined if the type cannot hold the very value. */
function encodeMark(value: JsonValue, type: DataType): Uint8Array | undefined {
  if (type.kind === "O") return typeof value === "string" ? textItem(value) : undefined;
  if (type.kind === "S") {
    if (typeof value !== "string" || Buffer.byteLength(value) > type.itemSize) return undefined;
    const item = new Uint8Array(type.itemSize);
    item.set(Buffer.from(value));
    return item;
  }
  // Texts stand for NaN and infinities in a fill value, but an attribute that is a text is no number.
  if (type.kind === "V" || (typeof value === "string") !== (type.kind === "U")) return undefined;
  const number = typeof value === "number" && !Number.isFinite(value) ? String(value) : value;
  try {
    const item = encodeFillItem(number, type);
    const back = fillItemToJson(item, type);
    return sameNumber(back, number) ? item : undefined;
  } catch (error) {
    if (error instanceof ZpublishError) return undefined;
    throw error;
  }
}

/** True if rounding to the type has not changed a value. */
function sameNumber(a: JsonValue, b: JsonValue): boolean {
  if (Array.isArray(a) && Array.isArray(b)) return a.every((item, index) => sameNumber(item, b[index]));
  return typeof a === "object" || typeof b === "object" ? Number(a) === Number(b) : String(a) === String(b);
}

/** True if two items are the same; any NaN is the same as another. */
function sameItem(a: Uint8Array, b: Uint8Array | null, type: DataType): boolean {
  const other = b ?? new Uint8Array(a.length);
  if (Buffer.compare(a, other) === 0) return true;
  return type.kind === "f" && fillItemToJson(a, type) === "NaN" && fillItemToJson(other, type) === "NaN";
}

/** The parts of an array that follow from how its items are stored. */
type MappedLayout = Pick<
  FileArray,
  "chunkShape" | "chunks" | "codecs" | "compressorCount" | "variants" | "servedFilters" | "servedCompressor"
> & {
  /** True if there is a chunk that is not stored. */
  readonly hasAbsent: boolean;
};

/** Maps the layout of a dataset. @param shape As served: at least that of the variable. */
async function mapLayout(
  file: FileBlocks,
  variable: NetcdfVariable,
  type: MappedType,
  shape: readonly number[],
): Promise<MappedLayout> {
  const { layout } = variable.dataset;
  if (layout.kind === "unsupported") throw unsupported(layout.reason);
  if (layout.kind === "chunked") return await mapChunked(file, variable, type, shape, layout);
  if (shape.join() !== variable.shape.join()) {
    const received = `${shape.join()}, and the data is not chunked`;
    throw unsupported(`expected dimensions of lengths ${variable.shape.join()}, received ${received}`);
  }
  const { byteLengths: _, ...items } = itemCodecs(variable.dataset.type, type);
  const byteLength = elementCount(shape) * type.storedSize;
  const longShape = shape.map((length) => Math.max(1, length));
  const { chunkShape } = cutChunks(longShape, type.storedSize, true);
  if (byteLength === 0) return { ...items, chunkShape, chunks: NO_CHUNKS, hasAbsent: false };
  if (layout.kind === "compact") {
    checkLength(byteLength, layout.bytes.length);
    const bytes = Uint8Array.from(layout.bytes.subarray(0, byteLength));
    return { ...items, chunkShape: shape, chunks: { kind: "inline", bytes }, hasAbsent: false };
  }
  if (layout.address === null) return { ...items, chunkShape, chunks: NO_CHUNKS, hasAbsent: true };
  checkLength(byteLength, layout.byteLength);
  checkLength(layout.address + byteLength, file.byteLength);
  const placed = { begin: layout.address, shape, itemSize: type.storedSize };
  return { ...items, ...placeItems(placed, true), hasAbsent: false };
}

async function mapChunked(
  file: FileBlocks,
  variable: NetcdfVariable,
  type: MappedType,
  shape: readonly number[],
  layout: Hdf5ChunkedLayout,
): Promise<MappedLayout> {
  const { dataset } = variable;
  const inner = innerShapeOf(dataset.type);
  const itemSize = elementCount(inner) * type.storedSize;
  if (layout.itemSize !== itemSize) {
    throw invalid(`chunks: expected items of ${itemSize} bytes, received ${layout.itemSize}`);
  }
  const own = dataset.shape ?? [];
  const { filters, maxShape } = dataset;
  const found = await readChunkIndex(file, layout, own, maxShape, filters.length);
  const places = await extendGrid(found, layout.chunkShape, own, shape.slice(0, own.length));
  const chunkShape = [...layout.chunkShape, ...inner];
  const byteLength = elementCount(chunkShape) * type.storedSize;
  const stored = storedCodecs(filters, dataset.type, type, byteLength, places);
  const { byteLengths, chunkVariants: variants, ...codecs } = stored;
  const { numbers, offsets } = places;
  return {
    ...codecs,
    chunkShape,
    chunks: {
      kind: "listed",
      offsets,
      byteLengths,
      ...(numbers && { numbers }),
      ...(variants && { variants }),
    },
    hasAbsent: hasAbsentChunks(places, shape, chunkShape),
  };
}

function checkLength(expected: number, received: number): void {
  if (received >= expected) return;
  throw invalid(
    `data: expected at least ${expected} bytes, received ${received}: the file is cut short or damaged`,
  );
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}

function unsupported(message: string): ZpublishError {
  return new ZpublishError("unsupported", message);
}

/**
 * Numbers chunks in the grid of a longer array: a variable may have fewer steps along an unlimited dimension than others, and netCDF
 * fills the rest.
 */
export async function extendGrid(
  chunks: Hdf5Chunks,
  chunkShape: readonly number[],
  from: readonly number[],
  to: readonly number[],
): Promise<Hdf5Chunks> {
  const fromGrid = gridShapeOf(from, chunkShape);
  const toGrid = gridShapeOf(to, chunkShape);
  if (fromGrid.join() === toGrid.join()) return chunks;
  return { ...chunks, numbers: await runCooperatively(numberSteps(chunks, fromGrid, toGrid)) };
}

function* numberSteps(
  { numbers, offsets }: Hdf5Chunks,
  from: readonly number[],
  to: readonly number[],
): CooperativeTask<Float64Array> {
  const renumbered = new Float64Array(offsets.length);
  for (let index = 0; index < offsets.length; index++) {
    if (index % 4096 === 0) yield;
    let rest = numbers?.[index] ?? index;
    let number = 0;
    let stride = 1;
    for (let axis = from.length - 1; axis >= 0; axis--) {
      const length = from[axis]!;
      number += (rest % length) * stride;
      rest = Math.floor(rest / length);
      stride *= to[axis]!;
    }
    renumbered[index] = number;
  }
  return renumbered;
}

/** True if a grid has a chunk that is not stored. */
export function hasAbsentChunks(
  { numbers, offsets }: Pick<Hdf5Chunks, "numbers" | "offsets">,
  shape: readonly number[],
  chunkShape: readonly number[],
): boolean {
  const count = elementCount(gridShapeOf(shape, chunkShape));
  return (numbers !== undefined && offsets.length < count) || offsets.includes(-1);
}

/**
 * Turns the layout of references into one whose chunks are made of the strings that they lead to.
 * @param layout That of the references: items of 16 bytes.
 */
function textLayout(layout: MappedLayout, shape: readonly number[], fill: string): MappedLayout {
  const { chunkShape, chunks, codecs, variants = [] } = layout;
  const recipe: TextRecipe = { shape, chunkShape, places: chunks, codecs: [codecs, ...variants], fill };
  return {
    chunkShape,
    chunks: { kind: "made", recipe },
    codecs: [{ id: "vlen-utf8" }],
    compressorCount: 0,
    servedCompressor: { ...DEFAULT_COMPRESSOR, shuffle: 0 },
    // Strings that were never written are made, too.
    hasAbsent: false,
  };
}
