import { createRecentMap } from "../collections/recent-map.js";

/** Chunks that are not tried for a while, because workers died over them. */
export interface Quarantine {
  /** Why a chunk is in quarantine; undefined if it may be tried. */
  reasonFor(chunkId: string): string | undefined;
  /** Puts a chunk into quarantine: for a short time at first, then twice as long each time. */
  add(chunkId: string, reason: string): void;
}

/** Maximum entries; the least recently used are evicted. */
const MAX_CHUNKS = 4_096;
/** Short, because the first time may have been an accident of load or memory. */
const FIRST_MS = 5_000;
const MAX_MS = 60_000;
/** Time after its last failure until a chunk counts as new. */
const FORGET_AFTER_MS = 600_000;

interface Quarantined {
  readonly reason: string;
  readonly addedAt: number;
  readonly forMs: number;
}

/** Creates an empty quarantine. @param now Milliseconds of a monotonic clock; another one only in tests. */
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
