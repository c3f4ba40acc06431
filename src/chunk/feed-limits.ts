import { createLimiter, type Limiter } from "../collections/limiter.js";
import { storeOf } from "../open/chunk-reader.js";
import type { ChunkSource } from "../zarr/chunk-reader.js";

/** Chunks whose stored bytes are read at a time: many, since each waits for another machine. */
const MAX_FEEDING = 128;
/** Bound of the stored bytes that wait for workers, estimated. */
const MAX_WAITING_BYTES = 256 * 2 ** 20;
/** The share of one store. Its chunks may hang, and those of others have to go on. */
const SHARE = 4;

/** Bounds of what is read for workers. */
export interface FeedLimits {
  /**
   * Runs the reading and making of a chunk when there is room for its stored bytes.
   * @param array Name of the array; arrays take turns.
   * @param byteLength Estimated bytes.
   * @throws as `Limiter.run`
   */
  run<T>(
    source: ChunkSource,
    array: string,
    byteLength: number,
    job: () => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T>;
}

/**
 * Creates limits without jobs. A chunk that is made of another level's chunks waits until those are made: if both needed places of one
 * limit, the waiting ones could take all. So each level has a limit of its own, half as high as the level below.
 */
export function createFeedLimits(): FeedLimits {
  const limitsOfLevels = new Map<number, LevelLimits>();

  function limitsOf(level: number): LevelLimits {
    let limits = limitsOfLevels.get(level);
    if (limits === undefined) {
      limits = createLevelLimits(2 ** -level);
      limitsOfLevels.set(level, limits);
    }
    return limits;
  }

  return {
    run: (source, array, byteLength, job, signal) =>
      limitsOf(source.kind === "served" ? source.level : 0)(storeOf(source), array, byteLength, job, signal),
  };
}

type LevelLimits = <T>(
  store: string,
  array: string,
  byteLength: number,
  job: () => Promise<T>,
  signal: AbortSignal | undefined,
) => Promise<T>;

/** @param part Part of the bounds. */
function createLevelLimits(part: number): LevelLimits {
  const maxRunning = Math.max(SHARE, MAX_FEEDING * part);
  const maxCost = MAX_WAITING_BYTES * part;
  const perStore = { maxRunning: maxRunning / SHARE, maxCost: maxCost / SHARE };
  const all = createLimiter({
    ...{ maxRunning, maxCost },
    maxPerKey: perStore.maxRunning,
    maxWaiting: Number.POSITIVE_INFINITY,
  });
  /** By store; as many as are configured. */
  const shares = new Map<string, Limiter>();

  function shareOf(store: string): Limiter {
    let share = shares.get(store);
    if (share === undefined) {
      share = createLimiter({
        ...perStore,
        maxPerKey: perStore.maxRunning,
        maxWaiting: Number.POSITIVE_INFINITY,
      });
      shares.set(store, share);
    }
    return share;
  }

  return (store, array, byteLength, job, signal) => {
    const cost = Math.min(byteLength, perStore.maxCost);
    return shareOf(store).run(array, () => all.run(store, job, signal, cost), signal, cost);
  };
}
