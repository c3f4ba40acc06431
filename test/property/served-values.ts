import type { ServedArray } from "../../src/dataset/dataset.js";
import { type ArraySpec, count, fillOf, forEachItem, gridOf } from "./random-store.js";
import { decodeAs } from "./reference-codecs.js";

/** What a client has after reading a whole array. */
export interface ReadArray {
  /** Items in C order. */
  readonly values: Uint8Array;
  /** Keys of chunks whose padding beyond the array's end is not the fill value. */
  readonly badPadding: readonly string[];
  /** Keys of chunks of another length than the document says. */
  readonly badLength: readonly string[];
}

/**
 * Reads an array chunk by chunk as a client does, knowing only the served document.
 * @param fetchChunk Undefined: 404.
 */
export async function readServed(
  { document }: ServedArray,
  spec: ArraySpec,
  fetchChunk: (coords: readonly number[]) => Promise<Uint8Array | undefined>,
): Promise<ReadArray> {
  const { itemSize } = spec.type;
  const fill = fillOf(spec);
  const layout = { shape: document.shape, chunkShape: document.chunks, order: document.order };
  const values = new Uint8Array(count(document.shape) * itemSize);
  const badPadding: string[] = [];
  const badLength: string[] = [];
  for (const coords of gridOf(document.shape, document.chunks)) {
    const bytes = await fetchChunk(coords);
    const chunk = bytes && (await decodeAs(bytes, document, itemSize));
    if (chunk !== undefined && chunk.length !== count(document.chunks) * itemSize)
      badLength.push(coords.join("."));
    const inside = new Set<number>();
    forEachItem(layout, coords, (inArray, inChunk) => {
      inside.add(inChunk);
      const item = chunk?.subarray(inChunk * itemSize, (inChunk + 1) * itemSize) ?? fill;
      values.set(item, inArray * itemSize);
    });
    if (chunk !== undefined && !isPadded(chunk, inside, fill)) badPadding.push(coords.join("."));
  }
  return { values, badPadding, badLength };
}

function isPadded(chunk: Uint8Array, inside: ReadonlySet<number>, fill: Uint8Array): boolean {
  for (let item = 0; item * fill.length < chunk.length; item++) {
    if (inside.has(item)) continue;
    if (fill.some((byte, index) => chunk[item * fill.length + index] !== byte)) return false;
  }
  return true;
}
