import type { Limiter } from "../collections/limiter.js";
import { ZpublishError } from "../errors.js";
import { storeOf } from "../open/chunk-reader.js";
import type { ReadOptions, StoredChunk } from "../zarr/chunk-reader.js";
import { checkStoredFrame, checkStoredLength } from "./check-stored-chunk.js";
import { assertStillAbsent, assertVersion } from "./chunk-version.js";
import { chunkNotFound } from "./locate-chunk.js";
import type { MadeChunk } from "./made-chunk.js";
import type { ReadMemory } from "./read-memory.js";
import type { ChunkRequest, ServedChunk } from "./served-chunk.js";

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
