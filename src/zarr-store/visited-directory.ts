import { ABSENT } from "./file-record.js";
import { type DocumentName, documentNames, type NodeDocuments } from "./node-documents.js";
import type { StoreNode } from "./parse-node.js";

/** A directory of a store as a walk found it. The next walk reads only what has changed since. */
export interface VisitedDirectory {
  /** Without a leading slash; empty for the root. */
  readonly path: string;
  /** Real path. */
  readonly directory: string;
  /** Record of each document before it was read, in the order of `documentNames`. */
  readonly records: readonly string[];
  /** Its documents if they make no node by themselves: at most `.zattrs`. Otherwise undefined, since the node has them. */
  readonly loneAttributes: NodeDocuments | undefined;
  /** Undefined if no document describes the directory. */
  readonly node: StoreNode | undefined;
  /** Undefined if the directory was not listed: arrays, and hidden directories without metadata. */
  readonly listing: Listing | undefined;
}

/** The directories in a directory. */
export interface Listing {
  /** Record of the directory before it was listed. */
  readonly record: string;
  readonly children: readonly Child[];
  /** Why the directory cannot be listed; undefined if it can. */
  readonly problem?: string;
}

/** A directory in another one: its real path, or why it is refused. */
export type Child = ({ readonly directory: string } | { readonly reason: string }) & {
  /** Path from the root of the store. */
  readonly path: string;
};

/**
 * Returns the names of documents to check for changes. Those that a group may get are left out: creating one changes the
 * directory, which is checked too.
 */
export function watchedDocuments({ records, node }: VisitedDirectory): DocumentName[] {
  return documentNames.filter((name, index) => {
    if (records[index] !== ABSENT) return true;
    if (node === undefined || !node.isArray) return false;
    const isV2 = records[0] !== ABSENT || node.listed?.[".zarray"] !== undefined;
    return node.listed?.[name] !== undefined || (isV2 && name === ".zattrs");
  });
}
