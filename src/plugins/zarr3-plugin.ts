import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { type Group, normalNodePath } from "../model/data-tree.js";
import { type ChunkName, createStorePlugin, type Params, visitBelow } from "./store-plugin.js";

/** The plugin that serves Zarr v3 stores. */
const zarr3Plugin = createStorePlugin({
  name: "zarr3",
  version: 3,
  documents: [
    {
      name: "zarr.json",
      summary: "Metadata of an array, or of a group and everything below it (Zarr v3)",
      ofArray: (array) => array.describeV3().document,
      ofGroup: consolidatedGroup,
    },
  ],
  chunkPath: "{chunk_path:path}",
  chunkOperation: {
    summary: "One chunk or shard, encoded",
    parameters: {
      dataset_id: "Id of the dataset",
      chunk_path: "Path of the variable and indices of the chunk: `a/b/t2m/c/0/12/3`; `t2m/c` for a scalar",
    },
  },
  chunkOf,
  listChunks,
  served,
});
export default zarr3Plugin;

/**
 * Writes the `zarr.json` of a group, with the consolidated metadata of everything below it (kind `inline`, as zarr-python writes it).
 * To the Zarr v3 specification they are an additional field that says `must_understand: false` (zarr-specs#373). Arrays that v3 cannot
 * describe are left out.
 * @param attrs Attributes of the group as the store shows them.
 */
function* consolidatedGroup(
  { tree, arrays }: DatasetSnapshot,
  group: Group,
  attrs: JsonObject,
): CooperativeTask<JsonObject> {
  const metadata: Record<string, JsonValue> = {};
  yield* visitBelow(
    tree,
    group,
    (member, prefix) => {
      // zarr-python takes members without metadata of their own for not consolidated.
      if (member !== group) metadata[prefix.slice(0, -1)] = groupDocument(member.attrs, {});
    },
    (variable, path) => {
      const array = arrays.get(variable.path) as ServedArray;
      if (array.v3Problem === undefined) metadata[path] = array.describeV3().document;
    },
  );
  return groupDocument(attrs, metadata);
}

function groupDocument(attrs: JsonObject, metadata: JsonObject): JsonObject {
  return {
    zarr_format: 3,
    node_type: "group",
    attributes: attrs,
    consolidated_metadata: { kind: "inline", must_understand: false, metadata },
  };
}

/** Path of an array, then `c` and the indices of a chunk (key encoding `default` of the Zarr v3 specification). */
const CHUNK_PATH = /^(?:(.*)\/)?c((?:\/(?:0|[1-9]\d*))*)$/;

function chunkOf(params: Params): ChunkName {
  const path = normalNodePath(params.chunk_path ?? params.group_path ?? "");
  const [chunkPath, variablePath = "", indices = ""] = CHUNK_PATH.exec(path) ?? [];
  return {
    path,
    variablePath: chunkPath === undefined ? undefined : variablePath,
    // v2 calls the one chunk of a scalar 0, v3 does not.
    key: indices.slice(1).replaceAll("/", ".") || "0",
    isOfScalar: indices === "",
  };
}

/** Lists `c` below an array, and the next index of chunks below `c` and its directories. */
function listChunks(gridShape: readonly number[], name?: ChunkName): (() => readonly string[]) | undefined {
  if (name === undefined) return () => [gridShape.length === 0 ? "c" : "c/"];
  const indices = name.isOfScalar ? [] : name.key.split(".");
  const count = gridShape[indices.length];
  const isInGrid = indices.every((index, axis) => Number(index) < gridShape[axis]!);
  if (count === undefined || !isInGrid) return undefined;
  const slash = indices.length === gridShape.length - 1 ? "" : "/";
  return () => Array.from({ length: count }, (_, index) => `${index}${slash}`);
}

/** Arrays as this plugin serves them: their chunks are those of v2, unless v3 serves the stored files. */
const servedArrays = new WeakMap<ServedArray, ServedArray>();

function served(array: ServedArray): ServedArray | undefined {
  if (array.v3Problem !== undefined) return undefined;
  let asV3 = servedArrays.get(array);
  if (asV3 === undefined) {
    const { plan } = array.describeV3();
    asV3 = plan === array.plan ? array : Object.freeze({ ...array, plan });
    servedArrays.set(array, asV3);
  }
  return asV3;
}
