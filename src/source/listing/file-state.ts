import { type BigIntStats, stat } from "node:fs";
import { isMissing } from "../../errors.js";
import { recordOfStats } from "../directory/file-record.js";
import type { FileCalls } from "../files/file-calls.js";

/** State of a file, or of the root documents of a Zarr store. */
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
 * @param isWhole Whether to look at every root document, attributes included. Otherwise the first that exists is enough.
 * @throws what `stat` throws, NoAnswerError
 */
export async function storeState(
  calls: FileCalls,
  directory: string,
  isWhole: boolean,
): Promise<FileState | undefined> {
  const records: string[] = [];
  let modifiedMs = 0;
  for (const name of ROOT_DOCUMENTS) {
    const found = await statPath(calls, `${directory}/${name}`);
    if (!found?.isFile()) continue;
    const state = fileState(found);
    records.push(state.record);
    modifiedMs = Math.max(modifiedMs, state.modifiedMs);
    if (!isWhole) break;
  }
  if (records.length === 0) return undefined;
  const attributes = isWhole ? await statPath(calls, `${directory}/.zattrs`) : undefined;
  if (attributes !== undefined) records.push(fileState(attributes).record);
  return { record: records.join("_"), modifiedMs };
}
