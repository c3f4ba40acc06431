import { createHash } from "node:crypto";
import type { CacheKey } from "../cache/chunk-cache.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { BodyReply } from "../http/reply.js";
import { elementCount } from "../model/data-tree.js";
import { openChunkReader } from "../open/chunk-reader.js";
import {
  type ChunkReader,
  parseChunkKey,
  presentOf,
  type ReadOptions,
  type VersionCheck,
  versionsOf,
} from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { createSteps } from "../zarr/plan/codec-steps.js";
import { combineVersions, storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import { type EncodingPlan, growthOf } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";

/** Version of every chunk of an immutable dataset. */
export const IMMUTABLE: ChunkVersion = { wasChecked: false, token: undefined };
const ABSENT: ChunkVersion = { wasChecked: true, token: undefined };

/** Stored chunks behind one served chunk that are looked up while the event loop waits. */
const MAX_CHECKED_NOW = 8;
/** Calls of {@link loopIteration} within one iteration after which it counts as another. */
const MAX_CALLS = 512;

/** True if nothing is stored behind a chunk. */
export function isAbsent({ wasChecked, token }: ChunkVersion): boolean {
  return wasChecked && token === undefined;
}

/** Checks the version of a chunk; undefined if that has to wait. */
export function versionNow(chunk: ServedChunk): ChunkVersion | undefined {
  if (chunk.snapshot.immutable) {
    chunk.version = IMMUTABLE;
    return IMMUTABLE;
  }
  // One check serves all requests that came in the same iteration of the event loop.
  const iteration = loopIteration();
  if (chunk.checkedIn === iteration || chunk.check?.isUnchanged()) {
    chunk.checkedIn = iteration;
    return chunk.version;
  }
  chunk.check = checkNow(chunk);
  if (chunk.check === undefined) return undefined;
  chunk.checkedIn = iteration;
  return remember(chunk, chunk.check.version);
}

/**
 * Looks up the version of a chunk.
 * @param allocate Memory for its bytes, if they come with the version and are passed through.
 * @throws ZpublishError `source-unreadable`
 */
export async function findVersion(
  chunk: ServedChunk,
  allocate: ReadOptions["allocate"],
): Promise<ChunkVersion> {
  const token = await findToken(chunk, allocate);
  chunk.check = undefined;
  return remember(chunk, token);
}

/** Remembers the version of a chunk. Equal versions are one object, so that the reply made for it is used again. */
function remember(chunk: ServedChunk, token: string | undefined): ChunkVersion {
  if (chunk.version === undefined || chunk.version.token !== token) {
    chunk.version = token === undefined ? ABSENT : { wasChecked: true, token };
    chunk.reply = undefined;
  }
  return chunk.version;
}

/**
 * Looks up the version of the stored bytes behind a chunk; undefined if nothing is stored.
 * @param allocate As in {@link findVersion}.
 * @throws ZpublishError `source-unreadable`
 */
export async function findToken(
  { array, access, coords }: ServedChunk,
  allocate?: ReadOptions["allocate"],
): Promise<string | undefined> {
  if (array.plan.kind === "passthrough") return access.reader.version(coords, allocate);
  if (array.plan.kind !== "rechunk") return access.reader.version(coords);
  return combineTokens(await versionsOf(access.reader, storedChunksOf(array.plan, coords)));
}

/** Combines the versions of the stored chunks behind a chunk; undefined if all are absent. */
export function combineTokens(tokens: readonly (string | undefined)[]): string | undefined {
  return tokens.every((token) => token === undefined) ? undefined : combineVersions(tokens);
}

function checkNow({ array, access, coords, version }: ServedChunk): VersionCheck | undefined {
  const wasChecked = version !== undefined;
  if (array.plan.kind !== "rechunk") return access.reader.versionNow?.(coords, wasChecked);
  const stored = storedChunksOf(array.plan, coords);
  const present = presentOf(access.reader, stored);
  if (present !== undefined) {
    const check = access.reader.versionNow?.(present.first, wasChecked);
    if (check === undefined) return undefined;
    const version = combineVersions(present.are.map((isPresent) => (isPresent ? check.version : undefined)));
    return { version, isUnchanged: () => check.isUnchanged() };
  }
  if (stored.length > MAX_CHECKED_NOW) return undefined;
  const checks: VersionCheck[] = [];
  for (const each of stored) {
    const check = access.reader.versionNow?.(each, wasChecked);
    if (check === undefined) return undefined;
    checks.push(check);
  }
  return {
    version: combineVersions(checks.map(({ version }) => version)),
    isUnchanged: () => checks.every((check) => check.isUnchanged()),
  };
}

/**
 * Refuses stored bytes of another version than the ETag names: they must not be sent under it, and not be cached.
 * @param read Version that the bytes had when they were read.
 * @throws ZpublishError `source-changed`
 */
export function assertVersion(chunk: ServedChunk, version: ChunkVersion, read: string): void {
  if (!version.wasChecked || read === (version.token ?? absentToken(chunk))) return;
  throw sourceChanged(chunk, "changed");
}

/** Returns the token under which workers make a chunk that has nothing stored behind it. */
function absentToken({ array, coords }: ServedChunk): string {
  if (array.plan.kind !== "rechunk") return "";
  return combineVersions(storedChunksOf(array.plan, coords).map(() => undefined));
}

/**
 * Refuses the absence of a file that was there when its version was checked. A chunk within a shard or file may be absent although
 * that is there, and a chunk that is made of such ones, so its version is looked up again.
 * @throws ZpublishError `source-changed`
 */
export async function assertStillAbsent(chunk: ServedChunk, version: ChunkVersion): Promise<void> {
  const { plan } = chunk.array;
  if (version.token === undefined || plan.source.kind === "memory") return;
  const isPart = ["shards", "ranges", "served", "parts"].includes(plan.source.kind);
  if (isPart && (await findToken(chunk)) === version.token) return;
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

let iteration = 0;
let calls = 0;
let isScheduled = false;

function endIteration(): void {
  iteration += 1;
  calls = 0;
  isScheduled = false;
}

/**
 * Returns the number of the current iteration of the event loop. A check holds for all requests that the loop received in the
 * iteration: they had begun to arrive before it. With very many requests libuv polls again within an iteration, so the
 * number also rises after {@link MAX_CALLS} calls.
 */
function loopIteration(): number {
  if (!isScheduled) {
    isScheduled = true;
    // Runs after the phase in which sockets are read.
    setImmediate(endIteration);
  }
  if (++calls > MAX_CALLS) {
    iteration += 1;
    calls = 0;
  }
  return iteration;
}

/** Bytes assumed for an item that has no fixed size. */
const EXPECTED_ITEM_BYTES = 16;
/** Chunks that are remembered, about a kilobyte each. */
const MAX_REMEMBERED = 4_096;

/** Finds chunks by key, and remembers them. */
interface ChunkLocator {
  /** @throws ZpublishError `not-found` if the key is not canonical, or outside the grid */
  locate(snapshot: DatasetSnapshot, array: ServedArray, chunkKey: string): ServedChunk;
  /** Forgets all chunks, and so the snapshots that they belong to. */
  forget(): void;
}

/** Creates a locator that remembers no chunk yet. */
export function createChunkLocator(): ChunkLocator {
  const recent = createBoundedMap<ServedChunk>({ maxEntries: MAX_REMEMBERED });
  return {
    locate(snapshot, array, chunkKey) {
      const access = accessOf(snapshot, array);
      const name = access.tag + chunkKey;
      const known = recent.get(name);
      if (known?.snapshot === snapshot) return known;
      const coords = parseChunkKey(chunkKey, array.plan.served.gridShape);
      if (coords === undefined) throw chunkNotFound(snapshot, array, chunkKey);
      const chunk = createServedChunk(snapshot, array, chunkKey, coords);
      recent.set(name, chunk);
      return chunk;
    },
    forget: () => recent.clear(),
  };
}

/** Creates a chunk of which nothing is known yet. @param chunkKey Canonical. @param coords Those of the key. */
export function createServedChunk(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  chunkKey: string,
  coords: readonly number[],
): ServedChunk {
  return {
    snapshot,
    array,
    access: accessOf(snapshot, array),
    key: chunkKey,
    coords,
    check: undefined,
    checkedIn: -1,
    version: undefined,
    reply: undefined,
  };
}

/** Creates the error for a key that names no chunk of an array, or an absent one. */
export function chunkNotFound(
  snapshot: DatasetSnapshot,
  { plan }: ServedArray,
  chunkKey: string,
): ZpublishError {
  return new ZpublishError(
    "not-found",
    `Chunk '${chunkKey}' not found in variable '${plan.path}' of dataset '${snapshot.id}'`,
  );
}

const accesses = new WeakMap<ServedArray, ChunkAccess>();

function accessOf(snapshot: DatasetSnapshot, array: ServedArray): ChunkAccess {
  let access = accesses.get(array);
  if (access === undefined) {
    const { plan } = array;
    const { revision, place } = contextOf(snapshot, plan);
    const served = `${snapshot.id}\n${revision}\n${plan.path}\n${plan.id}`;
    access = {
      reader: openChunkReader(plan.source),
      tag: createHash("sha256").update(served).digest("hex").slice(0, 20),
      cachePrefix: `${place}\n${served}\n`,
      expectedByteLength: expectedByteLength(plan),
      maxStoredByteLength:
        plan.kind === "passthrough" ? maxStoredByteLength(plan, storedSteps(array)) : undefined,
    };
    accesses.set(array, access);
  }
  return access;
}

/**
 * Returns what the chunks of an array depend on besides its plan, and what tells the place of its data from others. That is the revision
 * of the dataset, unless the array grows: chunks of old parts have to stay what they are while new ones are added. Chunks of an immutable
 * dataset have no versions that would name parts.
 */
function contextOf({ immutable, revision, identity }: DatasetSnapshot, plan: EncodingPlan) {
  const { source } = plan;
  const growth = immutable ? undefined : growthOf(source, plan);
  if (growth === undefined) return { revision, place: identity };
  return { revision: source.kind === "served" ? source.plan : "parts", place: growth.store };
}

function expectedByteLength({ compute, served, itemSize }: EncodingPlan): number {
  if (compute?.kind === "picture" || compute?.kind === "line") return compute.width * compute.height;
  return elementCount(served.chunkShape) * (itemSize || EXPECTED_ITEM_BYTES);
}

/** Returns the steps of the stored codecs, which bound the length of a chunk. A plan for passthrough has no steps. */
function storedSteps({ stored, plan }: ServedArray): CodecStep[] {
  return createSteps(stored, stored.codecs, plan.stored.chunkShape, plan.maxFilledByteLength);
}

/** One chunk of a served array: resolved at its first request, remembered for the next. */
export interface ServedChunk {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  readonly access: ChunkAccess;
  /** Canonical: `0.12.3`. */
  readonly key: string;
  readonly coords: readonly number[];
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
interface ChunkAccess {
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
