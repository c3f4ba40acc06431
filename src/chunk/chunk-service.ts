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
}
