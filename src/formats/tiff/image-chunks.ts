import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../zarr/codec-step.js";
import type { FileBlocks } from "../file-format.js";
import {
  CHUNK_BYTES,
  type FileArray,
  type ListedChunks,
  type StridedChunks,
  stridedChunks,
} from "../file-index.js";
import { assertChunkLength, type ChunkCounts, readChunkTable } from "./chunk-table.js";
import type { TiffDirectory } from "./tiff-directory.js";
import { COMPRESSION, DEFLATE, type TiffImage } from "./tiff-image.js";

/** Most strips that are put together in a chunk. */
const MAX_STRIPS = 1024;

/** The fields of an array that its image's chunks decide, and whether some are absent. */
export interface ImageChunks {
  readonly fields: Pick<
    FileArray,
    | "shape"
    | "chunkShape"
    | "axisOrder"
    | "codecs"
    | "compressorCount"
    | "variants"
    | "chunks"
    | "servedChunks"
    | "servedFilters"
    | "servedCompressor"
  >;
  readonly hasAbsent: boolean;
}

/**
 * Reads where the chunks of an image lie. Its array has the axes band, y, x.
 * @throws ZpublishError `invalid-metadata` if chunks are missing or pass the end of the file.
 */
export async function readImageChunks(
  file: FileBlocks,
  directory: TiffDirectory,
  image: TiffImage,
): Promise<ImageChunks> {
  const { width, height, bands, isInterleaved, chunkWidth, chunkHeight } = image;
  const grid: ChunkCounts = {
    planes: isInterleaved ? 1 : bands,
    rows: Math.ceil(height / chunkHeight),
    columns: image.isTiled ? Math.ceil(width / chunkWidth) : 1,
  };
  const listed = await readChunkTable(file, directory, image, grid);
  const hasAbsent = listed.offsets.includes(-1);
  const strided = hasAbsent ? undefined : adjoiningStrips(image, grid, listed);
  const rows = strided === undefined ? chunkHeight : strided.rows;
  const depth = isInterleaved ? bands : 1;
  const isPassed =
    !isInterleaved &&
    image.predictor === 1 &&
    (image.compression === COMPRESSION.none || DEFLATE.has(image.compression));
  assertChunkLength(depth * rows * chunkWidth * image.itemSize);
  const codecs = codecsOf(image);
  const isLastShort = strided === undefined && !image.isTiled && height % rows !== 0;
  const lastBytes = (height % rows) * width * image.itemSize * depth;
  return {
    fields: {
      shape: [bands, height, width],
      chunkShape: [depth, rows, chunkWidth],
      ...(isInterleaved ? { axisOrder: [1, 2, 0] } : {}),
      codecs,
      compressorCount: image.compression === COMPRESSION.none ? 0 : 1,
      ...(isLastShort
        ? { variants: [lastCodecs(codecs, lastBytes, depth * rows * chunkWidth * image.itemSize)] }
        : {}),
      chunks: strided?.chunks ?? (isLastShort ? { ...listed, variants: lastRows(grid) } : listed),
      ...(isPassed ? {} : servedAs(image, rows, depth)),
    },
    hasAbsent,
  };
}

/** Codecs of the last strip of a plane. It has the rows that are left, though some writers compress as many as the others have. */
function lastCodecs(codecs: readonly CodecSpec[], byteLength: number, maxByteLength: number): CodecSpec[] {
  const lenient = codecs.map((codec) =>
    codec.id === "zlib" ? { id: "tiff-deflate", maxByteLength } : codec,
  );
  return [{ id: "pad", byteLength }, ...lenient];
}

/** Codecs of a whole chunk. */
function codecsOf(image: TiffImage): CodecSpec[] {
  const { compression, predictor, itemSize, isBigEndian } = image;
  const step = image.isInterleaved ? image.bands : 1;
  const rowItems = image.chunkWidth * step;
  const filters: CodecSpec[] =
    predictor === 1 ? [] : [{ id: "tiff-predictor", predictor, itemSize, rowItems, step, isBigEndian }];
  if (compression === COMPRESSION.none) return filters;
  // GDAL's level, for chunks that are encoded again.
  if (DEFLATE.has(compression)) return [...filters, { id: "zlib", level: 6 }];
  if (compression === COMPRESSION.lzw) return [...filters, { id: "tiff-lzw" }];
  if (compression === COMPRESSION.packbits) return [...filters, { id: "tiff-packbits" }];
  if (image.jpeg !== undefined) {
    const { tables, isYcbcr } = image.jpeg;
    const shared = Buffer.from(tables).toString("base64");
    return [{ id: "jpeg", width: image.chunkWidth, components: step, isYcbcr, tables: shared }];
  }
  return [...filters, { id: "zstd", level: 1 }];
}

/** What is served if chunks have to be decoded. Short strips are put together, since each would be a request. */
function servedAs(
  { isTiled, chunkWidth, itemSize, height }: TiffImage,
  rows: number,
  depth: number,
): Pick<FileArray, "servedChunks" | "servedFilters" | "servedCompressor"> {
  const fitting = Math.floor(CHUNK_BYTES / (rows * chunkWidth * itemSize * depth));
  const strips = isTiled ? 1 : Math.min(MAX_STRIPS, Math.max(1, fitting));
  const servedRows = Math.min(rows * strips, Math.max(rows, height));
  return {
    ...(strips > 1 ? { servedChunks: [depth, servedRows, chunkWidth] } : {}),
    servedFilters: [],
    servedCompressor: DEFAULT_COMPRESSOR,
  };
}

/** Variant 1 for the last strip of each plane. */
function lastRows({ planes, rows, columns }: ChunkCounts): Uint8Array {
  const variants = new Uint8Array(planes * rows * columns);
  for (let plane = 1; plane <= planes; plane++) variants[plane * rows * columns - 1] = 1;
  return variants;
}

/**
 * Uncompressed strips that follow each other, as pieces of one range: rows are then cut or put together at will.
 * @returns Undefined if they do not.
 */
function adjoiningStrips(
  image: TiffImage,
  grid: ChunkCounts,
  { offsets }: ListedChunks,
): { readonly rows: number; readonly chunks: StridedChunks } | undefined {
  const { height, width, itemSize, bands, isInterleaved, chunkHeight } = image;
  if (image.isTiled || image.compression !== COMPRESSION.none) return undefined;
  const rowBytes = width * itemSize * (isInterleaved ? bands : 1);
  const start = offsets[0] as number;
  const planeBytes = grid.planes === 1 ? 0 : (offsets[grid.rows] as number) - start;
  if (planeBytes < 0) return undefined;
  for (let index = 0; index < offsets.length; index++) {
    const plane = Math.floor(index / grid.rows);
    const row = (index % grid.rows) * chunkHeight;
    if (offsets[index] !== start + plane * planeBytes + row * rowBytes) return undefined;
  }
  const rows = Math.min(height, Math.max(1, Math.floor(CHUNK_BYTES / rowBytes)));
  const items = { begin: start, shape: [bands, height, width], itemSize };
  const chunkShape = [isInterleaved ? bands : 1, rows, width];
  return { rows, chunks: stridedChunks(items, chunkShape, [planeBytes, rowBytes, 0], 1) };
}
