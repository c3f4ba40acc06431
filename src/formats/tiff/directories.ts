import { ZpublishError } from "../../errors.js";
import { type CooperativeTask, runCooperatively } from "../../event-loop/cooperative-task.js";
import type { FileBlocks } from "../file-format.js";

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
  colorMap: 320,
  tileWidth: 322,
  tileLength: 323,
  tileOffsets: 324,
  tileByteCounts: 325,
  subIfds: 330,
  extraSamples: 338,
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
interface TiffLayout {
  readonly isLittleEndian: boolean;
  readonly isBig: boolean;
}

/** Returns the first value of a tag, or the default that the specification gives. */
export function numberOf({ numbers }: TiffDirectory, tag: number, fallback: number): number {
  return numbers.get(tag)?.[0] ?? fallback;
}

type Reader = (view: DataView, at: number, isLittleEndian: boolean) => number;

const byte: Reader = (view, at) => view.getUint8(at);
const long: Reader = (view, at, le) => view.getUint32(at, le);
const long8: Reader = (view, at, le) => Number(view.getBigUint64(at, le));

/** Length and reader of values by field type (TIFF 6.0, section 2; BigTIFF: 16 to 18). */
const TYPES: Readonly<Record<number, readonly [byteLength: number, read: Reader]>> = {
  1: [1, byte],
  2: [1, byte],
  3: [2, (view, at, le) => view.getUint16(at, le)],
  4: [4, long],
  5: [8, (view, at, le) => view.getUint32(at, le) / view.getUint32(at + 4, le)],
  6: [1, (view, at) => view.getInt8(at)],
  7: [1, byte],
  8: [2, (view, at, le) => view.getInt16(at, le)],
  9: [4, (view, at, le) => view.getInt32(at, le)],
  10: [8, (view, at, le) => view.getInt32(at, le) / view.getInt32(at + 4, le)],
  11: [4, (view, at, le) => view.getFloat32(at, le)],
  12: [8, (view, at, le) => view.getFloat64(at, le)],
  13: [4, long],
  16: [8, long8],
  17: [8, (view, at, le) => Number(view.getBigInt64(at, le))],
  18: [8, long8],
};

/** Reads the values of a tag that is known to be short. Rationals are divided. */
async function readTagNumbers(
  file: FileBlocks,
  { type, count, offset }: TagPlace,
  isLittleEndian: boolean,
): Promise<readonly number[]> {
  const [size, read] = TYPES[type]!;
  const view = viewOf(await file.read(offset, count * size));
  return Array.from({ length: count }, (_, index) => read(view, index * size, isLittleEndian));
}

/** Reads a text, up to its first null character. It is UTF-8 as GDAL writes it, or Latin-1 if it cannot be that. */
async function readTagText(file: FileBlocks, { count, offset }: TagPlace): Promise<string> {
  const bytes = await file.read(offset, count);
  const end = bytes.indexOf(0);
  const text = Buffer.from(end === -1 ? bytes : bytes.subarray(0, end));
  const decoded = text.toString("utf8");
  return decoded.includes("\ufffd") ? text.toString("latin1") : decoded;
}

/**
 * Reads a list of offsets or lengths, which may be long.
 * @param expected The number of entries that are needed; further ones are left out.
 * @throws ZpublishError `invalid-metadata` if there are fewer.
 */
export async function readList(
  file: FileBlocks,
  { type, count, offset }: TagPlace,
  expected: number,
  isLittleEndian: boolean,
): Promise<Float64Array> {
  if (count < expected || ![3, 4, 13, 16, 18].includes(type)) {
    throw invalidTiff(
      `expected a list of ${expected} offsets or lengths, received ${count} of field type ${type}`,
    );
  }
  const bytes = await file.readOnce(offset, expected * TYPES[type]![0]);
  return runCooperatively(listSteps(bytes, type, expected, isLittleEndian));
}

function* listSteps(
  bytes: Uint8Array,
  type: number,
  count: number,
  isLittleEndian: boolean,
): CooperativeTask<Float64Array> {
  const view = viewOf(bytes);
  const [size, read] = TYPES[type]!;
  const list = new Float64Array(count);
  for (let index = 0; index < count; index++) {
    if (index % 4096 === 0) yield;
    list[index] = read(view, index * size, isLittleEndian);
  }
  return list;
}

/** Largest number of directories of a file: each becomes a group. */
const MAX_DIRECTORIES = 1000;
/** Largest number of tags of a directory; classic TIFF cannot have more. */
const MAX_TAGS = 65_535;
/** Memory for the values of all tags but the lists of places, in bytes: tags of many directories may have the same values. */
const MAX_VALUE_BYTES = 64 * 2 ** 20;

const LISTS: ReadonlySet<number> = new Set([
  TAG.stripOffsets,
  TAG.stripByteCounts,
  TAG.tileOffsets,
  TAG.tileByteCounts,
]);
const TEXTS: ReadonlySet<number> = new Set([
  TAG.documentName,
  TAG.imageDescription,
  TAG.software,
  TAG.dateTime,
  TAG.artist,
  TAG.hostComputer,
  TAG.copyright,
  TAG.geoAsciiParams,
  TAG.gdalMetadata,
  TAG.gdalNodata,
]);
const KNOWN: ReadonlySet<number> = new Set(Object.values(TAG));

/** Bytes that may still be read. Lists of places do not overlap in a sound file, so they are not longer than it. */
interface Budget {
  values: number;
  lists: number;
}

/** The images of a file, in their order. */
export interface TiffImages {
  readonly layout: TiffLayout;
  readonly directories: readonly TiffDirectory[];
  readonly warnings: readonly string[];
}

/**
 * Reads all directories of a file: those of the chain, each followed by those that its SubIFDs tag names.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
 */
export async function readDirectories(file: FileBlocks): Promise<TiffImages> {
  const { layout, first } = await readHeader(file);
  const directories: TiffDirectory[] = [];
  const warnings: string[] = [];
  const seen = new Set<number>();
  const budget: Budget = { values: MAX_VALUE_BYTES, lists: file.byteLength };
  const read = async (offset: number) => {
    if (seen.has(offset)) {
      warnings.push(`the directory at ${offset} is linked twice; what follows the second link is left out`);
      return undefined;
    }
    if (seen.size === MAX_DIRECTORIES) {
      throw unsupportedTiff(`expected at most ${MAX_DIRECTORIES} images, received more`);
    }
    seen.add(offset);
    const found = await readDirectory(file, layout, offset, budget);
    directories.push(found.directory);
    return found;
  };
  for (let offset = first; offset !== 0; ) {
    const found = await read(offset);
    if (found === undefined) break;
    // Directories that a SubIFDs tag names may have such a tag themselves, which no known writer uses.
    for (const child of found.directory.numbers.get(TAG.subIfds) ?? []) await read(child);
    offset = found.next;
  }
  return { layout, directories, warnings };
}

/** Reads the header (TIFF 6.0, section 2; BigTIFF: 8 bytes per offset). */
async function readHeader(file: FileBlocks): Promise<{ layout: TiffLayout; first: number }> {
  const head = viewOf(await file.read(0, Math.min(16, file.byteLength)));
  const isLittleEndian = head.byteLength > 0 && head.getUint8(0) === 0x49;
  const version = head.byteLength >= 8 ? head.getUint16(2, isLittleEndian) : 0;
  if (version === 42) {
    return { layout: { isLittleEndian, isBig: false }, first: head.getUint32(4, isLittleEndian) };
  }
  if (version !== 43 || head.byteLength < 16 || head.getUint16(4, isLittleEndian) !== 8) {
    throw invalidTiff("expected a header of TIFF or BigTIFF");
  }
  return { layout: { isLittleEndian, isBig: true }, first: long8(head, 8, isLittleEndian) };
}

/** Reads one directory, and the offset of the next one; 0 if it is the last. */
async function readDirectory(
  file: FileBlocks,
  layout: TiffLayout,
  offset: number,
  budget: Budget,
): Promise<{ directory: TiffDirectory; next: number }> {
  const { isLittleEndian, isBig } = layout;
  const [countBytes, entryBytes, linkBytes] = isBig ? [8, 20, 8] : [2, 12, 4];
  if (!Number.isSafeInteger(offset))
    throw invalidTiff(`expected the offset of a directory, received ${offset}`);
  const head = viewOf(await file.read(offset, countBytes));
  const count = isBig ? long8(head, 0, isLittleEndian) : head.getUint16(0, isLittleEndian);
  if (count > MAX_TAGS)
    throw invalidTiff(`expected at most ${MAX_TAGS} tags in the directory at ${offset}, received ${count}`);
  const start = offset + countBytes;
  const view = viewOf(await file.read(start, count * entryBytes + linkBytes));
  const numbers = new Map<number, readonly number[]>();
  const texts = new Map<number, string>();
  const lists = new Map<number, TagPlace>();
  for (let index = 0; index < count; index++) {
    const at = index * entryBytes;
    const tag = view.getUint16(at, isLittleEndian);
    if (!KNOWN.has(tag) || numbers.has(tag) || texts.has(tag) || lists.has(tag)) continue;
    const place = placeOf(view, at, start, layout);
    if (place === undefined) continue;
    if (LISTS.has(tag)) {
      budget.lists -= place.count * TYPES[place.type]![0];
      if (budget.lists < 0) throw invalidTiff("lists of tiles or strips overlap");
      lists.set(tag, place);
      continue;
    }
    const isText = TEXTS.has(tag);
    budget.values -= place.count * (isText ? 1 : 8);
    if (budget.values < 0) {
      throw unsupportedTiff(`tags have more than ${MAX_VALUE_BYTES} bytes`);
    }
    if (isText) texts.set(tag, await readTagText(file, place));
    else numbers.set(tag, await readTagNumbers(file, place, isLittleEndian));
  }
  const link = count * entryBytes;
  const next = (isBig ? long8 : long)(view, link, isLittleEndian);
  return { directory: { offset, isLittleEndian, numbers, texts, lists }, next };
}

/** Returns the place of an entry's values; undefined if their type is unknown. */
function placeOf(
  view: DataView,
  at: number,
  start: number,
  { isLittleEndian, isBig }: TiffLayout,
): TagPlace | undefined {
  const type = view.getUint16(at + 2, isLittleEndian);
  const size = TYPES[type]?.[0];
  if (size === undefined) return undefined;
  const [read, valueAt, room] = isBig ? [long8, at + 12, 8] : [long, at + 8, 4];
  const count = read(view, at + 4, isLittleEndian);
  const isInside = count * size <= room;
  return { type, count, offset: isInside ? start + valueAt : read(view, valueAt, isLittleEndian) };
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** Creates an error about a file that is damaged. */
export function invalidTiff(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}

/** Creates an error about a file whose values are not served. */
export function unsupportedTiff(message: string): ZpublishError {
  return new ZpublishError("unsupported", message);
}
