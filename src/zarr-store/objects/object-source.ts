import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { ZpublishError } from "../../errors.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import type { ByteStore } from "../../stores/byte-store.js";
import { createFreshObjects, type Freshness } from "../../stores/object-versions.js";
import {
  comparePaths,
  nameProblem,
  printablePath,
  type Refusal,
  type Source,
  type StoredTree,
} from "../../zarr/stored-tree.js";
import { assembleTree } from "../assemble-tree.js";
import { listedNode } from "../listed-nodes.js";
import type { StoreNode } from "../parse-node.js";
import { withinLocation } from "../read-store.js";
import { openObjectChunkReader } from "./object-chunk-reader.js";
import { readNodes } from "./read-nodes.js";
import { createStoreDocuments, type StoreDocuments } from "./store-documents.js";

/** A Zarr store in a byte store. */
export interface ObjectSourceOptions {
  /** As the operator wrote it, for messages. */
  readonly location: string;
  /** The store; its keys begin at the root of the Zarr store. */
  readonly store: ByteStore;
  /** Name of the array, if the store is a single one. */
  readonly rootArrayName: string;
  readonly freshness: Freshness;
  /** Paths of arrays to read if nothing lists them. */
  readonly names: readonly string[];
  /** Documents of the store, of which some may be read already. Default: none is. */
  readonly documents?: StoreDocuments;
  /** Warnings about the store itself. */
  readonly warnings?: readonly string[];
}

/** Creates the source of a Zarr store, v2 or v3, whose objects are read through a byte store. */
export function createObjectSource(options: ObjectSourceOptions): Source {
  const { location, store, rootArrayName, names } = options;
  const { documents = createStoreDocuments(store) } = options;
  const objects = createFreshObjects(store, options.freshness);
  const chunkObjects = Object.freeze({
    store: store.identity,
    openReader: (source: Parameters<typeof openObjectChunkReader>[0]) =>
      openObjectChunkReader(source, objects),
  });
  let nodesBefore = new Map<string, StoreNode>();
  let listedInBefore: string | undefined;
  let fingerprint: string | undefined;
  /** False until the first reading, for which documents may have been read already. */
  let isBegun = false;
  /** Names below each group, if groups had to be listed. */
  let listings = new Map<string, readonly string[]>();

  async function listGroups(prefix: string): Promise<readonly string[]> {
    return [...((await store.list?.(prefix))?.prefixes ?? [])].sort();
  }

  /** Tells whether groups have other names below them than when the store was read. */
  async function haveListingsChanged(): Promise<boolean> {
    const changes = await Promise.all(
      [...listings].map(async ([prefix, names]) => !isDeepStrictEqual(await listGroups(prefix), names)),
    );
    return changes.includes(true);
  }

  async function read(progress?: (arraysRead: number) => void): Promise<StoredTree> {
    if (isBegun) documents.begin();
    isBegun = true;
    try {
      return await readDocuments(progress);
    } catch (error) {
      documents.abandon();
      throw error;
    }
  }

  async function readDocuments(progress?: (arraysRead: number) => void): Promise<StoredTree> {
    const listed = new Map<string, readonly string[]>();
    let arraysRead = 0;
    const onArray = () => progress?.(++arraysRead);
    const found = await readNodes({
      documents,
      canList: store.list !== undefined,
      async listGroups(prefix) {
        const names = await listGroups(prefix);
        listed.set(prefix, names);
        return names;
      },
      names,
      onArray,
    });
    if (found === undefined)
      throw new ZpublishError(
        "invalid-metadata",
        "no Zarr store: expected .zgroup, .zarray, .zmetadata or zarr.json in it, found none of them",
      );
    const refused: Refusal[] = [];
    const nodes: StoreNode[] = [];
    const { listedIn } = found;
    const before = listedIn === listedInBefore ? nodesBefore : new Map<string, StoreNode>();
    for (const [path, texts] of found.nodes) {
      const problem = path === "" ? undefined : nameProblem(path);
      if (problem !== undefined) {
        refused.push({ path: printablePath(path), reason: problem });
        continue;
      }
      const isV2 = texts["zarr.json"] === undefined;
      const own = `${path === "" ? "" : `${path}/`}${isV2 ? ".zarray" : "zarr.json"}`;
      const place = {
        ...{ path, directory: path, root: "", rootArrayName, objects: chunkObjects },
        metadataFile: listedIn ?? own,
      };
      const node = listedNode(place, texts, {}, before.get(path));
      if (listedIn !== undefined && node.isArray) onArray();
      nodes.push(node);
    }
    nodes.sort((a, b) => comparePaths(a.path, b.path));
    const assembled = await runCooperatively(assembleTree(nodes));
    nodesBefore = new Map(nodes.map((node) => [node.path, node]));
    const identity = hashOf([store.identity, ...documents.versions()]);
    listedInBefore = listedIn;
    listings = listed;
    fingerprint = hashOf([identity, JSON.stringify([...listed].sort())]);
    return Object.freeze({
      groups: Object.freeze(assembled.groups),
      refused: Object.freeze([...refused, ...assembled.refused]),
      warnings: Object.freeze([...(options.warnings ?? []), ...found.warnings, ...assembled.warnings]),
      identity,
      fingerprint,
    });
  }

  return {
    location,
    readTree: (progress) => withinLocation(location, () => read(progress)),
    fingerprint: () =>
      withinLocation(location, async () => {
        if (fingerprint === undefined) return (await read()).fingerprint;
        const changes = await Promise.all([documents.haveChanged(), haveListingsChanged()]);
        return changes.includes(true) ? `${fingerprint}, changed` : fingerprint;
      }),
    close: async () => undefined,
  };
}

function hashOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}
