import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { Group } from "../../model/data-tree.js";
import { visitBelow } from "../store-handler.js";

/**
 * Writes the `zarr.json` of a group, with the consolidated metadata of everything below it (kind `inline`, as zarr-python writes it;
 * the Zarr v3 specification does not have it yet). Arrays that v3 cannot describe are left out.
 * @param attrs Attributes of the group as the store shows them.
 */
export function* v3GroupDocument(
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
