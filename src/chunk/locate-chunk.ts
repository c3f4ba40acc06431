import { createHash } from "node:crypto";
import { createRecentMap } from "../collections/recent-map.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { BodyReply } from "../http/reply.js";
import { elementCount } from "../model/chunk-grid.js";
import { openChunkReader } from "../source/chunk-reader.js";
import { parseChunkKey } from "../zarr/chunk-key.js";
import type { ChunkReader, StampLook } from "../zarr/chunk-source.js";
import { createSteps } from "../zarr/plan/codec-steps.js";
import type { CodecStep } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import type { ChunkVersion } from "./chunk-version.js";

/** What all chunks of one array share while its snapshot lives. */
export interface ChunkAccess {
  readonly reader: ChunkReader;
  /** First part of every ETag: the same on every instance whose encoders write the same. */
  readonly tag: string;
  /** First part of every cache key: identifies the place of the data, too. */
  readonly cachePrefix: string;
  /** Estimated bytes of a chunk in memory: uncompressed, and a guess if items have no fixed size. */
  readonly expectedByteLength: number;
  /** Greatest length of a stored chunk that is passed through; undefined if it is not known, or not passed through. */
  readonly maxStoredByteLength: number | undefined;
}

/** One chunk of a served array: resolved at its first request, remembered for the next. */
export interface ServedChunk {
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  readonly access: ChunkAccess;
  /** Canonical: `0.12.3`. */
  readonly key: string;
  readonly coords: readonly number[];
  /** Checks without waiting whether `version` still holds; undefined if that takes an asynchronous look. */
  check: StampLook | undefined;
  /** Iteration of the event loop in which `version` was checked without waiting; -1 if never. */
  checkedIn: number;
  /** Version of the stored bytes at the last request. */
  version: ChunkVersion | undefined;
  /** Reply for `version`. */
  reply: BodyReply | undefined;
}

/** Bytes assumed for an item that has no fixed size. */
const EXPECTED_ITEM_BYTES = 16;
/** Chunks that are remembered: about a kilobyte each. */
const MAX_REMEMBERED = 4_096;

/** Finds chunks by key, and remembers them. */
export interface ChunkLocator {
  /** @throws ZpublishError `not-found` if the key is not canonical, or outside the grid */
  locate(snapshot: DatasetSnapshot, array: ServedArray, chunkKey: string): ServedChunk;
  /** Lets go of remembered chunks, and so of the snapshots they belong to. */
  forget(): void;
}

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
      const chunk: ServedChunk = {
        snapshot,
        array,
        access,
        key: chunkKey,
        coords,
        check: undefined,
        checkedIn: -1,
        version: undefined,
        reply: undefined,
      };
      recent.set(name, chunk);
      return chunk;
    },
    forget: () => recent.clear(),
  };
}

/** The error of a key that names no chunk of an array, or an absent one. */
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
    const served = `${snapshot.id}\n${snapshot.revision}\n${plan.path}\n${plan.id}`;
    access = {
      reader: openChunkReader(plan.source),
      tag: createHash("sha256").update(served).digest("hex").slice(0, 20),
      cachePrefix: `${snapshot.identity}\n${served}\n`,
      expectedByteLength: elementCount(plan.served.chunkShape) * (plan.itemSize || EXPECTED_ITEM_BYTES),
      maxStoredByteLength:
        plan.kind === "passthrough" ? maxStoredByteLength(plan, storedSteps(array)) : undefined,
    };
    accesses.set(array, access);
  }
  return access;
}

/** Steps of the stored codecs. They bound the length of what they hold; a plan for passthrough has none of its own. */
function storedSteps({ stored, plan }: ServedArray): CodecStep[] {
  return createSteps(stored, stored.codecs, plan.stored.chunkShape, plan.maxFilledByteLength);
}
