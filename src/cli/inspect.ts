import { DEFAULT_OVERVIEWS } from "../config/dataset-schema.js";
import { createSnapshot } from "../dataset/create-snapshot.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { describeLevels } from "../dataset/overviews/describe-levels.js";
import type { JsonObject } from "../json/json-value.js";
import { elementCount } from "../model/chunk-grid.js";
import { allStoreStats } from "../stores/store-stats.js";
import type { CodecSpec } from "../zarr/codec-spec.js";
import type { Refusal, StoredJoin, StoredTree } from "../zarr/stored-tree.js";
import { formatCodec, formatShape } from "./format-text.js";
import { type InspectedPieces, inspectPieces } from "./inspect-join.js";

/** Content of a location, and how it would be served, as `inspect --json` prints it. */
export interface Inspection {
  readonly location: string;
  /** Name of the file format; null for a Zarr store. */
  readonly format: string | null;
  /** Files of a joined dataset, and the steps that each gives; null if it is one file or store. */
  readonly join: StoredJoin | null;
  readonly groups: readonly InspectedGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
  /** Levels of overviews, as `--overviews` would publish them, of the largest variable; the first is the variable itself. */
  readonly overviews: readonly InspectedLevel[];
  /** Remote stores that were asked. Default: none. */
  readonly stores?: readonly InspectedStore[];
}

/** One level of the overviews of a variable. */
export interface InspectedLevel {
  readonly level: number;
  /** Path of the variable at that level, below the root of the overviews. */
  readonly path: string;
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly chunks: readonly number[];
  readonly byteLength: number;
}

/** Cost of reading the metadata from one remote store. */
export interface InspectedStore {
  readonly store: string;
  readonly requests: number;
  readonly retries: number;
  readonly receivedBytes: number;
  /** Time of all requests together, of which many are under way at once. */
  readonly seconds: number;
}

/** One group of a location. */
export interface InspectedGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly variables: readonly InspectedVariable[];
}

/** One variable of a group. */
export interface InspectedVariable {
  readonly name: string;
  readonly path: string;
  /** As numpy writes it: `float32`, `>f4`, `<U4`. */
  readonly dtype: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Elements per axis of a stored chunk. */
  readonly storedChunks: readonly number[];
  /** Elements per axis of a shard; null if each chunk is a file. */
  readonly shards: readonly number[] | null;
  /** Elements per axis of a served chunk. */
  readonly servedChunks: readonly number[];
  /** Stored codecs in order of encoding. */
  readonly codecs: readonly CodecSpec[];
  /** Decoded size of the whole array; null for objects, whose size is unknown. */
  readonly byteLength: number | null;
  readonly served: "passthrough" | "transcoded";
  /** Reason of transcoding; null for passthrough. */
  readonly reason: string | null;
  /** Remark about the way of chunks that lie in a file of another format, or in several files; null for those of Zarr stores. */
  readonly way: string | null;
  /** Chunks of a joined array; null for all others. */
  readonly pieces: InspectedPieces | null;
  /** Served below `zarr3/`: the chunks of v2, or the stored files if v2 cannot describe those; null if it is left out there. */
  readonly zarr3: "chunks" | "files" | null;
  readonly attrs: JsonObject;
}

/** Inspects a stored tree as the server would open it without any configured encoding. */
export async function inspectTree(location: string, tree: StoredTree): Promise<Inspection> {
  const config = { id: "inspect", location, immutable: false, encoding: {}, variables: {} };
  const overviews = DEFAULT_OVERVIEWS;
  const snapshot = createSnapshot({ ...config, overviews }, tree, "");
  const pieces = await inspectPieces(tree);
  const groups = [...snapshot.tree.groups.values()].map(
    (group): InspectedGroup => ({
      path: group.path,
      attrs: group.attrs,
      variables: [...group.variables.values()].map(({ path }) =>
        inspectArray(snapshot.arrays.get(path) as ServedArray, pieces.get(path) ?? null),
      ),
    }),
  );
  const { refused, warnings, format = null } = snapshot;
  const { join = null } = tree;
  return { location, format, join, groups, refused, warnings, overviews: inspectLevels(snapshot) };
}

function inspectLevels({ overviews }: DatasetSnapshot): InspectedLevel[] {
  if (overviews === undefined) return [];
  return describeLevels(overviews).map(({ level, variable, byteLength }) => ({
    level,
    path: level === 0 ? `0/${variable.path}` : variable.path,
    dtype: variable.dataType.numpyStr,
    shape: variable.shape,
    chunks: variable.chunkShape,
    byteLength,
  }));
}

/** Returns what was asked of remote stores since the program started. */
export function inspectStores(): InspectedStore[] {
  return [...allStoreStats()].map(([store, { answers, failures, retries, bytes, seconds }]) => ({
    store,
    requests: failures + [...answers.values()].reduce((sum, count) => sum + count, 0),
    retries,
    receivedBytes: bytes,
    seconds: Math.round(seconds.sum * 1_000) / 1_000,
  }));
}

function inspectArray(
  { variable, plan, stored, v3Problem, describeV3 }: ServedArray,
  pieces: InspectedPieces | null,
): InspectedVariable {
  const { itemSize, numpyStr } = variable.dataType;
  const isPassthrough = plan.kind === "passthrough";
  return {
    name: variable.name,
    path: variable.path,
    dtype: numpyStr,
    dims: variable.dims,
    shape: variable.shape,
    storedChunks: stored.chunkShape,
    shards: shardShapeOf(stored),
    servedChunks: variable.chunkShape,
    codecs: stored.codecs,
    byteLength: stored.dataType.kind === "O" ? null : elementCount(variable.shape) * itemSize,
    served: isPassthrough ? "passthrough" : "transcoded",
    reason: isPassthrough ? null : transcodingReason(plan),
    way: pieces === null ? wayOf(stored, plan) : wayOfPieces(pieces),
    pieces,
    zarr3: v3Problem !== undefined ? null : describeV3().plan === plan ? "chunks" : "files",
    attrs: variable.attrs,
  };
}

function shardShapeOf({ chunks, chunkShape }: ServedArray["stored"]): number[] | null {
  if (chunks.kind !== "shards") return null;
  return chunkShape.map((length, axis) =>
    chunks.levels.reduce((product, level) => product * (level.chunksPerShard[axis] as number), length),
  );
}

/** Ways of chunks of files, by `RangeChunks.form`. */
const WAYS = {
  ranges: "by range",
  kept: "from the index",
  made: "put together from parts of the file",
} as const;

function wayOf({ chunks }: ServedArray["stored"], { stored }: ServedArray["plan"]): string | null {
  if (chunks.kind !== "ranges") return null;
  const { form, differing } = chunks;
  if (differing === 0) return WAYS[form];
  const count = elementCount(stored.gridShape);
  return `${WAYS[form]}, ${differing} of ${count} chunks have other codecs and are made`;
}

function wayOfPieces({ passed, joined, reasons }: InspectedPieces): string {
  if (joined === 0) return "each chunk from one file";
  const of = passed === 0 ? "all chunks are" : `${joined} of ${passed + joined} chunks are`;
  return `${of} put together from several files, since ${reasons.join(", ")}`;
}

function transcodingReason({ kind, stored, served, decode, encode }: ServedArray["plan"]): string {
  const reasons: string[] = [];
  if (stored.chunkShape.join() !== served.chunkShape.join()) {
    reasons.push(`chunks ${formatShape(stored.chunkShape)} become ${formatShape(served.chunkShape)}`);
  }
  if (stored.axisOrder.join() !== served.axisOrder.join()) reasons.push("the order of axes changes");
  const from = decode.map(({ codec }) => formatCodec(codec)).join(", ") || "no codec";
  const to = encode.map(({ codec }) => formatCodec(codec)).join(", ") || "no codec";
  if (from !== to || reasons.length === 0) reasons.push(`${from} becomes ${to}`);
  return `${kind}: ${reasons.join("; ")}`;
}
