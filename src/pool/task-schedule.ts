import { type ArrayWatch, createArrayWatches } from "./array-watch.js";
import type { ChunkOutcome, ChunkTask } from "./chunk-task.js";
import { createTaskLine, type TaskLine } from "./task-line.js";

/** A task on its way through the pool. */
export interface PoolTask {
  readonly task: ChunkTask;
  readonly isWanted: () => boolean;
  /** To be called when it is kept apart from others. */
  readonly onApart: () => void;
  readonly settle: (outcome: ChunkOutcome) => void;
  /** Tells arrays apart. */
  readonly arrayKey: string;
  /** Tells chunks of all arrays apart, and states of one chunk. */
  readonly chunkId: string;
  /** What making it may take, in bytes. */
  readonly memory: number;
  /** Of `performance.now()`. */
  readonly queuedAt: number;
  /** Workers that died over it. */
  deaths: number;
  /** Workers that were there for it and had not begun it when they ended. */
  notBegun: number;
}

/** Which task is next. Knows what waits and the memory of what runs, but no worker. */
export interface TaskSchedule {
  readonly length: number;
  /** Arrays. */
  readonly suspects: number;
  /** Tasks of them that wait. */
  readonly ofSuspects: number;
  add(task: PoolTask): void;
  /** Puts one that was taken out before all of its kind. */
  putBack(task: PoolTask): void;
  /** Takes out the next for one of the workers that there are for all. */
  next(): PoolTask | undefined;
  /**
   * Takes out the next for the worker that suspects have; or says when one may begin (of `performance.now()`);
   * undefined: none waits, or there is not the memory.
   */
  nextOfSuspects(now: number): PoolTask | number | undefined;
  /** To be told of every task that begins and ends: the memory is counted. */
  began(task: PoolTask): void;
  ended(task: PoolTask): void;
  /** Whether tasks of another array could run now, were there a worker. */
  doOthersWait(arrayKey: string): boolean;
  /** The array's tasks wait apart from now on. */
  watch(arrayKey: string): ArrayWatch<PoolTask>;
  watchOf(arrayKey: string): ArrayWatch<PoolTask> | undefined;
  /** A worker died over a task of the array that had taken so long. */
  strike(arrayKey: string, tookMs: number): void;
  acquit(watch: ArrayWatch<PoolTask>): void;
  /** Puts an array's tasks back among the others if there is no reason to keep them apart. */
  unwatch(watch: ArrayWatch<PoolTask>): void;
  /** Takes out what nobody waits for any more. */
  removeUnwanted(): PoolTask[];
  /**
   * Takes out the last task of the suspect of which most wait.
   * @param moreThan Undefined is the answer where no more than so many wait of it. Default 0.
   */
  removeSuspect(moreThan?: number): PoolTask | undefined;
  removeAll(): PoolTask[];
}

/**
 * First come, first served, with three exceptions, so that nobody holds up others:
 *
 * - Memory. Tasks are small or large. Small ones, of which even all workers together take no more than half of the
 *   budget, never wait for memory; large ones share the other half, and one of them may always run.
 * - Suspects, arrays over whose chunks workers died, leave the workers to others: they have one worker more for all of
 *   them, and rest in between (`array-watch.ts`).
 * - Arrays whose tasks were found to hold up others come last while those tasks run.
 * @param memoryBudget Bytes for all tasks that run.
 * @param places Tasks that may run at a time, at most.
 */
export function createTaskSchedule(memoryBudget: number, places: number): TaskSchedule {
  const urgent = createTaskLine<PoolTask>();
  const small = createTaskLine<PoolTask>();
  const large = createTaskLine<PoolTask>();
  const watches = createArrayWatches<PoolTask>();
  const smallest = memoryBudget / 2 / places;
  const lines = [urgent, small, large];
  /** Of the tasks in `small` and `large`. */
  const waitingOf = new Map<string, number>();
  let largeBytes = 0;
  let apart = 0;

  const isLarge = ({ memory }: PoolTask) => memory > smallest;
  const fits = (task: PoolTask) =>
    !isLarge(task) || largeBytes === 0 || largeBytes + task.memory <= memoryBudget / 2;

  function count(task: PoolTask, by: 1 | -1): void {
    const left = (waitingOf.get(task.arrayKey) ?? 0) + by;
    if (left === 0) waitingOf.delete(task.arrayKey);
    else waitingOf.set(task.arrayKey, left);
  }

  /** Where a task waits. */
  function lineOf(task: PoolTask): TaskLine<PoolTask> {
    if (task.task.isUrgent) return urgent;
    const watch = watches.get(task.arrayKey);
    if (watch === undefined) {
      count(task, 1);
      return isLarge(task) ? large : small;
    }
    apart++;
    task.onApart();
    return watch.waiting;
  }

  function takeOrdinary(): PoolTask | undefined {
    const first = small.first();
    const other = large.first();
    const isLargeNext =
      other !== undefined && fits(other) && (first === undefined || other.queuedAt < first.queuedAt);
    const taken = (isLargeNext ? large : small).take();
    if (taken !== undefined) count(taken, -1);
    return taken;
  }

  function takeApart(watch: ArrayWatch<PoolTask>): PoolTask | undefined {
    const first = watch.waiting.first();
    if (first === undefined || !fits(first)) return undefined;
    apart--;
    return watch.waiting.take();
  }

  /** Moves what waits of an array from the lines of all to its own. */
  function setApart(watch: ArrayWatch<PoolTask>): void {
    if (!waitingOf.has(watch.arrayKey)) return;
    const stays = ({ arrayKey }: PoolTask) => arrayKey !== watch.arrayKey;
    const moved = [...small.remove(stays), ...large.remove(stays)];
    for (const task of moved) {
      watch.waiting.add(task);
      task.onApart();
    }
    apart += moved.length;
    waitingOf.delete(watch.arrayKey);
  }

  function watchArray(arrayKey: string): ArrayWatch<PoolTask> {
    const watch = watches.begin(arrayKey);
    setApart(watch);
    return watch;
  }

  return {
    get length() {
      return urgent.length + small.length + large.length + apart;
    },
    get suspects() {
      return watches.suspects;
    },
    get ofSuspects() {
      let waiting = 0;
      for (const watch of watches.all) if (watch.strikes > 0) waiting += watch.waiting.length;
      return waiting;
    },
    add: (task) => lineOf(task).add(task),
    putBack: (task) => lineOf(task).putBack([task]),
    next() {
      const first = urgent.take() ?? takeOrdinary();
      if (first !== undefined) return first;
      const slow = watches.nextSlow();
      return slow === undefined ? undefined : takeApart(slow);
    },
    nextOfSuspects(now) {
      const next = watches.nextSuspect(now);
      return typeof next === "object" ? takeApart(next) : next;
    },
    began(task) {
      if (isLarge(task)) largeBytes += task.memory;
    },
    ended(task) {
      if (isLarge(task)) largeBytes -= task.memory;
    },
    doOthersWait(arrayKey) {
      if (urgent.length > 0) return true;
      if (waitingOf.size === 0 || (waitingOf.size === 1 && waitingOf.has(arrayKey))) return false;
      const head = large.first();
      return small.length > 0 || (head !== undefined && fits(head));
    },
    watch: watchArray,
    watchOf: (arrayKey) => watches.get(arrayKey),
    strike(arrayKey, tookMs) {
      watches.strike(watchArray(arrayKey), tookMs, performance.now());
    },
    acquit: (watch) => watches.acquit(watch),
    unwatch(watch) {
      const waiting = watches.endIfIdle(watch);
      if (waiting === undefined) return;
      const back = waiting.remove(() => false);
      apart -= back.length;
      small.putBack(back.filter((task) => !isLarge(task)));
      large.putBack(back.filter(isLarge));
      for (const task of back) count(task, 1);
    },
    removeUnwanted() {
      const isToStay = (task: PoolTask) => task.isWanted();
      const removed = lines.flatMap((line) => line.remove(isToStay));
      for (const task of removed) if (!task.task.isUrgent) count(task, -1);
      for (const { waiting } of watches.all) {
        const unwanted = waiting.remove(isToStay);
        apart -= unwanted.length;
        removed.push(...unwanted);
      }
      return removed;
    },
    removeSuspect(moreThan = 0) {
      let longest: TaskLine<PoolTask> | undefined;
      let length = moreThan;
      for (const { strikes, waiting } of watches.all) {
        if (strikes === 0 || waiting.length <= length) continue;
        longest = waiting;
        length = waiting.length;
      }
      const last = longest?.removeLast();
      if (last !== undefined) apart--;
      return last;
    },
    removeAll() {
      const removed = lines.flatMap((line) => line.remove(() => false));
      for (const { waiting } of watches.all) removed.push(...waiting.remove(() => false));
      waitingOf.clear();
      apart = 0;
      return removed;
    },
  };
}
