import { createSnapshot } from "../dataset/create-snapshot.js";
import type { ServedArray } from "../dataset/dataset.js";
import { elementCount } from "../model/chunk-grid.js";
import type { JsonObject } from "../model/json-value.js";
import type { Refusal, StoredTree } from "../source/source.js";
import type { CodecSpec } from "../zarr/codec-spec.js";

/** What is at a location and how it would be served, as `inspect --json` prints it. */
export interface Inspection {
  readonly location: string;
  readonly groups: readonly InspectedGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
}

export interface InspectedGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly variables: readonly InspectedVariable[];
}

export interface InspectedVariable {
  readonly name: string;
  readonly path: string;
  /** As numpy writes it: `float32`, `>f4`, `<U4`. */
  readonly dtype: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Elements per axis of a chunk as stored. */
  readonly storedChunks: readonly number[];
  /** Elements per axis of a shard; null where a chunk is a file of its own. */
  readonly shards: readonly number[] | null;
  /** Elements per axis of a chunk as served. */
  readonly servedChunks: readonly number[];
  /** In order of encoding, as stored. */
  readonly codecs: readonly CodecSpec[];
  /** Of the whole array, decoded; null for objects, whose size nobody knows. */
  readonly byteLength: number | null;
  readonly served: "passthrough" | "transcoded";
  /** Why it is transcoded; null for passthrough. */
  readonly reason: string | null;
  readonly attrs: JsonObject;
}

/** Looks at a stored tree the way the server does when it opens one, with nothing asked for in a configuration. */
export function inspectTree(location: string, tree: StoredTree): Inspection {
  const config = { id: "inspect", location, immutable: false, encoding: {}, variables: {} };
  const snapshot = createSnapshot(config, tree, "");
  const groups = [...snapshot.tree.groups.values()].map(
    (group): InspectedGroup => ({
      path: group.path,
      attrs: group.attrs,
      variables: [...group.variables.values()].map(({ path }) =>
        inspectArray(snapshot.arrays.get(path) as ServedArray),
      ),
    }),
  );
  return { location, groups, refused: snapshot.refused, warnings: snapshot.warnings };
}

function inspectArray({ variable, plan, stored }: ServedArray): InspectedVariable {
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
    attrs: variable.attrs,
  };
}

function shardShapeOf({ chunks, chunkShape }: ServedArray["stored"]): number[] | null {
  if (chunks.kind !== "shards") return null;
  return chunkShape.map((length, axis) => length * (chunks.chunksPerShard[axis] as number));
}

function transcodingReason({ kind, stored, served, decode, encode }: ServedArray["plan"]): string {
  const reasons: string[] = [];
  if (stored.chunkShape.join() !== served.chunkShape.join()) {
    reasons.push(`chunks ${formatShape(stored.chunkShape)} become ${formatShape(served.chunkShape)}`);
  }
  if (stored.axisOrder.join() !== served.axisOrder.join()) reasons.push("the order of axes changes");
  const from = decode.map(({ codec }) => codec.id).join(", ") || "no codec";
  const to = encode.map(({ codec }) => codec.id).join(", ") || "no codec";
  if (from !== to || reasons.length === 0) reasons.push(`${from} becomes ${to}`);
  return `${kind}: ${reasons.join("; ")}`;
}

/** `(1464, 25, 53)`; `()` for a scalar. */
export function formatShape(shape: readonly number[]): string {
  return `(${shape.join(", ")})`;
}
