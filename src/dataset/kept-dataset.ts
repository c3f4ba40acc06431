import { isDeepStrictEqual } from "node:util";
import type { DatasetConfig } from "../config/config.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { Log } from "../observe/log.js";
import type { Source } from "../source/source.js";
import type { DatasetSnapshot } from "./dataset.js";
import { type OpenDataset, openDataset } from "./open-dataset.js";

/** How soon a dataset is looked at again in which something seems half written. */
const HELD_RETRY_MS = 1_000;
/** How soon a dataset that could not be opened is tried again: requests in between are answered with the same error. */
const FAILED_RETRY_MS = 1_000;

/** A dataset whose source may be open already, as the library's users have them. */
export type GivenDataset = DatasetConfig & { readonly source?: Source };

export interface KeptDatasetOptions {
  readonly cacheControl: string;
  /** As in `SnapshotOptions`. */
  readonly maxChunkBytes?: number | undefined;
  readonly log: Log;
  /** Called when a snapshot has taken another's place: what holds on to the old one should let go. */
  readonly onChange?: (() => void) | undefined;
}

/** A dataset with its source: opened when it is asked for, and looked at whenever somebody says so. */
export interface KeptDataset {
  readonly id: string;
  /** Undefined until it is open. */
  snapshot(): DatasetSnapshot | undefined;
  /**
   * Makes sure that it can be opened, without reading more than that takes. Where the source cannot tell, it is opened.
   * @throws ZpublishError what `open` would throw.
   */
  check(): Promise<void>;
  /**
   * Opens it, if it is not: once, however many ask.
   * @param progress Called with the number of arrays read so far.
   * @throws ZpublishError `invalid-metadata`, `source-unreadable` or `invalid-config`
   */
  open(progress?: (arraysRead: number) => void): Promise<void>;
  /**
   * Looks for new metadata, if it is open. A look that is under way is joined. Never throws: failures are logged, each
   * once until it goes.
   */
  look(): Promise<void>;
  isLooking(): boolean;
  /** Whether the last look failed: the state before is served on. */
  hasFailed(): boolean;
  /** Whether another dataset of that configuration would be the same, but for its `Cache-Control`. */
  isOf(config: GivenDataset): boolean;
  /** What is answered from now on, and by what is opened later. */
  setCacheControl(value: string): void;
  close(): Promise<void>;
}

/** @param source Closed with the dataset. */
export function createKeptDataset(
  config: GivenDataset,
  source: Source,
  // By name: what else the caller has there would be kept in memory with the dataset.
  { log, onChange, maxChunkBytes, cacheControl: cacheControlDefault }: KeptDatasetOptions,
): KeptDataset {
  const { id } = config;
  let cacheControl = config.cacheControl ?? cacheControlDefault;
  let dataset: OpenDataset | undefined;
  /** Kept when it is done; when it failed, for a moment. */
  let opening: Promise<void> | undefined;
  let looking: Promise<void> | undefined;
  let retry: NodeJS.Timeout | undefined;
  let closed = false;
  /** What was said last of what fails, so that it is said once and not every few seconds. */
  let said: string | undefined;

  async function openNow(progress?: (arraysRead: number) => void): Promise<void> {
    try {
      dataset = await openDataset(config, source, cacheControl, progress, maxChunkBytes);
      dataset.setCacheControl(cacheControl);
    } catch (error) {
      setTimeout(() => {
        opening = undefined;
      }, FAILED_RETRY_MS).unref();
      throw error;
    }
    logFindings(dataset, log);
  }

  async function lookNow(open: OpenDataset): Promise<void> {
    try {
      const before = open.snapshot();
      const result = await open.refresh();
      if (open.snapshot() !== before) onChange?.();
      if (result === "changed") {
        log.info({ dataset: id, revision: open.snapshot().revision }, "dataset refreshed");
        logFindings(open, log, before);
      }
      if (result === "held" && !closed) retry = setTimeout(look, HELD_RETRY_MS).unref();
      if (said !== undefined) log.info({ dataset: id }, "dataset can be refreshed again");
      said = undefined;
    } catch (error) {
      const reason = messageOf(error);
      if (said === reason) return;
      said = reason;
      log.warn({ dataset: id, reason }, "dataset cannot be refreshed; its last state is served on");
    }
  }

  async function look(): Promise<void> {
    if (dataset === undefined || closed) return;
    looking ??= lookNow(dataset).finally(() => {
      looking = undefined;
    });
    await looking;
  }

  function open(progress?: (arraysRead: number) => void): Promise<void> {
    opening ??= openNow(progress);
    return opening;
  }

  return {
    id,
    snapshot: () => dataset?.snapshot(),
    check: () => (source.check === undefined ? open() : source.check()),
    open,
    look,
    isLooking: () => looking !== undefined,
    hasFailed: () => said !== undefined,
    isOf: (other) => isSameDataset(config, other),
    setCacheControl(value) {
      cacheControl = value;
      dataset?.setCacheControl(value);
    },
    async close() {
      closed = true;
      clearTimeout(retry);
      await source.close();
    },
  };
}

/** Sources that were given are compared as objects: they may hold all data. */
function isSameDataset(one: GivenDataset, other: GivenDataset): boolean {
  const { source, cacheControl: _cacheControl, ...rest } = one;
  const { source: otherSource, cacheControl: _otherCacheControl, ...otherRest } = other;
  return source === otherSource && isDeepStrictEqual(rest, otherRest);
}

/** An error of one of many datasets: with its id before the message. */
export function errorOfDataset(id: string, error: ZpublishError): ZpublishError {
  return new ZpublishError(error.code, `dataset '${id}': ${error.message}`, {
    details: error.details,
    cause: error,
  });
}

/** Logs what cannot be served, and what is odd; after a refresh only what was not said of the state before. */
function logFindings(dataset: OpenDataset, log: Log, before?: DatasetSnapshot): void {
  const { refused, warnings } = dataset.snapshot();
  const said = new Set(before?.warnings);
  for (const { path, reason } of before?.refused ?? []) said.add(`${path}\n${reason}`);
  for (const { path, reason } of refused) {
    if (!said.has(`${path}\n${reason}`)) log.warn({ dataset: dataset.id, path, reason }, "refused");
  }
  for (const warning of warnings) {
    if (!said.has(warning)) log.warn({ dataset: dataset.id }, warning);
  }
}
