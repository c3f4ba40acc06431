/** Tags of TIFF 6.0, its supplements, GeoTIFF and GDAL that the reader uses, by name. */
export const TAG = {
  newSubfileType: 254,
  imageWidth: 256,
  imageLength: 257,
  bitsPerSample: 258,
  compression: 259,
  photometric: 262,
  fillOrder: 266,
  documentName: 269,
  imageDescription: 270,
  stripOffsets: 273,
  samplesPerPixel: 277,
  rowsPerStrip: 278,
  stripByteCounts: 279,
  minSampleValue: 280,
  maxSampleValue: 281,
  xResolution: 282,
  yResolution: 283,
  planarConfiguration: 284,
  resolutionUnit: 296,
  software: 305,
  dateTime: 306,
  artist: 315,
  hostComputer: 316,
  predictor: 317,
  tileWidth: 322,
  tileLength: 323,
  tileOffsets: 324,
  tileByteCounts: 325,
  subIfds: 330,
  sampleFormat: 339,
  jpegTables: 347,
  copyright: 33432,
  modelPixelScale: 33550,
  modelTiepoint: 33922,
  modelTransformation: 34264,
  geoKeyDirectory: 34735,
  geoDoubleParams: 34736,
  geoAsciiParams: 34737,
  gdalMetadata: 42112,
  gdalNodata: 42113,
} as const;

/** Place and type of a tag's values in the file. */
export interface TagPlace {
  /** Field type: 3 SHORT, 4 LONG, 16 LONG8, … */
  readonly type: number;
  readonly count: number;
  /** Offset of the values in the file, also of those inside of the entry. */
  readonly offset: number;
}

/** An image file directory: the tags of one image. */
export interface TiffDirectory {
  readonly offset: number;
  readonly isLittleEndian: boolean;
  readonly numbers: ReadonlyMap<number, readonly number[]>;
  readonly texts: ReadonlyMap<number, string>;
  /** Lists of places, which may be long. */
  readonly lists: ReadonlyMap<number, TagPlace>;
}

/** Byte order, and whether offsets have 8 bytes. */
export interface TiffLayout {
  readonly isLittleEndian: boolean;
  readonly isBig: boolean;
}

/** Returns the first value of a tag, or the default that the specification gives. */
export function numberOf({ numbers }: TiffDirectory, tag: number, fallback: number): number {
  return numbers.get(tag)?.[0] ?? fallback;
}
