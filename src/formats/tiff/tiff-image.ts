import { hasJpeg, JPEG_PACKAGE } from "../../codec/file-formats/jpeg.js";
import { ZpublishError } from "../../errors.js";
import { numberOf, TAG, type TiffDirectory } from "./tiff-directory.js";

/** Layout of an image's samples: what its chunks are, and how they are compressed. */
export interface TiffImage {
  readonly width: number;
  readonly height: number;
  readonly bands: number;
  /** As in a v2 `.zarray`. */
  readonly dtype: string;
  readonly kind: "u" | "i" | "f" | "c";
  readonly itemSize: number;
  readonly isBigEndian: boolean;
  /** True if a chunk has all bands, which lie pixel by pixel (planar configuration 1 of several bands). */
  readonly isInterleaved: boolean;
  readonly isTiled: boolean;
  readonly chunkWidth: number;
  /** Rows of a tile or strip, at most `height` if it is a strip. */
  readonly chunkHeight: number;
  readonly compression: number;
  /** 1 for none. */
  readonly predictor: number;
  /** What the chunks of a JPEG image have in common; undefined if it is none. */
  readonly jpeg: { readonly tables: Uint8Array; readonly isYcbcr: boolean } | undefined;
}

/** Largest length of an image or tile along an axis. */
const MAX_LENGTH = 2 ** 31 - 1;

/** Most samples per pixel: the tag is a short. */
const MAX_BANDS = 65_535;

/** Deflate as Adobe and as the first implementation called it; both are zlib's format. */
export const DEFLATE: ReadonlySet<number> = new Set([8, 32_946]);
/** Compressions that are read besides deflate: none, LZW, JPEG, PackBits, Zstandard. */
export const COMPRESSION = { none: 1, lzw: 5, jpeg: 7, packbits: 32_773, zstd: 50_000 } as const;
/** Longest stream of tables that JPEG can need, with room. */
const MAX_TABLE_BYTES = 65_536;

/** Names of compressions that are not read. */
const REFUSED_COMPRESSIONS: Readonly<Record<number, string>> = {
  2: "CCITT RLE",
  3: "CCITT Group 3",
  4: "CCITT Group 4",
  6: "old-style JPEG",
  32766: "NeXT",
  32771: "CCITT RLE with words",
  32809: "ThunderScan",
  33003: "JPEG 2000",
  33004: "JPEG 2000",
  33005: "JPEG 2000",
  34712: "JPEG 2000",
  34661: "JBIG",
  34676: "SGI LogLuv",
  34677: "SGI LogLuv of 24 bits",
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

const KINDS = { 1: "u", 2: "i", 3: "f", 4: "u", 6: "c" } as const;

/** Bits of a sample that are served, by kind. */
const BITS = { u: [8, 16, 32, 64], i: [8, 16, 32, 64], f: [16, 32, 64], c: [64, 128] } as const;

/**
 * Derives the layout of an image from its tags.
 * @throws ZpublishError `unsupported` with the reason alone, if its values are not served; `invalid-metadata`.
 */
export function imageOf(directory: TiffDirectory): TiffImage {
  const { isLittleEndian } = directory;
  const width = lengthOf(directory, TAG.imageWidth, "width");
  const height = lengthOf(directory, TAG.imageLength, "height");
  const bands = bandsOf(directory);
  const { kind, bits } = sampleOf(directory, bands);
  const compression = numberOf(directory, TAG.compression, COMPRESSION.none);
  assertReadable(directory, compression);
  const itemSize = bits / 8;
  const isInterleaved = bands > 1 && numberOf(directory, TAG.planarConfiguration, 1) !== 2;
  const isTiled = directory.numbers.has(TAG.tileWidth);
  const rows = numberOf(directory, TAG.rowsPerStrip, height);
  if (!isTiled && !(Number.isInteger(rows) && rows >= 1)) throw unsupported(`its strips have ${rows} rows`);
  const chunkWidth = isTiled ? lengthOf(directory, TAG.tileWidth, "width of a tile") : width;
  const chunkHeight = isTiled
    ? lengthOf(directory, TAG.tileLength, "height of a tile")
    : Math.min(rows, height);
  const order = itemSize === 1 ? "|" : isLittleEndian ? "<" : ">";
  return {
    width,
    height,
    bands,
    dtype: `${order}${kind}${itemSize}`,
    kind,
    itemSize,
    isBigEndian: !isLittleEndian,
    isInterleaved,
    isTiled,
    chunkWidth,
    chunkHeight,
    compression,
    predictor: predictorOf(directory, compression, kind),
    jpeg:
      compression === COMPRESSION.jpeg
        ? jpegOf(directory, `${kind}${bits}`, isInterleaved ? bands : 1)
        : undefined,
  };
}

/** Returns the number of samples per pixel. @throws ZpublishError `unsupported` if it has none, or more than a short can say. */
export function bandsOf(directory: TiffDirectory): number {
  const bands = numberOf(directory, TAG.samplesPerPixel, 1);
  if (Number.isInteger(bands) && bands >= 1 && bands <= MAX_BANDS) return bands;
  throw unsupported(`expected 1 to ${MAX_BANDS} samples per pixel, received ${bands}`);
}

function lengthOf(directory: TiffDirectory, tag: number, what: string): number {
  const length = numberOf(directory, tag, 0);
  if (Number.isInteger(length) && length >= 1 && length <= MAX_LENGTH) return length;
  throw new ZpublishError(
    "invalid-metadata",
    `expected a ${what} of 1 to ${MAX_LENGTH} pixels, received ${length}`,
  );
}

/** Returns kind and bits of all samples. */
function sampleOf(directory: TiffDirectory, bands: number): { kind: TiffImage["kind"]; bits: number } {
  const bits = sameOf(directory, TAG.bitsPerSample, 1, bands, "bits");
  const format = sameOf(directory, TAG.sampleFormat, 1, bands, "sample formats");
  if (format === 5) throw unsupported("its samples are complex integers");
  const kind = KINDS[format as keyof typeof KINDS];
  if (kind === undefined) throw unsupported(`its sample format is ${format}`);
  if (!(BITS[kind] as readonly number[]).includes(bits)) {
    const name = { u: "unsigned integers", i: "integers", f: "floats", c: "complex numbers" }[kind];
    throw unsupported(`its samples are ${bits}-bit ${name}`);
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
    throw unsupported(`its samples differ in ${what}: ${[...new Set(values)].slice(0, 8).join(", ")}`);
  }
  return first;
}

function assertReadable(directory: TiffDirectory, compression: number): void {
  const isRead =
    DEFLATE.has(compression) || (Object.values(COMPRESSION) as readonly number[]).includes(compression);
  if (!isRead) {
    const name = REFUSED_COMPRESSIONS[compression];
    throw unsupported(
      name === undefined ? `its compression ${compression} is unknown` : `it is compressed with ${name}`,
    );
  }
  const colours = numberOf(directory, TAG.photometric, 1);
  const photometric = REFUSED_PHOTOMETRICS[colours];
  const isJpegYcbcr = colours === YCBCR && compression === COMPRESSION.jpeg;
  if (photometric !== undefined && !isJpegYcbcr) throw unsupported(`its colours are ${photometric}`);
  if (numberOf(directory, TAG.fillOrder, 1) !== 1)
    throw unsupported("its bits are in reversed order (FillOrder 2)");
}

/** @param samples Type of the samples: `u8`. @param components Samples of a pixel in a stream. */
function jpegOf(directory: TiffDirectory, samples: string, components: number): TiffImage["jpeg"] {
  if (!hasJpeg()) throw unsupported(`it is compressed with JPEG, and ${JPEG_PACKAGE} is not installed`);
  if (samples !== "u8")
    throw unsupported("it is compressed with JPEG of other samples than 8-bit unsigned integers");
  const isYcbcr = numberOf(directory, TAG.photometric, 1) === YCBCR;
  if ((components !== 1 && components !== 3) || (isYcbcr && components !== 3)) {
    throw unsupported(`it is compressed with JPEG of ${components} components${isYcbcr ? " of YCbCr" : ""}`);
  }
  const tables = directory.numbers.get(TAG.jpegTables) ?? [];
  if (tables.length > MAX_TABLE_BYTES) throw unsupported(`its JPEG tables have ${tables.length} bytes`);
  return { tables: Uint8Array.from(tables), isYcbcr };
}

/** libtiff applies predictors to LZW, deflate and Zstandard only. */
function predictorOf(directory: TiffDirectory, compression: number, kind: TiffImage["kind"]): number {
  const predictor = numberOf(directory, TAG.predictor, 1);
  const hasPredictors =
    DEFLATE.has(compression) || compression === COMPRESSION.lzw || compression === COMPRESSION.zstd;
  if (!hasPredictors || predictor === 1) return 1;
  if (predictor === 2 && kind !== "c") return 2;
  if (predictor === 3 && kind === "f") return 3;
  throw unsupported(`predictor ${predictor} is not read for its samples`);
}

function unsupported(reason: string): ZpublishError {
  return new ZpublishError("unsupported", reason);
}
