import { ZpublishError } from "../errors.js";
import { elementCount } from "../model/data-tree.js";
import {
  type ChunkPiece,
  PIECED,
  type PieceLayout,
  type StoredChunk,
  versionOfPieces,
} from "../zarr/chunk-reader.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { maxStoredByteLength } from "../zarr/plan/max-stored-byte-length.js";
import { convertPiece } from "./convert-items.js";
import { type ChunkBox, fillBuffer, gather, gatherFill } from "./copy-strided.js";
import {
  assertDecodedLength,
  type ChunkInput,
  type DecodedChunk,
  decodeSteps,
  pieceName,
  readNamed,
  stepsOfVariant,
  storedChunkName,
  timed,
} from "./run-steps.js";

/**
 * Puts a chunk of a joined array together; undefined if nothing is stored behind any piece, and absent chunks of all parts mean the same
 * as those of the array.
 * @returns Raw items in the stored order of the joined array.
 * @throws ZpublishError, naming the part and its chunk: `source-unreadable`, `corrupt-chunk`, `codec-failed`.
 */
async function assemblePieces(
  input: ChunkInput,
  coords: readonly number[],
  pieces: readonly ChunkPiece[],
): Promise<StoredChunk | undefined> {
  const { plan, memory, timings } = input;
  const { chunkShape, axisOrder } = plan.stored;
  const bytes = memory.allocate(elementCount(chunkShape) * plan.itemSize);
  const origin = coords.map((index, axis) => index * chunkShape[axis]!);
  const target: ChunkBox = { bytes, origin, chunkShape, axisOrder };
  const versions: (string | undefined)[] = [];
  let isEmpty = true;
  for (const piece of pieces) {
    const mark = memory.mark();
    const found = await decodePiece(input, piece, isWithin(piece, target));
    versions.push(found === undefined ? await readPieceVersion(input, piece) : found.version);
    if (found !== undefined || piece.layout.hasOwnFill) {
      const began = performance.now();
      if (isEmpty) fillBuffer(bytes, plan.fillItem);
      isEmpty = false;
      copyPiece(piece, found, target, input);
      timings.decode += performance.now() - began;
    }
    memory.rewind(mark);
  }
  const version = versionOfPieces(pieces, versions);
  return isEmpty || version === undefined ? undefined : { bytes, version, variant: PIECED };
}

/** @param found The items of the piece; undefined if it is absent. */
function copyPiece(
  { layout, origin, begin, end }: ChunkPiece,
  found: DecodedChunk | undefined,
  target: ChunkBox,
  { plan: { itemSize }, memory }: ChunkInput,
): void {
  const { chunkShape, axisOrder } = layout;
  if (found !== undefined) {
    gather({ bytes: found.bytes, origin, chunkShape, axisOrder }, target, end, itemSize, begin);
    return;
  }
  const item = layout.fillItem ?? new Uint8Array(layout.itemSize);
  const converted = layout.conversion === undefined ? item : convertPiece(item, layout.conversion, memory);
  gatherFill({ origin, chunkShape, axisOrder }, target, end, converted, begin);
}

/** Tells whether no other chunk of the joined array has items of a piece. */
function isWithin({ layout, origin, begin, end }: ChunkPiece, target: ChunkBox): boolean {
  return origin.every((first, axis) => {
    const last = Math.min(first + layout.chunkShape[axis]!, end[axis]!);
    const targetFirst = target.origin[axis]!;
    return Math.max(first, begin[axis]!) >= targetFirst && last <= targetFirst + target.chunkShape[axis]!;
  });
}

/**
 * Returns a decoded chunk from the cache if its version still holds; otherwise decodes it, and keeps it.
 * @param key Names the chunk in the cache; undefined if it is not to be kept.
 */
async function decodeOnce(
  { decoded, memory }: ChunkInput,
  key: string | undefined,
  readVersion: () => Promise<string | undefined>,
  decode: () => Promise<DecodedChunk | undefined>,
): Promise<DecodedChunk | undefined> {
  if (decoded === undefined || key === undefined) return decode();
  const ownKey = `${decoded.sourceKey}\n${key}`;
  const kept = decoded.cache.get(ownKey);
  if (kept !== undefined && (await readVersion()) === kept.version) return kept;
  const found = await decode();
  if (found === undefined) return undefined;
  const chunk = { bytes: memory.keep(found.bytes), version: found.version };
  decoded.cache.set(ownKey, chunk);
  return chunk;
}

/**
 * Reads, decodes and converts a piece; undefined if it is absent. It is kept if another chunk has items of it.
 * @param isOwn Whether no other chunk has.
 */
function decodePiece(
  input: ChunkInput,
  piece: ChunkPiece,
  isOwn: boolean,
): Promise<DecodedChunk | undefined> {
  const { memory, timings } = input;
  const { layout, reader, coords, part } = piece;
  const { conversion } = layout;
  const hasSteps = layout.decode.length + layout.variants.length > 0 || conversion !== undefined;
  const key = hasSteps && !isOwn ? `${part}\n${coords.join(".")}` : undefined;
  const decode = async () => {
    const maxByteLength = layout.maxStoredByteLength ?? input.plan.maxFilledByteLength;
    const name = pieceName(piece);
    const expected = decodedByteLength(layout, input.plan, name);
    const read = () => reader.read(coords, { allocate: memory.allocate, maxByteLength });
    const stored = await timed(timings, "read", () => readNamed(name, read));
    if (stored === undefined) return undefined;
    const began = performance.now();
    const steps = stepsOfVariant(layout.decode, layout.variants, stored.variant, name);
    const items = await decodeSteps(stored.bytes, steps, name, memory);
    assertDecodedLength(items.length, expected, name);
    const bytes = conversion === undefined ? items : convertPiece(items, conversion, memory);
    timings.decode += performance.now() - began;
    return { bytes, version: stored.version };
  };
  return decodeOnce(input, key, () => readPieceVersion(input, piece), decode);
}

/** Parts may have larger chunks than the joined array. @throws ZpublishError `codec-failed` if a chunk of a part is too large */
function decodedByteLength({ chunkShape, itemSize }: PieceLayout, plan: EncodingPlan, name: string): number {
  const byteLength = elementCount(chunkShape) * itemSize;
  const most = Math.max(plan.maxFilledByteLength, elementCount(plan.stored.chunkShape) * plan.itemSize);
  if (byteLength <= most) return byteLength;
  throw new ZpublishError("codec-failed", `${name}: expected at most ${most} bytes, received ${byteLength}`);
}

function readPieceVersion({ timings }: ChunkInput, piece: ChunkPiece): Promise<string | undefined> {
  const read = async () => (await piece.reader.version(piece.coords)).token;
  return timed(timings, "read", () => readNamed(pieceName(piece), read));
}

/**
 * Reads and decodes one stored chunk; undefined if there is none. Decoded items are kept in `decoded`, unless nothing had to be
 * decoded, or no other served chunk has items of this one.
 * @param isKept Whether they are kept if they had to be decoded. Default: whether several served chunks are made of the stored one.
 * @throws ZpublishError, naming the array and the chunk: `source-unreadable`, `corrupt-chunk`, `codec-failed`.
 */
export function decodeStored(
  input: ChunkInput,
  coords: readonly number[],
  isKept = isShared(input.plan, coords),
): Promise<DecodedChunk | undefined> {
  const { plan, memory, timings, decoded } = input;
  const hasSteps = plan.decode.length > 0 || plan.variants !== undefined;
  const ownKey = hasSteps && isKept ? `${plan.id}\n${coords.join(".")}` : undefined;
  const key = decoded?.isOfLot ? coords.join(".") : ownKey;
  const decode = async () => {
    const stored = await readStored(input, coords);
    if (stored === undefined) return undefined;
    const name = storedChunkName(plan, coords);
    const steps = stepsOfVariant(plan.decode, plan.variants?.decode, stored.variant, name);
    const bytes = await timed(timings, "decode", () => decodeSteps(stored.bytes, steps, name, memory));
    // Items of variable length have no size that could be checked.
    if (plan.itemSize > 0)
      assertDecodedLength(bytes.length, elementCount(plan.stored.chunkShape) * plan.itemSize, name);
    return { bytes, version: stored.version };
  };
  return decodeOnce(input, key, () => readVersion(input, coords), decode);
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
  const { parts } = reader;
  if (parts?.variantOf(coords) === PIECED) {
    const assemble = async () => assemblePieces(input, coords, await parts.piecesOf(coords));
    return readNamed(storedChunkName(plan, coords), assemble);
  }
  const { allocate } = memory;
  // A chunk that is passed through is held in memory here, as a filled one is.
  const maxByteLength = maxStoredByteLength(plan) ?? plan.maxFilledByteLength;
  const read = () => reader.read(coords, { allocate, maxByteLength });
  return timed(timings, "read", () => readNamed(storedChunkName(plan, coords), read));
}

/**
 * Reads the version of a stored chunk. That of an absent chunk is its shard's, if there is one, else undefined; it is to be read after
 * the chunk, so that a chunk written in between shows as a change.
 */
export function readVersion(
  { plan, reader, timings }: ChunkInput,
  coords: readonly number[],
): Promise<string | undefined> {
  const read = async () => (await reader.version(coords)).token;
  return timed(timings, "read", () => readNamed(storedChunkName(plan, coords), read));
}
