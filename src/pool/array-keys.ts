import type { EncodingPlan } from "../zarr/encoding-plan.js";

/** What tells arrays apart, in all processes: the bytes a plan makes, and the place it makes them of. */
export function createArrayKeys(): (plan: EncodingPlan) => string {
  const keys = new WeakMap<EncodingPlan, string>();
  return (plan) => {
    let key = keys.get(plan);
    if (key === undefined) {
      key = JSON.stringify([plan.id, plan.path, plan.source]);
      keys.set(plan, key);
    }
    return key;
  };
}
