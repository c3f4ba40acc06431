/** Lists of Kubernetes whose items are merged, and the field by which two are the same. */
const MERGE_KEYS: Readonly<Record<string, string>> = {
  containers: "name",
  env: "name",
  volumes: "name",
  volumeMounts: "mountPath",
};

type Value = Readonly<Record<string, unknown>>;

/** Applies a strategic merge patch as kustomize does: `null` and `$patch: delete` remove, and other lists are replaced. */
export function strategicMerge(base: Value, patch: Value): Value {
  const merged: Record<string, unknown> = { ...base };
  for (const [name, changed] of Object.entries(patch)) {
    const present = merged[name];
    const key = MERGE_KEYS[name];
    if (changed === null) delete merged[name];
    else if (Array.isArray(changed)) {
      merged[name] =
        key !== undefined && Array.isArray(present) ? mergeItems(present, changed, key) : changed;
    } else if (isObject(changed) && isObject(present)) merged[name] = strategicMerge(present, changed);
    else merged[name] = changed;
  }
  return merged;
}

/** @throws Error if an item is to be deleted that is not there: kustomize says nothing then. */
function mergeItems(base: readonly Value[], patch: readonly Value[], key: string): Value[] {
  const items = new Map(base.map((item) => [item[key], item]));
  for (const change of patch) {
    const present = items.get(change[key]);
    if (change.$patch === "delete") {
      if (!items.delete(change[key])) throw new Error(`expected an item ${key}: ${change[key]} to delete`);
    } else items.set(change[key], present === undefined ? change : strategicMerge(present, change));
  }
  return [...items.values()];
}

function isObject(value: unknown): value is Value {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
