import { ZpublishError } from "../errors.js";
import { createTaskLine, type TaskLine } from "../pool/task-line.js";

/** Lets a bounded number of jobs run at a time, such that jobs of one store do not hold up those of others. */
export interface Gate {
  /** Jobs that wait for their turn. */
  readonly waiting: number;
  /**
   * Runs a job at once, or when its turn comes: within a store in order, between stores by turns.
   * @param isWanted Asked when its turn comes, or others need its place.
   * @throws ZpublishError `overloaded` where too many wait, and, with the detail `abandoned`, where nobody waits for it any
   * more; whatever the job throws.
   */
  run<T>(store: string, job: () => Promise<T>, isWanted: () => boolean): Promise<T>;
}

interface WaitingJob {
  readonly isWanted: () => boolean;
  begin(): void;
  refuse(error: ZpublishError): void;
}

interface StoreQueue {
  readonly store: string;
  running: number;
  readonly line: TaskLine<WaitingJob>;
}

/** Places that one store may have for each that is free. */
const PER_FREE_PLACE = 2;
/** Stores that are kept for the next job when they have none. */
const MAX_IDLE = 64;
/** Of what runs in all, where it is more than `maxRunning` because stores have one each. */
const MAX_OVER = 4;

/**
 * A store may have two places for each that is left free: one alone has two thirds of them, and what comes then finds
 * some, though the first should hang; many have the same each. One that has none may begin a job even when
 * all places are taken: however many stores hang, others go on.
 * @param maxRunning Places; so many jobs run at a time, and one for each further store, at most four times as many.
 * @param maxWaiting Jobs that may wait for their turn. When they do, one of the store with most of them makes room for
 * those of others.
 */
export function createGate(maxRunning: number, maxWaiting: number): Gate {
  /** With jobs that run or wait, and some others. */
  const stores = new Map<string, StoreQueue>();
  /** Those where jobs wait, the one whose turn was last at the end. */
  const queued = new Set<StoreQueue>();
  let running = 0;
  let waiting = 0;

  function queueOf(store: string): StoreQueue {
    let queue = stores.get(store);
    if (queue === undefined) {
      queue = { store, running: 0, line: createTaskLine() };
      stores.set(store, queue);
    }
    return queue;
  }

  function forgetIdle({ store, running: own, line }: StoreQueue): void {
    if (own === 0 && line.length === 0 && stores.size > MAX_IDLE) stores.delete(store);
  }

  function mayBegin({ running: own }: StoreQueue): boolean {
    return own === 0 ? running < MAX_OVER * maxRunning : own < PER_FREE_PLACE * (maxRunning - running);
  }

  function enter(queue: StoreQueue): void {
    queue.running++;
    running++;
  }

  function leave(queue: StoreQueue): void {
    queue.running--;
    running--;
    if (queued.size > 0) takeTurns();
    forgetIdle(queue);
  }

  /** What may not begin when it is looked at may not later in the same round either: only more runs then. */
  function takeTurns(): void {
    for (const queue of queued) {
      if (!mayBegin(queue)) continue;
      const next = takeWanted(queue);
      queued.delete(queue);
      // A set keeps the order of insertion: it comes last now, and once more in this round.
      if (queue.line.length > 0) queued.add(queue);
      if (next === undefined) forgetIdle(queue);
      else {
        enter(queue);
        next.begin();
      }
    }
  }

  function takeWanted({ line }: StoreQueue): WaitingJob | undefined {
    for (;;) {
      const next = line.take();
      if (next === undefined) return undefined;
      waiting--;
      if (next.isWanted()) return next;
      next.refuse(abandoned());
    }
  }

  function wait(queue: StoreQueue, isWanted: () => boolean): Promise<void> {
    if (waiting >= maxWaiting) dropUnwanted();
    if (waiting >= maxWaiting) makeRoomFor(queue);
    return new Promise((resolve, reject) => {
      queue.line.add({ isWanted, begin: resolve, refuse: reject });
      queued.add(queue);
      waiting++;
    });
  }

  function dropUnwanted(): void {
    for (const queue of queued) {
      for (const job of queue.line.remove(({ isWanted }) => isWanted())) {
        waiting--;
        job.refuse(abandoned());
      }
      if (queue.line.length === 0) queued.delete(queue);
    }
  }

  /** @throws ZpublishError Where there are no others with more. */
  function makeRoomFor(queue: StoreQueue): void {
    let longest = queue;
    for (const other of queued) if (other.line.length > longest.line.length) longest = other;
    const last = longest.line.length > queue.line.length + 1 ? longest.line.removeLast() : undefined;
    if (last === undefined) {
      forgetIdle(queue);
      throw overloaded(maxWaiting);
    }
    waiting--;
    last.refuse(overloaded(maxWaiting));
  }

  return {
    get waiting() {
      return waiting;
    },
    async run(store, job, isWanted) {
      const queue = queueOf(store);
      if (queue.line.length === 0 && mayBegin(queue)) enter(queue);
      else await wait(queue, isWanted);
      try {
        return await job();
      } finally {
        leave(queue);
      }
    },
  };
}

function overloaded(maxWaiting: number): ZpublishError {
  return new ZpublishError(
    "overloaded",
    `expected at most ${maxWaiting} chunk reads to wait, received one more`,
  );
}

function abandoned(): ZpublishError {
  return new ZpublishError("overloaded", "nobody waits for the chunk any more", {
    details: { abandoned: true },
  });
}
