import { createRecentMap } from "../recent-map.js";

/** Chunks that ended workers, for a time. */
export interface Quarantine {
  /** Why a chunk is not to be tried; undefined: it may be. */
  reasonFor(chunkId: string): string | undefined;
  /** Keeps a chunk from being tried: for a short time at first, and for twice as long each time it comes again. */
  add(chunkId: string, reason: string): void;
}

/** Chunks known at most; of more, those are forgotten that were not asked for for longest. */
const MAX_CHUNKS = 4_096;
/** The first time may have been an accident: too much load, too little memory. */
const FIRST_MS = 5_000;
const MAX_MS = 60_000;
/** How long after it came last a chunk is taken for one that never came. */
const FORGET_AFTER_MS = 600_000;

interface Quarantined {
  readonly reason: string;
  readonly addedAt: number;
  readonly forMs: number;
}

/** Empty. @param now Milliseconds of a clock that only goes on; another only in tests. */
export function createQuarantine(now: () => number = () => performance.now()): Quarantine {
  const chunks = createRecentMap<Quarantined>(MAX_CHUNKS);

  function find(chunkId: string): Quarantined | undefined {
    if (chunks.size === 0) return undefined;
    const found = chunks.get(chunkId);
    if (found === undefined || now() - found.addedAt < FORGET_AFTER_MS) return found;
    chunks.delete(chunkId);
    return undefined;
  }

  return {
    reasonFor(chunkId) {
      const found = find(chunkId);
      return found !== undefined && now() - found.addedAt < found.forMs ? found.reason : undefined;
    },
    add(chunkId, reason) {
      const known = find(chunkId);
      const forMs = known === undefined ? FIRST_MS : Math.min(2 * known.forMs, MAX_MS);
      chunks.set(chunkId, { reason, addedAt: now(), forMs });
    },
  };
}
