import { type CacheKey, cacheKeyOf } from "../cache/cache-key.js";
import type { ChunkCache } from "../cache/chunk-cache.js";
import { createSingleFlight } from "../cache/single-flight.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { errorFromData, ZpublishError } from "../errors.js";
import type { Body, BodyReply } from "../http/reply.js";
import { CHUNK_HEADROOM_BYTES, type ChunkOutcome, type ChunkTask } from "../pool/chunk-task.js";
import type { StampLook, StoredChunk } from "../source/chunk-source.js";
import { storeOf } from "../source/store-of.js";
import { turnOf } from "../turn.js";
import { parseChunkKey } from "../zarr/chunk-key.js";
import { checkStoredFrame, checkStoredLength } from "./check-stored-chunk.js";
import { chunkAccessOf, lookAtChunkNow, stampOfChunk } from "./chunk-access.js";
import { chunkNotFound } from "./chunk-not-found.js";
import { byteLengthOf, type ChunkRequest, refuseOtherStamp, refuseSudden } from "./chunk-request.js";
import type { ChunkOrigin, ChunkService } from "./chunk-service.js";
import { createGate } from "./create-gate.js";
import { hitHeaders } from "./hit-headers.js";
import { type MadeChunk, releaseMade } from "./made-chunk.js";
import { createReadMemory } from "./read-memory.js";
import { serverTiming } from "./server-timing.js";

/**
 * Passthrough reads at a time, 32 of one store: what libuv's threads can take, and a bound on the bytes they hold. See
 * `create-gate.ts` for what becomes of other stores then.
 */
const MAX_READS = 48;
/** Reads that may wait for that. Chunks wait rather than being turned away: many clients read an error as fill value. */
const DEFAULT_MAX_WAITING_READS = 16_384;

/** Memory of reads that is kept for the next ones. */
const MAX_FREE_READ_BYTES = 8 * 1024 * 1024;

/** Where served chunks come from when the cache has none. */
export interface ChunkServiceParts {
  readonly cache: () => ChunkCache;
  readonly makeChunk: (task: ChunkTask, isWanted?: () => boolean) => Promise<ChunkOutcome>;
  /** Takes back the memory of what `makeChunk` made; left out: it is nobody's. */
  readonly recycle?: (bytes: Uint8Array<ArrayBuffer>) => void;
  /** Whether requests are answered from this state of a dataset still. */
  readonly isCurrent: (snapshot: DatasetSnapshot) => boolean;
  /** Passthrough reads that may wait for others. */
  readonly maxWaitingReads?: number;
}

const ALWAYS = () => true;

/**
 * Says of a chunk that was too long to be read what is said of one that was read: that it is another one by now, or how
 * long it should be, with the array's name. Any other error as it is.
 */
function nameLonger(error: unknown, request: ChunkRequest): unknown {
  if (!(error instanceof ZpublishError)) return error;
  const { received, stamp } = error.details;
  if (error.code !== "corrupt-chunk" || typeof received !== "number" || typeof stamp !== "string")
    return error;
  const { array, coords } = request;
  refuseOtherStamp(request, stamp);
  checkStoredLength(array.plan, coords, received);
  const { code, message, details } = error;
  return new ZpublishError(code, `'${array.plan.path}': ${message}`, { details, cause: error });
}

/** The spine: key → stamp → reply; and when its body is asked for: cache → passthrough read or pool. */
export function createChunkService(parts: ChunkServiceParts): ChunkService {
  const { cache, makeChunk, recycle, isCurrent, maxWaitingReads = DEFAULT_MAX_WAITING_READS } = parts;
  const flights = createSingleFlight<MadeChunk>();
  const reads = createGate(MAX_READS, maxWaitingReads);
  const memory = createReadMemory(MAX_FREE_READ_BYTES);
  const answered = { hit: 0, pass: 0, miss: 0 };
  const bytesOf = { hit: 0, pass: 0, miss: 0 };

  function note(origin: ChunkOrigin, byteLength: number): void {
    answered[origin]++;
    bytesOf[origin] += byteLength;
  }

  function hit(body: Body | undefined): Body | undefined {
    if (body !== undefined) note("hit", body.byteLength);
    return body;
  }

  async function serve(snapshot: DatasetSnapshot, array: ServedArray, chunkKey: string): Promise<BodyReply> {
    const notFound = () => chunkNotFound(snapshot, array, chunkKey);
    const coords = parseChunkKey(chunkKey, array.plan.served.gridShape);
    if (coords === undefined) throw notFound();
    const access = chunkAccessOf(snapshot, array);
    const stamp = snapshot.immutable ? undefined : await stampOfChunk(access, array, coords);
    const isEmpty = stamp === undefined && !snapshot.immutable;
    if (isEmpty && array.plan.absentIsAbsent) throw notFound();

    // All chunks with nothing behind them are the same bytes, so they share one entry of the cache.
    const cacheKey = cacheKeyOf(access.cachePrefix + (isEmpty ? "fill" : `${chunkKey}\n${stamp ?? ""}`));
    const request: ChunkRequest = {
      array,
      access,
      coords,
      stamp,
      wasLookedAt: !snapshot.immutable,
      cacheKey,
      notFound,
      missedIn: -1,
      lookupMs: 0,
    };
    const isStillCurrent = currencyOf(snapshot, request);
    return {
      kind: "body",
      contentType: "application/octet-stream",
      etag: stamp === undefined ? `"${access.tag}-${chunkKey}"` : `"${access.tag}-${chunkKey}-${stamp}"`,
      cacheControl: snapshot.cacheControl,
      ...(isStillCurrent === undefined ? {} : { isCurrent: isStillCurrent }),
      expectedByteLength: access.expectedByteLength,
      atHand: () => hit(openCached(request, true)),
      open: (isWanted) => openBody(request, isWanted),
      headers: () => headersAsStored(request),
      byteLength: () => byteLengthOf(request),
    };
  }

  /** How to tell at once that a reply is current still; undefined where it cannot be told so. */
  function currencyOf(
    snapshot: DatasetSnapshot,
    { access, array, coords, stamp }: ChunkRequest,
  ): (() => boolean) | undefined {
    if (snapshot.immutable) return () => isCurrent(snapshot);
    if (stamp === undefined || access.reader.lookNow === undefined) return undefined;
    let look: StampLook | undefined;
    let lookedIn = -1;
    return () => {
      if (!isCurrent(snapshot)) return false;
      const turn = turnOf();
      // One look serves all requests that came in the same turn.
      if (lookedIn === turn) return true;
      if (look === undefined) {
        look = lookAtChunkNow(access, array, coords);
        if (look?.stamp !== stamp) return false;
      } else if (!look.isUnchanged()) return false;
      lookedIn = turn;
      return true;
    };
  }

  async function openBody(request: ChunkRequest, isWanted: () => boolean = ALWAYS): Promise<Body> {
    const cached = request.missedIn === turnOf() ? undefined : hit(openCached(request, false));
    if (cached !== undefined) return cached;
    const lookup = request.lookupMs;
    const made = await makeOnce(request, isWanted);
    made.readers += 1;
    note(made.origin === "PASS" ? "pass" : "miss", made.bytes.length);
    return {
      release: () => releaseMade(made),
      byteLength: made.bytes.length,
      headers: [
        ["X-Cache", made.origin],
        ["Server-Timing", serverTiming({ cache: lookup, ...made.timings })],
      ],
      read: (offset) => (offset === 0 ? made.bytes : made.bytes.subarray(offset)),
    };
  }

  /** Made once for all who ask for it at the same time. */
  async function makeOnce(request: ChunkRequest, isWanted: () => boolean): Promise<MadeChunk> {
    const run = () => flights.run(request.cacheKey.id, (wanted) => make(request, wanted), isWanted);
    try {
      return await run();
    } catch (error) {
      // Given up when all who had asked were gone, in the moment in which this request came.
      const isGivenUp = error instanceof ZpublishError && error.details.abandoned === true;
      if (isGivenUp && isWanted()) return run();
      throw error;
    }
  }

  /**
   * @param isReadAtOnce Whether it is read from before anything else runs: what was looked up is still there then, and
   * need not be looked up again.
   */
  function openCached(request: ChunkRequest, isReadAtOnce: boolean): Body | undefined {
    const { cacheKey } = request;
    const began = performance.now();
    const found = cache().get(cacheKey);
    if (found === undefined) {
      request.missedIn = turnOf();
      request.lookupMs = performance.now() - began;
      return undefined;
    }
    let first = isReadAtOnce ? found : undefined;
    return {
      byteLength: found.length,
      heldByteLength: 0,
      headers: hitHeaders(performance.now() - began),
      read(offset) {
        const bytes = first ?? cache().get(cacheKey, true);
        first = undefined;
        return offset === 0 ? bytes : bytes?.subarray(offset);
      },
    };
  }

  /** Of HEAD, for a chunk that GET would answer as it is stored or from the cache. */
  function headersAsStored(request: ChunkRequest): Body["headers"] {
    const began = performance.now();
    const cached = openCached(request, false);
    if (cached !== undefined) return cached.headers;
    return [
      ["X-Cache", "PASS"],
      ["Server-Timing", serverTiming({ cache: performance.now() - began })],
    ];
  }

  async function make(request: ChunkRequest, isWanted: () => boolean): Promise<MadeChunk> {
    const made = (await readAsStored(request, isWanted)) ?? (await encode(request, isWanted));
    const cost = made.origin === "PASS" ? "read" : "encode";
    const { cacheKey } = request;
    if (cache().admits(cacheKey, made.bytes.length, cost)) keep(cacheKey, made);
    return made;
  }

  /** Lends the cache what it would copy otherwise. */
  function keep(cacheKey: CacheKey, made: MadeChunk): void {
    const { bytes, checksum } = made;
    // Memory that is somebody else's, or goes nowhere, may not be written to.
    if (made.giveBack === undefined) {
      cache().put(cacheKey, bytes);
      return;
    }
    made.readers += 1;
    const lent = { bytes, release: () => releaseMade(made) };
    cache().put(cacheKey, checksum === undefined ? lent : { ...lent, checksum });
  }

  /** The stored bytes where they are the served ones; undefined where the chunk has to be made. */
  async function readAsStored(
    request: ChunkRequest,
    isWanted: () => boolean,
  ): Promise<MadeChunk | undefined> {
    const { array, access, coords, stamp, notFound } = request;
    if (array.plan.kind !== "passthrough") return undefined;
    const began = performance.now();
    const options = {
      wasLookedAt: stamp !== undefined,
      allocate: memory.take,
      maxByteLength: access.maxStoredByteLength,
    };
    let stored: StoredChunk | undefined;
    try {
      stored = await reads.run(
        storeOf(array.plan.source),
        () => access.reader.read(coords, options),
        isWanted,
      );
    } catch (error) {
      throw nameLonger(error, request);
    }
    if (stored === undefined) {
      await refuseSudden(request);
      if (array.plan.absentIsAbsent) throw notFound();
      return undefined;
    }
    refuseOtherStamp(request, stored.stamp);
    checkStoredLength(array.plan, coords, stored.bytes.length);
    checkStoredFrame(array, coords, stored.bytes);
    const { bytes } = stored;
    return {
      bytes,
      origin: "PASS",
      timings: { read: performance.now() - began },
      // What a source did not take from here is its own.
      ...(memory.isTaken(bytes) ? { giveBack: () => memory.giveBack(bytes) } : {}),
      readers: 0,
    };
  }

  async function encode(request: ChunkRequest, isWanted: () => boolean): Promise<MadeChunk> {
    const { array, coords, stamp, notFound } = request;
    const outcome = await makeChunk({ plan: array.plan, chunkCoords: coords, stamp }, isWanted);
    if (outcome.status === "failed") throw errorFromData(outcome.error);
    if (outcome.status === "absent") {
      await refuseSudden(request);
      throw notFound();
    }
    refuseOtherStamp(request, outcome.stamp);
    const { bytes, checksum, timings } = outcome;
    return {
      bytes,
      checksum,
      origin: "MISS",
      timings: { ...timings },
      // Another process's come without headroom, and are nobody's to use again.
      ...(bytes.byteOffset < CHUNK_HEADROOM_BYTES ? {} : { giveBack: () => recycle?.(bytes) }),
      readers: 0,
    };
  }

  return {
    serve,
    stats: {
      answered,
      bytes: bytesOf,
      get waitingReads() {
        return reads.waiting;
      },
    },
  };
}
