import { type Stats, stat } from "node:fs";
import { isMissing, ZpublishError } from "../../errors.js";
import { codeOf, type FileCalls } from "../../stores/file-calls.js";
import type { ChunkFiles } from "../../zarr/chunk-reader.js";

/**
 * Asserts that the array's metadata exists. If not, the whole store is absent rather than the chunk. A store that is unmounted
 * or deleted has no files at all, which clients would read as fill values.
 * @throws ZpublishError `source-unreadable`
 */
async function assertMetadataExists(calls: FileCalls, source: ChunkFiles, key: string): Promise<void> {
  const { metadataFile } = source;
  if (metadataFile === undefined) return;
  try {
    await calls.call<Stats>((done) => stat(metadataFile, done));
  } catch (cause) {
    const problem = isMissing(cause) ? "is no longer in the store" : `cannot be read (${codeOf(cause)})`;
    throw new ZpublishError(
      "source-unreadable",
      `chunk '${key}' cannot be read: the metadata of its array ${problem}`,
      { details: { key }, cause },
    );
  }
}

/**
 * Calls `find`, and if it finds nothing, checks that the array's metadata exists and calls it again: the store may have been
 * replaced in between.
 * @throws ZpublishError `source-unreadable` if the metadata does not exist either; what `find` throws
 */
export async function findOrConfirmAbsence<T>(
  calls: FileCalls,
  source: ChunkFiles,
  key: string,
  find: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const found = await find();
  if (found !== undefined || source.metadataFile === undefined) return found;
  await assertMetadataExists(calls, source, key);
  return find();
}
