import { isDeepStrictEqual } from "node:util";
import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { withinTime } from "../event-loop/settles-within.js";
import type { Source } from "../zarr/stored-tree.js";
import type { DatasetSnapshot } from "./dataset.js";
import { type OverviewOptions, withOverviews } from "./overviews/overviews.js";
import { snapshotSteps } from "./snapshot.js";

/** Refreshes in a row that must find something unreadable before it is withdrawn; see {@link OpenDataset.refresh}. */
const REFUSALS_BEFORE_WITHDRAWAL = 3;

/**
 * Result of a refresh. `held` means that something that was served cannot be understood. The state before is still served
 * then, and the caller should refresh again soon.
 */
type RefreshResult = "unchanged" | "changed" | "held";

/** A dataset whose source is open, and its current state. */
export interface OpenDataset {
  readonly id: string;
  /** Changes in one step, from one complete state to the next. */
  snapshot(): DatasetSnapshot;
  /**
   * Reads the source's metadata if they changed, and makes a new snapshot of them. Returns `unchanged` if arrays,
   * attributes, refusals and warnings are the same.
   *
   * Writers do not write metadata in one step: an array or group that was served and cannot be understood now is most
   * likely half written. The state before is still served until three refreshes in a row find the same.
   * @throws ZpublishError if the source cannot be read; the state before is still served.
   */
  refresh(): Promise<RefreshResult>;
  /** Makes a snapshot that differs only in its `Cache-Control`. */
  setCacheControl(value: string): void;
  close(): Promise<void>;
}

/**
 * Reads a source and makes the first snapshot of it.
 * @param cacheControl Default of the configuration's.
 * @param progress Called with the number of arrays read so far.
 * @throws ZpublishError `invalid-metadata`, `source-unreadable` or `invalid-config`.
 */
export async function openDataset(
  config: DatasetConfig,
  source: Source,
  cacheControl: string,
  progress?: (arraysRead: number) => void,
  options: OverviewOptions = {},
): Promise<OpenDataset> {
  const first = await source.readTree(progress);
  let { fingerprint } = first;
  let snapshot = await runCooperatively(snapshotSteps(config, first, cacheControl, options));
  let refusals = 0;

  function withCacheControl(from: DatasetSnapshot, cacheControl: string): DatasetSnapshot {
    if (from.cacheControl === cacheControl) return from;
    return withOverviews({ ...from, cacheControl }, config.overviews, options);
  }

  return {
    id: config.id,
    snapshot: () => snapshot,
    async refresh() {
      const current = await source.fingerprint();
      if (current === fingerprint) return "unchanged";
      const tree = await source.readTree();
      const steps = snapshotSteps(config, tree, snapshot.cacheControl, {
        before: snapshot,
        ...options,
      });
      const next = await runCooperatively(steps);
      const isHalfWritten = next.refused.some(
        ({ path }) => snapshot.arrays.has(path) || snapshot.tree.groups.has(`/${path}`),
      );
      if (isHalfWritten && ++refusals < REFUSALS_BEFORE_WITHDRAWAL) return "held";
      refusals = 0;
      fingerprint = tree.fingerprint;
      const changed =
        next.revision !== snapshot.revision ||
        next.identity !== snapshot.identity ||
        hasOtherParts(next, snapshot) ||
        !isDeepStrictEqual([next.refused, next.warnings], [snapshot.refused, snapshot.warnings]);
      // Documents that were made for a snapshot stay valid with it.
      if (!changed) return "unchanged";
      // `setCacheControl` may have been called while the tree was read.
      snapshot = withCacheControl(next, snapshot.cacheControl);
      return "changed";
    },
    setCacheControl(value) {
      snapshot = withCacheControl(snapshot, value);
    },
    close: () => source.close(),
  };
}

/**
 * Tells whether chunks of joined files lie elsewhere: a file that is replaced by one with the same metadata changes nothing that the
 * revision is made of.
 */
function hasOtherParts(next: DatasetSnapshot, { arrays }: DatasetSnapshot): boolean {
  return [...next.arrays].some(
    ([path, { stored }]) => stored.chunks.kind === "parts" && stored !== arrays.get(path)?.stored,
  );
}

/** Time that a request waits until a dataset is open: as long as one chunk may take. */
const OPEN_TIMEOUT_MS = 120_000;

/**
 * Opens a dataset, within the time that a request may wait for it.
 * @param work Gets a signal that aborts when it is too late.
 * @throws ZpublishError `source-unreadable` if it takes too long; what `work` throws.
 */
export async function openInTime<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const late = new AbortController();
  return withinTime(work(late.signal), OPEN_TIMEOUT_MS, () => {
    late.abort();
    const problem = `cannot be read: expected to be open after ${OPEN_TIMEOUT_MS} ms`;
    return new ZpublishError("source-unreadable", problem);
  });
}
