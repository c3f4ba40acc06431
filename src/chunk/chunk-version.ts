import { createHash } from "node:crypto";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { elementCount } from "../model/data-tree.js";
import { openChunkReader } from "../open/chunk-reader.js";
import { parseChunkKey, type ReadOptions, type StoredVersion } from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { createSteps } from "../zarr/plan/codec-steps.js";
import { type EncodingPlan, growthOf } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import type { AskedChunk } from "./chunk-service.js";
import { type ChunkAccess, type ChunkVersion, deliveryOf, type ServedChunk } from "./delivery.js";

/** Version of every chunk of an immutable dataset. */
export const IMMUTABLE: ChunkVersion = { wasChecked: false, token: undefined };
const ABSENT: ChunkVersion = { wasChecked: true, token: undefined };

/** Calls of {@link loopIteration} within one iteration after which it counts as another. */
const MAX_CALLS = 512;

/**
 * Returns the version of a chunk: at once if that waits for nothing.
 * @param allocate Memory for its bytes, if they come with the version and are passed through.
 * @param isHeld As in `VersionOptions`.
 * @throws ZpublishError `source-unreadable`
 */
export function currentVersion(
  chunk: ServedChunk,
  allocate: ReadOptions["allocate"],
  isHeld: (chunk: ServedChunk, token: string) => boolean,
): MaybePromise<ChunkVersion> {
  if (chunk.access.isImmutable) {
    chunk.version = IMMUTABLE;
    return IMMUTABLE;
  }
  // One check serves all requests that came in the same iteration of the event loop.
  const iteration = loopIteration();
  if (chunk.version !== undefined && (chunk.checkedIn === iteration || chunk.isUnchanged?.())) {
    chunk.checkedIn = iteration;
    return chunk.version;
  }
  chunk.isUnchanged = undefined;
  const found = chunk.delivery.version(chunk, { allocate, isHeld: (token) => isHeld(chunk, token) });
  if (found instanceof Promise) return found.then((later) => remember(chunk, later));
  chunk.checkedIn = iteration;
  return remember(chunk, found);
}

/** Remembers the version of a chunk. Equal versions are one object, so that the reply made for it is used again. */
function remember(chunk: ServedChunk, { token, isUnchanged }: StoredVersion): ChunkVersion {
  chunk.isUnchanged = isUnchanged;
  if (chunk.version === undefined || chunk.version.token !== token) {
    chunk.version = token === undefined ? ABSENT : { wasChecked: true, token };
    chunk.reply = undefined;
  }
  return chunk.version;
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
 * Returns the number of the current iteration of the event loop. A check holds for all requests that the loop received in it. With very
 * many requests libuv polls again within an iteration, so the number also rises after {@link MAX_CALLS} calls.
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
/** Creates what finds chunks by key. A chunk is remembered as long as its array and the object that names it. */
export function createChunkLocator() {
  const located = new WeakMap<ServedArray, WeakMap<AskedChunk, ServedChunk>>();
  /** @throws ZpublishError `not-found` if the key is not canonical, or outside the grid */
  return (given: DatasetSnapshot, array: ServedArray, asked: AskedChunk): ServedChunk => {
    // Overviews hand on arrays of the dataset, and encodings cut them: their chunks are the dataset's.
    const snapshot = array.isOfOverviews ? given : (given.levels?.dataset ?? given.encoded ?? given);
    let chunks = located.get(array);
    if (chunks === undefined) {
      chunks = new WeakMap();
      located.set(array, chunks);
    }
    const known = chunks.get(asked);
    if (known?.snapshot === snapshot) return known;
    const { key } = asked;
    const coords = parseChunkKey(key, array.plan.served.gridShape);
    if (coords === undefined) throw chunkNotFound({ snapshot, array, key });
    const chunk = createServedChunk(snapshot, array, key, coords);
    chunks.set(asked, chunk);
    return chunk;
  };
}

/** Creates a chunk of which nothing is known yet. @param chunkKey Canonical. @param coords Those of the key. */
export function createServedChunk(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  chunkKey: string,
  coords: readonly number[],
): ServedChunk {
  const access = accessOf(snapshot, array);
  return {
    snapshot,
    array,
    access,
    key: chunkKey,
    coords,
    delivery: deliveryOf(array, access.reader, coords),
    isUnchanged: undefined,
    checkedIn: -1,
    version: undefined,
    reply: undefined,
  };
}

/** Creates the error for a key that names no chunk of an array, or an absent one. */
export function chunkNotFound({
  snapshot,
  array,
  key,
}: Pick<ServedChunk, "snapshot" | "array" | "key">): ZpublishError {
  return new ZpublishError(
    "not-found",
    `Chunk '${key}' not found in variable '${array.plan.path}' of dataset '${snapshot.id}'`,
  );
}

const accesses = new WeakMap<ServedArray, ChunkAccess>();

function accessOf(snapshot: DatasetSnapshot, array: ServedArray): ChunkAccess {
  let access = accesses.get(array);
  if (access === undefined) {
    const { plan } = array;
    const { id, revision, place, isImmutable } = contextOf(snapshot, plan);
    const served = `${id}\n${revision}\n${plan.path}\n${plan.id}`;
    access = {
      reader: openChunkReader(plan.source),
      tag: createHash("sha256").update(served).digest("hex").slice(0, 20),
      cachePrefix: `${place}\n${served}\n`,
      isImmutable,
      expectedByteLength: expectedByteLength(plan),
      maxStoredByteLength:
        plan.kind === "passthrough" ? maxStoredByteLength(plan, storedSteps(array)) : undefined,
    };
    accesses.set(array, access);
  }
  return access;
}

/**
 * Returns what the chunks of an array depend on besides its plan, and the place of its data: the revision of the dataset, unless the array
 * grows, because chunks of old parts stay what they are. So the chunks of a dataset's versions are its own, unless they differ. Chunks of an
 * immutable dataset have no versions that would name parts.
 */
function contextOf(snapshot: DatasetSnapshot, plan: EncodingPlan) {
  const { id, immutable, revision, identity, version } = snapshot;
  const { source } = plan;
  const growth = immutable && version === undefined ? undefined : growthOf(source, plan);
  if (growth === undefined) return { id, revision, place: identity, isImmutable: immutable };
  return {
    id: version?.dataset ?? id,
    revision: source.kind === "served" ? source.plan : "parts",
    place: growth.store,
    isImmutable: false,
  };
}

function expectedByteLength({ compute, served, itemSize }: EncodingPlan): number {
  if (compute?.kind === "picture" || compute?.kind === "line") return compute.width * compute.height;
  return elementCount(served.chunkShape) * (itemSize || EXPECTED_ITEM_BYTES);
}

/** Returns the steps of the stored codecs, which bound the length of a chunk. A plan for passthrough has no steps. */
function storedSteps({ stored, plan }: ServedArray): CodecStep[] {
  return createSteps(stored, stored.codecs, plan.stored.chunkShape, plan.maxFilledByteLength);
}
