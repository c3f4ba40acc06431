import type { ServedArray } from "../../dataset/dataset.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { DataTree, Group } from "../../model/data-tree.js";

/** The document `.zgroup` of every group (Zarr v2 specification, "Groups"). */
export const GROUP_DOCUMENT: JsonObject = Object.freeze({ zarr_format: 2 });

/**
 * Writes consolidated metadata of a group and everything below it, with keys relative to the group (the de facto standard of
 * zarr-python's `consolidate_metadata`).
 */
export function* consolidatedMetadata(
  tree: DataTree,
  group: Group,
  arrays: ReadonlyMap<string, ServedArray>,
): CooperativeTask<JsonObject> {
  const metadata: Record<string, JsonValue> = {};
  const below = group.path === "/" ? "/" : `${group.path}/`;
  for (const member of tree.groups.values()) {
    yield;
    if (member !== group && !member.path.startsWith(below)) continue;
    const prefix = member === group ? "" : `${member.path.slice(below.length)}/`;
    metadata[`${prefix}.zattrs`] = member.attrs;
    metadata[`${prefix}.zgroup`] = GROUP_DOCUMENT;
    for (const { name, path } of member.variables.values()) {
      yield;
      const { document, zattrs } = arrays.get(path) as ServedArray;
      metadata[`${prefix}${name}/.zarray`] = { ...document };
      metadata[`${prefix}${name}/.zattrs`] = zattrs;
    }
  }
  return { zarr_consolidated_format: 1, metadata };
}
