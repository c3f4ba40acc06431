import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { errorFromData, ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import { workThrough } from "../event-loop/work-through.js";
import { nodeName } from "../model/data-tree.js";
import type { ByteStore, ObjectVersion } from "../stores/byte-store.js";
import { createFreshObjects, type Freshness } from "../stores/object-versions.js";
import { nameProblem, printablePath, type Refusal, type StoredTree } from "../zarr/stored-tree.js";
import { openObjectChunkReader } from "./chunk-reader.js";
import { type ListedTexts, listedDocuments, readConsolidatedV3, readZmetadata } from "./consolidated.js";
import { type DocumentName, describesArray, describesNode, MAX_DOCUMENT_BYTES, textOf } from "./documents.js";
import { byPath, type Hierarchy, listedNode, type StoreNode, storedTreeOf } from "./nodes.js";

/** A Zarr store in a byte store. */
export interface ObjectHierarchyOptions {
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

/**
 * Creates the hierarchy of a Zarr store, v2 or v3, whose objects are read through a byte store. Consolidated metadata counts alone if
 * there is any, since each document of its own would be a request. A change is noticed by the versions of documents and by listings.
 */
export function createObjectHierarchy(options: ObjectHierarchyOptions): Hierarchy {
  const { store, rootArrayName, names } = options;
  const { documents = createStoreDocuments(store) } = options;
  const objects = createFreshObjects(store, options.freshness);
  const chunkObjects = Object.freeze({
    store: store.identity,
    openReader: (source: Parameters<typeof openObjectChunkReader>[0]) =>
      openObjectChunkReader(source, objects),
  });
  let nodesBefore: ReadonlyMap<string, StoreNode> = new Map();
  let listedInBefore: string | undefined;
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

  async function read(onArray: () => void): Promise<StoredTree> {
    const listed = new Map<string, readonly string[]>();
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
        "it is no Zarr store: expected .zgroup, .zarray, .zmetadata or zarr.json in it, found none of them",
        { details: { isAbsent: true } },
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
    const identity = hashOf([store.identity, ...documents.versions()]);
    const tree = await storedTreeOf({
      nodes: await runCooperatively(sortCooperatively(nodes, byPath)),
      refused,
      warnings: [...(options.warnings ?? []), ...found.warnings],
      identity,
      fingerprint: hashOf([identity, JSON.stringify([...listed].sort())]),
    });
    nodesBefore = new Map(nodes.map((node) => [node.path, node]));
    listedInBefore = listedIn;
    listings = listed;
    return tree;
  }

  return {
    async read(onArray) {
      if (isBegun) documents.begin();
      isBegun = true;
      try {
        return await read(onArray);
      } catch (error) {
        documents.abandon();
        throw error;
      }
    },
    async hasChanged() {
      const changes = await Promise.all([documents.haveChanged(), haveListingsChanged()]);
      return changes.includes(true);
    },
  };
}

function hashOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}

/** Nodes of a store, as texts of their documents. */
interface ReadNodes {
  /** By path without a leading slash; empty for the root. */
  readonly nodes: ReadonlyMap<string, ListedTexts>;
  /** Name of the document that lists all nodes; undefined if each has its own. */
  readonly listedIn: ".zmetadata" | "zarr.json" | undefined;
  readonly warnings: readonly string[];
}

/** Options of {@link readNodes}. */
interface ReadNodesOptions {
  readonly documents: StoreDocuments;
  /** True if the store can list names. */
  readonly canList: boolean;
  /** Lists the names below a group. @param prefix Empty, or with a slash at the end. */
  readonly listGroups: (prefix: string) => Promise<readonly string[]>;
  /** Paths of arrays that the operator names, in case nothing lists them. */
  readonly names: readonly string[];
  readonly onArray: () => void;
}

const VERSION_2 = [".zarray", ".zgroup", ".zattrs"] as const;
const VERSION_3 = ["zarr.json"] as const;
/** Nodes that are read at a time; the store has its own bound of requests. */
const CONCURRENCY = 32;
/** Bound for a prefix that contains much else than arrays. */
const MAX_NODES = 250_000;

/**
 * Reads the nodes of a store, with as few requests as possible: consolidated metadata if there is any, else what the store lists,
 * else the arrays that the operator names.
 * @returns Undefined if there is no store.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable`, `unsupported`
 */
async function readNodes(options: ReadNodesOptions): Promise<ReadNodes | undefined> {
  const { documents } = options;
  const [zarrJson, zmetadata] = await Promise.all([
    documents.read("zarr.json"),
    documents.read(".zmetadata"),
  ]);
  if (zmetadata !== undefined) {
    const listed = await readZmetadata(zmetadata);
    const warnings =
      zarrJson === undefined ? [] : ["'/': metadata of Zarr v2 and v3 at one place; v2 is served"];
    if (!("problem" in listed)) return { nodes: listed, listedIn: ".zmetadata", warnings };
    const problem = `${listed.problem.message}; consolidated metadata is ignored`;
    const walked = await walk(options, VERSION_2, {});
    return walked && { ...walked, warnings: [...warnings, problem] };
  }
  if (zarrJson === undefined) return walk(options, VERSION_2, {});
  const consolidated = await readConsolidatedV3(zarrJson);
  if (consolidated !== undefined) return { nodes: consolidated, listedIn: "zarr.json", warnings: [] };
  return walk(options, VERSION_3, { "zarr.json": zarrJson });
}

/** Reads every node's own documents, from the root on. */
async function walk(
  options: ReadNodesOptions,
  version: readonly DocumentName[],
  rootTexts: ListedTexts,
): Promise<ReadNodes | undefined> {
  const { documents, canList, listGroups, names, onArray } = options;
  const nodes = new Map<string, ListedTexts>();

  async function textsOf(path: string): Promise<ListedTexts> {
    const prefix = path === "" ? "" : `${path}/`;
    const texts = await Promise.all(version.map((name) => documents.read(prefix + name)));
    return Object.fromEntries(
      version.flatMap((name, index) => (texts[index] === undefined ? [] : [[name, texts[index]]])),
    );
  }

  /** Reads a node. @returns Paths below it to be read, too */
  async function visit(path: string, given?: ListedTexts): Promise<readonly string[]> {
    if (nodes.size > MAX_NODES)
      throw new ZpublishError("unsupported", `expected at most ${MAX_NODES} groups and arrays, found more`);
    const texts = given ?? (await textsOf(path));
    const isNode = Object.keys(texts).length > 0;
    if (isNode) nodes.set(path, texts);
    if (isNode && describesArray(listedDocuments(texts))) {
      onArray();
      return [];
    }
    if (!canList || (!isNode && nodeName(path).startsWith("."))) return [];
    const below = path === "" ? "" : `${path}/`;
    return (await listGroups(below)).map((name) => below + name);
  }

  const root = Object.keys(rootTexts).length > 0 ? rootTexts : await textsOf("");
  if (!describesNode(root) && names.length === 0) return undefined;
  const first = [...(await visit("", root)), ...withParents(names)];
  if (describesNode(root) && !nodes.has("")) nodes.set("", root);
  if (first.length === 0 && !canList && !describesArray(listedDocuments(root)))
    throw new ZpublishError(
      "unsupported",
      'its groups cannot be listed: expected consolidated metadata, or arrays that are named under "variables"',
    );
  await workThrough(new Set(first), CONCURRENCY, async (path, add) => add(await visit(path)));
  return nodes.size === 0 ? undefined : { nodes, listedIn: undefined, warnings: [] };
}

/** Returns paths and the groups that they are in, without the root. */
function withParents(paths: readonly string[]): string[] {
  return paths.flatMap((path) => {
    const segments = path.split("/");
    return segments.map((_, depth) => segments.slice(0, depth + 1).join("/"));
  });
}

/** Documents that are checked at a time: a refresh leaves most of a store's requests to chunks. */
const CHECKED_AT_ONCE = 8;

/** A metadata document as it was read last. */
interface KnownDocument {
  /** Undefined if it does not exist. */
  readonly version: ObjectVersion | undefined;
  readonly text: string | undefined;
}

/** Metadata documents of one store. A document that has not changed is not sent again. */
export interface StoreDocuments {
  /**
   * Reads the text of a document; undefined if there is none.
   * @throws ZpublishError `source-unreadable`, `invalid-metadata`
   */
  read(key: string): Promise<string | undefined>;
  /** Asks for all documents that were read since `begin` whether they have changed, and returns whether one has. */
  haveChanged(): Promise<boolean>;
  /** Begins another reading of the store: documents that are not read in it are forgotten. */
  begin(): void;
  /** Takes back the reading since `begin`, which failed: what was read before is compared and served as before. */
  abandon(): void;
  /** Lists keys and versions of the documents that exist and were read since `begin`, in the order of keys. */
  versions(): readonly string[];
}

/** Creates the documents of a store, none of which is read yet. */
export function createStoreDocuments(store: ByteStore): StoreDocuments {
  let before = new Map<string, KnownDocument>();
  let documents = new Map<string, KnownDocument>();

  async function fetch(key: string, known: KnownDocument | undefined): Promise<KnownDocument> {
    const options = { maxByteLength: MAX_DOCUMENT_BYTES };
    const found =
      known?.version === undefined
        ? await store.read(key, options)
        : await store.readIfChanged(key, known.version, options);
    if (found === "unchanged") return known as KnownDocument;
    if (found === undefined) return { version: undefined, text: undefined };
    const text = textOf(found.bytes, key);
    if (typeof text !== "string") throw errorFromData(text);
    return { version: found.version, text };
  }

  return {
    begin() {
      before = documents;
      documents = new Map();
    },
    abandon() {
      documents = before;
    },
    async read(key) {
      const known = documents.get(key) ?? (await fetch(key, before.get(key)));
      documents.set(key, known);
      return known.text;
    },
    async haveChanged() {
      let hasChanged = false;
      await workThrough(documents, CHECKED_AT_ONCE, async ([key, known]) => {
        if (hasChanged) return;
        try {
          if ((await fetch(key, known)).version?.token !== known.version?.token) hasChanged = true;
        } catch (error) {
          if (!(error instanceof ZpublishError) || error.code === "source-unreadable") throw error;
          // A document that cannot be understood now has changed.
          hasChanged = true;
        }
      });
      return hasChanged;
    },
    versions() {
      const existing = [...documents].filter(([, { version }]) => version !== undefined);
      return existing.map(([key, { version }]) => `${key}\0${version?.token}`).sort();
    },
  };
}
