import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import type { ByteStore, ObjectStat, ObjectVersion } from "../stores/byte-store.js";
import type { FreshObjects } from "../stores/object-versions.js";
import type { VersionCheck } from "../zarr/chunk-reader.js";

/** Time in which local files are read before the event loop may run. */
const localReads = createSlice();

/** Allocates memory for a read. */
type Allocate = (byteLength: number) => Uint8Array<ArrayBuffer>;

/**
 * One version of a file. Every read is made under the condition that the file still has it, so that bytes of two versions are never
 * mixed: else it throws `source-changed`, and the file has to be opened again.
 */
export interface VersionedFile {
  /** Name of the file without its folder, for messages. */
  readonly name: string;
  readonly version: ObjectVersion;
  readonly byteLength: number;
  /** Directory of a local file, and its name there; undefined if the file is elsewhere. */
  readonly local: { readonly directory: string; readonly key: string } | undefined;
  /**
   * Returns the version at once, and a way to check it again. Undefined if that might have to wait, or if the file has another one.
   * @param wasChecked As in `ChunkReader.versionNow`.
   */
  versionNow(wasChecked?: boolean): VersionCheck | undefined;
  /** Asserts that the file has the version still. @throws ZpublishError `source-changed`, `source-unreadable` */
  assertUnchanged(): Promise<void>;
  /** Reads bytes at once, from a local file system; undefined if the caller has to call `read`. */
  readNow(offset: number, byteLength: number, allocate?: Allocate): Uint8Array<ArrayBuffer> | undefined;
  /** @throws ZpublishError `source-changed`, `source-unreadable`; `corrupt-chunk` if the file has not these bytes. */
  read(offset: number, byteLength: number, allocate?: Allocate): Promise<Uint8Array<ArrayBuffer>>;
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
  const local = store.versionNow && { directory: store.location, key };

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
   * Runs what asks for the file; undefined means that it is not there. If the location leads elsewhere by now, the file that it led to
   * may be gone for good.
   */
  async function ask<T>(run: () => Promise<T | undefined>): Promise<T> {
    try {
      const found = await run();
      if (found !== undefined) return found;
      throw gone();
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      if (error.code === "source-changed") objects.forget(key);
      else if (error.code !== "source-unreadable" || !(await hasMoved())) throw error;
      throw replaced(error);
    }
  }

  return {
    name,
    version,
    byteLength,
    local,
    versionNow(wasChecked) {
      if (store.versionNow !== undefined) {
        const check = store.versionNow(key, wasChecked);
        return check?.version === token ? check : undefined;
      }
      const isUnchanged = () => objects.known(key)?.version?.token === token;
      return isUnchanged() ? { version: token, isUnchanged } : undefined;
    },
    async assertUnchanged() {
      const found = await ask(
        async () => (local ? await store.stat(key) : await objects.look(key, "none"))?.version,
      );
      if (found.token !== token) throw replaced();
    },
    readNow(offset, length, allocate) {
      const range = { offset, byteLength: length };
      return store.readNow?.(key, { range, version, allocate })?.bytes;
    },
    async read(offset, length, allocate) {
      // Such reads wait for nothing, and an index or a chunk may take thousands of them.
      if (local && localReads.isOver()) await localReads.next();
      const range = { offset, byteLength: length };
      return (await ask(() => store.read(key, { range, version, allocate }))).bytes;
    },
  };
}
