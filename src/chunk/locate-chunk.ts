import { createHash } from "node:crypto";
import { createRecentMap } from "../collections/recent-map.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { elementCount } from "../model/chunk-grid.js";
import { openChunkReader } from "../open/chunk-reader.js";
import { parseChunkKey } from "../zarr/chunk-reader.js";
import type { CodecStep } from "../zarr/codec-step.js";
import { createSteps } from "../zarr/plan/codec-steps.js";
import { type EncodingPlan, growthOf } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import type { ChunkAccess, ServedChunk } from "./served-chunk.js";

/** Bytes assumed for an item that has no fixed size. */
const EXPECTED_ITEM_BYTES = 16;
/** Chunks that are remembered, about a kilobyte each. */
const MAX_REMEMBERED = 4_096;

/** Finds chunks by key, and remembers them. */
export interface ChunkLocator {
  /** @throws ZpublishError `not-found` if the key is not canonical, or outside the grid */
  locate(snapshot: DatasetSnapshot, array: ServedArray, chunkKey: string): ServedChunk;
  /** Forgets all chunks, and so the snapshots that they belong to. */
  forget(): void;
}

/** Creates a locator that remembers no chunk yet. */
export function createChunkLocator(): ChunkLocator {
  const recent = createRecentMap<ServedChunk>(MAX_REMEMBERED);
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
