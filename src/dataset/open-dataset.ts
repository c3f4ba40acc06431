import type { DatasetConfig } from "../config/config.js";
import type { Source } from "../source/source.js";
import { createSnapshot } from "./create-snapshot.js";
import type { DatasetSnapshot } from "./dataset.js";

/** How many refreshes in a row must find an array unreadable before it is withdrawn; see {@link OpenDataset.refresh}. */
const REFUSALS_BEFORE_WITHDRAWAL = 3;

/** A dataset whose source is open, and its current state. */
export interface OpenDataset {
  readonly id: string;
  /** Changes in one step, from one complete state to the next. */
  snapshot(): DatasetSnapshot;
  /**
   * Looks whether the source's metadata changed, and serves what it says now. `false`: nothing changed.
   *
   * Writers do not write metadata in one step: an array that was served and cannot be understood now is most likely
   * half written. So the state before is served on until the same is found three times.
   * @throws ZpublishError where the source cannot be read; the state before is served on.
   */
  refresh(): Promise<boolean>;
  close(): Promise<void>;
}

/**
 * Reads a source and settles how it is served.
 * @param progress Called with the number of arrays read so far.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable` or `invalid-config`.
 */
export async function openDataset(
  config: DatasetConfig,
  source: Source,
  cacheControlDefault: string,
  progress?: (arraysRead: number) => void,
): Promise<OpenDataset> {
  const first = await source.readTree(progress);
  let { fingerprint } = first;
  let snapshot = createSnapshot(config, first, cacheControlDefault);
  let refusals = 0;

  return {
    id: config.id,
    snapshot: () => snapshot,
    async refresh() {
      const current = await source.fingerprint();
      if (current === fingerprint) return false;
      const tree = await source.readTree();
      const next = createSnapshot(config, tree, cacheControlDefault);
      const isHalfWritten = next.refused.some(({ path }) => snapshot.arrays.has(path));
      if (isHalfWritten && ++refusals < REFUSALS_BEFORE_WITHDRAWAL) return false;
      refusals = 0;
      fingerprint = tree.fingerprint;
      const changed = next.revision !== snapshot.revision || next.identity !== snapshot.identity;
      snapshot = next;
      return changed;
    },
    close: () => source.close(),
  };
}
