import { createHash } from "node:crypto";
import { indexesIn } from "../collections/combinations.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import type { MaybePromise } from "../event-loop/maybe-promise.js";
import { elementCount, gridShapeOf } from "../model/data-tree.js";
import {
  type ChunkReader,
  type ChunkSource,
  combineStored,
  type MemoryChunks,
  type StoredVersion,
} from "../zarr/chunk-reader.js";
import type { StoredArray } from "../zarr/stored-array.js";
import { openLocalChunkReader } from "../zarr-store/chunk-reader.js";

/**
 * Opens a reader of an array's stored chunks. It does no I/O before its first call, and need not be closed.
 * @param mayBlock Whether reads may block this thread, such as a worker's. Default false.
 */
export function openChunkReader(source: ChunkSource, mayBlock = false): ChunkReader {
  switch (source.kind) {
    case "given":
      throw new Error("expected a source that can be opened, received chunks that a task has");
    case "files":
    case "shards":
      return source.objects?.openReader(source) ?? openLocalChunkReader(source, mayBlock);
    case "ranges":
    case "served":
    case "parts":
      return source.openReader();
    case "memory":
      return openMemoryChunkReader(source);
  }
}

/** Version of all shared memory, which never changes. The source's identity tells one memory from another. */
const MEMORY_VERSION = "0";
const unchanging: StoredVersion = Object.freeze({ token: MEMORY_VERSION, isUnchanged: () => true });

function openMemoryChunkReader(source: MemoryChunks): ChunkReader {
  const chunk = Object.freeze({
    bytes: new Uint8Array(source.buffer, source.byteOffset, source.byteLength),
    version: MEMORY_VERSION,
  });
  return { source, version: () => unchanging, read: () => chunk };
}

/** Returns the name of a source's store, such as its directory, so that callers can bound reads per store; empty for memory. */
export function storeOf(source: ChunkSource): string {
  if (source.kind === "memory" || source.kind === "given") return "";
  if (source.kind === "ranges" || source.kind === "served" || source.kind === "parts") return source.store;
  return source.objects?.store ?? source.root ?? source.directory;
}

/**
 * Tells whether the server's thread reads chunks for workers, since they are elsewhere or have to be made, or since it has the index
 * that finds them.
 */
export function isReadForWorkers(source: ChunkSource): boolean {
  if (source.kind === "ranges" || source.kind === "served" || source.kind === "parts") return true;
  return (source.kind === "files" || source.kind === "shards") && source.objects !== undefined;
}

/** Version of chunks that are never rewritten in place. */
export const FIXED: StoredVersion = Object.freeze({ token: "", isUnchanged: () => true });

/** The last look at the chunks of an array, or the one under way. */
const looks = new WeakMap<StoredArray, MaybePromise<StoredVersion>>();

/**
 * Looks up what tells values of an array from those before its chunks were rewritten in place, which leaves a dataset as it is if they are
 * local files; an empty token for others. A look at n chunks holds for n - 1 ms, since it takes 20 µs each, and as long as the files of few
 * chunks are unchanged.
 */
export function versionInPlace(stored: StoredArray): MaybePromise<StoredVersion> {
  const files = stored.axes === undefined ? stored.chunks : (stored.v3?.files ?? stored.chunks);
  if (isReadForWorkers(files)) return FIXED;
  const known = looks.get(stored);
  if (known instanceof Promise || known?.isUnchanged?.()) return known;
  const look = lookAtChunks(stored);
  looks.set(stored, look);
  look.then(
    (found) => looks.set(stored, found),
    () => looks.delete(stored),
  );
  return look;
}

async function lookAtChunks({ chunks, shape, chunkShape }: StoredArray): Promise<StoredVersion> {
  const grid = gridShapeOf(shape, chunkShape);
  const untilMs = performance.now() + elementCount(grid) - 1;
  const reader = openChunkReader(chunks);
  const slice = createSlice();
  const hash = createHash("sha256");
  const versions: StoredVersion[] = [];
  for (const coords of indexesIn(grid)) {
    const version = await reader.version(coords);
    versions.push(version);
    hash.update(`${version.token}\n`);
    if (slice.isOver()) await slice.next();
  }
  const { token, isUnchanged } = combineStored(versions, () => hash.digest("base64url"));
  return { token, isUnchanged: () => performance.now() < untilMs || isUnchanged?.() === true };
}
