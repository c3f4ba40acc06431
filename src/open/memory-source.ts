import { createHash } from "node:crypto";
import { endianness } from "node:os";
import { ZpublishError } from "../errors.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { parseFillValue } from "../model/fill-value.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../zarr/codec-step.js";
import { dimensionsAttribute, parseDimensionNames, withoutDimensions } from "../zarr/metadata-fields.js";
import type { StoredArray } from "../zarr/stored-array.js";
import {
  comparePaths,
  nameProblem,
  printablePath,
  type Source,
  type StoredGroup,
  type StoredTree,
  warnOfName,
} from "../zarr/stored-tree.js";

/** Kind and size of the items of each typed array, as numpy names them. It has no clamped type. */
const ITEM_TYPES: Readonly<Record<string, string>> = {
  Int8Array: "i1",
  Uint8Array: "u1",
  Buffer: "u1",
  Int16Array: "i2",
  Uint16Array: "u2",
  Int32Array: "i4",
  Uint32Array: "u4",
  BigInt64Array: "i8",
  BigUint64Array: "u8",
  Float16Array: "f2",
  Float32Array: "f4",
  Float64Array: "f8",
};

/** Returns the v2 dtype of a typed array, in the machine's byte order; undefined for other views. */
function typeOfTypedArray(data: ArrayBufferView): string | undefined {
  const { name } = data.constructor;
  if (!Object.hasOwn(ITEM_TYPES, name)) return undefined;
  return `${endianness() === "LE" ? "<" : ">"}${ITEM_TYPES[name]}`;
}

/** Bytes in memory that all threads share. */
interface SharedBytes {
  readonly buffer: SharedArrayBuffer;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/** Returns the bytes of a view in shared memory: the same memory if it is shared, else a copy. */
function shareBytes(data: ArrayBufferView): SharedBytes {
  const { buffer, byteOffset, byteLength } = data;
  if (buffer instanceof SharedArrayBuffer) return { buffer, byteOffset, byteLength };
  const shared = new SharedArrayBuffer(byteLength);
  new Uint8Array(shared).set(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
  return { buffer: shared, byteOffset: 0, byteLength };
}

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

/** Makes the stored array of a description. @throws ZpublishError `invalid-metadata` */
function storeArray(array: MemoryArray, group: string, warnings: string[]): StoredArray {
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
function invalid(path: string, problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'${printablePath(path)}': ${problem}`);
}

/** A data tree in memory, as the library's user describes it. */
interface MemoryTree {
  /** For messages. Default `memory`. */
  readonly location?: string;
  /**
   * Name of this state of the data: sources with the same location and revision have the same content. Without it the content
   * is hashed, which takes about a second per gigabyte.
   */
  readonly revision?: string;
  /** Groups. Those between them and the root may be left out. */
  readonly groups: readonly MemoryGroup[];
}

/** A group in memory, as the library's user describes it. */
export interface MemoryGroup {
  /** `/`, `/a/b`; the leading slash may be left out. */
  readonly path: string;
  readonly attrs?: JsonObject;
  readonly arrays?: readonly MemoryArray[];
}

/**
 * Creates a source of arrays in memory, which workers share. It never changes.
 * @throws ZpublishError `invalid-metadata` if the description is inconsistent.
 */
export function createMemorySource(tree: MemoryTree): Source {
  const location = tree.location ?? "memory";
  const stored = storeTree(tree, location);
  return {
    location,
    readTree: async (progress) => {
      progress?.(stored.groups.reduce((count, group) => count + group.arrays.length, 0));
      return stored;
    },
    fingerprint: async () => undefined,
    close: async () => undefined,
  };
}

function storeTree(tree: MemoryTree, location: string): StoredTree {
  const groups = new Map<string, StoredGroup>();
  const warnings: string[] = [];
  for (const group of tree.groups) {
    const path = normalPath(group.path);
    if (groups.has(path)) throw invalid(path, "expected every group once, received it twice");
    const arrays = (group.arrays ?? []).map((array) => storeArray(array, path, warnings));
    groups.set(path, { path: `/${path}`, attrs: group.attrs ?? {}, arrays: sortArrays(arrays) });
    warnOfName(path, warnings);
  }
  addParents(groups);
  assertNoConflicts(groups);
  const sorted = [...groups.values()].sort((a, b) =>
    a.path === "/" ? -1 : b.path === "/" ? 1 : comparePaths(a.path, b.path),
  );
  return Object.freeze({
    groups: Object.freeze(sorted.map((group) => Object.freeze(group))),
    refused: Object.freeze([]),
    warnings: Object.freeze(warnings),
    identity: tree.revision === undefined ? contentHash(sorted) : revisionHash(location, tree.revision),
    fingerprint: undefined,
  });
}

function addParents(groups: Map<string, StoredGroup>): void {
  for (const path of ["", ...groups.keys()]) {
    const segments = path.split("/");
    for (let depth = 0; depth < segments.length; depth++) {
      const parent = segments.slice(0, depth).join("/");
      if (!groups.has(parent)) groups.set(parent, { path: `/${parent}`, attrs: {}, arrays: [] });
    }
  }
}

function assertNoConflicts(groups: ReadonlyMap<string, StoredGroup>): void {
  const seen = new Set<string>();
  for (const group of groups.values()) {
    for (const { path } of group.arrays) {
      if (seen.has(path)) throw invalid(path, "expected every array once, received it twice");
      if (groups.has(path)) throw invalid(path, "expected an array or a group, received both");
      seen.add(path);
    }
  }
}

/** Returns a group's path without slashes at the ends; empty for the root. */
function normalPath(path: string): string {
  const normal = path.replace(/^\/+|\/+$/g, "");
  const problem = normal === "" ? undefined : nameProblem(normal);
  if (problem !== undefined) throw invalid(path, problem);
  return normal;
}

function sortArrays(arrays: readonly StoredArray[]): readonly StoredArray[] {
  return Object.freeze([...arrays].sort((a, b) => comparePaths(a.path, b.path)));
}

function revisionHash(location: string, revision: string): string {
  return createHash("sha256").update(`revision\0${location}\0${revision}`).digest("hex").slice(0, 40);
}

function contentHash(groups: readonly StoredGroup[]): string {
  const hash = createHash("sha256");
  for (const group of groups) {
    hash.update(`\0${stringifyJson([group.path, group.attrs])}`);
    for (const { path, shape, dataType, attrs, dimNames, fill, chunks } of group.arrays) {
      hash.update(`\0${stringifyJson([path, shape, dataType.zarr, attrs, dimNames, fill.served])}\0`);
      if (chunks.kind === "memory") {
        hash.update(new Uint8Array(chunks.buffer, chunks.byteOffset, chunks.byteLength));
      }
    }
  }
  return hash.digest("hex").slice(0, 40);
}
