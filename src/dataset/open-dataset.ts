import { isDeepStrictEqual } from "node:util";
import type { DatasetConfig } from "../config/config.js";
import { runInSlices } from "../sliced-work.js";
import type { Source } from "../source/source.js";
import { snapshotSteps } from "./create-snapshot.js";
import type { DatasetSnapshot } from "./dataset.js";

/** How many refreshes in a row must find something unreadable before it is withdrawn; see {@link OpenDataset.refresh}. */
const REFUSALS_BEFORE_WITHDRAWAL = 3;

/**
 * What a refresh found. `held`: something that was served cannot be understood, so the state before is served on; to be
 * looked at again soon.
 */
export type RefreshResult = "unchanged" | "changed" | "held";

/** A dataset whose source is open, and its current state. */
export interface OpenDataset {
  readonly id: string;
  /** Changes in one step, from one complete state to the next. */
  snapshot(): DatasetSnapshot;
  /**
   * Looks whether the source's metadata changed, and serves what it says now. `unchanged`: neither is what is served nor
   * what is refused or warned of.
   *
   * Writers do not write metadata in one step: an array or a group that was served and cannot be understood now is
   * most likely half written. So the state before is served on until the same is found three times.
   * @throws ZpublishError where the source cannot be read; the state before is served on.
   */
  refresh(): Promise<RefreshResult>;
  /** In a snapshot of its own, as the state is the same otherwise. */
  setCacheControl(value: string): void;
  close(): Promise<void>;
}

/**
 * Reads a source and settles how it is served.
 * @param cacheControl Where its configuration says none.
 * @param progress Called with the number of arrays read so far.
 * @param maxChunkBytes As in `SnapshotOptions`.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable` or `invalid-config`.
 */
export async function openDataset(
  config: DatasetConfig,
  source: Source,
  cacheControl: string,
  progress?: (arraysRead: number) => void,
  maxChunkBytes?: number,
): Promise<OpenDataset> {
  const first = await source.readTree(progress);
  let { fingerprint } = first;
  let snapshot = await runInSlices(snapshotSteps(config, first, cacheControl, { maxChunkBytes }));
  let refusals = 0;

  return {
    id: config.id,
    snapshot: () => snapshot,
    async refresh() {
      const current = await source.fingerprint();
      if (current === fingerprint) return "unchanged";
      const tree = await source.readTree();
      const steps = snapshotSteps(config, tree, snapshot.cacheControl, {
        before: snapshot,
        maxChunkBytes,
      });
      const next = await runInSlices(steps);
      const isHalfWritten = next.refused.some(
        ({ path }) => snapshot.arrays.has(path) || snapshot.tree.groups.has(`/${path}`),
      );
      if (isHalfWritten && ++refusals < REFUSALS_BEFORE_WITHDRAWAL) return "held";
      refusals = 0;
      fingerprint = tree.fingerprint;
      const changed =
        next.revision !== snapshot.revision ||
        next.identity !== snapshot.identity ||
        !isDeepStrictEqual([next.refused, next.warnings], [snapshot.refused, snapshot.warnings]);
      // What is kept for a snapshot is kept on where there is nothing new.
      if (!changed) return "unchanged";
      // It may have been set while the tree was being read.
      snapshot = withCacheControl(next, snapshot.cacheControl);
      return "changed";
    },
    setCacheControl(value) {
      snapshot = withCacheControl(snapshot, value);
    },
    close: () => source.close(),
  };
}

function withCacheControl(snapshot: DatasetSnapshot, cacheControl: string): DatasetSnapshot {
  return snapshot.cacheControl === cacheControl ? snapshot : Object.freeze({ ...snapshot, cacheControl });
}
