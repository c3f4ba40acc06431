import type { Limiter } from "../collections/limiter.js";
import type { Body, BodyClient, WantedPart } from "../http/reply.js";
import { storeOf } from "../open/chunk-reader.js";
import type { ReadOptions } from "../zarr/chunk-reader.js";
import { assertStillAbsent, assertVersion } from "./chunk-version.js";
import { chunkNotFound } from "./locate-chunk.js";
import { serverTiming } from "./made-chunk.js";
import type { ChunkRequest } from "./served-chunk.js";

/** Bytes that are read at a time. A client takes the next ones when it has these, so that a shard may be of any length. */
const PIECE_BYTES = 4 * 1024 * 1024;

/**
 * Opens a stored file that is served whole, such as a shard, and reads the first piece of what the client wants of it. The file is
 * not cached: its ranges differ from client to client, and the system keeps them in memory anyhow.
 * @param reads Limiter of concurrent reads.
 * @throws ZpublishError `not-found` if there is no such file, `source-changed`, `range-not-satisfiable`
 */
export async function openStoredFile(
  { chunk, version }: ChunkRequest,
  client: BodyClient,
  wanted: WantedPart,
  reads: Limiter,
): Promise<Body> {
  const { array, access, coords, snapshot, key } = chunk;
  await client.reserve(PIECE_BYTES);
  const began = performance.now();
  let start = 0;
  const options: ReadOptions = {
    wasChecked: version.token !== undefined,
    part(fileByteLength) {
      const part = wanted(fileByteLength);
      start = part.start;
      return { start, byteLength: Math.min(part.byteLength, PIECE_BYTES) };
    },
  };
  const read = () => access.reader.read(coords, options);
  const stored =
    access.reader.readNow?.(coords, options) ??
    (await reads.run(storeOf(array.plan.source), read, client.signal));
  if (stored === undefined) {
    await assertStillAbsent(chunk, version);
    throw chunkNotFound(snapshot, array, key);
  }
  assertVersion(chunk, version, stored.version);
  const { bytes, fileByteLength = 0 } = stored;
  return {
    byteLength: fileByteLength,
    heldByteLength: bytes.length,
    headers: [
      ["X-Cache", "PASS"],
      ["Server-Timing", serverTiming({ read: performance.now() - began })],
    ],
    read(offset) {
      const isHeld = offset >= start && offset < start + bytes.length;
      return isHeld ? bytes.subarray(offset - start) : undefined;
    },
  };
}
