import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import { settlesWithin } from "../../event-loop/settles-within.js";
import { elementCount } from "../../model/chunk-grid.js";
import type { Group } from "../../model/data-tree.js";
import { coordinatesOf } from "../../pages/group-section.js";
import type { PreviewService, PreviewValues } from "../../pages/preview/preview.js";

/** Coordinates of one page whose first values are shown. */
const MAX_PREVIEWS = 32;
/**
 * How long a page waits for them; it is shown without those that take longer. The first page of all waits for the pool
 * to start, which takes half a second.
 */
const PREVIEW_TIMEOUT_MS = 1_000;
/** Previews under way for all pages; beyond, pages are shown without. */
const MAX_UNDER_WAY = 128;
/** Larger chunks take too long to decode for a look. */
const MAX_CHUNK_BYTES = 8 * 1024 * 1024;

/** First values of coordinates, as many as came in time. */
export interface CollectedPreviews {
  /** By variable path. */
  readonly values: ReadonlyMap<string, PreviewValues>;
  /** False where some did not come in time: asked again, they may. */
  readonly complete: boolean;
}

export type CollectPreviews = (
  snapshot: DatasetSnapshot,
  groups: Iterable<Group>,
) => Promise<CollectedPreviews>;

/**
 * Makes what gathers previews for pages: bounded in number per page, in time, and in number under way at once.
 * @param previews Asked for at the first page, since the service may start with it.
 */
export function createPreviewCollector(previews: () => PreviewService): CollectPreviews {
  let underWay = 0;

  async function preview(array: ServedArray, values: Map<string, PreviewValues>): Promise<void> {
    underWay++;
    try {
      const found = await previews().values(array);
      if (found !== undefined) values.set(array.variable.path, found);
    } catch {
      // The service answers undefined for what cannot be decoded; a page never fails for want of a preview.
    } finally {
      underWay--;
    }
  }

  return async (snapshot, groups) => {
    const arrays = previewableArrays(snapshot, groups);
    const admitted = arrays.slice(0, Math.max(0, MAX_UNDER_WAY - underWay));
    if (admitted.length === 0) return { values: new Map(), complete: arrays.length === 0 };
    const arriving = new Map<string, PreviewValues>();
    const all = Promise.all(admitted.map((array) => preview(array, arriving)));
    const inTime = await settlesWithin(all, PREVIEW_TIMEOUT_MS);
    return { values: new Map(arriving), complete: inTime && admitted.length === arrays.length };
  };
}

function previewableArrays(snapshot: DatasetSnapshot, groups: Iterable<Group>): ServedArray[] {
  const arrays: ServedArray[] = [];
  for (const group of groups) {
    for (const variable of coordinatesOf(group)) {
      if (arrays.length === MAX_PREVIEWS) return arrays;
      const array = snapshot.arrays.get(variable.path);
      if (array !== undefined && isSmall(array)) arrays.push(array);
    }
  }
  return arrays;
}

function isSmall({ stored }: ServedArray): boolean {
  // Items of object types have no size: strings, mostly short.
  return elementCount(stored.chunkShape) * (stored.dataType.itemSize || 64) <= MAX_CHUNK_BYTES;
}
