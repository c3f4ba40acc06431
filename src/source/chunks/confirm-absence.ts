import { type Stats, stat } from "node:fs";
import { isMissing, ZpublishError } from "../../errors.js";
import type { ChunkFiles } from "../../zarr/chunk-source.js";
import type { FileCalls } from "../files/file-calls.js";
import { codeOf } from "../files/unreadable-file.js";

/**
 * Makes sure that a chunk is absent, rather than the whole store: an unmounted or deleted one answers "no such file"
 * for everything, which a client would take for fill values.
 * @throws ZpublishError `source-unreadable` where the array's metadata is gone too.
 */
async function confirmAbsence(calls: FileCalls, source: ChunkFiles, key: string): Promise<void> {
  const { metadataFile } = source;
  if (metadataFile === undefined) return;
  try {
    await calls.call<Stats>((done) => stat(metadataFile, done));
  } catch (cause) {
    const problem = isMissing(cause) ? "is no longer in the store" : `cannot be looked at (${codeOf(cause)})`;
    throw new ZpublishError(
      "source-unreadable",
      `chunk '${key}' cannot be read: the metadata of its array ${problem}`,
      { details: { key }, cause },
    );
  }
}

/**
 * Looks for something that may be absent, and once more after the store was found to be there: it may have been replaced between
 * two looks, and be there again.
 * @throws ZpublishError `source-unreadable` where the array's metadata is gone too, and what `find` throws.
 */
export async function findOrConfirmAbsence<T>(
  calls: FileCalls,
  source: ChunkFiles,
  key: string,
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const found = await find();
  if (found !== undefined || source.metadataFile === undefined) return found;
  await confirmAbsence(calls, source, key);
  return find();
}
