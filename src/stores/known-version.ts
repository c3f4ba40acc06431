import { ZpublishError } from "../errors.js";
import type { ByteStore, ObjectVersion } from "./byte-store.js";

/**
 * Asserts that the object from which an index was read still has the version of the index.
 * @throws ZpublishError `source-unreadable` if there is no such object; `source-changed` if it has another version.
 */
export async function assertKnownVersion(
  container: ByteStore,
  key: string,
  version: ObjectVersion,
  signal?: AbortSignal,
): Promise<void> {
  const found = await container.stat(key, signal);
  if (found === undefined) {
    throw new ZpublishError("source-unreadable", `'${key}' is no longer there`, { details: { key } });
  }
  if (found.version.token === version.token) return;
  throw new ZpublishError("source-changed", `'${key}' has been replaced`, { details: { key } });
}
