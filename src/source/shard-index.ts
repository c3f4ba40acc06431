import { crc32c } from "../codec/crc32c.js";
import { ZpublishError } from "../errors.js";
import { elementCount } from "../model/chunk-grid.js";
import type { ShardChunks } from "./chunk-source.js";
import type { OpenFile } from "./open-file.js";

const entryBytes = 16;
const checksumBytes = 4;
/** Both numbers of an entry that has no chunk. */
const emptyEntry = 2n ** 64n - 1n;

/** Where one inner chunk lies in its shard. */
export interface ShardEntry {
  readonly offset: number;
  readonly byteLength: number;
}

/** Byte length of a shard's index, its checksum included. */
export function shardIndexByteLength(source: ShardChunks): number {
  return elementCount(source.chunksPerShard) * entryBytes + (source.indexChecksum ? checksumBytes : 0);
}

/**
 * Reads a shard's index and verifies its checksum.
 * @param key Of the shard, for messages.
 * @returns The entries, without checksum.
 * @throws ZpublishError `corrupt-chunk`
 */
export async function readShardIndex(file: OpenFile, source: ShardChunks, key: string): Promise<DataView> {
  const byteLength = shardIndexByteLength(source);
  const fileLength = Number(file.stat.size);
  if (fileLength < byteLength) {
    throw corrupt(
      key,
      `expected at least the ${byteLength} bytes of its index, received ${fileLength} bytes`,
    );
  }
  const bytes = await file.readBytes(
    source.indexLocation === "start" ? 0 : fileLength - byteLength,
    byteLength,
  );
  if (!source.indexChecksum) return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const entries = new DataView(bytes.buffer, bytes.byteOffset, byteLength - checksumBytes);
  const stored = new DataView(bytes.buffer, bytes.byteOffset + entries.byteLength).getUint32(0, true);
  const actual = crc32c(bytes.subarray(0, entries.byteLength));
  if (stored !== actual) {
    throw corrupt(key, `expected its index to have crc32c ${stored}, received ${actual}`);
  }
  return entries;
}

/**
 * The place of one inner chunk, undefined where it is absent.
 * @param fileLength Bytes of the shard.
 * @throws ZpublishError `corrupt-chunk` where it would lie outside of the shard.
 */
export function shardEntry(
  entries: DataView,
  position: number,
  source: ShardChunks,
  fileLength: number,
  key: string,
): ShardEntry | undefined {
  const little = source.indexByteOrder === "<";
  const offset = entries.getBigUint64(position * entryBytes, little);
  const byteLength = entries.getBigUint64(position * entryBytes + 8, little);
  if (offset === emptyEntry && byteLength === emptyEntry) return undefined;
  if (offset + byteLength > BigInt(fileLength)) {
    throw corrupt(
      key,
      `expected inner chunk ${position} within its ${fileLength} bytes, received offset ${offset} and length ${byteLength}`,
    );
  }
  return { offset: Number(offset), byteLength: Number(byteLength) };
}

function corrupt(key: string, problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `shard '${key}': ${problem}`, { details: { key } });
}
