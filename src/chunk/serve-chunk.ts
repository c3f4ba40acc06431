import { setMaxListeners } from "node:events";
import { type CacheKey, type ChunkCache, cacheKeyOf } from "../cache/chunk-cache.js";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import { createLimiter } from "../collections/limiter.js";
import { createSingleFlight } from "../collections/single-flight.js";
import { errorFromData, ZpublishError } from "../errors.js";
import {
  type Body,
  type BodyClient,
  type BodyReply,
  RepresentationHead,
  type WantedPart,
} from "../http/reply.js";
import type { ChunkTask } from "../pool/chunk-task.js";
import type { ChunkOrigin, ChunkService, ChunkWarmer, WarmedChunk } from "./chunk-service.js";
import {
  assertStillAbsent,
  assertVersion,
  type ChunkRequest,
  type ChunkVersion,
  chunkNotFound,
  createChunkLocator,
  findVersion,
  isAbsent,
  type ServedChunk,
  versionNow,
} from "./chunk-version.js";
import {
  cachedBody,
  isVariant,
  type MadeChunk,
  madeBody,
  offerToCache,
  openStoredFile,
  putIntoCache,
  readStoredChunk,
  readStoredChunkNow,
} from "./delivery.js";
import { createReadMemory } from "./memory.js";
import { openServedReader, type ReadServed } from "./served-reader.js";

/** Passthrough reads at a time. If six stores hang, others wait until `--source-timeout` is over. */
const MAX_READS = 192;
/** Passthrough reads of one store at a time: what libuv's threads can take. */
const MAX_READS_PER_STORE = 32;
/** Reads that may wait for that. Chunks wait and are not refused, because many clients read an error as fill values. */
const DEFAULT_MAX_WAITING_READS = 16_384;
/** Memory of reads that stays for the next ones: of as many chunks of 590 KB as clients usually ask for at once. */
const MAX_FREE_READ_BYTES = 32 * 1024 * 1024;
/** Time for which a URL can be fetched. An answer that has it may be kept for a fifth of that. */
const REDIRECT_SECONDS = 300;

const CHUNK_TYPE = "application/octet-stream";

/** Sources of served chunks: the cache, and the pool. */
export interface ChunkServiceParts {
  readonly cache: () => ChunkCache;
  readonly makeChunk: (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;
  /** Takes back the memory of a chunk that `makeChunk` made. Default: the garbage collector gets it. */
  readonly recycle?: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** Bound of passthrough reads that wait for others. */
  readonly maxWaitingReads?: number;
}

/**
 * Creates the service that serves chunks: key → version → ETag, and when the body is opened, cache → stored bytes or worker
 * pool → cache. `forget` drops all located chunks, and so their snapshots.
 */
export function createChunkService(
  parts: ChunkServiceParts,
): ChunkService & ChunkWarmer & { forget(): void } {
  const { cache, makeChunk, recycle, maxWaitingReads = DEFAULT_MAX_WAITING_READS } = parts;
  const locator = createChunkLocator();
  const flights = createSingleFlight<MadeChunk>();
  const reads = createLimiter({
    maxRunning: MAX_READS,
    maxPerKey: MAX_READS_PER_STORE,
    maxWaiting: maxWaitingReads,
  });
  const memory = createReadMemory(MAX_FREE_READ_BYTES);
  const answered = { hit: 0, pass: 0, miss: 0 };
  const bytes = { hit: 0, pass: 0, miss: 0 };

  function serve(
    ...[snapshot, array, chunkKey, contentType = CHUNK_TYPE]: Parameters<ChunkService["serve"]>
  ) {
    const chunk = locator.locate(snapshot, array, chunkKey);
    const version = versionNow(chunk);
    return version === undefined
      ? findVersion(chunk, memory.acquire).then((found) => represent(chunk, found, contentType))
      : represent(chunk, version, contentType);
  }

  function represent(chunk: ServedChunk, version: ChunkVersion, contentType: string): BodyReply {
    const { snapshot, array, access, key } = chunk;
    if (chunk.reply !== undefined && chunk.version === version) return chunk.reply;
    if (isAbsent(version) && array.plan.absentIsAbsent) throw chunkNotFound(snapshot, array, key);
    const request = { chunk, version, cacheKey: cacheKeyFor(chunk, version) };
    const fields = {
      contentType,
      etag:
        version.token === undefined ? `"${access.tag}-${key}"` : `"${access.tag}-${key}-${version.token}"`,
      cacheControl: snapshot.cacheControl,
    };
    const elsewhere = elsewhereOf(chunk, version);
    const reply: BodyReply = {
      kind: "body",
      ...fields,
      ...(elsewhere && { elsewhere }),
      head: new RepresentationHead(elsewhere === undefined ? fields : { ...fields, vary: "Prefer" }),
      open: (client, wanted) => open(request, client, wanted),
    };
    if (chunk.version === version) chunk.reply = reply;
    return reply;
  }

  function open(request: ChunkRequest, client: BodyClient, wanted: WantedPart): Body | Promise<Body> {
    if (request.chunk.array.plan.kind === "files") return openFile(request, client, wanted);
    const began = performance.now();
    const cached = cache().get(request.cacheKey);
    const lookupMs = performance.now() - began;
    if (cached !== undefined) return count("hit", cachedBody(cache(), request.cacheKey, cached, lookupMs));
    const room = client.reserve(request.chunk.access.expectedByteLength);
    const stored = room === undefined ? readStoredChunkNow(request, memory) : undefined;
    if (stored === undefined) return makeOnce(request, client, lookupMs, room);
    offerToCache(cache(), request.cacheKey, stored);
    return count("pass", madeBody(stored, lookupMs));
  }

  async function openFile(request: ChunkRequest, client: BodyClient, wanted: WantedPart): Promise<Body> {
    const body = await openStoredFile(request, client, wanted, reads);
    return client.started ? body : count("pass", body);
  }

  /** Makes a chunk once for all concurrent requests. */
  async function makeOnce(
    request: ChunkRequest,
    client: BodyClient,
    lookupMs: number,
    room: Promise<void> | undefined,
  ): Promise<Body> {
    await room;
    if (client.signal.aborted) throw new ZpublishError("cancelled", "the client has gone");
    const made = await flights.run(request.cacheKey.id, (signal) => make(request, signal), client.signal);
    return count(made.origin === "PASS" ? "pass" : "miss", madeBody(made, lookupMs));
  }

  const readServed: ReadServed = async (chunk, version, copy, signal) => {
    const request = { chunk, version, cacheKey: cacheKeyFor(chunk, version) };
    const cached = cache().get(request.cacheKey);
    if (cached !== undefined) return copy(cached);
    // All chunks that are read for another one leave with it.
    if (signal !== undefined) setMaxListeners(0, signal);
    const made = await flights.run(request.cacheKey.id, (shared) => make(request, shared), signal);
    const body = madeBody(made, 0);
    try {
      return copy(made.bytes);
    } finally {
      body.release?.();
    }
  };

  async function make(request: ChunkRequest, signal: AbortSignal): Promise<MadeChunk> {
    const made = await produce(request, signal);
    offerToCache(cache(), request.cacheKey, made);
    return made;
  }

  async function produce(request: ChunkRequest, signal: AbortSignal): Promise<MadeChunk> {
    const stored = await readStoredChunk(request, signal, reads, memory);
    return stored ?? (await encode(request, signal));
  }

  async function encode({ chunk, version }: ChunkRequest, signal: AbortSignal): Promise<MadeChunk> {
    const { snapshot, array, coords, key } = chunk;
    const outcome = await makeChunk(
      { plan: array.plan, chunkCoords: coords, version: version.token },
      signal,
    );
    if (outcome.status === "failed") throw errorFromData(outcome.error);
    if (outcome.status === "absent") {
      await assertStillAbsent(chunk, version);
      throw chunkNotFound(snapshot, array, key);
    }
    assertVersion(chunk, version, outcome.version);
    const { bytes, checksum, timings } = outcome;
    const releaseMemory = () => recycle?.(bytes);
    return { bytes, checksum, origin: "MISS", timings: { ...timings }, releaseMemory, readers: 0 };
  }

  function count(origin: ChunkOrigin, body: Body): Body {
    answered[origin]++;
    bytes[origin] += body.byteLength;
    return body;
  }

  async function read(...[snapshot, array, chunkKey, signal]: Parameters<ChunkService["read"]>) {
    const { coords } = locator.locate(snapshot, array, chunkKey);
    if (signal?.aborted) throw new ZpublishError("cancelled", "the caller has gone");
    const reader = openServedReader(snapshot, array, "always", readServed);
    const chunk = await reader.read(coords, { allocate: (byteLength) => new Uint8Array(byteLength), signal });
    return chunk?.bytes as Uint8Array<ArrayBuffer> | undefined;
  }

  async function warm(
    ...[snapshot, array, chunkKey, { signal, stored }]: Parameters<ChunkWarmer["warm"]>
  ): Promise<WarmedChunk> {
    const chunk = locator.locate(snapshot, array, chunkKey);
    const version = versionNow(chunk) ?? (await findVersion(chunk, memory.acquire));
    if (isAbsent(version) && array.plan.absentIsAbsent) return { outcome: "absent", byteLength: 0 };
    const request = { chunk, version, cacheKey: cacheKeyFor(chunk, version) };
    const cached = cache().byteLengthOf(request.cacheKey);
    if (cached !== undefined) return { outcome: "cached", byteLength: isAbsent(version) ? 0 : cached };
    const isPassed = array.plan.kind === "passthrough" && !isVariant(chunk) && !isAbsent(version);
    if (array.plan.kind === "files" || (isPassed && !stored)) return { outcome: "stored", byteLength: 0 };
    const made = await produce(request, signal);
    const byteLength = made.bytes.length;
    const isCached = await putIntoCache(cache(), request.cacheKey, made);
    return { outcome: isCached ? "made" : "refused", byteLength };
  }

  return {
    serve,
    read,
    warm,
    openReader: (snapshot, array, freshness) => openServedReader(snapshot, array, freshness, readServed),
    forget: () => locator.forget(),
    stats: {
      answered,
      bytes,
      get waitingReads() {
        return reads.waiting;
      },
    },
  };
}

/** Returns what finds the URL of a chunk in its own store, if clients are redirected there for chunks that are passed through. */
function elsewhereOf({ array, access, coords }: ServedChunk, version: ChunkVersion): BodyReply["elsewhere"] {
  const { reader } = access;
  const { urlFor } = reader;
  const { kind, source } = array.plan;
  if (urlFor === undefined || source.kind !== "files" || (kind !== "passthrough" && kind !== "files"))
    return undefined;
  // The store has no bytes for fill values.
  if (isAbsent(version)) return undefined;
  return async () => {
    if (!version.wasChecked && (await reader.version(coords)) === undefined) return undefined;
    const url = await urlFor(coords, REDIRECT_SECONDS);
    return url === undefined ? undefined : { url, maxAgeSeconds: REDIRECT_SECONDS / 5 };
  };
}

/**
 * Makes the cache key of a chunk. Chunks of an array without stored bytes are equal, and share one entry of the cache, unless they are
 * computed: those at the edge of the array differ.
 */
function cacheKeyFor({ access, array, key }: ServedChunk, version: ChunkVersion): CacheKey {
  const isFill = isAbsent(version) && array.plan.compute === undefined;
  return cacheKeyOf(access.cachePrefix + (isFill ? "fill" : `${key}\n${version.token ?? ""}`));
}
