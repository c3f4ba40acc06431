import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { BodyReply } from "../http/reply.js";

/** Turns a variable and a chunk key into a reply. */
export interface ChunkService {
  /**
   * Returns the reply to a request for one chunk.
   * @param chunkKey Key as the client sent it: only the canonical form names a chunk.
   * @param contentType The same for all chunks of an array. Default `application/octet-stream`.
   * @throws ZpublishError `not-found` if the key is not canonical or outside the grid, or the chunk is absent.
   */
  serve(
    snapshot: DatasetSnapshot,
    array: ServedArray,
    chunkKey: string,
    contentType?: string,
  ): BodyReply | Promise<BodyReply>;
  readonly stats: ChunkServiceStats;
}

/** Counts of answers by origin, and the bytes of the whole chunks behind them. */
export interface ChunkServiceStats {
  readonly answered: Readonly<Record<ChunkOrigin, number>>;
  readonly bytes: Readonly<Record<ChunkOrigin, number>>;
  /** Passthrough reads that wait for others. */
  readonly waitingReads: number;
}

/** Origin of a body: the cache (`hit`), the source as it is stored (`pass`), or the pool (`miss`). */
export type ChunkOrigin = "hit" | "pass" | "miss";
