import { ZpublishError } from "../../errors.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import { elementCount } from "../../model/data-tree.js";
import { type DataType, parseDataType } from "../../model/data-type.js";
import { parseFillValue } from "../../model/fill-value.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../zarr/codec-step.js";
import { dimensionsAttribute, parseDimensionNames, withoutDimensions } from "../../zarr/metadata-fields.js";
import type { StoredArray } from "../../zarr/stored-array.js";
import { nameProblem, printablePath, warnOfName } from "../../zarr/stored-tree.js";
import { shareBytes, typeOfTypedArray } from "./memory-data.js";

/** An array in memory, as the library's user describes it. */
export interface MemoryArray {
  readonly name: string;
  /**
   * Items in C order. They are copied once into shared memory, unless they are in a SharedArrayBuffer: that is shared, and
   * must not be written to any more.
   */
  readonly data: ArrayBufferView;
  /**
   * numpy type string of the items, if a typed array has no such type: `"|b1"`, `"<M8[s]"`, `"|S5"`, `"<U4"`, `"<c8"`. Then
   * `data` contains their raw bytes. Default: the type of the typed array.
   */
  readonly dtype?: JsonValue;
  /** Elements per axis; `[]` for a scalar. */
  readonly shape: readonly number[];
  /** One name per axis. Default: names are invented when the dataset opens. */
  readonly dims?: readonly string[];
  readonly attrs?: JsonObject;
  /** Value of missing items, as in a v2 `.zarray`. Default: null, which is none. */
  readonly fillValue?: JsonValue;
  /** Elements per axis of a chunk as served. Default: about a mebibyte. */
  readonly chunks?: readonly number[];
  /** Compressor as served, null for none. Default: Blosc with LZ4. */
  readonly compressor?: CodecSpec | null;
}

/**
 * Makes the stored array of a description.
 * @param group Path of its group, without slashes at the ends.
 * @param warnings Receives warnings of its name.
 * @throws ZpublishError `invalid-metadata`
 */
export function storeArray(array: MemoryArray, group: string, warnings: string[]): StoredArray {
  const path = group === "" ? array.name : `${group}/${array.name}`;
  const problem = array.name.includes("/") ? "expected a name without a slash" : nameProblem(path);
  if (problem !== undefined) throw invalid(path, problem);
  warnOfName(path, warnings);
  const { shape } = array;
  assertLengths(path, "shape", shape, shape.length, 0);
  const dataType = dataTypeOf(array, path);
  const byteLength = elementCount(shape) * dataType.itemSize;
  if (array.data.byteLength !== byteLength) {
    throw invalid(
      path,
      `expected ${byteLength} bytes of data for shape [${shape}] of ${dataType.numpyStr}, received ${array.data.byteLength}`,
    );
  }
  if (array.chunks !== undefined) assertLengths(path, "chunks", array.chunks, shape.length, 1);
  const fill = within(path, () => parseFillValue(array.fillValue ?? null, dataType));
  const attrs = array.attrs ?? {};
  return Object.freeze({
    name: array.name,
    path,
    shape: Object.freeze([...shape]),
    chunkShape: Object.freeze(shape.map((length) => Math.max(1, length))),
    dataType,
    axisOrder: Object.freeze(shape.map((_, axis) => axis)),
    codecs: Object.freeze([]),
    compressorCount: 0,
    fill: Object.freeze({ served: fill.json, item: fill.item, absentIsServed: true }),
    dimNames: dimensionsOf(array, path),
    attrs: withoutDimensions(attrs),
    chunks: Object.freeze({ kind: "memory", ...shareBytes(array.data) }),
    servedChunks: Object.freeze(array.chunks ?? defaultServedChunks(shape, dataType.itemSize)),
    servedCompressor: array.compressor === undefined ? defaultCompressorOf(dataType) : array.compressor,
  } satisfies StoredArray);
}

function dataTypeOf(array: MemoryArray, path: string): DataType {
  const dtype = array.dtype ?? typeOfTypedArray(array.data);
  if (dtype === undefined) {
    const received = array.data.constructor.name;
    throw invalid(path, `expected a typed array whose items numpy has, or a dtype, received a ${received}`);
  }
  const dataType = within(path, () => parseDataType(dtype));
  if (dataType.kind === "O")
    throw invalid(path, "expected a dtype of items with a fixed size, received objects");
  return dataType;
}

/** Returns Blosc with LZ4, or null for items without bytes, which Blosc does not accept. */
function defaultCompressorOf(dataType: DataType): CodecSpec | null {
  return dataType.itemSize === 0 ? null : DEFAULT_COMPRESSOR;
}

function dimensionsOf(array: MemoryArray, path: string): readonly (string | null)[] | null {
  const problems: string[] = [];
  const names = array.dims ?? array.attrs?.[dimensionsAttribute];
  const dims = parseDimensionNames(names, array.shape.length, "dims", problems);
  if (problems[0] !== undefined) throw invalid(path, problems[0]);
  return dims;
}

/** A served chunk of this size is fetched by a browser at once without a pause, and still compresses well. */
const TARGET_BYTES = 1024 * 1024;

/** Returns a chunk shape of about a mebibyte: the array's own, with its longest axis halved until it is small enough. */
function defaultServedChunks(shape: readonly number[], itemSize: number): number[] {
  const chunks = shape.map((length) => Math.max(1, length));
  let byteLength = chunks.reduce((product, length) => product * length, Math.max(1, itemSize));
  while (byteLength > TARGET_BYTES) {
    const longest = chunks.indexOf(Math.max(...chunks));
    const length = chunks[longest] ?? 1;
    if (length <= 1) break;
    const half = Math.ceil(length / 2);
    chunks[longest] = half;
    byteLength = (byteLength / length) * half;
  }
  return chunks;
}

function assertLengths(
  path: string,
  what: string,
  lengths: readonly number[],
  rank: number,
  least: 0 | 1,
): void {
  if (lengths.length === rank && lengths.every((length) => Number.isSafeInteger(length) && length >= least))
    return;
  throw invalid(
    path,
    `expected ${what} to be ${rank} ${least === 0 ? "non-negative" : "positive"} integers, received [${lengths}]`,
  );
}

/** Runs `work`, and adds the path to the message of its error. */
function within<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw invalid(path, error.message);
  }
}

/** Returns the error about an invalid description of a group or array. */
export function invalid(path: string, problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'${printablePath(path)}': ${problem}`);
}
