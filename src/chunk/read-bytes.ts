import type { ByteBoundedMap } from "../collections/byte-bounded-map.js";
import type { GivenBytes } from "../pool/chunk-task.js";
import type { ChunkReader } from "../zarr/chunk-reader.js";
import type { MemoryLease } from "./shared-memory.js";

/** Stored bytes that were read last. */
export type RecentBytes = ByteBoundedMap<Uint8Array>;

/** Reading of the stored chunks behind one served chunk. */
export interface Reading {
  readonly recent: RecentBytes;
  /** Memory that the worker shares. */
  readonly lease: MemoryLease;
  readonly signal: AbortSignal | undefined;
  /** Names in `recent` of what was read. */
  readonly names: string[];
}

/** A stored chunk that is read for a worker. */
export interface WantedChunk {
  readonly reader: ChunkReader;
  readonly coords: readonly number[];
  /** Name that tells the array's chunks from others'. */
  readonly name: string;
  readonly maxByteLength: number;
  /** Whether some chunks of the array have other codecs than most. */
  readonly hasVariants: boolean;
  /** Whether the bytes stay for other served chunks. */
  readonly isKept: boolean;
}

/** Reads a stored chunk into memory that workers share. @throws what the reader throws */
export async function readBytes(wanted: WantedChunk, reading: Reading): Promise<GivenBytes> {
  const { reader, coords, maxByteLength, hasVariants, isKept } = wanted;
  const { recent, lease, signal, names } = reading;
  const nameOf = (version: string) => `${wanted.name}\n${coords.join(".")}\n${version}`;
  const version = isKept ? await reader.version(coords) : undefined;
  const found = version && recent.get(nameOf(version));
  const variant = hasVariants ? (reader.variantOf?.(coords) ?? 0) : 0;
  if (found) {
    names.push(nameOf(version));
    return { version, variant, bytes: lease.place(found) };
  }
  // What is kept is not in memory that others get later.
  const allocate = isKept ? {} : { allocate: lease.allocate };
  const stored = await reader.read(coords, { maxByteLength, signal, ...allocate });
  // The version of an absent chunk is its shard's, if there is one.
  if (stored === undefined) return { version: await reader.version(coords), bytes: undefined };
  if (isKept) {
    const name = nameOf(stored.version);
    names.push(name);
    recent.set(name, stored.bytes);
  }
  return { version: stored.version, variant, bytes: lease.place(stored.bytes) };
}
