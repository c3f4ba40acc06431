import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { createSlice, runCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { type ByteStore, schemeOf } from "../../stores/byte-store.js";
import type { ReferenceOptions } from "../../stores/reference-store.js";
import type { FileChunks, ShardChunks } from "../../zarr/chunk-reader.js";
import {
  nameProblem,
  printablePath,
  type Refusal,
  type Source,
  type StoredTree,
  withinLocation,
} from "../../zarr/stored-tree.js";
import { openPlacedChunkReader } from "../chunk-reader.js";
import { byPath, listedNode, type StoreNode, storedTreeOf } from "../nodes.js";
import { createChunkPlaces } from "./chunk-places.js";
import { damaged } from "./icechunk-file.js";
import { createRepository, type RepositoryRef, type Resolved } from "./repository.js";
import { type ManifestExtent, readSnapshot, type SnapshotNode } from "./snapshot.js";

/** An Icechunk repository, and which of its states is served. */
export interface IcechunkSourceOptions {
  /** As the operator wrote it, for messages. */
  readonly location: string;
  /** The store that has the repository at its root. */
  readonly store: ByteStore;
  readonly ref: RepositoryRef;
  /** Where virtual chunks may be. */
  readonly references: ReferenceOptions;
  /** Name of the array, if the repository is a single one. */
  readonly rootArrayName: string;
}

/** A node as it was read last, and what its chunks depend on. */
interface KnownNode {
  readonly node: StoreNode;
  readonly of: Pick<SnapshotNode, "node" | "manifests">;
}

/**
 * Creates the source of an Icechunk repository of format 1, 2 or 2.1, without any I/O. Each snapshot is a tree of its own, whose chunks stay
 * what they are when the branch moves. Arrays that a commit has left alone are the same objects.
 */
export function createIcechunkSource(options: IcechunkSourceOptions): Source {
  const { location, store, ref, references, rootArrayName } = options;
  const repository = createRepository(store);
  const places = createChunkPlaces({ store, references, containers: () => repository.containers });
  let known: ReadonlyMap<string, KnownNode> = new Map();
  let latest: StoredTree | undefined;

  function objectsOf(node: string, manifests: readonly ManifestExtent[]) {
    const find = places(node, manifests);
    return Object.freeze({
      store: store.identity,
      isPinned: true,
      openReader: (source: FileChunks | ShardChunks) => {
        const { directory, keyEncoding } = source;
        const start = directory === "" ? 0 : directory.length + 1;
        const isScalar = manifests[0]?.from.length === 0;
        const first = start + (keyEncoding.name === "default" ? 2 : 0);
        return openPlacedChunkReader(source, store.identity, (path) =>
          find(isScalar ? [] : coordsOf(path, first), path),
        );
      },
    });
  }

  function nodeOf({ path, document, node, isArray, manifests }: SnapshotNode): KnownNode {
    const before = known.get(path);
    const isSame = before?.of.node === node && isDeepStrictEqual(before.of.manifests, manifests);
    const place = { path, directory: path, root: "", rootArrayName, objects: objectsOf(node, manifests) };
    const read = listedNode(place, { "zarr.json": document }, {}, isSame ? before.node : undefined);
    const rank = read.content.kind === "array" ? read.content.array.shape.length : undefined;
    if ((read.isArray && !isArray) || manifests.some(({ from }) => from.length !== (rank ?? from.length)))
      throw damaged(`${path}/zarr.json`, "expected what its snapshot says of it, received another node");
    return {
      node: read,
      of: isSame ? before.of : { node, manifests },
    };
  }

  const fingerprintOf = ({ snapshot }: Resolved) => hashOf(`${store.identity}\n${snapshot}`);

  async function readTree(progress?: (arraysRead: number) => void): Promise<StoredTree> {
    const resolved = await repository.resolve(ref);
    const fingerprint = fingerprintOf(resolved);
    if (latest?.fingerprint === fingerprint) return latest;
    // Chunks of an immutable dataset have no versions: cached ones are those of the snapshot, even if another repository has the tag.
    const identity = ref.kind === "branch" ? hashOf(store.identity) : fingerprint;
    const snapshot = await readSnapshot(store, resolved.snapshot);
    const refused: Refusal[] = [];
    const next = new Map<string, KnownNode>();
    const slice = createSlice();
    for (const node of snapshot.nodes) {
      if (slice.isOver()) await slice.next();
      const problem = node.path === "" ? undefined : nameProblem(node.path);
      if (problem !== undefined) refused.push({ path: printablePath(node.path), reason: problem });
      else next.set(node.path, nodeOf(node));
      if (node.manifests.length > 0) progress?.(next.size);
    }
    const nodes = [...next.values()].map(({ node }) => node);
    const tree = await storedTreeOf({
      nodes: await runCooperatively(sortCooperatively(nodes, byPath)),
      ...{ refused, identity, fingerprint, warnings: warningsOf(repository.containers, references) },
    });
    known = next;
    const at = ref.kind === "snapshot" ? "" : `, ${ref.kind} ${ref.name}`;
    latest = Object.freeze({
      ...tree,
      format: `Icechunk ${resolved.format}${at}, snapshot ${resolved.snapshot}`,
    });
    return latest;
  }

  return {
    location,
    readTree: (progress) => withinLocation(location, () => readTree(progress)),
    fingerprint: () => withinLocation(location, async () => fingerprintOf(await repository.resolve(ref))),
    versions: {
      list: () => withinLocation(location, repository.list),
      open: (name) =>
        withinLocation(location, async () => {
          const found = await repository.find(name);
          return found && createIcechunkSource({ ...options, ref: found });
        }),
    },
    close: async () => undefined,
  };
}

/** Returns the coordinates in the key of a chunk. @param first Place of the first of them. */
function coordsOf(key: string, first: number): number[] {
  const coords: number[] = [];
  let index = 0;
  for (let at = first; at < key.length; at++) {
    const digit = key.charCodeAt(at) - 0x30;
    if (digit >= 0) index = index * 10 + digit;
    else {
      coords.push(index);
      index = 0;
    }
  }
  coords.push(index);
  return coords;
}

/** Names the containers of virtual chunks that may not be read, one line each. */
function warningsOf(
  containers: ReadonlyMap<string, string>,
  { isAllowed }: ReferenceOptions,
): readonly string[] {
  return [...containers.values()].flatMap((url) =>
    schemeOf(url) === undefined || isAllowed(url)
      ? []
      : `virtual chunks at ${JSON.stringify(url)} are not read: expected "references": {"allow": [${JSON.stringify(url)}]}`,
  );
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 32);
}
