import { createNullCache } from "../cache/null-chunk-cache.js";
import { createChunkService } from "../chunk/create-chunk-service.js";
import { createSnapshot } from "../dataset/create-snapshot.js";
import type { EncodePool } from "../pool/encode-pool.js";
import { createTaskRunner } from "../pool/run-chunk-task.js";
import { createMemorySource } from "../source/memory.js";
import { UnreadyError } from "./unready-error.js";

/** A chunk that is made to see whether chunks are made. */
export interface ProbeChunk {
  /**
   * Has it made as any other, but before all others, and compares its bytes.
   * @param pool Where it is made.
   * @throws ZpublishError what keeps it from being made; UnreadyError that it is another.
   */
  make(pool: EncodePool): Promise<void>;
  /** As it is served. */
  readonly bytes: Uint8Array;
}

const ITEMS = 4_096;
const CONFIG = { id: "probe", location: "probe", immutable: true, encoding: {}, variables: {} };

/**
 * A small array in memory that no dataset has, and nobody sees: its one chunk is encoded with Blosc. What it ought to be is
 * made here, once.
 */
export async function createProbeChunk(): Promise<ProbeChunk> {
  const data = Int16Array.from({ length: ITEMS }, (_, index) => (index * index) >> 4);
  const arrays = [{ name: "probe", data, shape: [ITEMS] }];
  const source = createMemorySource({ revision: "1", groups: [{ path: "/", arrays }] });
  const snapshot = createSnapshot(CONFIG, await source.readTree(), "no-store");
  const array = snapshot.arrays.get("probe");
  if (array === undefined) throw new Error("expected the probe to be servable");
  const expected = await createTaskRunner()({ plan: array.plan, chunkCoords: [0] });
  if (expected.status !== "encoded") throw new Error("expected the probe to be encoded");
  const { bytes } = expected;

  return {
    bytes,
    async make(pool) {
      // Of its own: users' chunks are counted elsewhere, and nothing of this is kept.
      const chunks = createChunkService({
        cache: createNullCache,
        makeChunk: (task, isWanted) => pool.makeChunk({ ...task, isUrgent: true }, isWanted),
        recycle: (made) => pool.recycle?.(made),
        isCurrent: () => true,
      });
      const reply = await chunks.serve(snapshot, array, "0");
      const body = await reply.open();
      const made = body.read(0);
      const isRight = made !== undefined && Buffer.compare(made, bytes) === 0;
      body.release?.();
      if (!isRight) throw new UnreadyError("expected the bytes of the probe, received others");
    },
  };
}
