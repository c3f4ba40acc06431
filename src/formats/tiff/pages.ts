import type { TiffImages } from "./read-directories.js";
import { numberOf, TAG, type TiffDirectory } from "./tiff-directory.js";

/** An image of a file with its overviews. */
export interface TiffPage {
  /** `/` for the first, `/page_2`, … for the others. */
  readonly path: string;
  readonly image: TiffDirectory;
  /** Those of fewer pixels, largest first. */
  readonly overviews: readonly TiffDirectory[];
  /** Masks of the image and its overviews, which are not served. */
  readonly masks: readonly TiffDirectory[];
}

/** Bits of NewSubfileType (TIFF 6.0, section 8). */
const REDUCED = 1;
const MASK = 4;

/**
 * Sorts the directories of a file into pages. As GDAL does, a directory of reduced resolution is an overview of the image before it,
 * and every other one a page of its own.
 */
export function pagesOf({ directories }: TiffImages): TiffPage[] {
  const pages: { path: string; image: TiffDirectory; overviews: TiffDirectory[]; masks: TiffDirectory[] }[] =
    [];
  for (const directory of directories) {
    const type = numberOf(directory, TAG.newSubfileType, 0);
    const page = pages.at(-1);
    if (page !== undefined && (type & MASK) !== 0) page.masks.push(directory);
    else if (page !== undefined && (type & REDUCED) !== 0) page.overviews.push(directory);
    else {
      const path = pages.length === 0 ? "/" : `/page_${pages.length + 1}`;
      pages.push({ path, image: directory, overviews: [], masks: [] });
    }
  }
  for (const { overviews } of pages) overviews.sort((a, b) => pixelsOf(b) - pixelsOf(a));
  return pages;
}

function pixelsOf(directory: TiffDirectory): number {
  return numberOf(directory, TAG.imageWidth, 0) * numberOf(directory, TAG.imageLength, 0);
}
