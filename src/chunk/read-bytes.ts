import type { ByteBoundedMap } from "../collections/byte-bounded-map.js";
import type { GivenBytes } from "../pool/chunk-task.js";
import type { ChunkReader } from "../zarr/chunk-reader.js";
import type { MemoryLease } from "./shared-memory.js";

/** Stored bytes that were read last, and their version. */
export type RecentBytes = ByteBoundedMap<{ readonly bytes: Uint8Array; readonly version: string }>;

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
  const name = `${wanted.name}\n${coords.join(".")}`;
  const variant = hasVariants ? (reader.variantOf?.(coords) ?? 0) : 0;
  const known = isKept ? recent.get(name) : undefined;
  if (isKept) names.push(name);
  if (known !== undefined && known.version === (await reader.version(coords)))
    return { version: known.version, variant, bytes: lease.place(known.bytes) };
  // What is kept is not in memory that others get later.
  const allocate = isKept ? {} : { allocate: lease.allocate };
  const stored = await reader.read(coords, { maxByteLength, signal, ...allocate });
  // The version of an absent chunk is its shard's, if there is one.
  if (stored === undefined) return { version: await reader.version(coords), bytes: undefined };
  const { bytes, version } = stored;
  if (isKept) recent.set(name, { bytes, version });
  return { version, variant, bytes: lease.place(bytes) };
}
