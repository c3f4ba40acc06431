import { createHash } from "node:crypto";
import { ZpublishError } from "../errors.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/chunk-grid.js";
import type { DataType } from "../model/data-type.js";
import { parseFillValue } from "../model/fill-value.js";
import { parseDataType } from "../model/parse-data-type.js";
import type { CodecSpec } from "../zarr/codec-spec.js";
import { dimensionsAttribute, parseDimensionNames, withoutDimensions } from "../zarr/dimension-names.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { defaultServedChunks } from "./default-served-chunks.js";
import { shareBytes, typeOfTypedArray } from "./memory-data.js";
import { comparePaths, nameWarning, printablePath, refusedName } from "./node-name.js";
import type { Source, StoredGroup, StoredTree } from "./source.js";

/** A data tree in memory, as the library's user writes it. */
export interface MemoryTree {
  /** For messages. Default `memory`. */
  readonly location?: string;
  /**
   * Names this state of the data: two sources of one location and revision have the same content. Without it the content
   * is hashed, at about a second per gigabyte.
   */
  readonly revision?: string;
  /** Groups between them and the root need not be listed. */
  readonly groups: readonly MemoryGroup[];
}

export interface MemoryGroup {
  /** `/`, `/a/b`; the leading slash may be left out. */
  readonly path: string;
  readonly attrs?: JsonObject;
  readonly arrays?: readonly MemoryArray[];
}

export interface MemoryArray {
  readonly name: string;
  /**
   * Items in C order. Copied once into shared memory, unless it lies in a SharedArrayBuffer already: that is shared,
   * and must not be written to any more.
   */
  readonly data: ArrayBufferView;
  /**
   * numpy type string of the items where a typed array does not say it: `"|b1"`, `"<M8[s]"`, `"|S5"`, `"<U4"`, `"<c8"`;
   * `data` is then their raw bytes. Default: the type of the typed array.
   */
  readonly dtype?: JsonValue;
  /** Elements per axis; `[]` for a scalar. */
  readonly shape: readonly number[];
  /** One name per axis. Default: names are made up when the dataset opens. */
  readonly dims?: readonly string[];
  readonly attrs?: JsonObject;
  /** Mark of missing values, as in a v2 `.zarray`. Default null: none. */
  readonly fillValue?: JsonValue;
  /** Elements per axis of a chunk as served. Default: about a mebibyte. */
  readonly chunks?: readonly number[];
  /** Compressor as served, null for none. Default: Blosc with LZ4. */
  readonly compressor?: CodecSpec | null;
}

const defaultCompressor: CodecSpec = Object.freeze({
  id: "blosc",
  cname: "lz4",
  clevel: 5,
  shuffle: 1,
  blocksize: 0,
});

/**
 * A source of arrays in memory, shared with the workers rather than copied to them. It never changes.
 * @throws ZpublishError `invalid-metadata` where the description does not hold together.
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
  refuseConflicts(groups);
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

function storeArray(array: MemoryArray, group: string, warnings: string[]): StoredArray {
  const path = group === "" ? array.name : `${group}/${array.name}`;
  const problem = array.name.includes("/") ? "expected a name without a slash" : refusedName(path);
  if (problem !== undefined) throw invalid(path, problem);
  warnOfName(path, warnings);
  const { shape } = array;
  requireLengths(path, "shape", shape, shape.length, 0);
  const dataType = dataTypeOf(array, path);
  const byteLength = elementCount(shape) * dataType.itemSize;
  if (array.data.byteLength !== byteLength) {
    throw invalid(
      path,
      `expected ${byteLength} bytes of data for shape [${shape}] of ${dataType.numpyStr}, received ${array.data.byteLength}`,
    );
  }
  if (array.chunks !== undefined) requireLengths(path, "chunks", array.chunks, shape.length, 1);
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

/** Blosc takes no items without bytes. */
function defaultCompressorOf(dataType: DataType): CodecSpec | null {
  return dataType.itemSize === 0 ? null : defaultCompressor;
}

function dimensionsOf(array: MemoryArray, path: string): readonly (string | null)[] | null {
  const problems: string[] = [];
  const names = array.dims ?? array.attrs?.[dimensionsAttribute];
  const dims = parseDimensionNames(names, array.shape.length, "dims", problems);
  if (problems[0] !== undefined) throw invalid(path, problems[0]);
  return dims;
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

function refuseConflicts(groups: ReadonlyMap<string, StoredGroup>): void {
  const seen = new Set<string>();
  for (const group of groups.values()) {
    for (const { path } of group.arrays) {
      if (seen.has(path)) throw invalid(path, "expected every array once, received it twice");
      if (groups.has(path)) throw invalid(path, "expected an array or a group, received both");
      seen.add(path);
    }
  }
}

/** Without slashes at the ends; empty for the root. */
function normalPath(path: string): string {
  const normal = path.replace(/^\/+|\/+$/g, "");
  const problem = normal === "" ? undefined : refusedName(normal);
  if (problem !== undefined) throw invalid(path, problem);
  return normal;
}

function requireLengths(
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

function sortArrays(arrays: readonly StoredArray[]): readonly StoredArray[] {
  return Object.freeze([...arrays].sort((a, b) => comparePaths(a.path, b.path)));
}

function warnOfName(path: string, warnings: string[]): void {
  const warning = nameWarning(path);
  if (warning !== undefined) warnings.push(warning);
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

function within<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw invalid(path, error.message);
  }
}

function invalid(path: string, problem: string): ZpublishError {
  return new ZpublishError("invalid-metadata", `'${printablePath(path)}': ${problem}`);
}
