import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";

/** That a key names no chunk of an array, or one that is absent. */
export function chunkNotFound(
  snapshot: DatasetSnapshot,
  { plan }: ServedArray,
  chunkKey: string,
): ZpublishError {
  return new ZpublishError(
    "not-found",
    `Chunk '${chunkKey}' not found in variable '${plan.path}' of dataset '${snapshot.id}'`,
  );
}
