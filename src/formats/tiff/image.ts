import { hasJpeg, JPEG_PACKAGE } from "../../codec/file-formats/jpeg.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import { type CodecSpec, DEFAULT_COMPRESSOR } from "../../zarr/codec-step.js";
import type { FileBlocks } from "../file-format.js";
import {
  CHUNK_BYTES,
  type FileArray,
  type ListedChunks,
  type StridedChunks,
  stridedChunks,
} from "../file-index.js";
import { invalidTiff, numberOf, readList, TAG, type TiffDirectory, unsupportedTiff } from "./directories.js";

/** Layout of an image's samples: what its chunks are, and how they are compressed. */
export type TiffImage = ReturnType<typeof imageOf>;

/** Largest length of an image or tile along an axis. */
const MAX_LENGTH = 2 ** 31 - 1;

/** Most samples per pixel: the tag is a short. */
const MAX_BANDS = 65_535;

/** Deflate as Adobe and as the first implementation called it; both are zlib's format. */
const DEFLATE: ReadonlySet<number> = new Set([8, 32_946]);
/** Compressions that are read besides deflate: none, LZW, JPEG, PackBits, Zstandard. */
const COMPRESSION = { none: 1, lzw: 5, jpeg: 7, packbits: 32_773, zstd: 50_000 } as const;
/** Longest stream of tables that JPEG can need, with room. */
const MAX_TABLE_BYTES = 65_536;

/** Names of compressions that are not read and that one may meet. */
const REFUSED_COMPRESSIONS: Readonly<Record<number, string>> = {
  2: "CCITT RLE",
  3: "CCITT Group 3",
  4: "CCITT Group 4",
  6: "old-style JPEG",
  34712: "JPEG 2000",
  34887: "LERC",
  34925: "LZMA",
  50001: "WebP",
  50002: "JPEG XL",
  52546: "JPEG XL",
};

/** YCbCr as a photometric interpretation. JPEG converts it, as GDAL has it converted. */
const YCBCR = 6;

/** Photometric interpretations whose samples are no values by themselves: GDAL and libtiff convert them to RGB. */
const REFUSED_PHOTOMETRICS: Readonly<Record<number, string>> = {
  5: "CMYK",
  [YCBCR]: "YCbCr",
  8: "CIE L*a*b*",
  9: "ICC L*a*b*",
  10: "ITU L*a*b*",
  32803: "a colour filter array",
  32844: "LogL",
  32845: "LogLuv",
};

type SampleKind = "u" | "i" | "f" | "c";

const KINDS = { 1: "u", 2: "i", 3: "f", 4: "u", 6: "c" } as const;

/** Bits of a sample that are served, by kind. */
const BITS = { u: [8, 16, 32, 64], i: [8, 16, 32, 64], f: [16, 32, 64], c: [64, 128] } as const;

/**
 * Derives the layout of an image from its tags.
 * @throws ZpublishError `unsupported` with the reason alone, if its values are not served; `invalid-metadata`.
 */
export function imageOf(directory: TiffDirectory) {
  const { isLittleEndian } = directory;
  const width = lengthOf(directory, TAG.imageWidth, "width");
  const height = lengthOf(directory, TAG.imageLength, "height");
  const bands = lengthOf(directory, TAG.samplesPerPixel, "number of samples", 1, MAX_BANDS);
  const { kind, bits } = sampleOf(directory, bands);
  const compression = numberOf(directory, TAG.compression, COMPRESSION.none);
  assertReadable(directory, compression);
  const itemSize = bits / 8;
  const isInterleaved = bands > 1 && numberOf(directory, TAG.planarConfiguration, 1) !== 2;
  const isTiled = directory.numbers.has(TAG.tileWidth);
  const rows = numberOf(directory, TAG.rowsPerStrip, height);
  if (!isTiled && !(Number.isInteger(rows) && rows >= 1))
    throw unsupportedTiff(`its strips have ${rows} rows`);
  const chunkWidth = isTiled ? lengthOf(directory, TAG.tileWidth, "width of a tile") : width;
  const chunkHeight = isTiled
    ? lengthOf(directory, TAG.tileLength, "height of a tile")
    : Math.min(rows, height);
  const order = itemSize === 1 ? "|" : isLittleEndian ? "<" : ">";
  const isJpeg = compression === COMPRESSION.jpeg;
  return {
    width,
    height,
    bands,
    /** As in a v2 `.zarray`. */
    dtype: `${order}${kind}${itemSize}`,
    kind,
    itemSize,
    isBigEndian: !isLittleEndian,
    /** True if a chunk has all bands, which lie pixel by pixel (planar configuration 1 of several bands). */
    isInterleaved,
    isTiled,
    chunkWidth,
    /** Rows of a tile or strip, at most `height` if it is a strip. */
    chunkHeight,
    compression,
    /** 1 for none. */
    predictor: predictorOf(directory, compression, kind),
    /** What the chunks of a JPEG image have in common. */
    jpeg: isJpeg ? jpegOf(directory, `${kind}${bits}`, isInterleaved ? bands : 1) : undefined,
  };
}

function lengthOf(
  directory: TiffDirectory,
  tag: number,
  what: string,
  fallback = 0,
  most = MAX_LENGTH,
): number {
  const length = numberOf(directory, tag, fallback);
  if (Number.isInteger(length) && length >= 1 && length <= most) return length;
  throw invalidTiff(`expected a ${what} of 1 to ${most}, received ${length}`);
}

/** Returns kind and bits of all samples. */
function sampleOf(directory: TiffDirectory, bands: number): { kind: SampleKind; bits: number } {
  const bits = sameOf(directory, TAG.bitsPerSample, 1, bands, "bits");
  const format = sameOf(directory, TAG.sampleFormat, 1, bands, "sample formats");
  if (format === 5) throw unsupportedTiff("its samples are complex integers");
  const kind = KINDS[format as keyof typeof KINDS];
  if (kind === undefined) throw unsupportedTiff(`its sample format is ${format}`);
  if (!(BITS[kind] as readonly number[]).includes(bits)) {
    const name = { u: "unsigned integers", i: "integers", f: "floats", c: "complex numbers" }[kind];
    throw unsupportedTiff(`its samples are ${bits}-bit ${name}`);
  }
  return { kind, bits };
}

/** Returns the value of a tag that has one for each sample; one value is enough for all. */
function sameOf(
  { numbers }: TiffDirectory,
  tag: number,
  fallback: number,
  bands: number,
  what: string,
): number {
  const values = (numbers.get(tag) ?? []).slice(0, bands);
  const first = values[0] ?? fallback;
  if (values.some((value) => value !== first)) {
    throw unsupportedTiff(`its samples differ in ${what}: ${[...new Set(values)].slice(0, 8).join(", ")}`);
  }
  return first;
}

function assertReadable(directory: TiffDirectory, compression: number): void {
  const isRead =
    DEFLATE.has(compression) || (Object.values(COMPRESSION) as readonly number[]).includes(compression);
  if (!isRead) {
    const name = REFUSED_COMPRESSIONS[compression];
    throw unsupportedTiff(
      name === undefined ? `its compression ${compression} is unknown` : `it is compressed with ${name}`,
    );
  }
  const colours = numberOf(directory, TAG.photometric, 1);
  const photometric = REFUSED_PHOTOMETRICS[colours];
  const isJpegYcbcr = colours === YCBCR && compression === COMPRESSION.jpeg;
  if (photometric !== undefined && !isJpegYcbcr) throw unsupportedTiff(`its colours are ${photometric}`);
  if (numberOf(directory, TAG.fillOrder, 1) !== 1)
    throw unsupportedTiff("its bits are in reversed order (FillOrder 2)");
}

/** @param samples Type of the samples: `u8`. @param components Samples of a pixel in a stream. */
function jpegOf(directory: TiffDirectory, samples: string, components: number) {
  if (!hasJpeg()) throw unsupportedTiff(`it is compressed with JPEG, and ${JPEG_PACKAGE} is not installed`);
  if (samples !== "u8")
    throw unsupportedTiff("it is compressed with JPEG of other samples than 8-bit unsigned integers");
  const isYcbcr = numberOf(directory, TAG.photometric, 1) === YCBCR;
  if ((components !== 1 && components !== 3) || (isYcbcr && components !== 3)) {
    throw unsupportedTiff(
      `it is compressed with JPEG of ${components} components${isYcbcr ? " of YCbCr" : ""}`,
    );
  }
  const tables = directory.numbers.get(TAG.jpegTables) ?? [];
  if (tables.length > MAX_TABLE_BYTES) throw unsupportedTiff(`its JPEG tables have ${tables.length} bytes`);
  return { tables: Uint8Array.from(tables), isYcbcr };
}

/** libtiff applies predictors to LZW, deflate and Zstandard only. */
function predictorOf(directory: TiffDirectory, compression: number, kind: SampleKind): number {
  const predictor = numberOf(directory, TAG.predictor, 1);
  const hasPredictors =
    DEFLATE.has(compression) || compression === COMPRESSION.lzw || compression === COMPRESSION.zstd;
  if (!hasPredictors || predictor === 1) return 1;
  if (predictor === 2 && kind !== "c") return 2;
  if (predictor === 3 && kind === "f") return 3;
  throw unsupportedTiff(`predictor ${predictor} is not read for its samples`);
}

/** Most strips that are put together in a chunk. */
const MAX_STRIPS = 1024;

/**
 * Reads where the chunks of an image lie. Its array has the axes band, y, x.
 * @returns The fields of the array that the chunks decide, and whether some are absent.
 * @throws ZpublishError `invalid-metadata` if chunks are missing or pass the end of the file.
 */
export async function readImageChunks(file: FileBlocks, directory: TiffDirectory, image: TiffImage) {
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
  const chunkBytes = depth * rows * chunkWidth * image.itemSize;
  assertChunkLength(chunkBytes);
  const codecs = codecsOf(image);
  const isLastShort = strided === undefined && !image.isTiled && height % rows !== 0;
  const lastBytes = (height % rows) * width * image.itemSize * depth;
  const fields = {
    shape: [bands, height, width],
    chunkShape: [depth, rows, chunkWidth],
    ...(isInterleaved && { axisOrder: [1, 2, 0] }),
    codecs,
    compressorCount: image.compression === COMPRESSION.none ? 0 : 1,
    ...(isLastShort && { variants: [lastCodecs(codecs, lastBytes, chunkBytes)] }),
    chunks: strided?.chunks ?? (isLastShort ? { ...listed, variants: lastRows(grid) } : listed),
    ...(!isPassed && servedAs(image, rows, depth)),
  } satisfies Partial<FileArray>;
  return { fields, hasAbsent };
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
    ...(strips > 1 && { servedChunks: [depth, servedRows, chunkWidth] }),
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
  const start = offsets[0]!;
  const planeBytes = grid.planes === 1 ? 0 : offsets[grid.rows]! - start;
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

/** Longest chunk, stored or decoded, in bytes. */
const MAX_CHUNK_BYTES = 2 ** 31 - 1;

/** Tiles or strips along each axis: planes, rows, columns. */
interface ChunkCounts {
  readonly planes: number;
  readonly rows: number;
  readonly columns: number;
}

/** Reads the offsets and lengths of the tiles or strips of an image, and checks them. */
async function readChunkTable(
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
  if (places === undefined) throw invalidTiff("expected offsets of tiles or strips, received none");
  // Old files without compression have no lengths.
  if (lengths === undefined && image.compression !== COMPRESSION.none)
    throw invalidTiff("expected lengths of tiles or strips, received none");
  const { isLittleEndian } = directory;
  const count = grid.planes * grid.rows * grid.columns;
  const offsets = await readList(file, places, count, isLittleEndian);
  const byteLengths = lengths && (await readList(file, lengths, count, isLittleEndian));
  return runCooperatively(tableSteps(file, image, grid, offsets, byteLengths));
}

/** Checks each chunk's place. Without compression its length is known, and what is stored behind it is left out. */
function* tableSteps(
  file: FileBlocks,
  image: TiffImage,
  grid: ChunkCounts,
  offsets: Float64Array,
  lengths: Float64Array | undefined,
): CooperativeTask<ListedChunks> {
  const byteLengths = new Uint32Array(offsets.length);
  for (let index = 0; index < offsets.length; index++) {
    if (index % 4096 === 0) yield;
    const offset = offsets[index]!;
    const stored = lengths === undefined ? Number.POSITIVE_INFINITY : lengths[index]!;
    if (offset === 0 || stored === 0) {
      offsets[index] = -1;
      continue;
    }
    const plain = image.compression === COMPRESSION.none ? plainLength(image, grid, index) : undefined;
    const byteLength = plain ?? stored;
    if (byteLength > stored) {
      throw unsupportedTiff(`expected ${byteLength} bytes in tile or strip ${index}, received ${stored}`);
    }
    if (offset + byteLength > file.byteLength) {
      throw invalidTiff(
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
function assertChunkLength(byteLength: number): void {
  if (byteLength <= MAX_CHUNK_BYTES) return;
  throw unsupportedTiff(
    `expected tiles or strips of at most ${MAX_CHUNK_BYTES} bytes, received ${byteLength}`,
  );
}
