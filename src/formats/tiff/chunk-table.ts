import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../file-format.js";
import type { ListedChunks } from "../file-index.js";
import { readList } from "./tag-values.js";
import { TAG, type TagPlace, type TiffDirectory } from "./tiff-directory.js";
import { COMPRESSION, type TiffImage } from "./tiff-image.js";

/** Chunks that are checked between two looks at the clock. */
const CHUNKS_PER_STEP = 4096;
/** Longest chunk, stored or decoded, in bytes. */
const MAX_CHUNK_BYTES = 2 ** 31 - 1;

/** Tiles or strips along each axis: planes, rows, columns. */
export interface ChunkCounts {
  readonly planes: number;
  readonly rows: number;
  readonly columns: number;
}

/**
 * Reads the offsets and lengths of the tiles or strips of an image, and checks them.
 * @throws ZpublishError `invalid-metadata` if there are too few or one passes the end of the file, `unsupported` if one is too short
 * or too long.
 */
export async function readChunkTable(
  file: FileBlocks,
  directory: TiffDirectory,
  image: TiffImage,
  grid: ChunkCounts,
): Promise<ListedChunks> {
  const { lists } = directory;
  // Some writers describe tiles by the tags of strips; libtiff reads them, too.
  const hasTiles = image.isTiled && lists.has(TAG.tileOffsets);
  const places = lists.get(hasTiles ? TAG.tileOffsets : TAG.stripOffsets);
  const lengths = lists.get(hasTiles ? TAG.tileByteCounts : TAG.stripByteCounts);
  if (places === undefined) throw invalid("expected offsets of tiles or strips, received none");
  const isLittleEndian = directory.isLittleEndian;
  const count = grid.planes * grid.rows * grid.columns;
  const offsets = await readList(file, places, count, isLittleEndian);
  const byteLengths = await readLengths(file, lengths, image, grid, isLittleEndian);
  return runCooperatively(tableSteps(file, image, grid, offsets, byteLengths));
}

/** Reads the lengths of chunks. Old files without compression have none. */
async function readLengths(
  file: FileBlocks,
  place: TagPlace | undefined,
  image: TiffImage,
  grid: ChunkCounts,
  isLittleEndian: boolean,
): Promise<Float64Array> {
  const count = grid.planes * grid.rows * grid.columns;
  if (place !== undefined) return readList(file, place, count, isLittleEndian);
  if (image.compression === COMPRESSION.none) return new Float64Array(count).fill(Number.POSITIVE_INFINITY);
  throw invalid("expected lengths of tiles or strips, received none");
}

/** Checks each chunk's place. Without compression its length is known, and what is stored behind it is left out. */
function* tableSteps(
  file: FileBlocks,
  image: TiffImage,
  grid: ChunkCounts,
  offsets: Float64Array,
  lengths: Float64Array,
): CooperativeTask<ListedChunks> {
  const byteLengths = new Uint32Array(offsets.length);
  for (let index = 0; index < offsets.length; index++) {
    if (index % CHUNKS_PER_STEP === 0) yield;
    const offset = offsets[index] as number;
    const stored = lengths[index] as number;
    if (offset === 0 || stored === 0) {
      offsets[index] = -1;
      continue;
    }
    const plain = image.compression === COMPRESSION.none ? plainLength(image, grid, index) : undefined;
    const byteLength = plain ?? stored;
    if (byteLength > stored) {
      throw new ZpublishError(
        "unsupported",
        `expected ${byteLength} bytes in tile or strip ${index}, received ${stored}`,
      );
    }
    if (offset + byteLength > file.byteLength) {
      throw invalid(
        `expected a file that ends behind tile or strip ${index}, at ${offset + byteLength}, received ${file.byteLength} bytes`,
      );
    }
    // Uncompressed strips may be longer, and are cut; whether they can be is known when all are.
    if (plain === undefined) assertChunkLength(byteLength);
    byteLengths[index] = byteLength;
  }
  return { kind: "listed", offsets, byteLengths };
}

/** Length of an uncompressed chunk. */
function plainLength(image: TiffImage, { rows, columns }: ChunkCounts, index: number): number {
  const { chunkHeight, chunkWidth, height, itemSize, bands, isInterleaved, isTiled } = image;
  const row = Math.floor(index / columns) % rows;
  const held = isTiled ? chunkHeight : Math.min(chunkHeight, height - row * chunkHeight);
  return held * chunkWidth * itemSize * (isInterleaved ? bands : 1);
}

/** Asserts that a chunk can be handled at once. @throws ZpublishError `unsupported` */
export function assertChunkLength(byteLength: number): void {
  if (byteLength <= MAX_CHUNK_BYTES) return;
  throw new ZpublishError(
    "unsupported",
    `expected tiles or strips of at most ${MAX_CHUNK_BYTES} bytes, received ${byteLength}`,
  );
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}
