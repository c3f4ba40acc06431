import type { CacheKey, ChunkCache } from "../cache/chunk-cache.js";
import { measureZstd } from "../codec/plain/zstd-frame.js";
import type { Limiter } from "../collections/limiter.js";
import type { ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { Body, BodyClient, WantedPart } from "../http/reply.js";
import { storeOf } from "../open/chunk-reader.js";
import type { ReadOptions, StoredChunk } from "../zarr/chunk-reader.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import {
  assertStillAbsent,
  assertVersion,
  type ChunkRequest,
  chunkNotFound,
  type ServedChunk,
} from "./chunk-version.js";
import type { ReadMemory } from "./memory.js";

/** Offset of the byte length of a whole Blosc chunk in its header (c-blosc, "Blosc Header Format"). */
const BLOSC_LENGTH_OFFSET = 12;
const BLOSC_HEADER_BYTES = 16;

/**
 * Refuses a stored chunk of the wrong length: it was cut short, or belongs to another array. Chunks that are passed through
 * are not decoded here, and some clients read missing bytes as zeros, or read beyond the end.
 * @param byteLength Length of the stored chunk.
 * @throws ZpublishError `corrupt-chunk`
 */
export function checkStoredLength(
  plan: EncodingPlan,
  chunkCoords: readonly number[],
  byteLength: number,
): void {
  const { storedByteLength } = plan;
  if (storedByteLength === null ? byteLength > 0 : byteLength === storedByteLength) return;
  const expected = storedByteLength === null ? "some" : storedByteLength;
  throw corrupt(plan, chunkCoords, `expected ${expected} stored bytes, received ${byteLength}`);
}

/**
 * Refuses a stored chunk whose frame is incomplete, if its codec tells that without decoding: it was cut short, or
 * partly overwritten.
 * @throws ZpublishError `corrupt-chunk`
 */
function checkStoredFrame(
  { document, plan }: ServedArray,
  chunkCoords: readonly number[],
  bytes: Uint8Array,
): void {
  const id = document.compressor?.id;
  if (id === "blosc") checkBlosc(plan, chunkCoords, bytes);
  else if (id === "zstd" && measureZstd(bytes) === undefined)
    throw corrupt(
      plan,
      chunkCoords,
      `zstd: expected whole frames, received ${bytes.length} bytes that are not`,
    );
}

function checkBlosc(plan: EncodingPlan, chunkCoords: readonly number[], bytes: Uint8Array): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const expected =
    bytes.length < BLOSC_HEADER_BYTES ? BLOSC_HEADER_BYTES : view.getUint32(BLOSC_LENGTH_OFFSET, true);
  if (bytes.length >= expected) return;
  throw corrupt(plan, chunkCoords, `blosc: expected ${expected} bytes, received ${bytes.length}`);
}

function corrupt({ path }: EncodingPlan, chunkCoords: readonly number[], problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `'${path}' chunk ${chunkCoords.join(".")}: ${problem}`);
}

/**
 * Reads the stored bytes of a chunk that is passed through; undefined if it has to be encoded.
 * @param reads Limiter of concurrent reads.
 * @throws ZpublishError `not-found` if it is absent; the error of a failed read
 */
export async function readStoredChunk(
  request: ChunkRequest,
  signal: AbortSignal,
  reads: Limiter,
  memory: ReadMemory,
): Promise<MadeChunk | undefined> {
  const { chunk, version } = request;
  const { array, access, coords, snapshot, key } = chunk;
  if (array.plan.kind !== "passthrough" || isVariant(chunk)) return undefined;
  const began = performance.now();
  const read = () => access.reader.read(coords, readOptions(request, memory));
  const stored = await reads.run(storeOf(array.plan.source), read, signal).catch((error: unknown) => {
    throw nameOverlong(error, request);
  });
  if (stored === undefined) {
    await assertStillAbsent(chunk, version);
    if (array.plan.absentIsAbsent) throw chunkNotFound(snapshot, array, key);
    return undefined;
  }
  return passThrough(request, stored, memory, performance.now() - began);
}

/**
 * Reads the stored bytes of a chunk that is passed through, without waiting. Undefined if the chunk has to be encoded, or if its
 * store is not local or not quick at present: then {@link readStoredChunk} reads it.
 * @throws ZpublishError `source-changed`, `corrupt-chunk`
 */
export function readStoredChunkNow(request: ChunkRequest, memory: ReadMemory): MadeChunk | undefined {
  const { array, access, coords } = request.chunk;
  if (array.plan.kind !== "passthrough" || isVariant(request.chunk)) return undefined;
  const began = performance.now();
  const stored = access.reader.readNow?.(coords, readOptions(request, memory));
  return stored && passThrough(request, stored, memory, performance.now() - began);
}

/** Tells whether a stored chunk has other codecs than the others, so that its bytes are not what is served. */
export function isVariant({ array, access, coords }: ServedChunk): boolean {
  return array.plan.variants !== undefined && (access.reader.variantOf?.(coords) ?? 0) !== 0;
}

function readOptions({ chunk, version }: ChunkRequest, memory: ReadMemory): ReadOptions {
  return {
    wasChecked: version.token !== undefined,
    allocate: memory.acquire,
    maxByteLength: chunk.access.maxStoredByteLength,
  };
}

/** @throws ZpublishError `source-changed`, `corrupt-chunk` */
function passThrough(
  { chunk, version }: ChunkRequest,
  { bytes, version: readVersion }: StoredChunk,
  memory: ReadMemory,
  readMs: number,
): MadeChunk {
  assertVersion(chunk, version, readVersion);
  checkStoredLength(chunk.array.plan, chunk.coords, bytes.length);
  checkStoredFrame(chunk.array, chunk.coords, bytes);
  return {
    bytes,
    origin: "PASS",
    timings: { read: readMs },
    // Other memory belongs to the source.
    ...(memory.isAcquired(bytes) ? { releaseMemory: () => memory.release(bytes) } : {}),
    readers: 0,
  };
}

/** Gives the error of an overlong chunk, which was not read, the message of one that was read. Other errors stay as they are. */
function nameOverlong(error: unknown, { chunk, version }: ChunkRequest): unknown {
  if (!(error instanceof ZpublishError)) return error;
  const { received, version: readVersion } = error.details;
  if (error.code !== "corrupt-chunk" || typeof received !== "number" || typeof readVersion !== "string")
    return error;
  const { plan } = chunk.array;
  assertVersion(chunk, version, readVersion);
  checkStoredLength(plan, chunk.coords, received);
  return new ZpublishError(error.code, `'${plan.path}': ${error.message}`, {
    details: error.details,
    cause: error,
  });
}

/** A chunk that was read or encoded, and how. */
export interface MadeChunk {
  readonly bytes: Uint8Array;
  readonly origin: "PASS" | "MISS";
  /** Milliseconds per stage. */
  readonly timings: Readonly<Record<string, number>>;
  /** Releases the memory for reuse; undefined if it is not reused, or was released. */
  releaseMemory?: (() => void) | undefined;
  /** CRC-32, if known. */
  readonly checksum?: number | undefined;
  /** Number of bodies that read from it, and the cache while it writes. */
  readers: number;
}

/** Creates a body that reads from a made chunk. @param lookupMs Duration of the cache look-up before it was made. */
export function madeBody(made: MadeChunk, lookupMs: number): Body {
  made.readers += 1;
  return {
    release: () => releaseMade(made),
    byteLength: made.bytes.length,
    headers: [
      ["X-Cache", made.origin],
      ["Server-Timing", serverTiming({ cache: lookupMs, ...made.timings })],
    ],
    read: (offset) => (offset === 0 ? made.bytes : made.bytes.subarray(offset)),
  };
}

/** Offers a made chunk to the cache, which writes it from the chunk's memory, without a copy. */
export function offerToCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): void {
  const { bytes, checksum, origin } = made;
  if (!cache.admits(key, bytes.length, origin === "PASS" ? "read" : "encode")) return;
  // Memory that belongs to the source must not be written to.
  if (made.releaseMemory === undefined) {
    cache.put(key, bytes);
    return;
  }
  made.readers += 1;
  const offered = { bytes, release: () => releaseMade(made) };
  cache.put(key, checksum === undefined ? offered : { ...offered, checksum });
}

/** Puts a made chunk into the cache, whatever the policy says. @returns False if the cache does not take it. */
export function putIntoCache(cache: ChunkCache, key: CacheKey, made: MadeChunk): Promise<boolean> {
  const { bytes, checksum } = made;
  if (made.releaseMemory === undefined) return cache.putAndWait(key, bytes);
  made.readers += 1;
  const offered = { bytes, release: () => releaseMade(made) };
  return cache.putAndWait(key, checksum === undefined ? offered : { ...offered, checksum });
}

/** Ends one reading of a chunk. Its memory is released in a later iteration of the event loop: others may have waited for it. */
function releaseMade(made: MadeChunk): void {
  made.readers -= 1;
  if (made.readers > 0 || made.releaseMemory === undefined) return;
  setImmediate(() => {
    if (made.readers > 0) return;
    made.releaseMemory?.();
    // Several readers may have been the last one in the same iteration.
    made.releaseMemory = undefined;
  });
}

/**
 * Formats the header `Server-Timing` (W3C Server Timing) of the stages that ran.
 * @param timings Milliseconds by stage; stages of exactly 0 did not run.
 */
function serverTiming(timings: Readonly<Record<string, number>>): string {
  let header = "";
  for (const stage in timings) {
    const duration = timings[stage] as number;
    if (duration === 0) continue;
    header += `${header === "" ? "" : ", "}${stage};dur=${duration.toFixed(3)}`;
  }
  return header;
}

/** Bytes that are read at a time. A client takes the next ones when it has these, so that a shard may be of any length. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * Opens a stored file that is served whole, such as a shard, and reads the first piece of what the client wants of it. The file is
 * not cached: its ranges differ from client to client, and the system keeps them in memory anyhow.
 * @param reads Limiter of concurrent reads.
 * @throws ZpublishError `not-found` if there is no such file, `source-changed`, `range-not-satisfiable`
 */
export async function openStoredFile(
  { chunk, version }: ChunkRequest,
  client: BodyClient,
  wanted: WantedPart,
  reads: Limiter,
): Promise<Body> {
  const { array, access, coords, snapshot, key } = chunk;
  await client.reserve(PIECE_BYTES);
  const began = performance.now();
  let start = 0;
  const options: ReadOptions = {
    wasChecked: version.token !== undefined,
    part(fileByteLength) {
      const part = wanted(fileByteLength);
      start = part.start;
      return { start, byteLength: Math.min(part.byteLength, PIECE_BYTES) };
    },
  };
  const read = () => access.reader.read(coords, options);
  const stored =
    access.reader.readNow?.(coords, options) ??
    (await reads.run(storeOf(array.plan.source), read, client.signal));
  if (stored === undefined) {
    await assertStillAbsent(chunk, version);
    throw chunkNotFound(snapshot, array, key);
  }
  assertVersion(chunk, version, stored.version);
  const { bytes, fileByteLength = 0 } = stored;
  return {
    byteLength: fileByteLength,
    heldByteLength: bytes.length,
    headers: [
      ["X-Cache", "PASS"],
      ["Server-Timing", serverTiming({ read: performance.now() - began })],
    ],
    read(offset) {
      const isHeld = offset >= start && offset < start + bytes.length;
      return isHeld ? bytes.subarray(offset - start) : undefined;
    },
  };
}

/** Look-ups up to this many microseconds, nearly all, share their header lines. */
const SHARED_MICROSECONDS = 1_000;

/**
 * Creates a body that reads from the cache.
 * @param found Result of the look-up just made.
 * @param lookupMs Duration of that look-up.
 */
export function cachedBody(cache: ChunkCache, key: CacheKey, found: Uint8Array, lookupMs: number): Body {
  let first: Uint8Array | undefined = found;
  return {
    byteLength: found.length,
    heldByteLength: 0,
    headers: hitHeaders(lookupMs),
    read(offset) {
      // The view is valid in this iteration of the event loop only: later the cache is read again.
      const view = first ?? cache.get(key, true);
      first = undefined;
      return offset === 0 ? view : view?.subarray(offset);
    },
  };
}

const shared: Body["headers"][] = [];

/** Returns the headers of a cached chunk: frozen, one list per microsecond. @param lookupMs Duration of the look-up. */
function hitHeaders(lookupMs: number): Body["headers"] {
  const microseconds = Math.round(lookupMs * 1_000);
  let headers = shared[microseconds];
  if (headers === undefined) {
    headers = Object.freeze([
      Object.freeze(["X-Cache", "HIT"] as const),
      Object.freeze(["Server-Timing", serverTiming({ cache: Math.max(microseconds, 1) / 1_000 })] as const),
    ]);
    if (microseconds < SHARED_MICROSECONDS) shared[microseconds] = headers;
  }
  return headers;
}
