import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { BodyReply } from "../http/reply.js";

/** The spine of the service: a variable and a chunk key become a reply. */
export interface ChunkService {
  /**
   * The reply to a request for one chunk.
   * @param chunkKey As it came: only the canonical form names a chunk.
   * @throws ZpublishError `not-found` where the key is not canonical, outside the grid, or the chunk is absent.
   */
  serve(snapshot: DatasetSnapshot, array: ServedArray, chunkKey: string): BodyReply | Promise<BodyReply>;
  readonly stats: ChunkServiceStats;
}

/** How bodies were answered, and the bytes of the whole chunks behind them. */
export interface ChunkServiceStats {
  /** `hit`: from the cache; `pass`: as stored; `miss`: made. */
  readonly answered: Readonly<Record<ChunkOrigin, number>>;
  readonly bytes: Readonly<Record<ChunkOrigin, number>>;
  /** Reads of chunks that are served as they are stored, which wait for others. */
  readonly waitingReads: number;
}

/** Where a body came from: the cache, the source as it is stored, or the pool. */
export type ChunkOrigin = "hit" | "pass" | "miss";
