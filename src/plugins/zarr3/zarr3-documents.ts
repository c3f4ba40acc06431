import type { ServedArray } from "../../dataset/dataset.js";
import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { JsonObject, JsonValue } from "../../json/json-value.js";
import type { DataTree, Group } from "../../model/data-tree.js";
import { visitBelow } from "../store-handler.js";

/**
 * Writes the `zarr.json` of a group, with the consolidated metadata of everything below it (kind `inline`, as zarr-python writes it;
 * the Zarr v3 specification does not have it yet). Arrays that v3 cannot describe are left out.
 */
export function* v3GroupDocument(
  tree: DataTree,
  group: Group,
  arrays: ReadonlyMap<string, ServedArray>,
): CooperativeTask<JsonObject> {
  const metadata: Record<string, JsonValue> = {};
  yield* visitBelow(
    tree,
    group,
    (member, prefix) => {
      // zarr-python takes members without metadata of their own for not consolidated.
      if (member !== group) metadata[prefix.slice(0, -1)] = groupDocument(member, {});
    },
    (variable, path) => {
      const array = arrays.get(variable.path) as ServedArray;
      if (array.v3Problem === undefined) metadata[path] = array.describeV3().document;
    },
  );
  return groupDocument(group, metadata);
}

function groupDocument({ attrs }: Group, metadata: JsonObject): JsonObject {
  return {
    zarr_format: 3,
    node_type: "group",
    attributes: attrs,
    consolidated_metadata: { kind: "inline", must_understand: false, metadata },
  };
}
