import { settlesWithin } from "../settles-within.js";
import type { ChunkSource } from "../source/chunk-source.js";
import { storeOf } from "../source/store-of.js";

/** Threads that were ended and are still there, because they wait for a file system that does not answer. */
export interface LingeringThreads {
  readonly count: number;
  /** Counts a thread that is being ended over a task, until it is gone. */
  add(source: ChunkSource, gone: Promise<void>): void;
  /** Whether so many wait for the place of a source that no more are to be sent there. */
  isBlocked(source: ChunkSource): boolean;
}

/** In which a thread ends that can be ended. */
const GRACE_MS = 1_000;
/** Threads that one store may cost; the first may be an accident. */
const MAX_PER_STORE = 2;
/** Threads after which a store that has cost one is left alone. Each keeps the memory it had. */
const MAX_IN_ALL = 8;

/** None yet. */
export function createLingeringThreads(): LingeringThreads {
  const byStore = new Map<string, number>();
  let count = 0;

  function change(store: string, by: 1 | -1): void {
    count += by;
    const left = (byStore.get(store) ?? 0) + by;
    if (left === 0) byStore.delete(store);
    else byStore.set(store, left);
  }

  return {
    get count() {
      return count;
    },
    add(source, gone) {
      const store = storeOf(source);
      void settlesWithin(gone, GRACE_MS).then((isGone) => {
        if (isGone) return;
        change(store, 1);
        void gone.then(() => change(store, -1));
      });
    },
    isBlocked(source) {
      if (count === 0) return false;
      const ofStore = byStore.get(storeOf(source)) ?? 0;
      return ofStore >= (count >= MAX_IN_ALL ? 1 : MAX_PER_STORE);
    },
  };
}
