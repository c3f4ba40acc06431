import { ZpublishError } from "../errors.js";
import { presentOf, type ReadOptions, type VersionCheck, versionsOf } from "../zarr/chunk-reader.js";
import { combineVersions, storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import type { ChunkVersion, ServedChunk } from "./served-chunk.js";

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
