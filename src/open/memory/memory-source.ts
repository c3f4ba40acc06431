import { createHash } from "node:crypto";
import type { JsonObject } from "../../json/json-value.js";
import { stringifyJson } from "../../json/stringify-json.js";
import type { StoredArray } from "../../zarr/stored-array.js";
import {
  comparePaths,
  nameProblem,
  type Source,
  type StoredGroup,
  type StoredTree,
  warnOfName,
} from "../../zarr/stored-tree.js";
import { invalid, type MemoryArray, storeArray } from "./memory-array.js";

/** A data tree in memory, as the library's user describes it. */
export interface MemoryTree {
  /** For messages. Default `memory`. */
  readonly location?: string;
  /**
   * Name of this state of the data: sources with the same location and revision have the same content. Without it the content
   * is hashed, which takes about a second per gigabyte.
   */
  readonly revision?: string;
  /** Groups. Those between them and the root may be left out. */
  readonly groups: readonly MemoryGroup[];
}

/** A group in memory, as the library's user describes it. */
export interface MemoryGroup {
  /** `/`, `/a/b`; the leading slash may be left out. */
  readonly path: string;
  readonly attrs?: JsonObject;
  readonly arrays?: readonly MemoryArray[];
}

/**
 * Creates a source of arrays in memory, which workers share. It never changes.
 * @throws ZpublishError `invalid-metadata` if the description is inconsistent.
 */
export function createMemorySource(tree: MemoryTree): Source {
  const location = tree.location ?? "memory";
  const stored = storeTree(tree, location);
  return {
    location,
    readTree: async (progress) => {
      progress?.(stored.groups.reduce((count, group) => count + group.arrays.length, 0));
      return stored;
    },
    fingerprint: async () => undefined,
    close: async () => undefined,
  };
}

function storeTree(tree: MemoryTree, location: string): StoredTree {
  const groups = new Map<string, StoredGroup>();
  const warnings: string[] = [];
  for (const group of tree.groups) {
    const path = normalPath(group.path);
    if (groups.has(path)) throw invalid(path, "expected every group once, received it twice");
    const arrays = (group.arrays ?? []).map((array) => storeArray(array, path, warnings));
    groups.set(path, { path: `/${path}`, attrs: group.attrs ?? {}, arrays: sortArrays(arrays) });
    warnOfName(path, warnings);
  }
  addParents(groups);
  assertNoConflicts(groups);
  const sorted = [...groups.values()].sort((a, b) =>
    a.path === "/" ? -1 : b.path === "/" ? 1 : comparePaths(a.path, b.path),
  );
  return Object.freeze({
    groups: Object.freeze(sorted.map((group) => Object.freeze(group))),
    refused: Object.freeze([]),
    warnings: Object.freeze(warnings),
    identity: tree.revision === undefined ? contentHash(sorted) : revisionHash(location, tree.revision),
    fingerprint: undefined,
  });
}

function addParents(groups: Map<string, StoredGroup>): void {
  for (const path of ["", ...groups.keys()]) {
    const segments = path.split("/");
    for (let depth = 0; depth < segments.length; depth++) {
      const parent = segments.slice(0, depth).join("/");
      if (!groups.has(parent)) groups.set(parent, { path: `/${parent}`, attrs: {}, arrays: [] });
    }
  }
}

function assertNoConflicts(groups: ReadonlyMap<string, StoredGroup>): void {
  const seen = new Set<string>();
  for (const group of groups.values()) {
    for (const { path } of group.arrays) {
      if (seen.has(path)) throw invalid(path, "expected every array once, received it twice");
      if (groups.has(path)) throw invalid(path, "expected an array or a group, received both");
      seen.add(path);
    }
  }
}

/** Returns a group's path without slashes at the ends; empty for the root. */
function normalPath(path: string): string {
  const normal = path.replace(/^\/+|\/+$/g, "");
  const problem = normal === "" ? undefined : nameProblem(normal);
  if (problem !== undefined) throw invalid(path, problem);
  return normal;
}

function sortArrays(arrays: readonly StoredArray[]): readonly StoredArray[] {
  return Object.freeze([...arrays].sort((a, b) => comparePaths(a.path, b.path)));
}

function revisionHash(location: string, revision: string): string {
  return createHash("sha256").update(`revision\0${location}\0${revision}`).digest("hex").slice(0, 40);
}

function contentHash(groups: readonly StoredGroup[]): string {
  const hash = createHash("sha256");
  for (const group of groups) {
    hash.update(`\0${stringifyJson([group.path, group.attrs])}`);
    for (const { path, shape, dataType, attrs, dimNames, fill, chunks } of group.arrays) {
      hash.update(`\0${stringifyJson([path, shape, dataType.zarr, attrs, dimNames, fill.served])}\0`);
      if (chunks.kind === "memory") {
        hash.update(new Uint8Array(chunks.buffer, chunks.byteOffset, chunks.byteLength));
      }
    }
  }
  return hash.digest("hex").slice(0, 40);
}
