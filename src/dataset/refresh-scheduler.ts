import { settlesWithin } from "../event-loop/settles-within.js";
import { workThrough } from "../event-loop/work-through.js";
import { createRefreshThrottle, type DatasetHandle, type RefreshThrottle } from "./dataset-handle.js";

/** Datasets that are refreshed at a time: enough to keep a disk busy, few enough to bound file handles. */
const REFRESH_CONCURRENCY = 8;
/** Periods without a request after which a dataset is refreshed only when a request comes. */
const IDLE_PERIODS = 12;
/** Longest wait of a request for the refresh of an idle dataset; then it is answered from the state before. */
const REFRESH_TIMEOUT_MS = 5_000;

/** A dataset, and when it was requested and refreshed. All registries that have the dataset share it. */
export interface Slot {
  readonly dataset: DatasetHandle;
  /** Number of registries that have the dataset; it closes with the last of them. */
  owners: number;
  /** Period of the last request; -1 before the first. */
  requestedIn: number;
  /** Period of the last refresh. */
  refreshedIn: number;
  /** True if the dataset is open and refreshed in every period, so that requests need not wait. */
  isFresh: boolean;
  /** Opening or refreshing, shared by all requests that wait. */
  preparing: Promise<void> | undefined;
  /** Refreshes before answers with 404. */
  readonly throttle: RefreshThrottle;
  /** Milliseconds since process start: time of the last request, for datasets that close when others are asked for. */
  usedAtMs: number;
}

/** Creates the slot of a dataset that was not requested yet. */
export function createSlot(dataset: DatasetHandle): Slot {
  return {
    dataset,
    owners: 1,
    requestedIn: -1,
    refreshedIn: 0,
    isFresh: false,
    preparing: undefined,
    throttle: createRefreshThrottle({ ...dataset, name: `dataset '${dataset.id}': its source` }),
    usedAtMs: performance.now(),
  };
}

/** Scheduler of refreshes. It lives as long as a server, whatever datasets that has. */
export type RefreshScheduler = ReturnType<typeof createRefreshScheduler>;

/** Creates a scheduler that refreshes nothing until `every` is called. */
export function createRefreshScheduler() {
  /** Requested lately: refreshed in every period. */
  const requested = new Set<Slot>();
  const tasks = new Set<() => Promise<void>>();
  let periodMs = 0;
  let isRefreshed = false;
  let period = 0;
  let timer: NodeJS.Timeout | undefined;
  /** Count of calls of `every`: a chain of timers ends when a later call has started another. */
  let round = 0;
  let failedRefreshes = 0;

  async function during(slot: Slot, work: () => Promise<void>): Promise<void> {
    const begunIn = period;
    await work();
    slot.refreshedIn = begunIn;
  }

  async function refreshOne(slot: Slot): Promise<void> {
    const begunIn = period;
    await slot.dataset.refresh();
    if (slot.dataset.hasFailed()) failedRefreshes++;
    if (slot.dataset.snapshot === undefined) return;
    slot.refreshedIn = begunIn;
    if (requested.has(slot)) slot.isFresh = true;
  }

  /** Refreshes requested datasets, and removes idle ones. */
  async function refreshRequested(): Promise<void> {
    for (const slot of requested) {
      if (period - slot.requestedIn <= IDLE_PERIODS) continue;
      requested.delete(slot);
      slot.isFresh = false;
    }
    // A refresh that hangs must not take the place of others.
    const due = [...requested].filter(({ dataset }) => !dataset.isRefreshing());
    await workThrough(due, REFRESH_CONCURRENCY, refreshOne);
  }

  function schedule(ofRound: number): void {
    if (ofRound !== round || periodMs === 0) return;
    timer = setTimeout(async () => {
      period++;
      for (const task of tasks) void task();
      await settlesWithin(refreshRequested(), periodMs);
      schedule(ofRound);
    }, periodMs).unref();
  }

  function every(seconds: number, byItself = true): void {
    clearTimeout(timer);
    round++;
    isRefreshed = seconds > 0;
    periodMs = byItself ? seconds * 1000 : 0;
    schedule(round);
  }

  return {
    /** Records a request: the dataset is refreshed in every period, for a while. */
    recordRequest(slot: Slot) {
      if (slot.requestedIn === period) return;
      slot.requestedIn = period;
      requested.add(slot);
    },
    /** Tells whether the dataset was refreshed in this period. */
    isCurrent: (slot: Slot) => slot.refreshedIn === period,
    /** Refreshes a dataset for a request that waits for it, up to a few seconds. Never throws. */
    async refreshForRequest(slot: Slot) {
      await settlesWithin(refreshOne(slot), REFRESH_TIMEOUT_MS);
    },
    /** Runs `work`, which opens the dataset, and counts it as a refresh. */
    during,
    /** Refreshes datasets once; joins a refresh that is under way. Never throws. */
    async refresh(slots: readonly Slot[]) {
      const joined = slots.filter(({ dataset }) => dataset.isRefreshing());
      const others = slots.filter(({ dataset }) => !dataset.isRefreshing());
      await Promise.all([...joined.map(refreshOne), workThrough(others, REFRESH_CONCURRENCY, refreshOne)]);
    },
    /**
     * Adds work that is begun in every period; it never throws. The next period does not wait for it.
     * @returns a function that removes it.
     */
    addTask(task: () => Promise<void>) {
      tasks.add(task);
      return () => void tasks.delete(task);
    },
    /** Stops refreshing a dataset. */
    remove: (slot: Slot) => void requested.delete(slot),
    /**
     * Sets the time between two refreshes of requested datasets; 0 stops them.
     * @param byItself Whether the scheduler keeps time itself. Otherwise its owner calls `refresh` that often. Default true.
     */
    every,
    /** Number of refreshes that failed so far. */
    get failedRefreshes() {
      return failedRefreshes;
    },
    /** True if datasets are refreshed at all. */
    get isRefreshed() {
      return isRefreshed;
    },
    close: () => every(0),
  };
}
