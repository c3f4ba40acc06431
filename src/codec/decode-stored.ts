import { elementCount } from "../model/data-tree.js";
import { type ChunkReader, type PartChunkReader, PIECED, type StoredChunk } from "../zarr/chunk-reader.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import { assemblePieces } from "./assemble-pieces.js";
import {
  assertDecodedLength,
  type ChunkInput,
  readNamed,
  stepsOfVariant,
  storedChunkName,
  timed,
} from "./chunk-input.js";
import type { DecodedChunk } from "./decoded-cache.js";
import { decodeSteps } from "./run-steps.js";

/**
 * Reads and decodes one stored chunk; undefined if there is none. Decoded items are kept in `decoded`, unless nothing had to be
 * decoded, or no other served chunk has items of this one.
 * @throws ZpublishError, naming the array and the chunk: `source-unreadable`, `corrupt-chunk`, `codec-failed`.
 */
export async function decodeStored(
  input: ChunkInput,
  coords: readonly number[],
): Promise<DecodedChunk | undefined> {
  const { plan, memory, timings, decoded } = input;
  const hasSteps = plan.decode.length > 0 || plan.variants !== undefined;
  const isKept = decoded !== undefined && hasSteps && isShared(plan, coords);
  const key = isKept ? `${decoded.sourceKey}\n${plan.id}\n${coords.join(".")}` : "";
  const kept = isKept ? decoded.cache.get(key) : undefined;
  if (kept !== undefined) {
    if ((await readVersion(input, coords)) === kept.version) return kept;
  }

  const stored = await readStored(input, coords);
  if (stored === undefined) return undefined;
  const name = storedChunkName(plan, coords);
  const steps = stepsOfVariant(plan.decode, plan.variants?.decode, stored.variant, name);
  const bytes = await timed(timings, "decode", () => decodeSteps(stored.bytes, steps, name, memory));
  assertDecodedLength(bytes.length, elementCount(plan.stored.chunkShape) * plan.itemSize, name);
  if (!isKept) return { bytes, version: stored.version };
  const chunk = { bytes: memory.keep(bytes), version: stored.version };
  decoded.cache.set(key, chunk);
  return chunk;
}

/** Tells whether several served chunks are made of a stored chunk. */
function isShared({ shape, stored, served }: EncodingPlan, coords: readonly number[]): boolean {
  return coords.some((index, axis) => {
    const [length, servedLength] = [stored.chunkShape[axis]!, served.chunkShape[axis]!];
    const last = Math.min((index + 1) * length, shape[axis]!) - 1;
    return Math.floor((index * length) / servedLength) !== Math.floor(last / servedLength);
  });
}

/**
 * Reads one stored chunk as it is, or puts it together if it is made of pieces; undefined if there is none.
 * @throws ZpublishError As {@link decodeStored}.
 */
export function readStored(input: ChunkInput, coords: readonly number[]): Promise<StoredChunk | undefined> {
  const { plan, reader, memory, timings } = input;
  if (isPieced(reader, coords)) {
    const assemble = async () => assemblePieces(input, coords, await reader.piecesOf(coords));
    return readNamed(storedChunkName(plan, coords), assemble());
  }
  const { allocate } = memory;
  // A chunk that is passed through is held in memory here, as a filled one is.
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  const read = () => reader.read(coords, { allocate, maxByteLength });
  return timed(timings, "read", () => readNamed(storedChunkName(plan, coords), read()));
}

function isPieced(reader: ChunkReader, coords: readonly number[]): reader is PartChunkReader {
  return "piecesOf" in reader && reader.variantOf?.(coords) === PIECED;
}

/**
 * Reads the version of a stored chunk. That of an absent chunk is its shard's, if there is one, else undefined; it is to be read after
 * the chunk, so that a chunk written in between shows as a change.
 */
export function readVersion(
  { plan, reader, timings }: ChunkInput,
  coords: readonly number[],
): Promise<string | undefined> {
  const read = () => reader.version(coords);
  return timed(timings, "read", () => readNamed(storedChunkName(plan, coords), read()));
}
