import { settlesWithin } from "../settles-within.js";
import { workThrough } from "../source/work-through.js";
import type { AbsenceLooks } from "./absence-looks.js";
import type { KeptDataset } from "./kept-dataset.js";

/** Datasets looked at at a time: enough to keep a disk busy, few enough to keep file handles bounded. */
const LOOK_CONCURRENCY = 8;
/** A dataset nobody asked for in so many periods is looked at again only when somebody does. */
const IDLE_PERIODS = 12;
/** How long a request waits for a look at a dataset nobody asked for in a while; then it is answered as it was. */
const LOOK_TIMEOUT_MS = 5_000;

/** A dataset and who asked for it when. One for all registries that have the dataset. */
export interface Slot {
  readonly dataset: KeptDataset;
  /** Registries that have it: it is closed with the last of them. */
  owners: number;
  /** The period of the last request. */
  askedIn: number;
  /** The period of the last look. */
  lookedIn: number;
  /** Open, and looked at in every period: answered for without waiting. */
  isFresh: boolean;
  /** Shared by all requests that wait. */
  preparing: Promise<void> | undefined;
  /** Looks before something is said not to be there. */
  readonly absence: AbsenceLooks;
}

/** What is asked for and looked at when. Lives as long as a server, whatever datasets it has. */
export interface DatasetWatch {
  /** Notes that it was asked for: it is looked at in every period, for a while. */
  ask(slot: Slot): void;
  /** The same of one that is looked at in every period anyway; costs next to nothing. */
  askAgain(slot: Slot): void;
  /** Whether it was looked at in this period. */
  isLookedAt(slot: Slot): boolean;
  /** Looks at it now. Never throws. */
  look(slot: Slot): Promise<void>;
  /** The same for a request that waits for it: not for long. */
  lookFor(slot: Slot): Promise<void>;
  /** Opens it, or does what else makes it as good as looked at. */
  during(slot: Slot, work: () => Promise<void>): Promise<void>;
  /** Looks at all of them once; a look that is under way is joined. */
  refresh(slots: readonly Slot[]): Promise<void>;
  /** It is looked at no more. */
  drop(slot: Slot): void;
  /**
   * Has what is asked for looked at every `seconds`, counted from the end of the refresh before, or from when it had that
   * long; 0: never. Takes the place of what was said before.
   * @param byItself False: somebody else says when (`refresh`), and this only how often that is. Default true.
   */
  every(seconds: number, byItself?: boolean): void;
  /** Whether new metadata are looked for at all. */
  readonly isRefreshed: boolean;
  /** Looks that failed so far. */
  readonly failedLooks: number;
  close(): void;
}

/** A watch over nothing, which looks at nothing until it is told how often. */
export function createDatasetWatch(): DatasetWatch {
  /** Looked at in every period. */
  const watched = new Set<Slot>();
  let periodMs = 0;
  let isRefreshed = false;
  let period = 0;
  let timer: NodeJS.Timeout | undefined;
  /** One that goes on while another is told to begin would leave two. */
  let round = 0;
  let failedLooks = 0;

  async function during(slot: Slot, work: () => Promise<void>): Promise<void> {
    const begunIn = period;
    await work();
    slot.lookedIn = begunIn;
  }

  async function look(slot: Slot): Promise<void> {
    const begunIn = period;
    await slot.dataset.look();
    if (slot.dataset.hasFailed()) failedLooks++;
    if (slot.dataset.snapshot() === undefined) return;
    slot.lookedIn = begunIn;
    if (watched.has(slot)) slot.isFresh = true;
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

  function schedule(ofRound: number): void {
    if (ofRound !== round || periodMs === 0) return;
    timer = setTimeout(async () => {
      period++;
      await settlesWithin(refreshWatched(), periodMs);
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
    ask(slot) {
      slot.askedIn = period;
      watched.add(slot);
    },
    askAgain(slot) {
      slot.askedIn = period;
    },
    isLookedAt: (slot) => slot.lookedIn === period,
    look,
    async lookFor(slot) {
      await settlesWithin(look(slot), Math.min(periodMs, LOOK_TIMEOUT_MS));
    },
    during,
    async refresh(slots) {
      const joined = slots.filter(({ dataset }) => dataset.isLooking());
      const others = slots.filter(({ dataset }) => !dataset.isLooking());
      await Promise.all([...joined.map(look), workThrough(others, LOOK_CONCURRENCY, look)]);
    },
    drop: (slot) => void watched.delete(slot),
    every,
    get failedLooks() {
      return failedLooks;
    },
    get isRefreshed() {
      return isRefreshed;
    },
    close: () => every(0),
  };
}
