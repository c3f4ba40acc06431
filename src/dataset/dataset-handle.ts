import { setTimeout as delay } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import type { DatasetConfig } from "../config/config.js";
import { messageOf, ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { joined } from "../event-loop/joined.js";
import { settlesWithin, withinTime } from "../event-loop/settles-within.js";
import type { Log } from "../observe/log.js";
import type { Source, StoredVersions } from "../zarr/stored-tree.js";
import type { DatasetSnapshot, VersionConfig } from "./dataset.js";
import type { OverviewOptions } from "./overviews/overviews.js";
import { snapshotSteps } from "./snapshot.js";

/** Time until a dataset is refreshed again if something in it seems half written. */
const HELD_RETRY_MS = 1_000;
/** Time until a dataset that could not be opened is tried again. Requests in between get the same error. */
const FAILED_RETRY_MS = 1_000;
/** Refreshes in a row that must find something unreadable before it is withdrawn. */
const REFUSALS_BEFORE_WITHDRAWAL = 3;

/** A configured dataset. Programs that use the library may give its source, open already. */
export type GivenDataset = DatasetConfig & { readonly source?: Source } & VersionConfig;

/** Options that all datasets of a configuration share. */
interface DatasetHandleOptions extends OverviewOptions {
  readonly cacheControl: string;
  readonly log: Log;
}

/** A dataset with its source, which may not be read yet. */
export interface DatasetHandle {
  readonly id: string;
  readonly config: GivenDataset;
  /** As in `Source`. */
  readonly versions: StoredVersions | undefined;
  /** The current state; undefined until it is open. */
  readonly snapshot: DatasetSnapshot | undefined;
  /**
   * Checks that the dataset can be opened, and reads no more than that takes. Opens it if the source cannot tell.
   * @throws ZpublishError what `open` would throw.
   */
  check(): Promise<void>;
  /**
   * Opens the dataset unless it is open. Concurrent calls share one opening.
   * @throws ZpublishError `invalid-metadata`, `source-unreadable` or `invalid-config`
   */
  open(progress?: (arraysRead: number) => void): Promise<void>;
  /**
   * Reads new metadata if the dataset is open; joins a refresh that is under way. Never throws: a failure is logged, once
   * until it is over.
   */
  refresh(): Promise<void>;
  isRefreshing(): boolean;
  /** Tells whether the last refresh failed. The state before it is still served. */
  hasFailed(): boolean;
  /** Tells whether a dataset of that configuration would be the same. @param cacheControl Default of the configuration. */
  isOf(config: GivenDataset, cacheControl: string): boolean;
  close(): Promise<void>;
}

/** Creates the handle of a dataset. @param source Closed with the dataset. */
export function createDatasetHandle(
  config: GivenDataset,
  source: Source,
  // By name, so that the closures below do not retain the caller's other options.
  { log, maxChunkBytes, openLevelReader, cacheControl: cacheControlDefault }: DatasetHandleOptions,
): DatasetHandle {
  const { id } = config;
  const cacheControl = config.cacheControl ?? cacheControlDefault;
  const { version } = config;
  const options = () => ({ maxChunkBytes, openLevelReader, version, versions: handle.versions });
  let fingerprint: string | undefined;
  /** Refreshes in a row that found something unreadable. */
  let refusals = 0;
  /** The one opening; undefined again a moment after it failed. */
  let opening: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;
  /** Reason of the failure that was logged last, so that it is logged once and not every few seconds. */
  let logged: string | undefined;

  async function openNow(progress?: (arraysRead: number) => void): Promise<void> {
    try {
      const tree = await source.readTree(progress);
      ({ fingerprint } = tree);
      handle.snapshot = await runCooperatively(snapshotSteps(config, tree, cacheControl, options()));
    } catch (error) {
      setTimeout(() => {
        opening = undefined;
      }, FAILED_RETRY_MS).unref();
      throw error;
    }
    const files = filesOf(handle.snapshot);
    if (files !== undefined) log.info({ dataset: id, ...files }, "files joined");
    logFindings(handle.snapshot, log);
  }

  /**
   * Reads the source's metadata if they changed. Writers do not write metadata in one step: if an array or group that was served cannot
   * be understood now, the state before is still served until three refreshes in a row find the same.
   * @returns Undefined if the state before is still served.
   */
  async function readAgain(before: DatasetSnapshot): Promise<DatasetSnapshot | undefined> {
    if ((await source.fingerprint()) === fingerprint) return undefined;
    const tree = await source.readTree();
    const next = await runCooperatively(snapshotSteps(config, tree, cacheControl, { before, ...options() }));
    const isHalfWritten = next.refused.some(
      ({ path }) => before.arrays.has(path) || before.tree.groups.has(`/${path}`),
    );
    if (isHalfWritten && ++refusals < REFUSALS_BEFORE_WITHDRAWAL) {
      if (!closed) retry = setTimeout(refresh, HELD_RETRY_MS).unref();
      return undefined;
    }
    refusals = 0;
    ({ fingerprint } = tree);
    return isChanged(next, before) ? next : undefined;
  }

  const refreshNow = joined(async (before: DatasetSnapshot) => {
    try {
      const next = await readAgain(before);
      if (next !== undefined) {
        handle.snapshot = next;
        log.info({ dataset: id, revision: next.revision, ...filesOf(next) }, "dataset refreshed");
        logFindings(next, log, before);
      }
      if (logged !== undefined) log.info({ dataset: id }, "dataset can be refreshed again");
      logged = undefined;
    } catch (error) {
      const reason = messageOf(error);
      if (logged === reason) return;
      logged = reason;
      log.warn({ dataset: id, reason }, "dataset cannot be refreshed; its last state is still served");
    }
  });

  async function refresh(): Promise<void> {
    // Of a version, nothing ever changes.
    if (handle.snapshot !== undefined && !closed && version === undefined) await refreshNow(handle.snapshot);
  }

  function open(progress?: (arraysRead: number) => void): Promise<void> {
    opening ??= openNow(progress);
    return opening;
  }

  const handle = {
    ...{ id, config },
    get versions() {
      return config.versions ?? source.versions;
    },
    snapshot: undefined as DatasetSnapshot | undefined,
    check: () => (source.check === undefined ? open() : source.check()),
    open,
    refresh,
    isRefreshing: () => refreshNow.running !== undefined,
    hasFailed: () => logged !== undefined,
    isOf: (other: GivenDataset, byDefault: string) =>
      (other.cacheControl ?? byDefault) === cacheControl && isSameDataset(config, other),
    async close() {
      closed = true;
      clearTimeout(retry);
      await source.close();
    },
  };
  return handle;
}

/** Compares configurations. Given sources are compared by identity, since they may hold all data. */
function isSameDataset(one: GivenDataset, other: GivenDataset): boolean {
  const { source, cacheControl: _cacheControl, ...rest } = one;
  const { source: otherSource, cacheControl: _otherCacheControl, ...otherRest } = other;
  return source === otherSource && isDeepStrictEqual(rest, otherRest);
}

/** Returns an error with a dataset's id before each line of the message. */
export function errorOfDataset(id: string, error: ZpublishError): ZpublishError {
  return new ZpublishError(
    error.code,
    error.message.replaceAll(/^/gm, () => `dataset '${id}': `),
    {
      details: error.details,
      cause: error,
    },
  );
}

/** Counts the files of a joined dataset and the steps that they give, for the log; undefined for one file or store. */
function filesOf({ join }: DatasetSnapshot) {
  if (join === undefined) return undefined;
  const names = new Set(join.parts.map(({ name }) => name));
  const steps = join.parts.reduce((sum, { length }) => sum + length, 0);
  return { files: names.size, dimension: join.dimension, steps };
}

/** Logs what cannot be served, and warnings; after a refresh only those that the state before had not. */
function logFindings({ id, refused, warnings }: DatasetSnapshot, log: Log, before?: DatasetSnapshot): void {
  const known = new Set(before?.warnings);
  for (const { path, reason } of before?.refused ?? []) known.add(`${path}\n${reason}`);
  for (const { path, reason } of refused) {
    if (!known.has(`${path}\n${reason}`)) log.warn({ dataset: id, path, reason }, "refused");
  }
  for (const warning of warnings) {
    if (!known.has(warning)) log.warn({ dataset: id }, warning);
  }
}

/** Tells whether snapshots differ. Documents that were made for one stay valid with it. */
function isChanged(next: DatasetSnapshot, before: DatasetSnapshot): boolean {
  return (
    next.revision !== before.revision ||
    next.identity !== before.identity ||
    hasOtherParts(next, before) ||
    !isDeepStrictEqual([next.refused, next.warnings], [before.refused, before.warnings])
  );
}

/**
 * Tells whether chunks lie elsewhere: a joined file that is replaced by one with the same metadata, or a commit to a repository that changes
 * none, changes nothing that the revision is made of.
 */
function hasOtherParts(next: DatasetSnapshot, { arrays }: DatasetSnapshot): boolean {
  return [...next.arrays].some(([path, { stored }]) => {
    const { chunks } = stored;
    const isPinned = chunks.kind === "parts" || ("objects" in chunks && chunks.objects?.isPinned);
    return isPinned && stored !== arrays.get(path)?.stored;
  });
}

/** Time that a request waits until a dataset is open: as long as one chunk may take. */
const OPEN_TIMEOUT_MS = 120_000;

/**
 * Opens a dataset, within the time that a request may wait for it.
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

/** A dataset whose source can be read again for new metadata, or a list of datasets. */
export interface RefreshTarget {
  /** For messages: `dataset 'x': its source`. */
  readonly name: string;
  /** Reads new metadata, or joins a refresh that is under way. Never throws. */
  refresh(): Promise<void>;
  isRefreshing(): boolean;
  /** Tells whether the last refresh failed. */
  hasFailed(): boolean;
}

/** Refreshes one dataset or list before requests are answered with 404. */
export interface RefreshThrottle {
  /**
   * Resolves after a refresh that began after this call; all requests that wait for one share it. In a pause of more than a second, it
   * resolves at once.
   * @throws ZpublishError `source-unreadable` if the source cannot be read, so that it is unknown what is there.
   */
  refresh(): Promise<void>;
}

/** Time that a request waits for a refresh. */
const REFRESH_TIMEOUT_MS = 30_000;
/** Refreshes under a flood of requests take at most a fifth of the time. */
const PAUSE_PER_REFRESH = 4;
/** Longest pause that requests wait for. */
const MAX_WAITED_PAUSE_MS = 1_000;

/**
 * Creates the throttle of one target: one refresh at a time, with a pause after each.
 * @param maxPauseMs Longest pause between two refreshes.
 */
export function createRefreshThrottle(
  target: RefreshTarget,
  maxPauseMs: number = MAX_WAITED_PAUSE_MS,
): RefreshThrottle {
  let last: Promise<void> = Promise.resolve();
  let next: Promise<void> | undefined;
  let pausesUntilMs = 0;

  async function refreshAfter(former: Promise<void>): Promise<void> {
    await former;
    await delay(Math.max(0, pausesUntilMs - performance.now()), undefined, { ref: false });
    // A refresh that is under way may have begun before the thing asked for was written.
    if (target.isRefreshing()) await target.refresh();
    next = undefined;
    const beganMs = performance.now();
    await target.refresh();
    const endedMs = performance.now();
    pausesUntilMs = endedMs + Math.min(PAUSE_PER_REFRESH * (endedMs - beganMs), maxPauseMs);
  }

  return {
    async refresh() {
      const isPaused = pausesUntilMs - performance.now() > MAX_WAITED_PAUSE_MS;
      if (next === undefined && !isPaused) {
        next = refreshAfter(last);
        last = next;
      }
      const isDone = isPaused || next === undefined || (await settlesWithin(next, REFRESH_TIMEOUT_MS));
      if (isDone && !target.hasFailed()) return;
      const problem = isDone ? "cannot be read" : `expected an answer within ${REFRESH_TIMEOUT_MS} ms`;
      throw new ZpublishError(
        "source-unreadable",
        `${target.name} must be readable before an answer with 404: ${problem}`,
      );
    },
  };
}
