/** The counts of one thread, and what all threads have together. */
export interface CallCounts {
  /** Calls under way at file systems that are not this machine's own, of all threads. */
  foreign(): number;
  /** Of those under way, at whatever file system, how many were given up. */
  hanging(): number;
  begin(): void;
  end(): void;
  hang(): void;
  unhang(): void;
  timedOut(): void;
}

/** Counts of calls in memory that all threads share, where each thread that has counted anything has a row of its own. */
export interface CallRows {
  /**
   * The counts of a thread, for itself. It takes a row when it first counts, and keeps it until that is given back. Where all
   * are taken, it shares the last, and what it has under way when it is ended stays there: fewer calls are begun then, not more.
   * @param threadId Unlike any other there has been.
   */
  countsOf(threadId: number): CallCounts;
  /** For whoever sees that a thread has ended, which has nothing under way any more: its row is another's then. */
  giveBack(threadId: number): void;
  /** As {@link CallCounts} has it. */
  hanging(): number;
  /** How often `timedOut` was said, by all threads there have been. */
  timeouts(): number;
}

/** Of a row: who has it (id + 1; 0: nobody), calls it has begun at file systems of other machines, and how many of all hang. */
const FIELDS = 3;
const FOREIGN = 1;
const HANGING = 2;
/** Beside the rows: a sum, and how many rows have ever been used. */
const SUMS = 2;

/** Memory for so many rows, of which the last is shared by threads that find no other. */
export function createCallMemory(rows: number): SharedArrayBuffer {
  return new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT * (SUMS + FIELDS * rows));
}

/** @param memory As {@link createCallMemory} makes it; the same in all threads. */
export function createCallRows(memory: SharedArrayBuffer): CallRows {
  const counts = new Int32Array(memory);
  const rows = (counts.length - SUMS) / FIELDS;
  const last = rows - 1;
  const timeoutsAt = rows * FIELDS;
  const usedAt = timeoutsAt + 1;

  function take(threadId: number): number {
    for (let row = 0; row < last; row++) {
      if (Atomics.compareExchange(counts, row * FIELDS, 0, threadId + 1) === 0) return use(row);
    }
    return use(last);
  }

  function use(row: number): number {
    for (;;) {
      const used = Atomics.load(counts, usedAt);
      if (used > row || Atomics.compareExchange(counts, usedAt, used, row + 1) === used) return row;
    }
  }

  function sumOf(field: number): number {
    let sum = 0;
    const end = Atomics.load(counts, usedAt) * FIELDS;
    for (let at = field; at < end; at += FIELDS) sum += Atomics.load(counts, at);
    return sum;
  }

  return {
    countsOf(threadId) {
      let row: number | undefined;
      /** What it has counted and not taken back: while there is any, it must not change its row. */
      let held = 0;
      function add(field: number, by: 1 | -1): void {
        // There may be a free row by now for one that shared the last.
        if (row === undefined || (row === last && held === 0)) row = take(threadId);
        held += by;
        Atomics.add(counts, row * FIELDS + field, by);
      }
      return {
        foreign: () => sumOf(FOREIGN),
        hanging: () => sumOf(HANGING),
        begin: () => add(FOREIGN, 1),
        end: () => add(FOREIGN, -1),
        hang: () => add(HANGING, 1),
        unhang: () => add(HANGING, -1),
        timedOut: () => void Atomics.add(counts, timeoutsAt, 1),
      };
    },
    giveBack(threadId) {
      const end = Atomics.load(counts, usedAt) * FIELDS;
      for (let at = 0; at < end; at += FIELDS) {
        if (Atomics.load(counts, at) !== threadId + 1) continue;
        Atomics.store(counts, at + FOREIGN, 0);
        Atomics.store(counts, at + HANGING, 0);
        // Last: from now on it may be another's.
        Atomics.store(counts, at, 0);
      }
    },
    hanging: () => sumOf(HANGING),
    timeouts: () => Atomics.load(counts, timeoutsAt),
  };
}
