import { ZpublishError } from "../../errors.js";
import type { FileBlocks } from "../file-format.js";
import { readNumbers, readText, TYPE_BYTES } from "./tag-values.js";
import { TAG, type TagPlace, type TiffDirectory, type TiffLayout } from "./tiff-directory.js";

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
      throw new ZpublishError("unsupported", `expected at most ${MAX_DIRECTORIES} images, received more`);
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
    throw new ZpublishError("invalid-metadata", "expected a header of TIFF or BigTIFF");
  }
  return {
    layout: { isLittleEndian, isBig: true },
    first: Number(head.getBigUint64(8, isLittleEndian)),
  };
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
  if (!Number.isSafeInteger(offset)) {
    throw new ZpublishError("invalid-metadata", `expected the offset of a directory, received ${offset}`);
  }
  const head = viewOf(await file.read(offset, countBytes));
  const count = isBig ? Number(head.getBigUint64(0, isLittleEndian)) : head.getUint16(0, isLittleEndian);
  if (count > MAX_TAGS) {
    throw new ZpublishError(
      "invalid-metadata",
      `expected at most ${MAX_TAGS} tags in the directory at ${offset}, received ${count}`,
    );
  }
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
      budget.lists -= place.count * (TYPE_BYTES[place.type] as number);
      if (budget.lists < 0) {
        throw new ZpublishError("invalid-metadata", `lists of tiles or strips overlap`);
      }
      lists.set(tag, place);
      continue;
    }
    const isText = TEXTS.has(tag);
    budget.values -= place.count * (isText ? 1 : 8);
    if (budget.values < 0) {
      throw new ZpublishError("unsupported", `tags have more than ${MAX_VALUE_BYTES} bytes`);
    }
    if (isText) texts.set(tag, await readText(file, place));
    else numbers.set(tag, await readNumbers(file, place, isLittleEndian));
  }
  const link = count * entryBytes;
  const next = isBig ? Number(view.getBigUint64(link, isLittleEndian)) : view.getUint32(link, isLittleEndian);
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
  const size = TYPE_BYTES[type];
  if (size === undefined) return undefined;
  const count = isBig
    ? Number(view.getBigUint64(at + 4, isLittleEndian))
    : view.getUint32(at + 4, isLittleEndian);
  const [valueAt, room] = isBig ? [at + 12, 8] : [at + 8, 4];
  if (count * size <= room) return { type, count, offset: start + valueAt };
  const offset = isBig
    ? Number(view.getBigUint64(valueAt, isLittleEndian))
    : view.getUint32(valueAt, isLittleEndian);
  return { type, count, offset };
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
