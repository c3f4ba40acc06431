import { messageOf, ZpublishError } from "../../errors.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import { settlesWithin } from "../../event-loop/settles-within.js";
import type { Log } from "../../observe/log.js";
import { createRefreshThrottle } from "../dataset-handle.js";
import type { DatasetProvider } from "../dataset-provider.js";
import { createProblemLog } from "./problem-log.js";
import { hasId, isSameList, NO_IDS, updateIds } from "./update-ids.js";

/** Time of one list. A store with a million objects takes minutes; a provider that hangs is asked again after it. */
const LIST_TIMEOUT_MS = 120_000;
/** Time between a provider's word that its list has changed and the list: several changes come together. */
const CHANGE_DELAY_MS = 100;
/** Time that a request for an id that is not known waits for a list; then the last one counts. */
const LOOK_WAIT_MS = 5_000;
/** Longest pause between two lists for ids that are not known. */
const MAX_PAUSE_MS = 60_000;

/** The ids of a provider, as it listed them last. */
export interface ProviderList {
  /** With the prefix, sorted. The same array while nothing has changed. */
  readonly ids: readonly string[];
  has(id: string): boolean;
  /** False until the provider has listed its datasets once. */
  readonly hasAnswered: boolean;
  /** Reason why the last list failed; undefined if it did not. */
  readonly failure: string | undefined;
  /** True if there is a list, and the last one did not fail. */
  readonly isCurrent: boolean;
  /**
   * Asks for the list, or joins a list that is under way. A dataset goes when two of these lists in a row do not have it. Never throws: a
   * failure is logged, once until it is over.
   */
  look(): Promise<void>;
  /**
   * Asks for the list before an answer with 404. All requests that wait share it, and lists take at most a fifth of the time: in a
   * pause of more than a second, the last list counts.
   * @throws ZpublishError `source-unreadable` if the list cannot be read, so that it is unknown what there is.
   */
  lookBeforeNotFound(): Promise<void>;
  /** Seconds that the last list took. */
  readonly seconds: number;
  /** Number of lists that failed. */
  readonly failures: number;
  /** Aborts a list that is under way. */
  close(): void;
}

/** Creates the list of a provider that is not asked yet. @param onChange Called when `ids` are others. */
export function createProviderList(provider: DatasetProvider, log: Log, onChange: () => void): ProviderList {
  const { name, prefix } = provider;
  const invalid = createProblemLog(log, name, "no dataset can have this id");
  const found = createProblemLog(log, name, "cannot be published");
  /** Aborts the list that is under way. */
  let late = new AbortController();
  let isClosed = false;
  /** True if the next list is one of a period, a refresh or the provider's own wish: two of these have to miss a dataset before it goes. */
  let isDue = false;
  let listed = NO_IDS;
  let lastReceived: readonly unknown[] | undefined;
  let looking: Promise<void> | undefined;
  let soon: NodeJS.Timeout | undefined;
  let hasAnswered = false;
  let failure: string | undefined;
  let failures = 0;
  let seconds = 0;

  async function receive(): Promise<readonly unknown[]> {
    late = new AbortController();
    let received: readonly unknown[] = [];
    const listing = Promise.resolve(provider.list(late.signal)).then((list) => {
      received = list;
    });
    if (await settlesWithin(listing, LIST_TIMEOUT_MS)) return received;
    late.abort();
    throw new ZpublishError("source-unreadable", `expected a list within ${LIST_TIMEOUT_MS / 1_000} s`);
  }

  async function isAsBefore(received: readonly unknown[]): Promise<boolean> {
    if (received === lastReceived) return true;
    return lastReceived !== undefined && runCooperatively(isSameList(received, lastReceived));
  }

  async function lookNow(): Promise<void> {
    const beganMs = performance.now();
    try {
      const received = await receive();
      if (isClosed) return;
      const counts = isDue;
      const { ids } = listed;
      isDue = false;
      if ((counts && listed.missed.length > 0) || !(await isAsBefore(received))) {
        invalid.begin();
        const next = await runCooperatively(updateIds(listed, received, prefix, invalid.add, counts));
        invalid.end();
        const hasChanged = next.ids !== listed.ids;
        listed = next;
        lastReceived = next.isBehind ? undefined : received;
        if (hasChanged) onChange();
      }
      if (failure !== undefined) log.info({ provider: name }, "datasets can be listed again");
      failure = undefined;
      if (!hasAnswered || listed.ids !== ids) {
        const seconds = Math.round(performance.now() - beganMs) / 1_000;
        log.info({ provider: name, datasets: listed.ids.length, seconds }, "datasets listed");
      }
      hasAnswered = true;
      found.begin();
      for (const problem of provider.problems?.() ?? []) found.add(problem.name, problem.reason);
      found.end();
    } catch (error) {
      if (isClosed) return;
      failures++;
      const reason = messageOf(error);
      if (reason !== failure)
        log.warn({ provider: name, reason }, "datasets cannot be listed; those known stay");
      failure = reason;
    } finally {
      seconds = (performance.now() - beganMs) / 1_000;
    }
  }

  async function lookAgain(): Promise<void> {
    if (isClosed) return;
    looking ??= lookNow().finally(() => {
      looking = undefined;
    });
    await looking;
  }

  function look(): Promise<void> {
    isDue = true;
    return lookAgain();
  }

  /** Asks for the list soon, and after one that is under way, which may have begun before the change. */
  function lookSoon(): void {
    if (isClosed) return;
    soon ??= setTimeout(async () => {
      await looking;
      soon = undefined;
      await look();
    }, CHANGE_DELAY_MS).unref();
  }
  provider.onChange?.(lookSoon);

  const throttle = createRefreshThrottle(
    {
      name: `provider '${name}': its list`,
      refresh: lookAgain,
      isRefreshing: () => looking !== undefined,
      hasFailed: () => failure !== undefined,
    },
    MAX_PAUSE_MS,
  );

  return {
    get ids() {
      return listed.ids;
    },
    has: (id) => id.startsWith(prefix) && hasId(listed.own, id.slice(prefix.length)),
    get hasAnswered() {
      return hasAnswered;
    },
    get failure() {
      return failure;
    },
    get isCurrent() {
      return hasAnswered && failure === undefined;
    },
    look,
    async lookBeforeNotFound() {
      const isDone = await settlesWithin(throttle.refresh(), LOOK_WAIT_MS);
      if (isDone || (hasAnswered && failure === undefined)) return;
      const problem = `provider '${name}': its list must be readable before an answer with 404: ${failure ?? "it has not answered yet"}`;
      throw new ZpublishError("source-unreadable", problem);
    },
    get seconds() {
      return seconds;
    },
    get failures() {
      return failures;
    },
    close() {
      clearTimeout(soon);
      isClosed = true;
      late.abort();
    },
  };
}
