import { type ErrorData, errorToData, ZpublishError } from "../errors.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { isJsonObject, type JsonValue } from "../json/json-value.js";
import { parseJsonAround, type TakeEntry } from "../json/parse-json.js";
import { invalidField } from "../zarr/metadata-fields.js";
import {
  type DocumentName,
  documentNames,
  type NodeDocument,
  type NodeDocuments,
  parseNow,
} from "./documents.js";

/** Texts of one node's documents in `.zmetadata`. */
export type ListedTexts = Readonly<Partial<Record<DocumentName, string>>>;

/**
 * The nodes that `.zmetadata` lists. Most stores have each document in a file too, and that one counts. So a listed document is
 * parsed only if it is needed.
 */
export interface ConsolidatedNodes {
  /** Paths of all nodes, without a leading slash; empty for the root. */
  readonly paths: Iterable<string>;
  /** Undefined if the node is not listed. */
  get(path: string): ListedTexts | undefined;
}

/** The nodes of a store without `.zmetadata`. */
export const noConsolidatedNodes: ConsolidatedNodes = Object.freeze({ paths: [], get: () => undefined });

interface Range {
  readonly start: number;
  readonly end: number;
}

type NodeRanges = Partial<Record<DocumentName, Range>>;

/** Finds the nodes of a `.zmetadata`. @throws ZpublishError `invalid-metadata` */
export function* consolidatedNodes(text: string): CooperativeTask<ConsolidatedNodes> {
  const nodes = new Map<string, NodeRanges>();
  const json = yield* parse(text, (key, start, end) => {
    const slash = key.lastIndexOf("/");
    const name = key.slice(slash + 1) as DocumentName;
    if (!documentNames.includes(name)) return;
    const path = slash === -1 ? "" : key.slice(0, slash);
    const node = nodes.get(path);
    if (node === undefined) nodes.set(path, { [name]: { start, end } });
    else node[name] = { start, end };
  });
  if (!isJsonObject(json) || !isJsonObject(json.metadata)) {
    throw invalidField(".zmetadata", 'an object with an object "metadata"', json);
  }
  return {
    paths: nodes.keys(),
    get(path) {
      const ranges = nodes.get(path);
      return ranges === undefined ? undefined : textsOf(text, ranges);
    },
  };
}

function* parse(text: string, take: TakeEntry): CooperativeTask<JsonValue> {
  try {
    return yield* parseJsonAround(text, "metadata", take);
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `.zmetadata: ${error.message}`, { details: error.details });
  }
}

function textsOf(text: string, ranges: Readonly<NodeRanges>): ListedTexts {
  const texts: Partial<Record<DocumentName, string>> = {};
  for (const name of documentNames) {
    const range = ranges[name];
    if (range !== undefined) texts[name] = copyText(text.slice(range.start, range.end));
  }
  return texts;
}

/** Copies a text, since a slice of a string retains the whole string. */
function copyText(text: string): string {
  return Buffer.from(text).toString();
}

/** Parses documents, of which some may be no JSON. */
export function listedDocuments(texts: ListedTexts): NodeDocuments {
  const documents: Partial<Record<DocumentName, NodeDocument>> = {};
  for (const name of documentNames) {
    const text = texts[name];
    if (text !== undefined) documents[name] = parseNow(text, name);
  }
  return documents;
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

/** Reads the nodes that a `.zmetadata` lists, or says why it cannot be understood. */
export async function readZmetadata(
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
export async function readConsolidatedV3(text: string): Promise<Map<string, ListedTexts> | undefined> {
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
