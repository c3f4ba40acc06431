import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { BodyReply, ElsewhereReply, RouteRequest } from "../http/reply.js";
import type { Freshness } from "../stores/object-versions.js";
import type { ChunkReader } from "../zarr/chunk-reader.js";

/** Names a chunk of an array. An object, with which the service remembers what it has found. */
export interface AskedChunk {
  /** Key as the client sent it: only the canonical form names a chunk. */
  readonly key: string;
}

/** Turns a variable and a chunk key into a reply. */
export interface ChunkService {
  /**
   * Returns the reply to a request for one chunk.
   * @param asked The same object for all requests that name the chunk alike, if there are many.
   * @param request What the chunk is asked for with. Default: without conditions.
   * @param contentType The same for all chunks of an array. Default `application/octet-stream`.
   * @throws ZpublishError `not-found` if the key is not canonical or outside the grid, or the chunk is absent.
   */
  serve(
    snapshot: DatasetSnapshot,
    array: ServedArray,
    asked: AskedChunk,
    request?: Pick<RouteRequest, "header">,
    contentType?: string,
  ): BodyReply | Promise<BodyReply>;
  /**
   * Returns what finds the URL of a chunk in its own store, without asking the store; undefined if clients are not redirected there.
   * @throws ZpublishError as `serve`
   */
  unseen(
    snapshot: DatasetSnapshot,
    array: ServedArray,
    asked: AskedChunk,
  ): ElsewhereReply["find"] | undefined;
  /**
   * Returns the reply to a request for the file of a dataset. Its reads are bounded with those of stored chunks.
   * @throws ZpublishError `not-found` if the dataset does not offer it; `source-changed`, `source-unreadable`
   */
  serveFile(snapshot: DatasetSnapshot): BodyReply | Promise<BodyReply>;
  /**
   * Opens a reader of the chunks that are served of an array, to make others of them. It has the cache and concurrent requests in
   * common with `serve`.
   * @param freshness Time for which their versions are believed.
   */
  openReader(snapshot: DatasetSnapshot, array: ServedArray, freshness: Freshness): ChunkReader;
  readonly stats: ChunkServiceStats;
}

/** Caches chunks before they are asked for. */
export interface ChunkWarmer {
  /**
   * Caches one chunk whatever the policy of the cache says.
   * @param options `stored`: cache also what is passed through. Without it such a chunk is not even read.
   * @throws ZpublishError what a request for the chunk would be answered with; `cancelled`
   */
  warm(
    snapshot: DatasetSnapshot,
    array: ServedArray,
    chunkKey: string,
    options: { readonly signal: AbortSignal; readonly stored: boolean },
  ): Promise<WarmedChunk>;
}

/** Outcome of warming a chunk. */
export interface WarmedChunk {
  /**
   * `made` now, in the cache before (`cached`), `absent` from the source, served as `stored` and not cached, or `refused` by the
   * cache: too large, or the cache is off or cannot be written.
   */
  readonly outcome: "made" | "cached" | "absent" | "stored" | "refused";
  /** Length of the chunk; 0 if it is not cached, or shares the entry of all chunks without stored bytes. */
  readonly byteLength: number;
}

/** Counts of answers by origin, and the bytes of the whole chunks behind them. */
export interface ChunkServiceStats {
  readonly answered: Readonly<Record<ChunkOrigin, number>>;
  readonly bytes: Readonly<Record<ChunkOrigin, number>>;
  /** Passthrough reads, of which some wait for others. */
  readonly reads: { readonly waiting: number };
}

/** Origin of a body: the cache (`hit`), the source as it is stored (`pass`), or the pool (`miss`). */
export type ChunkOrigin = "hit" | "pass" | "miss";
