import type { CacheKey } from "../cache/chunk-cache.js";
import type { ChunkOutcome } from "../codec/make-chunk.js";
import { measureZstd } from "../codec/plain/zstd-frame.js";
import type { Limiter } from "../collections/limiter.js";
import type { Waiting } from "../collections/single-flight.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { errorFromData, ZpublishError } from "../errors.js";
import { type MaybePromise, whenDone, withErrorsOf } from "../event-loop/maybe-promise.js";
import type { Body, BodyClient, BodyReply, ElsewhereReply, ElsewhereUrl, WantedPart } from "../http/reply.js";
import { storeOf } from "../open/chunk-reader.js";
import type { ChunkTask } from "../pool/chunk-task.js";
import {
  type ChunkReader,
  combineStored,
  type ReadOptions,
  type StoredChunk,
  type StoredVersion,
  type VersionOptions,
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
  /**
   * Looks up the version of the stored bytes behind a chunk; its token is undefined if nothing is stored.
   * @param options `allocate`: memory for its bytes, if they come with the version and are passed through.
   * @throws ZpublishError `source-unreadable`
   */
  version(chunk: ServedChunk, options?: VersionOptions): MaybePromise<StoredVersion>;
  /** Returns the token under which a chunk is made that has nothing stored behind it. */
  absentToken(chunk: ServedChunk): string;
  /**
   * Reads or encodes a chunk: at once if it is local and stored as it is served; undefined if it is absent.
   * @throws ZpublishError of a failure, `source-changed`, `cancelled`
   */
  obtain(request: ChunkRequest, means: DeliveryMeans, flight: Waiting): MaybePromise<MadeChunk | undefined>;
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
  /** Returns what finds the URL of a chunk of which nothing is known; undefined if clients are not redirected. */
  unseen?(chunk: ServedChunk): ElsewhereReply["find"] | undefined;
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
  version: ({ access, coords, version }, { signal, isHeld } = {}) =>
    access.reader.version(coords, { wasChecked: version !== undefined, signal, isHeld }),
  absentToken: () => "",
} satisfies Partial<Delivery>;

/** A chunk that is made of several stored chunks. */
const ofSeveralStored = {
  version({ access, array, coords, version }, { signal } = {}) {
    const options = { wasChecked: version !== undefined, signal };
    const found = versionsOf(access.reader, storedChunksOf(array.plan, coords), options);
    return whenDone(found, (versions) => combineStored(versions, combineTokens));
  },
  absentToken: ({ array, coords }) =>
    combineVersions(storedChunksOf(array.plan, coords).map(() => undefined)),
} satisfies Partial<Delivery>;

const recompressed: Delivery = { passes: undefined, ...ofOneStored, obtain: encode };

const DELIVERIES: Readonly<Record<EncodingPlan["kind"], Delivery>> = {
  passthrough: {
    passes: "chunks",
    ...ofOneStored,
    version: ({ access, coords, version }, options) =>
      access.reader.version(coords, { ...options, wasChecked: version !== undefined }),
    obtain: readStored,
    elsewhere,
    unseen,
  },
  files: {
    passes: "files",
    ...ofOneStored,
    open: openStoredFile,
    obtain: encode,
    elsewhere,
    unseen,
  },
  recompress: recompressed,
  rechunk: { passes: undefined, ...ofSeveralStored, obtain: encode },
};

/** Chooses how a chunk is delivered. One whose stored codecs differ from the others' of its array is encoded. */
export function deliveryOf({ plan }: ServedArray, reader: ChunkReader, coords: readonly number[]): Delivery {
  // Coordinates of other kinds may be of another grid than the stored one.
  const mayVary = plan.kind === "passthrough" && plan.variants !== undefined;
  const isVariant = mayVary && ((reader.places ?? reader.parts)?.variantOf(coords) ?? 0) !== 0;
  return isVariant ? recompressed : DELIVERIES[plan.kind];
}

/** Combines the versions of the stored chunks behind a chunk; undefined if all are absent. */
function combineTokens(tokens: readonly (string | undefined)[]): string | undefined {
  return tokens.every((token) => token === undefined) ? undefined : combineVersions(tokens);
}

/**
 * Reads the stored bytes of a chunk. An absent one is made of fill values, unless it is absent for clients.
 * @throws ZpublishError the error of a failed read
 */
function readStored(
  request: ChunkRequest,
  means: DeliveryMeans,
  flight: Waiting,
): MaybePromise<MadeChunk | undefined> {
  const { chunk, version } = request;
  const { array, access, coords } = chunk;
  const { memory } = means;
  const began = performance.now();
  const options: ReadOptions = {
    wasChecked: version.token !== undefined,
    allocate: memory.acquire,
    maxByteLength: access.maxStoredByteLength,
  };
  const read = () => access.reader.read(coords, options);
  const stored = withErrorsOf(
    () => runRead(array.plan, means, read, flight),
    (error) => ofArray(array, error),
  );
  return whenDone(stored, (found) =>
    found === undefined
      ? makeAbsent(request, means, flight)
      : passThrough(request, found, memory, performance.now() - began),
  );
}

/** Adds the name of the array to the error of an overlong chunk, which was not read. */
function ofArray({ plan }: ServedArray, error: unknown): unknown {
  if (!(error instanceof ZpublishError) || error.code !== "corrupt-chunk") return error;
  const { details, message } = error;
  return new ZpublishError(error.code, `'${plan.path}': ${message}`, { details, cause: error });
}

/** Has a chunk of fill values made in place of an absent one, if absent chunks are not absent for clients. */
async function makeAbsent(
  request: ChunkRequest,
  means: DeliveryMeans,
  flight: Waiting,
): Promise<MadeChunk | undefined> {
  const { chunk, version } = request;
  await assertStillAbsent(chunk, version);
  return chunk.array.plan.absentIsAbsent ? undefined : encode(request, means, flight);
}

/** Runs a read among as many as may run at a time. */
function runRead<R>({ source }: EncodingPlan, { reads }: DeliveryMeans, read: () => R, flight: Waiting) {
  const store = storeOf(source);
  // Making a signal would take longer than a read that begins at once.
  return reads.run(store, read, reads.isFree(store) ? undefined : flight.signal);
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
  { signal }: Waiting,
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

/** Bytes that are read at a time. A client takes the next ones when it has these, so that a shard may be of any length. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * Opens a stored file that is served whole, such as a shard, and reads the first piece of what the client wants of it. It is not cached,
 * since ranges differ from client to client.
 */
async function openStoredFile(
  { chunk, version }: ChunkRequest,
  client: BodyClient,
  wanted: WantedPart,
  means: DeliveryMeans,
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
  const stored = await runRead(array.plan, means, read, client);
  if (stored === undefined) {
    await assertStillAbsent(chunk, version);
    return undefined;
  }
  assertVersion(chunk, version, stored.version);
  const { bytes, fileByteLength = 0 } = stored;
  return pieceBody(fileByteLength, start, bytes, performance.now() - began);
}

/** Creates the body of a file of which one piece is in memory; another body is opened for the next piece. */
function pieceBody(byteLength: number, start: number, bytes: Uint8Array, readMs: number): Body {
  return {
    byteLength,
    heldByteLength: bytes.length,
    headers: [
      ["X-Cache", "PASS"],
      ["Server-Timing", serverTiming({ read: readMs })],
    ],
    read(offset) {
      const isHeld = offset >= start && offset < start + bytes.length;
      return isHeld ? bytes.subarray(offset - start) : undefined;
    },
  };
}

/**
 * Returns the reply with the file of a dataset, which is read piece by piece. Each read asserts that the file still has the version of the
 * ETag, so that a file that changes breaks an answer off.
 */
export function fileReply(
  { cacheControl }: DatasetSnapshot,
  { name, contentType, store, version, byteLength, read, urlFor }: NonNullable<DatasetSnapshot["file"]>,
  { reads, memory }: DeliveryMeans,
): BodyReply {
  return {
    ...{ kind: "body", contentType, cacheControl, etag: `"${version.token}"` },
    headers: [["Content-Disposition", attachmentOf(name)]],
    elsewhere: urlFor && (() => urlFor(REDIRECT_SECONDS).then(elsewhereUrl)),
    async open(client, wanted) {
      const { start, byteLength: asked } = wanted(byteLength);
      const length = Math.min(asked, PIECE_BYTES);
      if (length === 0) return pieceBody(byteLength, start, new Uint8Array(0), 0);
      await client.reserve(length);
      const began = performance.now();
      const bytes = await reads.run(store, () => read(start, length, memory.acquire), client.signal);
      const release = () => memory.release(bytes);
      return { ...pieceBody(byteLength, start, bytes, performance.now() - began), release };
    },
  };
}

/** Writes a header that names a file to be saved (RFC 6266 §4): in ASCII, and with all characters if it has others (RFC 8187 §3.2). */
function attachmentOf(name: string): string {
  const plain = name.replace(/[^\x20-\x7e]|["\\%]/g, "_");
  const whole = encodeURIComponent(name).replace(/['()*]/g, (each) => `%${each.charCodeAt(0).toString(16)}`);
  return `attachment; filename="${plain}"${plain === name ? "" : `; filename*=UTF-8''${whole}`}`;
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
    if (!version.wasChecked && (await reader.version(coords)).token === undefined) return undefined;
    return elsewhereUrl(await urlFor(coords, REDIRECT_SECONDS));
  };
}

/** Clients take what they do not find for absent, as here, unless absent chunks are filled here. */
function unseen({ array, access, coords }: ServedChunk): ElsewhereReply["find"] | undefined {
  const { urlFor, isLeftToClients } = access.reader;
  if (urlFor === undefined || isLeftToClients === undefined || !array.plan.absentIsAbsent) return undefined;
  return async () =>
    (await isLeftToClients()) ? elsewhereUrl(await urlFor(coords, REDIRECT_SECONDS)) : undefined;
}

function elsewhereUrl(url: string | undefined): ElsewhereUrl | undefined {
  return url === undefined ? undefined : { url, maxAgeSeconds: REDIRECT_SECONDS / 5 };
}

/** True if nothing is stored behind a chunk. */
export function isAbsent({ wasChecked, token }: ChunkVersion): boolean {
  return wasChecked && token === undefined;
}

/** Offset of the byte length of a whole Blosc chunk in its header (c-blosc, "Blosc Header Format"). */
const BLOSC_LENGTH_OFFSET = 12;
const BLOSC_HEADER_BYTES = 16;

/**
 * Refuses a stored chunk of the wrong length, since some clients read missing bytes as zeros, or read beyond the end.
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

/** Refuses a stored chunk whose frame is incomplete, if its codec tells that without decoding. @throws ZpublishError `corrupt-chunk` */
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
  if (SHARED_VERSIONS.has(kind) && (await chunk.delivery.version(chunk)).token === version.token) return;
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
  /** As in `StoredVersion`, of `version`. */
  isUnchanged: StoredVersion["isUnchanged"];
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
  /** Whether chunks are never rewritten in place, and have no versions. */
  readonly isImmutable: boolean;
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
