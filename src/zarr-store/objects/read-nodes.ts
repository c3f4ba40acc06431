import { type ErrorData, errorToData, ZpublishError } from "../../errors.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import { workThrough } from "../../event-loop/work-through.js";
import { isJsonObject } from "../../json/json-value.js";
import { parseJsonAround } from "../../json/parse-json.js";
import { nodeName } from "../../model/data-tree.js";
import { consolidatedNodes, copyText, type ListedTexts, listedDocuments } from "../consolidated-metadata.js";
import { describesArray, describesNode, type documentNames } from "../node-documents.js";
import type { StoreDocuments } from "./store-documents.js";

/** Nodes of a store, as texts of their documents. */
export interface ReadNodes {
  /** By path without a leading slash; empty for the root. */
  readonly nodes: ReadonlyMap<string, ListedTexts>;
  /** Name of the document that lists all nodes; undefined if each has its own. */
  readonly listedIn: ".zmetadata" | "zarr.json" | undefined;
  readonly warnings: readonly string[];
}

/** Options of {@link readNodes}. */
export interface ReadNodesOptions {
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
export async function readNodes(options: ReadNodesOptions): Promise<ReadNodes | undefined> {
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

/**
 * Reads the nodes that consolidated metadata lists, by path without a leading slash. Undefined if there is none that can be understood.
 * @param zarrJson Text of the root's `zarr.json`.
 * @param zmetadata Text of `.zmetadata`, which wins.
 */
export async function readConsolidated(
  zarrJson: string | undefined,
  zmetadata: string | undefined,
): Promise<ReadonlyMap<string, ListedTexts> | undefined> {
  if (zmetadata === undefined) return zarrJson === undefined ? undefined : readConsolidatedV3(zarrJson);
  const listed = await readZmetadata(zmetadata);
  return "problem" in listed ? undefined : listed;
}

async function readZmetadata(
  text: string,
): Promise<Map<string, ListedTexts> | { readonly problem: ErrorData }> {
  try {
    const listed = await runCooperatively(consolidatedNodes(text));
    return new Map([...listed.paths].map((path) => [path, listed.get(path) ?? {}]));
  } catch (error) {
    return { problem: errorToData(error) };
  }
}

/** Reads the consolidated metadata in a group's `zarr.json` (zarr-python 3, "inline"); undefined if it has none. */
async function readConsolidatedV3(text: string): Promise<Map<string, ListedTexts> | undefined> {
  if (!text.includes('"consolidated_metadata"')) return undefined;
  let listing: string | undefined;
  let others = "";
  const root = await runCooperatively(
    parseJsonAround(text, "consolidated_metadata", (key, start, end) => {
      if (key !== "metadata") return;
      listing = text.slice(start, end);
      others = `${text.slice(0, start)}{}${text.slice(end)}`;
    }),
  ).catch(() => undefined);
  // The document is reported as invalid when the node is made of it.
  if (listing === undefined || !isJsonObject(root)) return undefined;
  // As text, since a parsed document may lose what JSON cannot say, such as NaN.
  const nodes = new Map<string, ListedTexts>([["", { "zarr.json": others }]]);
  const around = `{"metadata":${listing}}`;
  await runCooperatively(
    parseJsonAround(around, "metadata", (path, start, end) => {
      nodes.set(path, { "zarr.json": copyText(around.slice(start, end)) });
    }),
  );
  return nodes;
}

/** Reads every node's own documents, from the root on. */
async function walk(
  options: ReadNodesOptions,
  version: readonly (typeof documentNames)[number][],
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
