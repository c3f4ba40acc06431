import { createTaskLine, type TaskLine } from "./task-line.js";

/**
 * An array whose chunks are made apart from others', because workers died over them, or because they hold up others.
 * There is one for as long as that is so.
 */
export interface ArrayWatch<T> {
  readonly arrayKey: string;
  /** Deaths of workers, halved by each chunk that is made since. 0: its chunks only take long. */
  strikes: number;
  /** Of `performance.now()`: no chunk of it is begun before. */
  restUntil: number;
  /** Of `performance.now()`: what workers died of is forgotten then, if nothing is under way. */
  forgetAt: number;
  /** Chunks under way that were found to hold up others. */
  slowRunning: number;
  /** Chunks under way that were begun since. */
  probesRunning: number;
  readonly waiting: TaskLine<T>;
}

/** Arrays apart from others. */
export interface ArrayWatches<T> {
  get(arrayKey: string): ArrayWatch<T> | undefined;
  /** The watch of an array, begun if there is none. Others that nobody has asked for in a while may be forgotten. */
  begin(arrayKey: string): ArrayWatch<T>;
  /** Notes that a worker died over a chunk that had taken `tookMs`. */
  strike(watch: ArrayWatch<T>, tookMs: number, now: number): void;
  /** Notes that a chunk of an array that was watched when it was begun has been made. */
  acquit(watch: ArrayWatch<T>): void;
  /** Ends a watch for which there is no reason any more. @returns What waited; undefined: it goes on. */
  endIfIdle(watch: ArrayWatch<T>): TaskLine<T> | undefined;
  /** Who is next among the suspects, and may begin; or when one may (of `performance.now()`); undefined: nobody waits. */
  nextSuspect(now: number): ArrayWatch<T> | number | undefined;
  /** One that only takes long, with chunks that wait. */
  nextSlow(): ArrayWatch<T> | undefined;
  readonly all: Iterable<ArrayWatch<T>>;
  readonly suspects: number;
}

/** More is forgiven at once: nobody is to be waited for that long. */
const MAX_STRIKES = 10;
const FIRST_REST_MS = 100;
const MAX_REST_MS = 30_000;
const FORGET_AFTER_MS = 300_000;
/** Watches known before those that are due are looked for and forgotten. */
const MAX_KEPT = 1_000;

/** Nothing watched. */
export function createArrayWatches<T>(): ArrayWatches<T> {
  /** In the order of their turns. */
  const watches = new Map<string, ArrayWatch<T>>();

  function isDue({ waiting, slowRunning, probesRunning, forgetAt }: ArrayWatch<T>): boolean {
    const isIdle = waiting.length === 0 && slowRunning === 0 && probesRunning === 0;
    return isIdle && performance.now() >= forgetAt;
  }

  function get(arrayKey: string): ArrayWatch<T> | undefined {
    const watch = watches.get(arrayKey);
    if (watch === undefined || !isDue(watch)) return watch;
    watches.delete(arrayKey);
    return undefined;
  }

  return {
    get,
    begin(arrayKey) {
      let watch = get(arrayKey);
      if (watch === undefined) {
        if (watches.size >= MAX_KEPT)
          for (const known of [...watches.values()]) if (isDue(known)) watches.delete(known.arrayKey);
        watch = {
          arrayKey,
          strikes: 0,
          restUntil: 0,
          forgetAt: 0,
          slowRunning: 0,
          probesRunning: 0,
          waiting: createTaskLine(),
        };
        watches.set(arrayKey, watch);
      }
      return watch;
    },
    strike(watch, tookMs, now) {
      watch.strikes = Math.min(watch.strikes + 1, MAX_STRIKES);
      watch.forgetAt = now + FORGET_AFTER_MS;
      // The first may be an accident: its second attempt is not to be waited for.
      if (watch.strikes < 2) return;
      const rest = Math.max(FIRST_REST_MS * 2 ** (watch.strikes - 2), tookMs);
      watch.restUntil = now + Math.min(rest, MAX_REST_MS);
    },
    acquit(watch) {
      watch.strikes >>= 1;
      watch.restUntil = 0;
    },
    endIfIdle(watch) {
      const { strikes, slowRunning, probesRunning, waiting, arrayKey } = watch;
      if (strikes > 0 || slowRunning > 0 || probesRunning > 0) return undefined;
      watches.delete(arrayKey);
      return waiting;
    },
    nextSuspect(now) {
      let soonest: number | undefined;
      for (const watch of watches.values()) {
        if (watch.strikes === 0 || watch.waiting.length === 0) continue;
        if (watch.restUntil > now) {
          soonest = Math.min(soonest ?? watch.restUntil, watch.restUntil);
          continue;
        }
        // A map keeps the order of insertion: it is the last now.
        watches.delete(watch.arrayKey);
        watches.set(watch.arrayKey, watch);
        return watch;
      }
      return soonest;
    },
    nextSlow() {
      for (const watch of watches.values()) {
        if (watch.strikes === 0 && watch.waiting.length > 0) return watch;
      }
      return undefined;
    },
    get all() {
      return watches.values();
    },
    get suspects() {
      let count = 0;
      for (const watch of watches.values()) if (watch.strikes > 0 && !isDue(watch)) count++;
      return count;
    },
  };
}
