import { createHash } from "node:crypto";
import { type BigIntStats, readFile, stat } from "node:fs";
import { isMissing } from "../errors.js";
import type { FileCalls } from "../stores/file-calls.js";
import { recordOfStats } from "../zarr-store/file-record.js";
import { readFolder } from "./read-folder.js";

/** State of a file, or of the metadata of a Zarr store. */
export interface FileState {
  /** Text that changes whenever the content may have changed: sizes, modification times and inodes. */
  readonly record: string;
  /** Time of the last modification, in milliseconds since 1970. */
  readonly modifiedMs: number;
}

/** Documents of which a Zarr store has at least one. The first that exists changes whenever the others do, in most stores. */
export const ROOT_DOCUMENTS: readonly string[] = ["zarr.json", ".zmetadata", ".zgroup", ".zarray"];

/** Reason of a problem. */
export const NO_DOCUMENT =
  "it is named like a Zarr store: expected zarr.json, .zgroup, .zarray or .zmetadata in it";

/** Documents of a node below the root. */
const NODE_DOCUMENTS: readonly string[] = ["zarr.json", ".zgroup", ".zarray", ".zattrs"];
/** Divides the record of a root from that of the nodes below it. */
const NODES = "_nodes:";

const BIG_INTEGERS = { bigint: true } as const;
const NS_PER_MS = 1_000_000n;

/** Returns the state of what a path leads to, links followed. Undefined if there is nothing. @throws what `stat` throws, NoAnswerError */
export async function statPath(calls: FileCalls, path: string): Promise<BigIntStats | undefined> {
  try {
    return await calls.call<BigIntStats>((done) => stat(path, BIG_INTEGERS, done));
  } catch (error) {
    if (isMissing(error)) return undefined;
    throw error;
  }
}

/** Returns the state of a file from its stats. */
export function fileState(found: BigIntStats): FileState {
  return { record: recordOfStats(found), modifiedMs: Number(found.mtimeNs / NS_PER_MS) };
}

/**
 * Returns the state of a Zarr store. Undefined if a directory is none, since it has no root document.
 * @param earlier If given, the state is of all metadata, attributes included. They are records of earlier looks, which save reading
 * documents again. Otherwise the first root document that exists is enough.
 * @throws what `stat` throws, NoAnswerError
 */
export async function storeState(
  calls: FileCalls,
  directory: string,
  earlier?: readonly string[],
): Promise<FileState | undefined> {
  const states: FileState[] = [];
  const names: string[] = [];
  for (const name of ROOT_DOCUMENTS) {
    const found = await statPath(calls, `${directory}/${name}`);
    if (!found?.isFile()) continue;
    states.push(fileState(found));
    names.push(name);
    if (earlier === undefined) break;
  }
  if (states.length === 0) return undefined;
  if (earlier === undefined) return joinStates(states);
  const attributes = await statPath(calls, `${directory}/.zattrs`);
  if (attributes !== undefined) states.push({ ...fileState(attributes), modifiedMs: 0 });
  const root = joinStates(states);
  if (earlier.includes(root.record)) return root;
  const isGroup = names.includes("zarr.json") || names.includes(".zgroup");
  if (!isGroup || names.includes(".zmetadata")) return root;
  const isRead =
    names[0] !== "zarr.json" || earlier.some((record) => record.startsWith(`${root.record}${NODES}`));
  if (!isRead && (await isConsolidated(calls, `${directory}/zarr.json`))) return root;
  const nodes = joinStates(await nodeStates(calls, directory));
  const hash = createHash("sha256").update(nodes.record).digest("hex").slice(0, 40);
  return {
    record: `${root.record}${NODES}${hash}`,
    modifiedMs: Math.max(root.modifiedMs, nodes.modifiedMs),
  };
}

/** Tells whether a root document of Zarr v3 has the metadata of all nodes. */
async function isConsolidated(calls: FileCalls, path: string): Promise<boolean> {
  const text = await calls.call<string>((done) => readFile(path, "utf8", done));
  return /"consolidated_metadata"\s*:\s*\{/.test(text);
}

/** Returns the states of all documents of the nodes below a group, links left out. Arrays of Zarr v2 have nothing below them. */
async function nodeStates(calls: FileCalls, directory: string): Promise<FileState[]> {
  const names: string[] = [];
  try {
    await readFolder(calls, directory, calls.isLocal, (lot) => {
      for (const entry of lot) if (entry.isDirectory()) names.push(entry.name);
      return true;
    });
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
  const states: FileState[] = [];
  for (const name of names.sort()) {
    const path = `${directory}/${name}`;
    const found: string[] = [];
    for (const document of NODE_DOCUMENTS) {
      const stats = await statPath(calls, `${path}/${document}`);
      if (!stats?.isFile()) continue;
      const state = fileState(stats);
      states.push({ ...state, record: `${path}/${document}\0${state.record}` });
      found.push(document);
    }
    if (found.includes("zarr.json") || found.includes(".zgroup"))
      states.push(...(await nodeStates(calls, path)));
  }
  return states;
}

function joinStates(states: readonly FileState[]): FileState {
  return {
    record: states.map(({ record }) => record).join("_"),
    modifiedMs: Math.max(0, ...states.map(({ modifiedMs }) => modifiedMs)),
  };
}
