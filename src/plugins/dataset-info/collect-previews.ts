import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import { settlesWithin } from "../../event-loop/settles-within.js";
import { elementCount, type Group } from "../../model/data-tree.js";
import { coordinatesOf } from "../../pages/group-section.js";
import type { PreviewService, PreviewValues } from "../../pages/preview-service.js";

/** Coordinates of one page whose first values are shown. */
const MAX_PREVIEWS = 32;
/** Groups in which they are looked for: as many as one page shows. */
const MAX_SEARCHED_GROUPS = 1_000;
/**
 * Milliseconds that a page waits for first values, and is then shown without those that are missing. The first page of all waits
 * for the pool to start, which takes half a second.
 */
const PREVIEW_TIMEOUT_MS = 1_000;
/** Maximum of previews in progress for all pages; beyond, pages are shown without. */
const MAX_IN_PROGRESS = 128;
/** Maximum bytes of a chunk that is decoded for a preview; larger ones take too long. */
const MAX_CHUNK_BYTES = 8 * 1024 * 1024;

/** First values of coordinates, as far as they came in time. */
export interface CollectedPreviews {
  /** By variable path. */
  readonly values: ReadonlyMap<string, PreviewValues>;
  /** False if some did not come in time. Another attempt may have them. */
  readonly complete: boolean;
}

/** Collects the first values of the coordinates of groups. */
export type CollectPreviews = (
  snapshot: DatasetSnapshot,
  groups: Iterable<Group>,
) => Promise<CollectedPreviews>;

/**
 * Creates a collector of previews for pages, with bounds on their number per page, on time, and on previews in progress.
 * @param previews Called at the first page, because the service may start then.
 */
export function createPreviewCollector(previews: () => PreviewService): CollectPreviews {
  let inProgress = 0;

  async function preview(array: ServedArray, values: Map<string, PreviewValues>): Promise<void> {
    inProgress++;
    try {
      const found = await previews().values(array);
      if (found !== undefined) values.set(array.variable.path, found);
    } catch {
      // A page never fails because of a preview.
    } finally {
      inProgress--;
    }
  }

  return async (snapshot, groups) => {
    const arrays = previewableArrays(snapshot, groups);
    const admitted = arrays.slice(0, Math.max(0, MAX_IN_PROGRESS - inProgress));
    if (admitted.length === 0) return { values: new Map(), complete: arrays.length === 0 };
    const arriving = new Map<string, PreviewValues>();
    const all = Promise.all(admitted.map((array) => preview(array, arriving)));
    const inTime = await settlesWithin(all, PREVIEW_TIMEOUT_MS);
    return { values: new Map(arriving), complete: inTime && admitted.length === arrays.length };
  };
}

function previewableArrays(snapshot: DatasetSnapshot, groups: Iterable<Group>): ServedArray[] {
  const arrays: ServedArray[] = [];
  let searched = 0;
  for (const group of groups) {
    if (++searched > MAX_SEARCHED_GROUPS) break;
    for (const variable of coordinatesOf(group)) {
      if (arrays.length === MAX_PREVIEWS) return arrays;
      const array = snapshot.arrays.get(variable.path);
      if (array !== undefined && isSmall(array)) arrays.push(array);
    }
  }
  return arrays;
}

function isSmall({ stored }: ServedArray): boolean {
  // Items of object types, mostly short strings, have no fixed size.
  return elementCount(stored.chunkShape) * (stored.dataType.itemSize || 64) <= MAX_CHUNK_BYTES;
}
