import type { ChunkSource, JoinedAxis } from "../chunk-source.js";
import type { EncodingPlan } from "./encoding-plan.js";

/**
 * Returns the axis along which an array grows while its old chunks stay as they are: versions of its chunks name all that depends on its
 * length. Undefined if its bytes may depend on the length itself.
 */
export function growthOf(
  source: ChunkSource,
  { compute, absentIsAbsent }: Pick<EncodingPlan, "compute" | "absentIsAbsent">,
): JoinedAxis | undefined {
  const joined = joinedAxisOf(source);
  if (joined === undefined || compute === undefined) return joined;
  // Chunks without a version would be computed from fill values, which end with the array.
  if (compute.kind !== "coarsen" || !absentIsAbsent) return undefined;
  return (compute.factors[joined.axis] ?? 1) === 1 ? joined : undefined;
}

function joinedAxisOf(source: ChunkSource): JoinedAxis | undefined {
  if (source.kind === "parts") return { store: source.store, axis: source.axis };
  return source.kind === "served" ? source.joined : undefined;
}
