import type { CacheKey, ReleasableChunk } from "../../src/cache/chunk-cache.js";
import type { LmdbStore } from "../../src/cache/lmdb-store.js";
import { type CachePolicy, cacheLimitsOf, createCachePolicy } from "../../src/cache/policy.js";
import { createStoreWriter, type StoreWriter } from "../../src/cache/store-writer.js";
import { createMemoryStore } from "./memory-store.js";

/** Bytes of whole pages that a chunk takes: the size for which the cache makes its sketch two cells wide per entry. */
const CHUNK_BYTES = 32_768;
/** Bytes before the payload, for the header that the writer makes, and LMDB's own. */
const HEADER_BYTES = 40;
const OVERFLOW_BYTES = 24;

/** An instance as the simulation sees it: the server's cache policy and writer, without disk and HTTP. */
export interface SimulatedInstance {
  /** Looks a chunk up, and caches it if it is not there and the policy admits it. @returns True for a hit. */
  ask(key: CacheKey): boolean;
  /** Waits until what was admitted is written. */
  settle(): Promise<void>;
  /** Ends a period of the policy, as the server does once a second. */
  endPeriod(): Promise<void>;
  /** Starts over, as after an orderly end; without its cached chunks unless it keeps its disk. */
  restart(keepsCache: boolean): Promise<void>;
}

/** Options of {@link createInstance}. */
export interface InstanceOptions {
  /** Bound of the cache, in chunks. */
  readonly capacity: number;
  /** Bytes that a chunk takes, whole pages of 4 KiB. Default 32 KiB. */
  readonly chunkBytes?: number;
  /** `read`: chunks are passed through, and cached from the second request on; `encode`: cached at once. */
  readonly cost: "read" | "encode";
  /** Numbers in [0, 1). */
  readonly random: () => number;
}

/** Creates an instance with an empty cache. */
export function createInstance(options: InstanceOptions): SimulatedInstance {
  const { capacity, chunkBytes = CHUNK_BYTES, cost, random } = options;
  const limits = cacheLimitsOf(capacity * chunkBytes);
  /** One memory for all chunks, since nothing reads them. */
  const lent: ReleasableChunk = {
    bytes: new Uint8Array(chunkBytes).subarray(HEADER_BYTES, chunkBytes - OVERFLOW_BYTES),
    checksum: 0,
    release() {},
  };
  let store: LmdbStore;
  let policy: CachePolicy;
  let writer: StoreWriter;

  function open(opened: LmdbStore): void {
    store = opened;
    policy = createCachePolicy(store, limits.sketchWidth);
    writer = createStoreWriter(store, {
      policy,
      limits,
      pendingMaxBytes: Number.POSITIVE_INFINITY,
      counts: { puts: 0, drops: 0, evictions: 0, errors: 0 },
      hasRoomFor: async () => true,
      onBroken: fail,
      onFailedWrite: fail,
      onWritten() {},
    });
  }

  open(createMemoryStore(random));
  return {
    ask(key) {
      if (writer.pending.has(key.id) || store.has(key.bytes)) {
        policy.recordHit(key);
        return true;
      }
      if (policy.admits(key, cost, writer.isFull)) writer.put(key, lent);
      return false;
    },
    settle: () => writer.settle(),
    endPeriod: () => writer.flush(),
    async restart(keepsCache) {
      await writer.settle();
      await writer.flush();
      open(keepsCache ? store : createMemoryStore(random));
    },
  };
}

function fail(reason: string): void {
  throw new Error(`the simulated cache failed: ${reason}`);
}
