import { ABSENT } from "./file-record.js";
import { type DocumentName, documentNames, type NodeDocuments } from "./node-documents.js";
import type { StoreNode } from "./parse-node.js";

/** A directory of a store as a walk found it: kept for the next one, which reads again only what has changed. */
export interface VisitedDirectory {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path. */
  readonly directory: string;
  /** What each document looked like before it was read, in the order of `documentNames`. */
  readonly records: readonly string[];
  /** The documents where they make no node by themselves; else undefined: they are in the node. */
  readonly loneAttributes: NodeDocuments | undefined;
  /** Undefined where nothing describes the directory. */
  readonly node: StoreNode | undefined;
  /** Undefined where it was not looked into: arrays, and what is hidden. */
  readonly listing: Listing | undefined;
}

/** What is in a directory. */
export interface Listing {
  /** What the directory looked like before it was listed. */
  readonly record: string;
  readonly children: readonly Child[];
  /** Why it cannot be listed. */
  readonly problem?: string;
}

/** A directory in another: its real path, or why it is refused. */
export type Child = ({ readonly directory: string } | { readonly reason: string }) & {
  /** From the root of the store. */
  readonly path: string;
};

/**
 * Names of the documents that decide what a directory is, now or when they appear: creating one in a group's directory
 * changes the directory itself, which is looked at as well.
 */
export function watchedDocuments({ records, node }: VisitedDirectory): DocumentName[] {
  return documentNames.filter((name, index) => {
    if (records[index] !== ABSENT) return true;
    if (node === undefined || !node.isArray) return false;
    const isV2 = records[0] !== ABSENT || node.listed?.[".zarray"] !== undefined;
    return node.listed?.[name] !== undefined || (isV2 && name === ".zattrs");
  });
}
