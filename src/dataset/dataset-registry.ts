import type { DatasetConfig } from "../config/config.js";
import { ZpublishError } from "../errors.js";
import { settlesWithin } from "../settles-within.js";
import { workThrough } from "../source/work-through.js";
import type { DatasetSnapshot, Datasets } from "./dataset.js";
import { errorOfDataset, type KeptDataset } from "./kept-dataset.js";
import { type OpenOptions, openAtStart } from "./open-at-start.js";

export type { OpenProgress } from "./open-at-start.js";

/** Datasets looked at at a time: enough to keep a disk busy, few enough to keep file handles bounded. */
const LOOK_CONCURRENCY = 8;
/** A dataset nobody asked for in so many periods is looked at again only when somebody does. */
const IDLE_PERIODS = 12;
/** How long a request waits for a look at a dataset nobody asked for in a while; then it is answered as it was. */
const LOOK_TIMEOUT_MS = 5_000;
/** How long a request waits for a dataset that has to be opened first; as long as one chunk may take. */
const OPEN_TIMEOUT_MS = 120_000;
/** How long closing waits for looks under way: a source may hang. */
const CLOSE_TIMEOUT_MS = 5_000;

/** The datasets of a server, kept fresh. */
export interface DatasetRegistry extends Datasets {
  /**
   * What has to be waited for before a dataset is answered for: that it is opened, or looked at because nobody asked for
   * it in a while. Undefined where there is nothing to wait for, or no such dataset.
   * @throws ZpublishError what keeps it from being opened
   */
  ready(id: string): Promise<void> | undefined;
  /**
   * Looks at every open dataset once; failures are logged, never thrown. A look at a dataset that is under way already is
   * joined.
   */
  refresh(): Promise<void>;
  /**
   * Has what is asked for looked at every `seconds`, counted from the end of the refresh before, or from when it had that
   * long; 0: never. A dataset nobody asks for is left alone until somebody does, and then looked at first.
   */
  refreshEvery(seconds: number): void;
  close(): Promise<void>;
}

/** A dataset and who asked for it when. */
interface Slot {
  readonly dataset: KeptDataset;
  /** The period of the last request. */
  askedIn: number;
  /** The period of the last look. */
  lookedIn: number;
  /** Open, and looked at in every period: answered for without waiting. */
  isFresh: boolean;
  /** Shared by all requests that wait. */
  preparing: Promise<void> | undefined;
}

/**
 * Opens datasets; see {@link openAtStart} for which of them at once.
 * @throws ZpublishError of the first, in the order configured, that cannot be opened, unless `skipInvalid`; `invalid-config` where
 * two have one id.
 */
export async function openDatasets(
  configs: readonly DatasetConfig[],
  options: OpenOptions,
): Promise<DatasetRegistry> {
  const slots = new Map<string, Slot>();
  for (const dataset of await openAtStart(configs, options)) {
    slots.set(dataset.id, { dataset, askedIn: 0, lookedIn: 0, isFresh: false, preparing: undefined });
  }
  const ids = Object.freeze([...slots.keys()]);
  /** Looked at in every period. */
  const watched = new Set<Slot>();
  let periodMs = 0;
  let period = 0;
  let timer: NodeJS.Timeout | undefined;
  let closed = false;

  function slotOf(id: string): Slot {
    const slot = slots.get(id);
    if (slot === undefined) throw new ZpublishError("not-found", `Dataset '${id}' not found`);
    return slot;
  }

  function ask(slot: Slot): void {
    slot.askedIn = period;
    watched.add(slot);
  }

  async function look(slot: Slot): Promise<void> {
    const begunIn = period;
    await slot.dataset.look();
    if (slot.dataset.snapshot() === undefined) return;
    slot.lookedIn = begunIn;
    if (watched.has(slot)) slot.isFresh = true;
  }

  function ready(id: string): Promise<void> | undefined {
    const slot = slots.get(id);
    if (slot === undefined) return undefined;
    ask(slot);
    if (slot.isFresh) return undefined;
    if (slot.lookedIn === period && slot.dataset.snapshot() !== undefined) {
      slot.isFresh = true;
      return undefined;
    }
    slot.preparing ??= prepare(slot).finally(() => {
      slot.preparing = undefined;
    });
    return slot.preparing;
  }

  async function prepare(slot: Slot): Promise<void> {
    if (slot.dataset.snapshot() === undefined) await open(slot);
    else await settlesWithin(look(slot), Math.min(periodMs, LOOK_TIMEOUT_MS));
    slot.isFresh = true;
  }

  async function open(slot: Slot): Promise<void> {
    const { dataset } = slot;
    const begunIn = period;
    try {
      if (!(await settlesWithin(dataset.open(), OPEN_TIMEOUT_MS))) {
        const problem = `cannot be read: expected to be open after ${OPEN_TIMEOUT_MS} ms`;
        throw new ZpublishError("source-unreadable", problem);
      }
    } catch (error) {
      throw error instanceof ZpublishError ? errorOfDataset(dataset.id, error) : error;
    }
    slot.lookedIn = begunIn;
  }

  function snapshotOf({ dataset }: Slot): DatasetSnapshot {
    const snapshot = dataset.snapshot();
    if (snapshot !== undefined) return snapshot;
    throw new ZpublishError("internal", `expected dataset '${dataset.id}' to be open: wait for open() first`);
  }

  function get(id: string): DatasetSnapshot {
    const slot = slotOf(id);
    ask(slot);
    return snapshotOf(slot);
  }

  /** Looks at what is asked for; what is not any more is left alone. */
  async function refreshWatched(): Promise<void> {
    for (const slot of watched) {
      if (period - slot.askedIn <= IDLE_PERIODS) continue;
      watched.delete(slot);
      slot.isFresh = false;
    }
    // What hangs must not take the place of others.
    const due = [...watched].filter(({ dataset }) => !dataset.isLooking());
    await workThrough(due, LOOK_CONCURRENCY, look);
  }

  async function refresh(): Promise<void> {
    const all = [...slots.values()];
    const joined = all.filter(({ dataset }) => dataset.isLooking());
    const others = all.filter(({ dataset }) => !dataset.isLooking());
    await Promise.all([...joined.map(look), workThrough(others, LOOK_CONCURRENCY, look)]);
  }

  function schedule(): void {
    if (closed) return;
    timer = setTimeout(async () => {
      period++;
      await settlesWithin(refreshWatched(), periodMs);
      schedule();
    }, periodMs).unref();
  }

  return {
    ids: () => ids,
    get,
    open(id) {
      const slot = slotOf(id);
      const pending = ready(id);
      return pending === undefined ? snapshotOf(slot) : pending.then(() => snapshotOf(slot));
    },
    isCurrent(snapshot) {
      const slot = slots.get(snapshot.id);
      if (slot === undefined || !slot.isFresh || slot.dataset.snapshot() !== snapshot) return false;
      slot.askedIn = period;
      return true;
    },
    ready,
    refresh,
    refreshEvery(seconds) {
      if (seconds <= 0) return;
      periodMs = seconds * 1000;
      schedule();
    },
    async close() {
      closed = true;
      clearTimeout(timer);
      const all = Array.from(slots.values(), ({ dataset }) => dataset);
      const looks = all.filter((dataset) => dataset.isLooking()).map((dataset) => dataset.look());
      await settlesWithin(Promise.all(looks), CLOSE_TIMEOUT_MS);
      await Promise.all(all.map((dataset) => dataset.close()));
    },
  };
}
