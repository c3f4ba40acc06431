import { pieceName, readNamed, storedChunkName } from "../codec/chunk-input.js";
import { mapInLots } from "../event-loop/map-in-lots.js";
import { elementCount } from "../model/chunk-grid.js";
import type { GivenBytes, GivenChunk } from "../pool/chunk-task.js";
import { type ChunkPiece, type PartChunkReader, PIECED } from "../zarr/chunk-reader.js";
import { storedChunksOf } from "../zarr/plan/create-encoding-plan.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { type Reading, readBytes } from "./read-bytes.js";

/** Estimate for an item without a fixed size. */
export const GUESSED_ITEM_BYTES = 64;

/** A stored chunk of a joined array, and the parts' chunks that it is made of. */
export interface FoundChunk {
  readonly coords: readonly number[];
  readonly variant: number;
  readonly pieces: readonly ChunkPiece[];
}

/** Lists the pieces of all stored chunks behind a served chunk. @throws ZpublishError naming array, chunk and part */
export function findPieces(
  plan: EncodingPlan,
  reader: PartChunkReader,
  chunkCoords: readonly number[],
  concurrency: number,
): Promise<FoundChunk[]> {
  return mapInLots(storedChunksOf(plan, chunkCoords), concurrency, async (coords) => {
    const pieces = await readNamed(storedChunkName(plan, coords), reader.piecesOf(coords));
    return { coords, variant: reader.variantOf(coords), pieces };
  });
}

/** Estimates the bytes of the pieces that workers do not read themselves; 0 if there are none. */
export function bytesToRead(chunks: readonly FoundChunk[]): number {
  const lengths = new Map<string, number>();
  for (const { pieces } of chunks) {
    for (const piece of pieces) {
      if (isReadByWorkers(piece)) continue;
      const { chunkShape, itemSize } = piece.layout;
      lengths.set(keyOf(piece), elementCount(chunkShape) * (itemSize || GUESSED_ITEM_BYTES));
    }
  }
  return [...lengths.values()].reduce((sum, length) => sum + length, 0);
}

/**
 * Reads pieces, or tells workers where they read them. A part's chunk that lies in several chunks of the joined array is read once.
 * @param name Name that tells the array's chunks from others'.
 * @throws ZpublishError naming array, chunk and part
 */
export async function readPieces(
  plan: EncodingPlan,
  name: string,
  chunks: readonly FoundChunk[],
  reading: Reading,
  concurrency: number,
): Promise<GivenChunk[]> {
  const unread = new Map<string, () => Promise<GivenBytes>>();
  for (const { coords, variant, pieces } of chunks) {
    // Pieces seldom end where a chunk of the joined array does: its neighbour needs them, too.
    const isKept = plan.kind === "rechunk" || variant === PIECED;
    for (const piece of pieces) {
      if (isReadByWorkers(piece) || unread.has(keyOf(piece))) continue;
      const read = () => readPiece(plan, piece, `${name}\n${piece.part}`, isKept, reading);
      unread.set(keyOf(piece), () =>
        readNamed(`${storedChunkName(plan, coords)}: ${pieceName(piece)}`, read()),
      );
    }
  }
  const entries = await mapInLots(
    [...unread],
    concurrency,
    async ([key, read]) => [key, await read()] as const,
  );
  const bytes = new Map(entries);
  return chunks.map(({ coords, variant, pieces }) => ({
    ...{ coords, variant, version: undefined, bytes: undefined },
    pieces: pieces.map((piece) => {
      const { reader: _reader, ...rest } = piece;
      return { ...rest, given: bytes.get(keyOf(piece)) ?? placeOf(piece) };
    }),
  }));
}

function readPiece(
  plan: EncodingPlan,
  { reader, coords, layout }: ChunkPiece,
  name: string,
  isKept: boolean,
  reading: Reading,
): Promise<GivenBytes> {
  const maxByteLength = layout.maxStoredByteLength ?? plan.maxFilledByteLength;
  const hasVariants = layout.variants.length > 0;
  return readBytes({ reader, coords, name, maxByteLength, hasVariants, isKept }, reading);
}

function isReadByWorkers({ reader }: ChunkPiece): boolean {
  return reader.source !== undefined || reader.placeOf !== undefined;
}

/** Tells where a worker reads a piece. */
function placeOf({ reader, coords }: ChunkPiece): GivenBytes {
  if (reader.source !== undefined) return { version: undefined, bytes: undefined, source: reader.source };
  const place = reader.placeOf?.(coords);
  return { version: place?.version, bytes: undefined, ...(place && { place }) };
}

function keyOf({ part, coords }: ChunkPiece): string {
  return `${part}\n${coords.join(".")}`;
}
