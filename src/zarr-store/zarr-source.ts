import { ZpublishError } from "../errors.js";
import type { ByteStore, ObjectVersion } from "../stores/byte-store.js";
import { type Source, type StoredTree, withinLocation } from "../zarr/stored-tree.js";
import { createLocalHierarchy } from "./local-hierarchy.js";
import type { Hierarchy } from "./nodes.js";
import { createObjectHierarchy, type ObjectHierarchyOptions } from "./object-hierarchy.js";

/**
 * Creates the source of a Zarr store, v2 or v3, in a local directory, without any I/O. A store that is a single array becomes a
 * flat dataset of one variable, named after the directory without its extension.
 * @param location As the operator wrote it; relative to the working directory.
 */
export function createDirectorySource(location: string): Source {
  return createZarrSource(location, createLocalHierarchy(location));
}

/** A Zarr store in a byte store. */
export interface ObjectSourceOptions extends ObjectHierarchyOptions {
  /** As the operator wrote it, for messages. */
  readonly location: string;
}

/** Creates the source of a Zarr store, v2 or v3, whose objects are read through a byte store. */
export function createObjectSource(options: ObjectSourceOptions): Source {
  return createZarrSource(options.location, createObjectHierarchy(options));
}

function createZarrSource(location: string, hierarchy: Hierarchy): Source {
  let fingerprint: string | undefined;

  async function readTree(progress?: (arraysRead: number) => void): Promise<StoredTree> {
    let arraysRead = 0;
    const tree = await hierarchy.read(() => progress?.(++arraysRead));
    fingerprint = tree.fingerprint;
    return tree;
  }

  const check = hierarchy.check?.bind(hierarchy);
  return {
    location,
    ...(check && { check: () => withinLocation(location, check) }),
    readTree: (progress) => withinLocation(location, () => readTree(progress)),
    fingerprint: () =>
      withinLocation(location, async () => {
        if (fingerprint === undefined) return (await readTree()).fingerprint;
        return (await hierarchy.hasChanged()) ? `${fingerprint}, changed` : fingerprint;
      }),
    close: async () => undefined,
  };
}

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
  /** Opens what else than a Zarr store may be in it; undefined if it is one. Default: it is one. */
  readonly sourceIn?: (store: ByteStore) => Promise<Source | undefined>;
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
    get versions() {
      return current?.source.versions;
    },
    readTree: async (progress) => {
      if (
        current === undefined ||
        (await withinLocation(location, versionNow)).token !== current.version.token
      ) {
        const store = await withinLocation(location, open);
        const other = await withinLocation(location, async () => options.sourceIn?.(store));
        const source = other ?? createObjectSource({ ...options, store, warnings: store.warnings ?? [] });
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
