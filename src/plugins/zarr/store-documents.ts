import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { Group } from "../../model/data-tree.js";
import { visitBelow } from "../store-handler.js";

/** The document `.zgroup` of every group (Zarr v2 specification, "Groups"). */
export const GROUP_DOCUMENT: JsonObject = Object.freeze({ zarr_format: 2 });

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
