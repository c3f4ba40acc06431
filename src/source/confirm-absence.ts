import { stat } from "node:fs/promises";
import { ZpublishError } from "../errors.js";
import type { ChunkFiles } from "./chunk-source.js";

/**
 * Makes sure that a chunk is absent, rather than the whole store: an unmounted or deleted one answers "no such file"
 * for everything, which a client would take for fill values.
 * @throws ZpublishError `source-unreadable` where the array's metadata is gone too.
 */
export async function confirmAbsence(source: ChunkFiles, key: string): Promise<void> {
  if (source.metadataFile === undefined) return;
  try {
    await stat(source.metadataFile);
  } catch (cause) {
    throw new ZpublishError(
      "source-unreadable",
      `chunk '${key}' cannot be read: the metadata of its array is no longer in the store`,
      { details: { key }, cause },
    );
  }
}
