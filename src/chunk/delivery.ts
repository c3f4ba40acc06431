import type { CacheKey } from "../cache/chunk-cache.js";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import { measureZstd } from "../codec/plain/zstd-frame.js";
import type { Limiter } from "../collections/limiter.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { errorFromData, ZpublishError } from "../errors.js";
import type { Body, BodyClient, BodyReply, WantedPart } from "../http/reply.js";
import { storeOf } from "../open/chunk-reader.js";
import type { ChunkTask } from "../pool/chunk-task.js";
import {
  type ChunkReader,
  presentOf,
  type ReadOptions,
  type StoredChunk,
  type VersionCheck,
  versionsOf,
} from "../zarr/chunk-reader.js";
import { combineVersions, storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { type MadeChunk, serverTiming } from "./chunk-body.js";
import type { ReadMemory } from "./memory.js";

/** How the chunks of an array come to clients: one object for each kind of plan, which no other place asks for. */
export interface Delivery {
  /** Whether clients get stored bytes: as a rule, or ranges of whole files. */
  readonly passes: "chunks" | "files" | undefined;
  /** Looks up the version of the stored bytes behind a chunk without waiting; undefined if that has to wait. */
  checkNow(chunk: ServedChunk): VersionCheck | undefined;
  /**
   * Looks up the version of the stored bytes behind a chunk; undefined if nothing is stored.
   * @param allocate Memory for its bytes, if they come with the version and are passed through.
   * @throws ZpublishError `source-unreadable`
   */
  findToken(chunk: ServedChunk, allocate?: ReadOptions["allocate"]): Promise<string | undefined>;
  /** Returns the token under which a chunk is made that has nothing stored behind it. */
  absentToken(chunk: ServedChunk): string;
  /** Returns a chunk at once; undefined if that has to wait. @throws ZpublishError `source-changed`, `corrupt-chunk` */
  obtainNow?(request: ChunkRequest, means: DeliveryMeans): MadeChunk | undefined;
  /** Reads or encodes a chunk; undefined if it is absent. @throws ZpublishError of a failure, `source-changed`, `cancelled` */
  obtain(request: ChunkRequest, means: DeliveryMeans, signal: AbortSignal): Promise<MadeChunk | undefined>;
  /**
   * Opens a chunk of unknown length, of which clients read ranges; undefined if it is absent. Such a chunk is not cached.
   * @throws ZpublishError `source-changed`, `range-not-satisfiable`
   */
  open?(
    request: ChunkRequest,
    client: BodyClient,
    wanted: WantedPart,
    means: DeliveryMeans,
  ): Promise<Body | undefined>;
  /** Returns what finds the URL of a chunk in its own store, if clients are redirected there. */
  elsewhere?(request: ChunkRequest): BodyReply["elsewhere"];
}

/** What chunks are read and made with. */
export interface DeliveryMeans {
  /** Limiter of concurrent reads. */
  readonly reads: Limiter;
  readonly memory: ReadMemory;
  readonly makeChunk: (task: ChunkTask, signal?: AbortSignal) => Promise<ChunkOutcome>;
  /** Takes back the memory of a chunk that `makeChunk` made. Default: the garbage collector gets it. */
  readonly recycle?: ((bytes: Uint8Array<ArrayBuffer>) => void) | undefined;
}

/** A chunk that is one stored chunk. */
const ofOneStored = {
  checkNow: ({ access, coords, version }) => access.reader.versionNow?.(coords, version !== undefined),
  findToken: ({ access, coords }) => access.reader.version(coords),
  absentToken: () => "",
} satisfies Partial<Delivery>;

/** A chunk that is made of several stored chunks. */
const ofSeveralStored = {
  checkNow: checkSeveralNow,
  findToken: async ({ access, array, coords }) =>
    combineTokens(await versionsOf(access.reader, storedChunksOf(array.plan, coords))),
  absentToken: ({ array, coords }) =>
    combineVersions(storedChunksOf(array.plan, coords).map(() => undefined)),
} satisfies Partial<Delivery>;

const recompressed: Delivery = { passes: undefined, ...ofOneStored, obtain: encode };

const DELIVERIES: Readonly<Record<EncodingPlan["kind"], Delivery>> = {
  passthrough: {
    passes: "chunks",
    ...ofOneStored,
    findToken: ({ access, coords }, allocate) => access.reader.version(coords, allocate),
    obtainNow: readStoredNow,
    obtain: async (request, means, signal) =>
      (await readStored(request, means, signal)) ?? (await encodeFilled(request, means, signal)),
    elsewhere,
  },
  files: {
    passes: "files",
    ...ofOneStored,
    open: openStoredFile,
    obtain: encode,
    elsewhere,
  },
  recompress: recompressed,
  rechunk: { passes: undefined, ...ofSeveralStored, obtain: encode },
};

/** Chooses how a chunk is delivered. One whose stored codecs differ from the others' of its array is encoded. */
export function deliveryOf({ plan }: ServedArray, reader: ChunkReader, coords: readonly number[]): Delivery {
  const isVariant = plan.variants !== undefined && (reader.variantOf?.(coords) ?? 0) !== 0;
  return plan.kind === "passthrough" && isVariant ? recompressed : DELIVERIES[plan.kind];
}

/** Stored chunks behind one served chunk that are looked up while the event loop waits. */
const MAX_CHECKED_NOW = 8;

function checkSeveralNow({ array, access, coords, version }: ServedChunk): VersionCheck | undefined {
  const wasChecked = version !== undefined;
  const { reader } = access;
  const stored = storedChunksOf(array.plan, coords);
  const present = presentOf(reader, stored);
  if (present !== undefined) {
    const check = reader.versionNow?.(present.first, wasChecked);
    if (check === undefined) return undefined;
    const versions = present.are.map((isPresent) => (isPresent ? check.version : undefined));
    return { ...check, version: combineVersions(versions) };
  }
  if (stored.length > MAX_CHECKED_NOW) return undefined;
  const checks: VersionCheck[] = [];
  for (const each of stored) {
    const check = reader.versionNow?.(each, wasChecked);
    if (check === undefined) return undefined;
    checks.push(check);
  }
  return {
    version: combineVersions(checks.map(({ version }) => version)),
    isUnchanged: () => checks.every((check) => check.isUnchanged()),
  };
}

/** Combines the versions of the stored chunks behind a chunk; undefined if all are absent. */
export function combineTokens(tokens: readonly (string | undefined)[]): string | undefined {
  return tokens.every((token) => token === undefined) ? undefined : combineVersions(tokens);
}

/** Reads the stored bytes of a chunk; undefined if it is absent. @throws ZpublishError the error of a failed read */
async function readStored(
  request: ChunkRequest,
  { reads, memory }: DeliveryMeans,
  signal: AbortSignal,
): Promise<MadeChunk | undefined> {
  const { chunk, version } = request;
  const { array, access, coords } = chunk;
  const began = performance.now();
  const read = () => access.reader.read(coords, readOptions(request, memory));
  const stored = await reads.run(storeOf(array.plan.source), read, signal).catch((error: unknown) => {
    throw nameOverlong(error, request);
  });
  if (stored !== undefined) return passThrough(request, stored, memory, performance.now() - began);
  await assertStillAbsent(chunk, version);
  return undefined;
}

/** Reads the stored bytes of a chunk without waiting; undefined if its store is not local, or not quick at present. */
function readStoredNow(request: ChunkRequest, { memory }: DeliveryMeans): MadeChunk | undefined {
  const { access, coords } = request.chunk;
  const began = performance.now();
  const stored = access.reader.readNow?.(coords, readOptions(request, memory));
  return stored && passThrough(request, stored, memory, performance.now() - began);
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

/** Has a chunk made by a worker; undefined if it is absent. */
async function encode(
  { chunk, version }: ChunkRequest,
  { makeChunk, recycle }: DeliveryMeans,
  signal: AbortSignal,
): Promise<MadeChunk | undefined> {
  const { array, coords } = chunk;
  const outcome = await makeChunk({ plan: array.plan, chunkCoords: coords, version: version.token }, signal);
  if (outcome.status === "failed") throw errorFromData(outcome.error);
  if (outcome.status === "absent") {
    await assertStillAbsent(chunk, version);
    return undefined;
  }
  assertVersion(chunk, version, outcome.version);
  const { bytes, checksum, timings } = outcome;
  const releaseMemory = () => recycle?.(bytes);
  return { bytes, checksum, origin: "MISS", timings: { ...timings }, releaseMemory, readers: 0 };
}

/** Has a chunk of fill values made in place of an absent one, if absent chunks are not absent for clients. */
async function encodeFilled(
  request: ChunkRequest,
  means: DeliveryMeans,
  signal: AbortSignal,
): Promise<MadeChunk | undefined> {
  return request.chunk.array.plan.absentIsAbsent ? undefined : encode(request, means, signal);
}

/** Bytes that are read at a time. A client takes the next ones when it has these, so that a shard may be of any length. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * Opens a stored file that is served whole, such as a shard, and reads the first piece of what the client wants of it. The file is
 * not cached: its ranges differ from client to client, and the system keeps them in memory anyhow.
 */
async function openStoredFile(
  { chunk, version }: ChunkRequest,
  client: BodyClient,
  wanted: WantedPart,
  { reads }: DeliveryMeans,
): Promise<Body | undefined> {
  const { array, access, coords } = chunk;
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
    return undefined;
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

/** Time for which a URL can be fetched. An answer that has it may be kept for a fifth of that. */
const REDIRECT_SECONDS = 300;

function elsewhere({ chunk, version }: ChunkRequest): BodyReply["elsewhere"] {
  const { array, access, coords } = chunk;
  const { reader } = access;
  const { urlFor } = reader;
  if (urlFor === undefined || array.plan.source.kind !== "files") return undefined;
  // The store has no bytes for fill values.
  if (isAbsent(version)) return undefined;
  return async () => {
    if (!version.wasChecked && (await reader.version(coords)) === undefined) return undefined;
    const url = await urlFor(coords, REDIRECT_SECONDS);
    return url === undefined ? undefined : { url, maxAgeSeconds: REDIRECT_SECONDS / 5 };
  };
}

/** True if nothing is stored behind a chunk. */
export function isAbsent({ wasChecked, token }: ChunkVersion): boolean {
  return wasChecked && token === undefined;
}

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

/**
 * Refuses stored bytes of another version than the ETag names: they must not be sent under it, and not be cached.
 * @param read Version that the bytes had when they were read.
 * @throws ZpublishError `source-changed`
 */
function assertVersion(chunk: ServedChunk, version: ChunkVersion, read: string): void {
  if (!version.wasChecked || read === (version.token ?? chunk.delivery.absentToken(chunk))) return;
  throw sourceChanged(chunk, "changed");
}

/** Kinds of sources with a version for several chunks, of which one may be absent: a shard, a file, parts. */
const SHARED_VERSIONS: ReadonlySet<string> = new Set(["shards", "ranges", "served", "parts"]);

/**
 * Throws if a file vanished since its version was checked. A chunk inside a shard may be absent while the shard exists, so the shard's
 * version is checked again.
 * @throws ZpublishError `source-changed`
 */
async function assertStillAbsent(chunk: ServedChunk, version: ChunkVersion): Promise<void> {
  const { kind } = chunk.array.plan.source;
  if (version.token === undefined || kind === "memory") return;
  if (SHARED_VERSIONS.has(kind) && (await chunk.delivery.findToken(chunk)) === version.token) return;
  throw sourceChanged(chunk, "vanished");
}

/** Creates the error of a chunk whose version is no longer the one that was found: the next attempt checks it again. */
function sourceChanged(chunk: ServedChunk, change: "changed" | "vanished"): ZpublishError {
  // A source in memory may have answered in the same iteration of the event loop.
  chunk.checkedIn = -1;
  return new ZpublishError(
    "source-changed",
    `a chunk of '${chunk.array.plan.path}' ${change} while it was being read`,
  );
}

/** One chunk of a served array: resolved at its first request, remembered for the next. */
export interface ServedChunk {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  readonly access: ChunkAccess;
  /** Canonical: `0.12.3`. */
  readonly key: string;
  readonly coords: readonly number[];
  readonly delivery: Delivery;
  /** Checks without waiting if `version` still holds; undefined if that takes an asynchronous check. */
  check: VersionCheck | undefined;
  /** Iteration of the event loop in which `version` was checked without waiting; -1 if never. */
  checkedIn: number;
  /** Version of the stored bytes at the last request. */
  version: ChunkVersion | undefined;
  /** Reply for `version`. */
  reply: BodyReply | undefined;
}

/** Properties that all chunks of one array share while its snapshot lives. */
export interface ChunkAccess {
  readonly reader: ChunkReader;
  /** First part of every ETag: the same on all instances whose encoders write the same bytes. */
  readonly tag: string;
  /** First part of every cache key: identifies the place of the data, too. */
  readonly cachePrefix: string;
  /** Estimated bytes of a chunk in memory: uncompressed, and a guess if items have no fixed size. */
  readonly expectedByteLength: number;
  /** Greatest length of a stored chunk that is passed through; undefined if it is not known, or not passed through. */
  readonly maxStoredByteLength: number | undefined;
}

/** Version of the stored bytes behind a served chunk, known without reading them. */
export interface ChunkVersion {
  /** False if the dataset is immutable: then nothing was checked. */
  readonly wasChecked: boolean;
  /** Token that identifies the bytes; undefined if nothing is stored, or nothing was checked. */
  readonly token: string | undefined;
}

/** A request for one version of a chunk. */
export interface ChunkRequest {
  readonly chunk: ServedChunk;
  readonly version: ChunkVersion;
  readonly cacheKey: CacheKey;
}
