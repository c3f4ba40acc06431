import { createHash } from "node:crypto";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { elementCount } from "../model/chunk-grid.js";
import { openChunkReader } from "../source/chunk-reader.js";
import type { ChunkReader, StampLook } from "../source/chunk-source.js";
import { maxStoredByteLength } from "../source/max-stored-byte-length.js";
import { combineStamps } from "../source/stamp-of.js";
import { createSteps } from "../zarr/codec-steps.js";
import type { CodecStep } from "../zarr/encoding-plan.js";
import { storedChunksOf } from "../zarr/stored-chunks-of.js";

/** Stored chunks whose stamps are looked up at a time for one served chunk. */
const STAMP_CONCURRENCY = 16;
/** Stored chunks behind one served chunk that may be looked at while the event loop waits. */
const MAX_LOOKED_AT_NOW = 8;

/** What all chunks of one array have in common for as long as its snapshot lives. */
export interface ChunkAccess {
  readonly reader: ChunkReader;
  /** First part of every ETag: the same on every instance whose encoders write the same. */
  readonly tag: string;
  /** First part of every cache key: holds where the data are as well. */
  readonly cachePrefix: string;
  /** What a chunk may take in memory: uncompressed, and a guess where items have no fixed size. */
  readonly expectedByteLength: number;
  /** Of a stored chunk that is passed through: a longer one is damaged. Undefined: not known, or not passed through. */
  readonly maxStoredByteLength: number | undefined;
}

const EXPECTED_ITEM_BYTES = 16;

const accesses = new WeakMap<ServedArray, ChunkAccess>();

/** The access to an array's chunks, made at its first request. */
export function chunkAccessOf(snapshot: DatasetSnapshot, array: ServedArray): ChunkAccess {
  let access = accesses.get(array);
  if (access === undefined) {
    const served = `${snapshot.id}\n${snapshot.revision}\n${array.plan.path}\n${array.plan.id}`;
    access = {
      reader: openChunkReader(array.plan.source),
      tag: createHash("sha256").update(served).digest("hex").slice(0, 20),
      cachePrefix: `${snapshot.identity}\n${served}\n`,
      expectedByteLength:
        elementCount(array.plan.served.chunkShape) * (array.plan.itemSize || EXPECTED_ITEM_BYTES),
      maxStoredByteLength:
        array.plan.kind === "passthrough" ? maxStoredByteLength(array.plan, storedSteps(array)) : undefined,
    };
    accesses.set(array, access);
  }
  return access;
}

/** What is known of the bytes that the stored codecs hold, which a plan that passes chunks through does without. */
function storedSteps({ stored, plan }: ServedArray): CodecStep[] {
  return createSteps(stored, stored.codecs, plan.stored.chunkShape, plan.maxFilledByteLength);
}

/**
 * What identifies the stored bytes behind a served chunk without reading them; undefined where none of them is there.
 * @throws ZpublishError `source-unreadable`.
 */
export async function stampOfChunk(
  { reader }: ChunkAccess,
  { plan }: ServedArray,
  chunkCoords: readonly number[],
): Promise<string | undefined> {
  if (plan.kind !== "rechunk") return reader.stamp(chunkCoords);
  const stored = storedChunksOf(plan, chunkCoords);
  const stamps: (string | undefined)[] = [];
  for (let from = 0; from < stored.length; from += STAMP_CONCURRENCY) {
    const some = stored.slice(from, from + STAMP_CONCURRENCY);
    stamps.push(...(await Promise.all(some.map((coords) => reader.stamp(coords)))));
  }
  return stamps.every((stamp) => stamp === undefined) ? undefined : combineStamps(stamps);
}

/** The stamp under which workers make a chunk of which nothing is stored. */
export function absentStampOf({ plan }: ServedArray, chunkCoords: readonly number[]): string {
  if (plan.kind !== "rechunk") return "";
  return combineStamps(storedChunksOf(plan, chunkCoords).map(() => undefined));
}

/**
 * What {@link stampOfChunk} found, in a form that can be asked again at once; undefined where that may have to wait.
 */
export function lookAtChunkNow(
  { reader }: ChunkAccess,
  { plan }: ServedArray,
  chunkCoords: readonly number[],
): StampLook | undefined {
  if (plan.kind !== "rechunk") return reader.lookNow?.(chunkCoords);
  const stored = storedChunksOf(plan, chunkCoords);
  if (stored.length > MAX_LOOKED_AT_NOW) return undefined;
  const looks: StampLook[] = [];
  for (const coords of stored) {
    const look = reader.lookNow?.(coords);
    if (look === undefined) return undefined;
    looks.push(look);
  }
  return {
    stamp: combineStamps(looks.map(({ stamp }) => stamp)),
    isUnchanged: () => looks.every((look) => look.isUnchanged()),
  };
}
