import { ZpublishError } from "../../errors.js";
import type { ByteStore, ObjectVersion } from "../../stores/byte-store.js";
import type { Source, StoredTree } from "../../zarr/stored-tree.js";
import { withinLocation } from "../read-store.js";
import { createObjectSource, type ObjectSourceOptions } from "./object-source.js";

/** A store that was opened from an index: an archive's directory, or a file of references. */
export interface IndexedStore extends ByteStore {
  /** Version of the object that has the index. */
  readonly version: ObjectVersion;
  /** Default: none. */
  readonly warnings?: readonly string[];
}

/** Options of {@link createIndexedSource}. */
export interface IndexedSourceOptions extends Omit<ObjectSourceOptions, "store" | "warnings"> {
  /** The store that has the index, and its key there. */
  readonly container: ByteStore;
  readonly key: string;
  /** Reads the index. */
  readonly open: () => Promise<IndexedStore>;
}

/** Creates the source of a Zarr store behind an index. If the index has another version, everything is read again. */
export function createIndexedSource(options: IndexedSourceOptions): Source {
  const { location, container, key, open } = options;
  let current: { readonly version: ObjectVersion; readonly source: Source } | undefined;
  let latest: StoredTree | undefined;

  async function versionNow(): Promise<ObjectVersion> {
    const found = await container.stat(key);
    if (found !== undefined) return found.version;
    throw new ZpublishError(
      latest === undefined ? "invalid-metadata" : "source-unreadable",
      latest === undefined ? "it does not exist" : "it is no longer there",
    );
  }

  return {
    location,
    readTree: async (progress) => {
      if (
        current === undefined ||
        (await withinLocation(location, versionNow)).token !== current.version.token
      ) {
        const store = await withinLocation(location, open);
        const source = createObjectSource({ ...options, store, warnings: store.warnings ?? [] });
        current = { version: store.version, source };
      }
      latest = await current.source.readTree(progress);
      return latest;
    },
    fingerprint: () =>
      withinLocation(location, async () => {
        const { token } = await versionNow();
        return token === current?.version.token ? latest?.fingerprint : `changed:${token}`;
      }),
    close: async () => undefined,
  };
}
