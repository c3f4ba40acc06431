import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { type Group, normalNodePath } from "../model/data-tree.js";
import { completed, createStorePlugin, visitBelow } from "./store-plugin.js";

/** The document `.zgroup` of every group (Zarr v2 specification, "Groups"). */
const GROUP_DOCUMENT: JsonObject = Object.freeze({ zarr_format: 2 });

/** The plugin that serves Zarr v2 stores. */
const zarrPlugin = createStorePlugin({
  name: "zarr",
  version: 2,
  documents: [
    {
      name: ".zarray",
      summary: "Metadata of an array (Zarr v2)",
      ofArray: ({ document }) => ({ ...document }),
    },
    {
      name: ".zattrs",
      summary: "Attributes of a group or an array, with _ARRAY_DIMENSIONS",
      ofArray: ({ zattrs }) => zattrs,
      ofGroup: (_snapshot, _group, attrs) => completed(attrs),
    },
    { name: ".zgroup", summary: "Metadata of a group (Zarr v2)", ofGroup: GROUP_DOCUMENT },
    {
      name: ".zmetadata",
      summary: "Consolidated metadata of a group and everything below it",
      ofGroup: consolidatedMetadata,
    },
  ],
  chunkPath: "{var:path}/{chunk}",
  chunkOperation: {
    summary: "One chunk, encoded",
    parameters: {
      dataset_id: "Id of the dataset",
      var: "Path of the variable: `t2m`, `a/b/t2m`",
      chunk: "Chunk indices joined by dots, `0.12.3`; `0` for a scalar",
    },
  },
  chunkOf({ var: variable = "", chunk }) {
    const variablePath = normalNodePath(variable);
    if (chunk === undefined) return { path: variablePath, variablePath: undefined, key: "" };
    return { path: variablePath === "" ? chunk : `${variablePath}/${chunk}`, variablePath, key: chunk };
  },
  listChunks: (gridShape) => () => chunkKeys(gridShape),
});
export default zarrPlugin;

/**
 * Writes consolidated metadata of a group and everything below it, with keys relative to the group (the de facto standard of
 * zarr-python's `consolidate_metadata`).
 * @param attrs Attributes of the group as the store shows them.
 */
export function* consolidatedMetadata(
  { tree, arrays }: DatasetSnapshot,
  group: Group,
  attrs: JsonObject,
): CooperativeTask<JsonObject> {
  const metadata: Record<string, JsonValue> = {};
  yield* visitBelow(
    tree,
    group,
    (member, prefix) => {
      metadata[`${prefix}.zattrs`] = member === group ? attrs : member.attrs;
      metadata[`${prefix}.zgroup`] = GROUP_DOCUMENT;
    },
    (variable, path) => {
      const { document, zattrs } = arrays.get(variable.path) as ServedArray;
      metadata[`${path}/.zarray`] = { ...document };
      metadata[`${path}/.zattrs`] = zattrs;
    },
  );
  return { zarr_consolidated_format: 1, metadata };
}

/** Lists the keys of all chunks of a grid, including absent ones, which are answered 404. */
function chunkKeys([count, ...inner]: readonly number[]): string[] {
  if (count === undefined) return ["0"];
  const indices = Array.from({ length: count }, (_, index) => `${index}`);
  if (inner.length === 0) return indices;
  const innerKeys = chunkKeys(inner);
  return indices.flatMap((index) => innerKeys.map((key) => `${index}.${key}`));
}
