import { type ChunkWorker, type ChunkWorkerOptions, createChunkWorker } from "./chunk-worker.js";

/** The workers of a pool: those for all tasks, and the suspects' own. */
export interface WorkerCrew {
  /**
   * One for a task of any array, to be given back or ended; undefined: none lives that has nothing to do, and none may be
   * started.
   * @param mayStart Whether a thread may be started for it.
   */
  take(mayStart: boolean): ChunkWorker | undefined;
  /** @param isToStay False: there are enough without it. */
  giveBack(worker: ChunkWorker, isToStay: boolean): void;
  /** The suspects' own. @param isFresh Whether it must have done nothing yet. */
  ofSuspects(isFresh: boolean): ChunkWorker;
  endOfSuspects(): void;
  /** Puts a worker out of use at once. @returns When its thread is gone, which may be never. */
  end(worker: ChunkWorker): Promise<void>;
  /** Workers with nothing to do, with or without a thread. */
  readonly idle: number;
  /** Workers that have a thread. */
  readonly alive: number;
  /** The same of all workers; what is taken comes out rejected. */
  endAll(): Promise<unknown>;
}

/** Nobody yet. @param options Of each worker. */
export function createWorkerCrew(options: ChunkWorkerOptions): WorkerCrew {
  /** The one used last is the last, so that those not needed end by themselves. */
  const idle: ChunkWorker[] = [];
  const all = new Set<ChunkWorker>();
  let suspects: ChunkWorker | undefined;

  function create(): ChunkWorker {
    const worker = createChunkWorker({
      ...options,
      onIdleDeath(error) {
        void end(worker);
        options.onIdleDeath(error);
      },
    });
    all.add(worker);
    return worker;
  }

  function end(worker: ChunkWorker): Promise<void> {
    all.delete(worker);
    const place = idle.indexOf(worker);
    if (place >= 0) idle.splice(place, 1);
    if (suspects === worker) suspects = undefined;
    return worker.end();
  }

  return {
    take(mayStart) {
      const alive = idle.findLastIndex(({ isAlive }) => isAlive);
      if (alive >= 0) return idle.splice(alive, 1)[0];
      return mayStart ? (idle.pop() ?? create()) : undefined;
    },
    giveBack(worker, isToStay) {
      if (worker === suspects) return;
      if (isToStay) idle.push(worker);
      else void end(worker);
    },
    ofSuspects(isFresh) {
      if (isFresh && suspects !== undefined) void end(suspects);
      suspects ??= create();
      return suspects;
    },
    endOfSuspects() {
      if (suspects !== undefined) void end(suspects);
    },
    end,
    get idle() {
      return idle.length;
    },
    get alive() {
      let count = 0;
      for (const { isAlive } of all) if (isAlive) count++;
      return count;
    },
    endAll: () => Promise.all([...all].map(end)),
  };
}
