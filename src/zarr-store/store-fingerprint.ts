import { createHash } from "node:crypto";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { ABSENT } from "./file-record.js";
import type { VisitedDirectory } from "./visited-directory.js";

/** Characters that are hashed at a time. One call for each record would take longer than hashing. */
const BATCH_CHARS = 32 * 1024;

/** Hashes that tell whether a store's metadata has changed. */
export interface StoreFingerprint {
  /** Hash of the records of all documents and directories. */
  readonly fingerprint: string;
  /** Hash of the documents' records alone: a file that is added beside them changes only the directory's. */
  readonly identity: string;
}

/**
 * Hashes the records of a store's metadata documents and directories, each from before it was read.
 * @param root Real path of the store; part of both hashes.
 * @param consolidated The record of `.zmetadata`.
 * @param sorted Sorted by path, since a walk visits directories in any order.
 */
export function* storeFingerprint(
  root: string,
  consolidated: string,
  sorted: readonly VisitedDirectory[],
): CooperativeTask<StoreFingerprint> {
  const identity = createHash("sha256").update(root);
  const fingerprint = createHash("sha256").update(root);
  let documents = `\0.zmetadata\0${consolidated}`;
  let directories = "";
  for (const { path, records, listing } of sorted) {
    yield;
    for (let i = 0; i < records.length; i++) {
      if (records[i] !== ABSENT) documents += `\0${path}\0${i}\0${records[i]}`;
    }
    if (listing !== undefined) directories += `\0${path}\0${listing.record}`;
    if (documents.length + directories.length < BATCH_CHARS) continue;
    identity.update(documents);
    fingerprint.update(directories);
    documents = "";
    directories = "";
  }
  const identityHash = identity.update(documents).digest("hex").slice(0, 40);
  return {
    identity: identityHash,
    fingerprint: fingerprint.update(directories).update(identityHash).digest("hex").slice(0, 40),
  };
}
