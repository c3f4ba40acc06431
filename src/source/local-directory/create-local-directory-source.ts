import { readdir, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { type ErrorData, errorToData, ZpublishError } from "../../errors.js";
import { printablePath, refusedName } from "../node-name.js";
import type { Source, StoredTree } from "../source.js";
import { createStoreFiles } from "../store-files.js";
import { assembleTree } from "./assemble-tree.js";
import { type ConsolidatedNodes, parseConsolidatedMetadata } from "./consolidated-metadata.js";
import { createFileRecords, type FileRecords } from "./file-records.js";
import { readDocument } from "./node-documents.js";
import { type StoreNode, walkStore } from "./walk-store.js";

/** Name of the variable where the store is a single array and its directory's name is none. */
const fallbackArrayName = "data";

interface ReadStore {
  readonly tree: StoredTree;
  readonly records: FileRecords;
}

/**
 * A Zarr store, v2 or v3, in a local directory. A store that is a single array becomes a flat dataset of one variable,
 * named after the directory without its extension. Does no I/O until it is asked.
 * @param location As the operator wrote it; relative to the working directory.
 */
export function createLocalDirectorySource(location: string): Source {
  let latest: FileRecords | undefined;
  return {
    location,
    async readTree(progress) {
      const { tree, records } = await readStore(location, progress);
      latest = records;
      return tree;
    },
    async fingerprint() {
      const root = await realRoot(location);
      if (latest === undefined) latest = (await readStore(location)).records;
      // Where the location is a link that leads elsewhere now, everything is new.
      return latest.root === root ? await latest.fingerprintNow() : `moved:${root}`;
    },
    close: async () => undefined,
  };
}

async function readStore(location: string, progress?: (arraysRead: number) => void): Promise<ReadStore> {
  const root = await realRoot(location);
  const records = createFileRecords(root);
  const files = createStoreFiles(root);
  const document = await readDocument(files, root, ".zmetadata", records);
  const warnings: string[] = [];
  let consolidated: ConsolidatedNodes = new Map();
  let problem: ErrorData | undefined;
  if (document !== undefined) {
    try {
      consolidated = parseConsolidatedMetadata(document);
    } catch (error) {
      problem = errorToData(error);
    }
  }
  let arraysRead = 0;
  const onArray = () => progress?.(++arraysRead);
  const walked = await withinLocation(location, () =>
    walkStore({ root, files, records, consolidated, onArray }),
  );
  if (!hasRoot(walked.nodes)) {
    if (problem !== undefined) throw new ZpublishError(problem.code, `${location}: ${problem.message}`);
    if (document === undefined) throw await noStore(location, root);
  }
  if (problem !== undefined) warnings.push(`${problem.message}; consolidated metadata is ignored`);
  const assembled = await withinLocation(location, async () =>
    assembleTree(walked.nodes, root, arrayNameOf(location)),
  );
  const tree = Object.freeze({
    groups: Object.freeze(assembled.groups),
    refused: Object.freeze([...walked.refused, ...assembled.refused]),
    warnings: Object.freeze([...warnings, ...assembled.warnings]),
    identity: records.identity(),
    fingerprint: records.fingerprint(),
  });
  return { tree, records };
}

/** @throws ZpublishError `invalid-metadata` where there is no directory, `source-unreadable` where it cannot be reached. */
async function realRoot(location: string): Promise<string> {
  try {
    const root = await realpath(resolve(location));
    if ((await stat(root)).isDirectory()) return root;
  } catch (cause) {
    const code = String((cause as { code?: unknown }).code);
    if (code === "ENOENT" || code === "ENOTDIR") {
      throw new ZpublishError("invalid-metadata", `${location} does not exist`, { cause });
    }
    throw new ZpublishError("source-unreadable", `${location} cannot be read (${code})`, { cause });
  }
  throw new ZpublishError(
    "invalid-metadata",
    `${location} is no Zarr store: expected a directory, found a file`,
  );
}

function hasRoot(nodes: readonly StoreNode[]): boolean {
  const root = nodes.find((node) => node.path === "");
  const documents = root?.documents ?? {};
  return (documents[".zarray"] ?? documents[".zgroup"] ?? documents["zarr.json"]) !== undefined;
}

async function noStore(location: string, root: string): Promise<ZpublishError> {
  const names = (await readdir(root)).sort();
  const shown = names.slice(0, 5).map(printablePath).join(", ");
  const found =
    names.length === 0 ? "nothing" : names.length > 5 ? `${shown} and ${names.length - 5} more` : shown;
  return new ZpublishError(
    "invalid-metadata",
    `${location} is no Zarr store: expected .zgroup, .zarray, .zmetadata or zarr.json in it, found ${found}`,
  );
}

async function withinLocation<T>(location: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `${location}: ${error.message}`, {
      details: error.details,
      cause: error,
    });
  }
}

function arrayNameOf(location: string): string {
  const base = resolve(location).split(/[\\/]/).at(-1) ?? "";
  const name = base.replace(/(?<=.)\.[^.]*$/, "");
  return name === "" || refusedName(name) !== undefined ? fallbackArrayName : name;
}
