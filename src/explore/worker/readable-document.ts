import {
  isJsonArray,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  toNumber,
} from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import { elementCount } from "../../model/data-tree.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import type { VariableDescription } from "../protocol.js";
import { DECODED_BYTES, isReadableCodec } from "./codecs/codec-registry.js";

type ArrayTraits = Pick<VariableDescription, "dataType" | "packing" | "shape" | "chunkShape">;

/** How an array is read, with the stored numbers of its packing as the type has them. Plain data. */
export interface ReadableDocument extends ArrayTraits {
  /**
   * `.zarray` as zarrita reads it. It refuses times, complex numbers and records, reads byte strings as UTF-8, and needs `Float16Array`:
   * so it is told integers and numbers of the same bytes, in C order.
   */
  readonly zarray: string;
  /** Distance of neighbours in a decoded chunk, by axis, in values. */
  readonly strides: readonly number[];
  /** Numbers that zarrita returns per value: 2 for complex, characters of a text. */
  readonly numbersPerValue: number;
  readonly isText: boolean;
  /** Stored value of absent chunks; null if there is none. */
  readonly fillValue: JsonValue;
  /** The same as a number; NaN if there is none. */
  readonly fill: number;
  readonly fillText: string;
  readonly separator: string;
}

/** Filters that leave the number of bytes as it is. */
const SAME_LENGTH = new Set(["shuffle", "bitround", "quantize"]);

/** Filters that make bytes of texts. */
const TEXT_FILTERS = new Set(["vlen-utf8", "vlen-bytes", "json2"]);

/** Returns how an array is read, or a sentence that says why a browser cannot. */
export function readableDocument(document: JsonObject, traits: ArrayTraits): ReadableDocument | string {
  const { compressor = null } = document;
  const { shape, chunkShape, dataType } = traits;
  const filters = isJsonArray(document.filters) ? document.filters.filter(isJsonObject) : [];
  const codecs = [...filters, ...(isJsonObject(compressor) ? [compressor] : [])];
  const unreadable = codecs.find(({ id }) => typeof id !== "string" || !isReadableCodec(id));
  if (unreadable !== undefined) {
    const other = unreadable === compressor ? "with another compressor" : "without this filter";
    return `The codec ${unreadable.id} cannot be decoded in a browser; serve the dataset ${other}.`;
  }

  const isText = TEXT_FILTERS.has(String(filters[0]?.id));
  const stored = isText ? { type: "|O", count: 1 } : storedType(dataType);
  if (stored === undefined) return `Values of the type ${dataType.numpyStr} cannot be shown in a browser.`;
  const typed = codecs.find(({ id }) => id === "delta" || id === "fixedscaleoffset");
  if (typed !== undefined && (stored.count > 1 || !isSameType(typed, dataType)))
    return `The codec ${typed.id} with the type ${dataType.numpyStr} cannot be decoded in a browser.`;

  const count = elementCount(chunkShape);
  const decodedBytes = isText ? undefined : count * dataType.itemSize;
  const lengths = lengthsBefore(filters, decodedBytes, count);
  const zarray = {
    zarr_format: 2,
    shape: [...shape, ...(stored.count > 1 ? [stored.count] : [])],
    chunks: [...chunkShape, ...(stored.count > 1 ? [stored.count] : [])],
    dtype: stored.type,
    order: "C",
    fill_value: null,
    dimension_separator: ".",
    filters: filters.length === 0 ? null : filters.map((filter, index) => sized(filter, lengths[index])),
    compressor: isJsonObject(compressor) ? sized(compressor, lengths[filters.length]) : null,
  };
  return Object.freeze({
    zarray: stringifyJson(zarray as unknown as JsonValue),
    ...traits,
    strides: stridesOf(chunkShape, document.order === "F"),
    numbersPerValue: stored.count,
    isText,
    fillValue: document.fill_value ?? null,
    fill: toNumber(document.fill_value) ?? Number.NaN,
    fillText: fillTextOf(document.fill_value, dataType),
    separator: document.dimension_separator === "/" ? "/" : ".",
  });
}

/** Returns the type that has the same bytes and that zarrita knows, and how many of it a value is; undefined if there is none. */
function storedType({ kind, itemSize, byteOrder }: DataType): { type: string; count: number } | undefined {
  const size = kind === "c" ? itemSize / 2 : itemSize;
  if (itemSize === 0 || ("fc".includes(kind) && size > 8)) return undefined;
  if (kind === "b" || kind === "S") return { type: "|u1", count: itemSize };
  if (kind === "U") return { type: `${byteOrder}u4`, count: itemSize / 4 };
  if (kind === "M" || kind === "m") return { type: `${byteOrder}i8`, count: 1 };
  if (kind === "c") return { type: `${byteOrder}f${size}`, count: 2 };
  if (kind === "f" && itemSize === 2) return { type: `${byteOrder}u2`, count: 1 };
  if (!"iuf".includes(kind)) return undefined;
  return { type: `${itemSize === 1 ? "|" : byteOrder}${kind}${itemSize}`, count: 1 };
}

/** Tells whether a filter of numbers decodes to the array's type: times and half-precision numbers are read as integers. */
function isSameType({ id, dtype, astype }: JsonObject, dataType: DataType): boolean {
  if (typeof dtype !== "string") return false;
  const isPlain = /[iuf]/.test(dataType.kind) && !(dataType.kind === "f" && dataType.itemSize === 2);
  const isSame = isPlain && parseDataType(dtype).zarr === dataType.zarr;
  return isSame && (id !== "delta" || astype === undefined || parseDataType(astype).zarr === dataType.zarr);
}

/** Returns the decoded bytes of each filter and, last, of the compressor; undefined once a filter's length is unknown. */
function lengthsBefore(
  filters: readonly JsonObject[],
  decodedBytes: number | undefined,
  count: number,
): (number | undefined)[] {
  const lengths = [decodedBytes];
  for (const { id, astype } of filters) {
    const length = lengths.at(-1);
    if (length !== undefined && astype !== undefined) lengths.push(count * parseDataType(astype).itemSize);
    else lengths.push(SAME_LENGTH.has(String(id)) || id === "delta" ? length : undefined);
  }
  return lengths;
}

function sized(codec: JsonObject, length: number | undefined): JsonObject {
  return length === undefined ? codec : { ...codec, [DECODED_BYTES]: length };
}

function stridesOf(chunkShape: readonly number[], isFortran: boolean): number[] {
  return chunkShape.map((_, axis) =>
    elementCount(isFortran ? chunkShape.slice(0, axis) : chunkShape.slice(axis + 1)),
  );
}

/** Fill values of byte strings are in base64. */
function fillTextOf(fill: JsonValue | undefined, { kind }: DataType): string {
  if (typeof fill !== "string" || (kind !== "S" && kind !== "U")) return "";
  return (kind === "S" ? atob(fill) : fill).replace(/\0+$/, "");
}
