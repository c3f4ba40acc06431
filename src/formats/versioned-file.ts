import { ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import type { ByteStore, ObjectStat, ObjectVersion } from "../stores/byte-store.js";
import type { FreshObjects } from "../stores/object-versions.js";
import type { StoredVersion } from "../zarr/chunk-reader.js";
import type { StoredFile } from "../zarr/stored-tree.js";

/** One version of a file in a store. */
export interface VersionedFile extends StoredFile {
  readonly version: ObjectVersion;
  /** Directory of a local file, and its name there; undefined if the file is elsewhere. */
  readonly local: { readonly directory: string; readonly key: string } | undefined;
}

/**
 * Creates a version of a file.
 * @param objects States of the store's objects, which say for how long they are believed. Local files are checked each time.
 * @param identity As in `StoredTree`: errors name it, so that the dataset is read again.
 * @param hasMoved Tells whether the location leads to another file by now. Default: it never does.
 */
export function createVersionedFile(
  store: ByteStore,
  key: string,
  { version, byteLength }: ObjectStat,
  objects: FreshObjects,
  identity: string,
  hasMoved: () => Promise<boolean> = async () => false,
): VersionedFile {
  const { token } = version;
  const name = key.slice(key.lastIndexOf("/") + 1);
  const local = store.local && { directory: store.location, key };

  function replaced(cause?: unknown): ZpublishError {
    return new ZpublishError("source-changed", `'${name}' is no longer the file that was opened`, {
      details: { key: name, staleIdentity: identity },
      cause,
    });
  }

  function gone(): ZpublishError {
    return new ZpublishError("source-unreadable", `'${name}' is no longer there`, { details: { key: name } });
  }

  /**
   * Waits for an answer about the file; undefined means that it is not there. If the location leads elsewhere by now, the file that it
   * led to may be gone for good.
   */
  async function answerOf<T>(answer: MaybePromise<T | undefined>): Promise<T> {
    try {
      const found = await answer;
      if (found !== undefined) return found;
      throw gone();
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      if (error.code === "source-changed") objects.forget(key);
      else if (error.code !== "source-unreadable" || !(await hasMoved())) throw error;
      throw replaced(error);
    }
  }

  function look(wasChecked: boolean | undefined): MaybePromise<StoredVersion> {
    if (store.local !== undefined) return store.local.version(key, wasChecked);
    const isUnchanged = () => objects.known(key)?.version?.token === token;
    if (isUnchanged()) return { token, isUnchanged };
    return objects.look(key, "none").then((found) => ({ token: found.version?.token }));
  }

  async function assertUnchanged(looked: MaybePromise<StoredVersion>): Promise<StoredVersion> {
    const found = await answerOf(Promise.resolve(looked).then((each) => each.token));
    if (found === token) return { token };
    throw replaced();
  }

  const { urlFor } = store;
  return {
    ...{ name, store: store.identity, version, byteLength, local },
    urlFor: urlFor && ((seconds) => urlFor(key, seconds)),
    place: () => store.placeOf?.(key),
    check(wasChecked) {
      const looked = look(wasChecked);
      return !(looked instanceof Promise) && looked.token === token ? looked : assertUnchanged(looked);
    },
    read(offset, length, allocate) {
      const found = (store.local ?? store).read(key, {
        range: { offset, byteLength: length },
        version,
        allocate,
      });
      if (found !== undefined && !(found instanceof Promise)) return found.bytes;
      return answerOf(found).then(({ bytes }) => bytes);
    },
  };
}
