import { compareItems, firstNotLess, isSameList } from "../../collections/sorted-lists.js";
import { problemOfDatasetId } from "../../config/dataset-schema.js";
import { quoteValue } from "../../config/value-schemas.js";
import { messageOf, ZpublishError } from "../../errors.js";
import { createSlice, runCooperatively } from "../../event-loop/cooperative-task.js";
import { joined } from "../../event-loop/joined.js";
import { settlesWithin, withinTime } from "../../event-loop/settles-within.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import type { Log } from "../../observe/log.js";
import { createRefreshThrottle } from "../dataset-handle.js";
import type { DatasetProvider } from "../dataset-provider.js";

/** Time of one list. A store with a million objects takes minutes; a provider that hangs is asked again after it. */
const LIST_TIMEOUT_MS = 120_000;
/** Time between a provider's word that its list has changed and the list: several changes come together. */
const CHANGE_DELAY_MS = 100;
/** Time that a request for an id that is not known waits for a list; then the last one counts. */
const LOOK_WAIT_MS = 5_000;
/** Longest pause between two lists for ids that are not known. */
const MAX_PAUSE_MS = 60_000;
/** Problems of one kind that are named in the log; of further ones there is only a count. */
const MAX_NAMED = 20;

/** The ids of a provider, as it listed them last. */
export interface ProviderList {
  /** With the prefix, sorted by their UTF-16 code units, each once. The same array while nothing has changed. */
  readonly ids: readonly string[];
  has(id: string): boolean;
  /** False until the provider has listed its datasets once. */
  readonly hasAnswered: boolean;
  /** Reason why the last list failed; undefined if it did not. */
  readonly failure: string | undefined;
  /** Asks for the list, or joins a list that is under way. Never throws: a failure is logged, once until it is over. */
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

/** Something that cannot be published, with the reason. */
interface NamedProblem {
  readonly name: string;
  readonly reason: string;
}

/** Creates the list of a provider that is not asked yet. @param onChange Called when `ids` are others. */
export function createProviderList(provider: DatasetProvider, log: Log, onChange: () => void): ProviderList {
  const { name, prefix } = provider;
  const logInvalid = createProblemLog(log, name, "no dataset can have this id");
  const logFound = createProblemLog(log, name, "cannot be published");
  /** Aborts the list that is under way. */
  let late = new AbortController();
  let isClosed = false;
  let ids: readonly string[] = [];
  let lastReceived: readonly unknown[] | undefined;
  let soon: NodeJS.Timeout | undefined;
  let failure: string | undefined;
  let failures = 0;
  let seconds = 0;

  /** Takes a list over. @returns True if it differs from the last. */
  async function take(received: readonly unknown[]): Promise<boolean> {
    const isFirst = lastReceived === undefined;
    if (lastReceived !== undefined && isSameList(received, lastReceived)) return false;
    const problems: NamedProblem[] = [];
    const next = await idsOf(received, prefix, problems);
    logInvalid(problems);
    lastReceived = received;
    if (isSameList(next, ids)) return isFirst;
    ids = next;
    onChange();
    return true;
  }

  const look = joined(async (): Promise<void> => {
    if (isClosed) return;
    const beganMs = performance.now();
    const secondsSince = () => Math.round(performance.now() - beganMs) / 1_000;
    try {
      late = new AbortController();
      const received = await receive(provider, late);
      if (isClosed) return;
      const hasChanged = await take(received);
      if (failure !== undefined) log.info({ provider: name }, "datasets can be listed again");
      failure = undefined;
      if (hasChanged && ids.length === 0)
        log.warn({ provider: name, place: provider.place }, "no datasets were found");
      else if (hasChanged)
        log.info({ provider: name, datasets: ids.length, seconds: secondsSince() }, "datasets listed");
      logFound(provider.problems?.() ?? []);
    } catch (error) {
      if (isClosed) return;
      failures++;
      const reason = messageOf(error);
      if (reason !== failure)
        log.warn({ provider: name, reason }, "datasets cannot be listed; those known stay");
      failure = reason;
    } finally {
      seconds = secondsSince();
    }
  });

  /** Asks for the list soon, and after one that is under way, which may have begun before the change. */
  function lookSoon(): void {
    if (isClosed) return;
    soon ??= setTimeout(async () => {
      await look.running;
      soon = undefined;
      await look();
    }, CHANGE_DELAY_MS).unref();
  }
  provider.onChange?.(lookSoon);

  const throttle = createRefreshThrottle(
    {
      name: `provider '${name}': its list`,
      refresh: look,
      isRefreshing: () => look.running !== undefined,
      hasFailed: () => failure !== undefined,
    },
    MAX_PAUSE_MS,
  );

  async function lookBeforeNotFound(): Promise<void> {
    const isDone = await settlesWithin(throttle.refresh(), LOOK_WAIT_MS);
    if (isDone || (lastReceived !== undefined && failure === undefined)) return;
    const problem = `provider '${name}': its list must be readable before an answer with 404: ${failure ?? "it has not answered yet"}`;
    throw new ZpublishError("source-unreadable", problem);
  }

  return {
    get ids() {
      return ids;
    },
    has: (id) => ids[firstNotLess(ids, id)] === id,
    get hasAnswered() {
      return lastReceived !== undefined;
    },
    get failure() {
      return failure;
    },
    look,
    lookBeforeNotFound,
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

/** Asks a provider for its list. @throws what it throws; ZpublishError `source-unreadable` if it does not answer in time */
async function receive(provider: DatasetProvider, late: AbortController): Promise<readonly unknown[]> {
  return withinTime(Promise.resolve(provider.list(late.signal)), LIST_TIMEOUT_MS, () => {
    late.abort();
    return new ZpublishError("source-unreadable", `expected a list within ${LIST_TIMEOUT_MS / 1_000} s`);
  });
}

/**
 * Returns the ids of a list, sorted and each once.
 * @param received The list, in any order, without the prefix. A plugin may have made it, so its items may be anything.
 */
async function idsOf(
  received: readonly unknown[],
  prefix: string,
  problems: NamedProblem[],
): Promise<readonly string[]> {
  const slice = createSlice();
  const ids: string[] = [];
  for (const item of received) {
    if (slice.isOver()) await slice.next();
    const isText = typeof item === "string";
    const reason = !isText
      ? "expected a text"
      : item === ""
        ? "expected a non-empty id"
        : problemOfDatasetId(prefix + item);
    if (reason === undefined) ids.push(`${prefix}${item}`);
    else problems.push({ name: isText ? prefix + item : quoteValue(item), reason });
  }
  const sorted = await runCooperatively(sortCooperatively(ids, compareItems));
  return sorted.filter((id, index) => {
    if (id !== sorted[index - 1]) return true;
    problems.push({ name: id, reason: "expected an id once in a list, received it twice" });
    return false;
  });
}

/**
 * Creates a log of problems that are found again and again. The first ones are named, each once.
 * @param message Message of each line, such as `dataset left out`.
 */
function createProblemLog(
  log: Log,
  provider: string,
  message: string,
): (problems: readonly NamedProblem[]) => void {
  const named = new Set<string>();
  return (problems) => {
    for (const { name, reason } of problems) {
      if (named.size > MAX_NAMED || named.has(name)) continue;
      named.add(name);
      if (named.size <= MAX_NAMED) log.warn({ provider, name, reason }, message);
      else log.warn({ provider, count: problems.length - MAX_NAMED }, `${message}: further ones`);
    }
  };
}
