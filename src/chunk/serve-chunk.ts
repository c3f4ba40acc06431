import { setMaxListeners } from "node:events";
import { type CacheKey, type ChunkCache, cacheKeyOf } from "../cache/chunk-cache.js";
import { createLimiter } from "../collections/limiter.js";
import { createSingleFlight, type Waiting } from "../collections/single-flight.js";
import type { FileView } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import type { Body, BodyClient, BodyReply, WantedPart } from "../http/reply.js";
import { cachedBody, type MadeChunk, madeBody, offerToCache, putIntoCache } from "./chunk-body.js";
import type { ChunkOrigin, ChunkService, ChunkWarmer, WarmedChunk } from "./chunk-service.js";
import { chunkNotFound, createChunkLocator, currentVersion } from "./chunk-version.js";
import {
  type ChunkRequest,
  type ChunkVersion,
  type DeliveryMeans,
  fileReply,
  isAbsent,
  type ServedChunk,
} from "./delivery.js";
import { createReadMemory } from "./memory.js";
import { type FindServed, openServedReader, type ReadServed } from "./served-reader.js";

/** Passthrough reads at a time. If six stores hang, others wait until `--source-timeout` is over. */
const MAX_READS = 192;
/** Passthrough reads of one store at a time: what libuv's threads can take. */
const MAX_READS_PER_STORE = 32;
/** Reads that may wait for that. Chunks wait and are not refused, because many clients read an error as fill values. */
const DEFAULT_MAX_WAITING_READS = 16_384;
/** Memory of reads that stays for the next ones: of as many chunks of 590 KB as clients usually ask for at once. */
const MAX_FREE_READ_BYTES = 32 * 1024 * 1024;
const CHUNK_TYPE = "application/octet-stream";

/** Sources of served chunks: the cache, and the pool. */
export interface ChunkServiceParts extends Pick<DeliveryMeans, "makeChunk" | "recycle"> {
  /** Another cache takes its place when that is open. */
  readonly cache: { readonly current: ChunkCache };
  /** Bound of passthrough reads that wait for others. */
  readonly maxWaitingReads?: number;
}

/**
 * Creates the service that serves chunks: key → version → ETag, and when the body is opened, cache → stored bytes or worker
 * pool → cache.
 */
export function createChunkService({
  cache,
  makeChunk,
  recycle,
  maxWaitingReads = DEFAULT_MAX_WAITING_READS,
}: ChunkServiceParts): ChunkService & ChunkWarmer {
  const locate = createChunkLocator();
  const reads = createLimiter({
    maxRunning: MAX_READS,
    maxPerKey: MAX_READS_PER_STORE,
    maxWaiting: maxWaitingReads,
  });
  const means: DeliveryMeans = {
    reads,
    memory: createReadMemory(MAX_FREE_READ_BYTES),
    makeChunk,
    recycle,
  };
  const { obtainOnce, readServed, warmOnce } = createObtaining(cache, means);
  const files = new WeakMap<FileView, BodyReply>();
  const findServed: FindServed = (chunk, version) => {
    if (cache.current.stats.isOff) return undefined;
    const isMade = !isAbsent(version) || !chunk.array.plan.absentIsAbsent;
    return !isMade || cache.current.byteLengthOf(requestOf(chunk, version).cacheKey) !== undefined;
  };
  // Of a file, parts are read: all of it with its version would be for nothing.
  const needsNoBytes = (chunk: ServedChunk, token: string) =>
    chunk.delivery.passes === "files" ||
    cache.current.byteLengthOf(cacheKeyFor(chunk, { wasChecked: true, token })) !== undefined;
  const answered = { hit: 0, pass: 0, miss: 0 };
  const bytes = { hit: 0, pass: 0, miss: 0 };

  function count(origin: ChunkOrigin, body: Body): Body {
    answered[origin]++;
    bytes[origin] += body.byteLength;
    return body;
  }

  function open(request: ChunkRequest, client: BodyClient, wanted: WantedPart): Body | Promise<Body> {
    const { delivery, access } = request.chunk;
    if (delivery.open !== undefined) {
      return delivery.open(request, client, wanted, means).then((body) => {
        if (body === undefined) throw chunkNotFound(request.chunk);
        return client.started ? body : count("pass", body);
      });
    }
    const began = performance.now();
    const cached = cache.current.get(request.cacheKey);
    const lookupMs = performance.now() - began;
    if (cached !== undefined)
      return count("hit", cachedBody(cache.current, request.cacheKey, cached, lookupMs));
    const bodyOf = (made: MadeChunk) =>
      count(made.origin === "PASS" ? "pass" : "miss", madeBody(made, lookupMs));
    const room = client.reserve(access.expectedByteLength);
    if (room === undefined) return whenDone(obtainOnce(request, client), bodyOf);
    return room.then(() => {
      if (client.signal.aborted) throw new ZpublishError("cancelled", "the client has gone");
      return whenDone(obtainOnce(request, client), bodyOf);
    });
  }

  return {
    unseen(snapshot, array, asked) {
      const { source } = array.plan;
      // Looked at first, since local files are by far the most.
      if (source.kind !== "files" || source.objects === undefined) return undefined;
      const chunk = locate(snapshot, array, asked);
      return chunk.delivery.unseen?.(chunk);
    },
    serve(snapshot, array, asked, request, contentType = CHUNK_TYPE) {
      const chunk = locate(snapshot, array, asked);
      const isHeld = (each: ServedChunk, token: string) =>
        request?.header("if-none-match") !== undefined || needsNoBytes(each, token);
      const version = currentVersion(chunk, means.memory.acquire, isHeld);
      return version instanceof Promise
        ? version.then((found) => replyOf(chunk, found, contentType, open))
        : replyOf(chunk, version, contentType, open);
    },
    async warm(snapshot, array, key, { signal, stored }) {
      const chunk = locate(snapshot, array, { key });
      const version = await currentVersion(chunk, means.memory.acquire, needsNoBytes);
      if (isAbsent(version) && array.plan.absentIsAbsent) return { outcome: "absent", byteLength: 0 };
      const request = requestOf(chunk, version);
      const cached = cache.current.byteLengthOf(request.cacheKey);
      if (cached !== undefined) return { outcome: "cached", byteLength: isAbsent(version) ? 0 : cached };
      const { passes } = chunk.delivery;
      const isPassed = passes === "files" || (passes === "chunks" && !stored && !isAbsent(version));
      return isPassed ? { outcome: "stored", byteLength: 0 } : warmOnce(request, signal);
    },
    serveFile(snapshot) {
      const { id, file, immutable } = snapshot;
      if (file === undefined) {
        const message = `File of dataset '${id}' not found: the dataset does not offer it`;
        throw new ZpublishError("not-found", message);
      }
      const known = files.get(file);
      const reply = known ?? fileReply(snapshot, file, means);
      files.set(file, reply);
      return immutable ? reply : whenDone(file.check(known !== undefined), () => reply);
    },
    openReader: (snapshot, array, freshness) =>
      openServedReader(snapshot, array, freshness, readServed, findServed),
    stats: { answered, bytes, reads },
  };
}

/** Creates how chunks are obtained that are not in the cache. */
function createObtaining(cache: ChunkServiceParts["cache"], means: DeliveryMeans) {
  const flights = createSingleFlight<MadeChunk | undefined>();
  /** Ids of chunks that are being warmed: `warmOnce` puts them into the cache. */
  const warming = new Set<string>();

  /**
   * Reads or makes a chunk, once for all who want it at the same time: clients, other chunks, and warming.
   * @throws ZpublishError `not-found` if it is absent
   */
  function obtainOnce(request: ChunkRequest, caller: Waiting): MaybePromise<MadeChunk> {
    const { chunk, cacheKey } = request;
    const keep = (made: MadeChunk | undefined) => {
      if (made !== undefined && !warming.has(cacheKey.id)) offerToCache(cache.current, cacheKey, made);
      return made;
    };
    const obtain = (flight: Waiting) => whenDone(chunk.delivery.obtain(request, means, flight), keep);
    return whenDone(flights.run(cacheKey.id, obtain, caller), (made) => {
      if (made === undefined) throw chunkNotFound(chunk);
      return made;
    });
  }

  const readServed: ReadServed = async (chunk, version, copy, signal) => {
    const request = requestOf(chunk, version);
    const cached = cache.current.get(request.cacheKey);
    if (cached !== undefined) return copy(cached);
    // All chunks that are read for another one leave with it.
    if (signal !== undefined) setMaxListeners(0, signal);
    const made = await obtainOnce(request, { signal });
    const body = madeBody(made, 0);
    try {
      return copy(made.bytes);
    } finally {
      body.release?.();
    }
  };

  /** Obtains a chunk and caches it, whatever the policy of the cache says. */
  async function warmOnce(request: ChunkRequest, signal: AbortSignal): Promise<WarmedChunk> {
    const { id } = request.cacheKey;
    warming.add(id);
    try {
      const made = await obtainOnce(request, { signal });
      const byteLength = made.bytes.length;
      const isCached = await putIntoCache(cache.current, request.cacheKey, made);
      return { outcome: isCached ? "made" : "refused", byteLength };
    } finally {
      warming.delete(id);
    }
  }

  return { obtainOnce, readServed, warmOnce };
}

/** Returns the reply for a version of a chunk: headers, and a function that opens the body. @throws ZpublishError `not-found` */
function replyOf(
  chunk: ServedChunk,
  version: ChunkVersion,
  contentType: string,
  open: (request: ChunkRequest, client: BodyClient, wanted: WantedPart) => Body | Promise<Body>,
): BodyReply {
  const { snapshot, array, access, key } = chunk;
  if (chunk.reply !== undefined && chunk.version === version) return chunk.reply;
  if (isAbsent(version) && array.plan.absentIsAbsent) throw chunkNotFound(chunk);
  const request = requestOf(chunk, version);
  const elsewhere = chunk.delivery.elsewhere?.(request);
  const reply: BodyReply = {
    kind: "body",
    contentType,
    etag: version.token === undefined ? `"${access.tag}-${key}"` : `"${access.tag}-${key}-${version.token}"`,
    cacheControl: snapshot.cacheControl,
    ...(elsewhere && { elsewhere }),
    open: (client, wanted) => open(request, client, wanted),
  };
  if (chunk.version === version) chunk.reply = reply;
  return reply;
}

function requestOf(chunk: ServedChunk, version: ChunkVersion): ChunkRequest {
  return { chunk, version, cacheKey: cacheKeyFor(chunk, version) };
}

/**
 * Makes the cache key of a chunk. Chunks of an array without stored bytes are equal, and share one entry of the cache, unless they are
 * computed: those at the edge of the array differ.
 */
function cacheKeyFor({ access, array, key }: ServedChunk, version: ChunkVersion): CacheKey {
  const isFill = isAbsent(version) && array.plan.compute === undefined;
  return cacheKeyOf(access.cachePrefix + (isFill ? "fill" : `${key}\n${version.token ?? ""}`));
}
