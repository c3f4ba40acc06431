import { crc32c } from "../../codec/checksums.js";
import { ZpublishError } from "../../errors.js";
import { elementCount } from "../../model/data-tree.js";
import type { Label } from "../../stores/file-calls.js";
import type { ShardLevel } from "../../zarr/chunk-reader.js";

const ENTRY_BYTES = 16;
const CHECKSUM_BYTES = 4;
/** Offset and length of an absent chunk. */
const NO_CHUNK = 2n ** 64n - 1n;

/** A range of bytes in a file. */
export interface ByteRange {
  readonly offset: number;
  readonly byteLength: number;
}

/** One shard: a file, or a chunk of an outer shard. */
export interface Shard extends ByteRange {
  readonly level: ShardLevel;
  /** Store key of the file. */
  readonly key: string;
  readonly label: Label;
}

/** Returns the byte length of an index of so many entries. */
export function indexByteLength(level: ShardLevel, entryCount: number): number {
  return entryCount * ENTRY_BYTES + (level.indexChecksum ? CHECKSUM_BYTES : 0);
}

/**
 * Reads a shard's index and verifies its checksum.
 * @param file The file of the shard; only its bytes are needed.
 * @returns The entries, without checksum.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function readShardIndex(
  file: { readBytes(offset: number, byteLength: number): Promise<Uint8Array<ArrayBuffer>> },
  shard: Shard,
): Promise<DataView> {
  const { level } = shard;
  const byteLength = indexByteLength(level, elementCount(level.chunksPerShard));
  if (shard.byteLength < byteLength) {
    throw corrupt(
      shard,
      `expected at least the ${byteLength} bytes of its index, received ${shard.byteLength} bytes`,
    );
  }
  const start = level.indexLocation === "start" ? 0 : shard.byteLength - byteLength;
  const bytes = await file.readBytes(shard.offset + start, byteLength);
  if (!level.indexChecksum) return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries = new DataView(bytes.buffer, bytes.byteOffset, byteLength - CHECKSUM_BYTES);
  const stored = new DataView(bytes.buffer, bytes.byteOffset + entries.byteLength).getUint32(0, true);
  const actual = crc32c(bytes.subarray(0, entries.byteLength));
  if (stored !== actual) {
    throw corrupt(shard, `expected its index to have crc32c ${stored}, received ${actual}`);
  }
  return entries;
}

/**
 * Finds the place of an inner chunk in the file; undefined if the chunk is absent.
 * @param position Position of the chunk in its shard, in C order.
 * @throws ZpublishError `corrupt-chunk` if the place is outside of the shard.
 */
export function findInShard(entries: DataView, position: number, shard: Shard): ByteRange | undefined {
  const little = shard.level.indexByteOrder === "<";
  const offset = entries.getBigUint64(position * ENTRY_BYTES, little);
  const byteLength = entries.getBigUint64(position * ENTRY_BYTES + 8, little);
  if (offset === NO_CHUNK && byteLength === NO_CHUNK) return undefined;
  if (offset + byteLength > BigInt(shard.byteLength)) {
    throw corrupt(
      shard,
      `expected inner chunk ${position} within its ${shard.byteLength} bytes, received offset ${offset} and length ${byteLength}`,
    );
  }
  return { offset: shard.offset + Number(offset), byteLength: Number(byteLength) };
}

function corrupt({ key, label }: Shard, problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `${label()}: ${problem}`, { details: { key } });
}
