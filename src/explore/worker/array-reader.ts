import * as zarr from "zarrita";
import { missingMarkOf } from "../../cf/image-data.js";
import { packingOf, roundedPacking } from "../../cf/packing.js";
import { itemValues } from "../../codec/items/item-values.js";
import { messageOf } from "../../errors.js";
import { isJsonArray, isJsonObject, type JsonObject, type JsonValue } from "../../json/json-value.js";
import { parseJson } from "../../json/parse-json.js";
import { elementCount } from "../../model/data-tree.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { floatOf } from "../../model/fill-value.js";
import type { LevelDescription, PictureAxes, ReadingCost, VariableDescription } from "../protocol.js";
import { fetchBytes, ReadFailure } from "./chunk-queue.js";
import { registerCodecs } from "./codecs/codec-registry.js";
import { type ReadableDocument, readableDocument } from "./readable-document.js";

/** Stored numbers of a chunk. */
export type Numbers = zarr.TypedArray<Exclude<zarr.NumberDataType, "float16">>;

/** A decoded chunk, laid out by the array's strides. */
export interface ChunkValues {
  /** Stored numbers: 64-bit integers rounded, complex numbers as their absolute values; undefined if it holds texts. */
  readonly numbers: Numbers | undefined;
  readonly texts: readonly string[] | undefined;
  /** 64-bit integers and complex numbers (two each) as they are, for texts. */
  readonly exact: BigInt64Array | BigUint64Array | Float32Array | Float64Array | undefined;
  readonly byteLength: number;
}

/** Longest array that is read as a whole: a longer axis counts cells, and a larger curvilinear grid is no map. */
export const MAX_WHOLE_VALUES = 2 ** 22;

/** Reads the chunks of one array. */
export interface ArrayReader {
  /** Reads a chunk; undefined if it is absent, so that all its values are missing. @throws ReadFailure, or the signal's reason */
  readChunk(coords: readonly number[], signal?: AbortSignal): Promise<ChunkValues | undefined>;
}

interface ArrayLocation {
  /** Absolute URL, with a slash at its end. */
  readonly url: string;
  readonly name: string;
  readonly token: string | undefined;
}

/** Options of zarrita's reading of one chunk, which it passes on to the store as they are. */
interface Reading {
  readonly coords?: readonly number[];
  readonly signal?: AbortSignal | undefined;
}

/** Thrown to zarrita for absent chunks, which it would make of fill values that it cannot always convert. */
const ABSENT = new Error("the chunk is absent");

registerCodecs();

/** Opens an array for reading. */
export async function openArray(location: ArrayLocation, document: ReadableDocument): Promise<ArrayReader> {
  const { url, name, token } = location;
  const chunkKeyOf = (coords: readonly number[]) => coords.join(document.separator) || "0";
  const store: zarr.AsyncReadable = {
    async get(key, reading: Reading = {}) {
      if (key === "/.zarray") return new TextEncoder().encode(document.zarray);
      const { coords = [], signal } = reading;
      const chunkKey = chunkKeyOf(coords);
      const bytes = await fetchBytes(url + chunkKey, { token, what: `chunk ${chunkKey} of ${name}`, signal });
      if (bytes === undefined) throw ABSENT;
      return bytes;
    },
  };
  const array = await zarr.open.v2(zarr.root(store), { kind: "array", attrs: false });
  const rank = document.shape.length + (document.numbersPerValue > 1 ? 1 : 0);
  const count = elementCount(document.chunkShape);
  const filled = filledChunk(document, count);
  return {
    async readChunk(coords, signal) {
      const reading: Reading = { coords, signal };
      const indices = rank > coords.length ? [...coords, 0] : [...coords];
      try {
        const { data } = await array.getChunk(indices, reading as zarr.GetOptions);
        signal?.throwIfAborted();
        return decodedChunk(data, document, count);
      } catch (error) {
        signal?.throwIfAborted();
        if (error === ABSENT) return filled;
        if (error instanceof ReadFailure) throw error;
        const reason = messageOf(error instanceof Error && error.cause !== undefined ? error.cause : error);
        const sentence = `Chunk ${chunkKeyOf(coords)} of ${name} could not be decoded: ${reason}.`;
        throw new ReadFailure(sentence, { cause: error });
      }
    },
  };
}

/** Returns what absent chunks hold; undefined if that is missing data. Only images have a fill value that is none. */
function filledChunk({ packing, dataType, fill }: ReadableDocument, count: number): ChunkValues | undefined {
  if (dataType.kind !== "u" || dataType.itemSize > 2 || Number.isNaN(fill) || packing.missing.includes(fill))
    return undefined;
  const numbers = new (dataType.itemSize === 1 ? Uint8Array : Uint16Array)(count).fill(fill);
  return { numbers, texts: undefined, exact: undefined, byteLength: numbers.byteLength };
}

function decodedChunk(data: unknown, document: ReadableDocument, count: number): ChunkValues {
  const { dataType, numbersPerValue } = document;
  const received = (data as ArrayLike<unknown>).length;
  if (received !== count * numbersPerValue)
    throw new Error(`expected ${count} values, received ${received / numbersPerValue}`);
  if (document.isText) return textChunk(Array.from(data as ArrayLike<unknown>, textOf));
  const { buffer, byteOffset, byteLength } = data as Numbers | BigInt64Array | BigUint64Array;
  // Bytes are in this machine's order already.
  const values = itemValues(new Uint8Array(buffer, byteOffset, byteLength), { ...dataType, byteOrder: "<" });
  if (Array.isArray(values)) return textChunk(values);
  if (values instanceof BigInt64Array || values instanceof BigUint64Array)
    return numberChunk(Float64Array.from(values, Number), values);
  if (values !== undefined) return numberChunk(values, undefined);
  const parts = data as Float32Array | Float64Array;
  return numberChunk(absoluteValues(parts), parts);
}

function numberChunk(numbers: Numbers, exact: ChunkValues["exact"]): ChunkValues {
  return { numbers, texts: undefined, exact, byteLength: numbers.byteLength + (exact?.byteLength ?? 0) };
}

/** Returns the absolute values of complex numbers. */
function absoluteValues(parts: Float32Array | Float64Array): Float32Array | Float64Array {
  const numbers = parts.slice(0, parts.length / 2);
  for (let index = 0; index < numbers.length; index++)
    numbers[index] = Math.hypot(parts[2 * index]!, parts[2 * index + 1]!);
  return numbers;
}

function textChunk(texts: readonly string[]): ChunkValues {
  const byteLength = texts.reduce((sum, text) => sum + 2 * text.length + 16, 0);
  return { numbers: undefined, texts, exact: undefined, byteLength };
}

function textOf(item: unknown): string {
  if (typeof item === "string") return item;
  return item === null || item === undefined ? "" : JSON.stringify(item);
}

/** Tells whether values of a type can be drawn: numbers, times and durations, booleans, complex numbers as absolute values. */
export function isDrawable({ kind }: DataType): boolean {
  return "biufcMm".includes(kind);
}

/** Returns the type that stored integers are read as: the attribute `_Unsigned` may say that it is another than the array's. */
function unsignedType(dataType: DataType, isUnsigned: boolean | undefined): DataType {
  const { kind, itemSize, byteOrder } = dataType;
  if (isUnsigned === undefined || (kind !== "i" && kind !== "u")) return dataType;
  return parseDataType(`${byteOrder}${isUnsigned ? "u" : "i"}${itemSize}`);
}

/** What the metadata say of an array as it is. */
type StoredTraits = "path" | "name" | "dims" | "shape" | "chunkShape" | "dataType" | "attrs" | "packing";

/** An array of a store. */
export interface MetadataArray extends Pick<VariableDescription, StoredTraits> {
  readonly group: string;
  readonly readable: ReadableDocument | string;
}

const DIMENSIONS = "_ARRAY_DIMENSIONS";

/** What `.zmetadata` says: arrays, in their order, and the attributes of groups by path, the root's being empty. */
interface StoreMetadata {
  readonly arrays: MetadataArray[];
  groupAttrs(path: string): JsonObject;
}

/** Parses `.zmetadata`. @throws ZpublishError `invalid-metadata` */
export function parseMetadata(text: string): StoreMetadata {
  const document = parseJson(text);
  const metadata = (isJsonObject(document) && isJsonObject(document.metadata) && document.metadata) || {};
  const arrays: MetadataArray[] = [];
  for (const [key, zarray] of Object.entries(metadata)) {
    if (!key.endsWith("/.zarray") || !isJsonObject(zarray)) continue;
    const path = key.slice(0, -"/.zarray".length);
    arrays.push(storedArray(path, zarray, objectOf(metadata[`${path}/.zattrs`])));
  }
  return { arrays, groupAttrs: (path) => objectOf(metadata[path === "" ? ".zattrs" : `${path}/.zattrs`]) };
}

function storedArray(path: string, document: JsonObject, allAttrs: JsonObject): MetadataArray {
  const { fill_value: fill, dtype } = document;
  const special = typeof fill === "string" && !/[SUO]/.test(String(dtype)) ? floatOf(fill) : undefined;
  const zarray = special === undefined ? document : { ...document, fill_value: special };
  const { [DIMENSIONS]: dimensions, ...attrs } = allAttrs;
  const shape = isJsonArray(zarray.shape) ? zarray.shape.map(Number) : [];
  const names = isJsonArray(dimensions) ? dimensions.map(String) : [];
  const slash = path.lastIndexOf("/");
  const common = {
    path,
    group: path.slice(0, slash + 1),
    name: path.slice(slash + 1),
    attrs,
    dims: shape.map((_, axis) => names[axis] ?? `dim_${axis}`),
    shape,
    chunkShape: isJsonArray(zarray.chunks) ? zarray.chunks.map(Number) : [],
  };
  try {
    const dataType = parseDataType(zarray.dtype as JsonValue);
    const packing = packingOf(attrs, missingMarkOf({ dataType, attrs }, zarray.fill_value));
    const read = unsignedType(dataType, packing.isUnsigned);
    const rounded = roundedPacking(packing, read);
    const readable = readableDocument(zarray, { ...common, dataType: read, packing: rounded });
    return { ...common, dataType, packing: rounded, readable };
  } catch (error) {
    const dataType = parseDataType("|V1");
    return { ...common, dataType, packing: packingOf(attrs), readable: `${messageOf(error)}.` };
  }
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Most chunks, and decoded bytes, that are read without asking: what a browser reads from a server nearby in about a second. */
const MAX_UNASKED_CHUNKS = 800;
const MAX_UNASKED_BYTES = 128 * 2 ** 20;
/** Most decoded bytes of a chunk that is read without asking. */
export const MAX_UNASKED_CHUNK_BYTES = 256 * 2 ** 20;

/** A variable at one of its resolutions; its level is 0 if it is the variable itself. */
export type Resolution = LevelDescription;

/** Returns the resolutions of a variable, finest first. */
export function resolutionsOf(variable: VariableDescription): readonly Resolution[] {
  return [finestOf(variable), ...variable.levels];
}

/** Returns the resolution of the variable itself. */
export function finestOf({ path, shape, chunkShape }: VariableDescription): Resolution {
  return { level: 0, isInOverviews: false, path, shape, chunkShape, factors: shape.map(() => 1) };
}

/** Returns the index of the coarsest resolution with at least one cell per pixel along both axes. `densities` are cells per pixel. */
export function chooseResolution(
  resolutions: readonly Resolution[],
  axes: PictureAxes,
  densities: { readonly x: number; readonly y: number },
): number {
  return resolutions.findLastIndex(({ factors }) =>
    (["x", "y"] as const).every((key) => factors[axes[key]]! <= Math.max(1, densities[key])),
  );
}

/** Returns the coordinates of the chunk that holds a cell of the variable; those of the picture's axes are 0. */
export function chunkOfCell(resolution: Resolution, cell: readonly number[]): number[] {
  const { factors, chunkShape } = resolution;
  return cell.map((index, axis) => Math.floor(index / factors[axis]! / chunkShape[axis]!));
}

/** Orders the chunks of a picture: those in the middle, where people look, come first. */
export function chunksFromCentre(
  rows: Iterable<number>,
  columns: Iterable<number>,
): readonly { readonly row: number; readonly column: number }[] {
  const [rowList, columnList] = [[...rows], [...columns]];
  const [middleRow, middleColumn] = [(rowList.length - 1) / 2, (columnList.length - 1) / 2];
  const chunks = rowList.flatMap((row, y) =>
    columnList.map((column, x) => ({ row, column, distance: Math.hypot(y - middleRow, x - middleColumn) })),
  );
  return chunks.sort((one, other) => one.distance - other.distance);
}

/** Returns the decoded bytes of a number of chunks. */
export function costOf(chunks: number, chunkShape: readonly number[], itemSize: number): ReadingCost {
  return { chunks, bytes: chunks * elementCount(chunkShape) * Math.max(1, itemSize) };
}

/** Returns how many chunks may be read without asking, by the cost of one of them; at least one. */
export function mostChunks({ bytes }: ReadingCost): number {
  return Math.max(1, Math.min(MAX_UNASKED_CHUNKS, Math.floor(MAX_UNASKED_BYTES / bytes)));
}

/** Whether a reading is more than a person may expect. */
export function isTooMuch({ chunks, bytes }: ReadingCost): boolean {
  return chunks > MAX_UNASKED_CHUNKS || bytes > MAX_UNASKED_BYTES;
}
