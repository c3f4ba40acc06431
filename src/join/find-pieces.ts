import type { ChunkPiece } from "../zarr/chunk-reader.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { KnownPart } from "./description-records.js";
import type { PartSpan } from "./joined-tree.js";
import { createPartLayout, type PartLayout } from "./piece-layout.js";

/** A joined array, and the parts that it is made of. */
export interface PartedArray {
  /** As in `PartChunks`. */
  readonly store: string;
  readonly stored: Pick<StoredArray, "shape" | "chunkShape" | "fill">;
  /** The joined axis; -1 for the array of one part. */
  readonly axis: number;
  /** As in `JoinedArray`; of an array of one part, one that has all. */
  readonly spans: readonly PartSpan[];
  /** Parts by the index that spans have. */
  readonly parts: readonly KnownPart[];
}

/** A chunk of a part that is passed through. */
export interface PassedChunk extends Pick<ChunkPiece, "part" | "coords"> {
  readonly owner: KnownPart;
  /** Path of the array in the part. */
  readonly path: string;
}

/** A piece whose part need not be open. */
export type ClosedPiece = PassedChunk & Omit<ChunkPiece, "reader">;

/** Finds the chunks of parts behind chunks of a joined array. */
export interface FindPieces {
  /** Returns the chunk of a part that a chunk of the joined array is, with all its bytes; undefined if it is made of pieces. */
  passed(chunkCoords: readonly number[]): PassedChunk | undefined;
  /** Returns the pieces of a chunk, those of one part together, parts in order. */
  pieces(chunkCoords: readonly number[]): ClosedPiece[];
}

/** Properties that all chunks of a run of steps have in common. */
interface Detail extends PartLayout {
  readonly owner: KnownPart;
  readonly isStacked: boolean;
  readonly isPassed: boolean;
}

/** Places of the chunks of a part along one axis. */
interface AxisPlace {
  readonly index: number;
  readonly origin: number;
  readonly begin: number;
  readonly end: number;
}

/** Creates what finds the chunks of an array's parts. */
export function createFindPieces({ store, stored, axis, spans, parts }: PartedArray): FindPieces {
  const { shape, chunkShape } = stored;
  // An array of one part is one step.
  const chunkLength = chunkShape[axis] ?? 1;
  const extent = shape[axis] ?? 1;
  const starts = Float64Array.from(spans, ({ start }) => start);
  const details: Detail[] = [];

  /** Returns the number of the run of steps that has a step. */
  function spanAt(step: number): number {
    let low = 0;
    let high = starts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((starts[middle] as number) <= step) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  function detailOf(number: number): Detail {
    const known = details[number];
    if (known !== undefined) return known;
    const span = spans[number] as PartSpan;
    const owner = parts[span.part] as KnownPart;
    const own = owner.description.arrays.find((array) => array.stored.path === span.path)?.stored;
    if (own === undefined) throw new Error(`expected '${span.path}' in ${owner.name}`);
    const detail = {
      ...createPartLayout(store, owner.name, own, span, stored, axis),
      owner,
      isStacked: own.shape.length < shape.length,
      // Which chunks have other codecs is only known once the part is open.
      isPassed: span.isPassed && (own.variants ?? []).length === 0,
    };
    details[number] = detail;
    return detail;
  }

  function ownCoords({ isStacked }: Detail, coords: readonly number[]): readonly number[] {
    return isStacked ? coords.toSpliced(axis, 1) : coords;
  }

  function passed(coords: readonly number[]): PassedChunk | undefined {
    const begin = (coords[axis] ?? 0) * chunkLength;
    const number = spanAt(begin);
    const { start, length, from, path } = spans[number] as PartSpan;
    // At the end of the array, what lies behind it in the chunk belongs to no part.
    const end = Math.min(begin + chunkLength, extent);
    const place = begin - start + from;
    if (end > start + length || place % chunkLength !== 0) return undefined;
    const detail = detailOf(number);
    if (!detail.isPassed) return undefined;
    const own = axis < 0 ? coords : ownCoords(detail, coords.with(axis, place / chunkLength));
    return { owner: detail.owner, path, part: detail.id, coords: own };
  }

  /** Lists the chunks of a part along an axis that have items between two places of the joined array. */
  function placesAlong(length: number, begin: number, end: number, { start, stop, from }: Run): AxisPlace[] {
    const places: AxisPlace[] = [];
    const first = Math.max(begin, start) - start + from;
    const last = Math.min(end, stop) - start + from;
    for (let index = Math.floor(first / length); index * length < last; index++) {
      const origin = start - from + index * length;
      places.push({ index, origin, begin: Math.max(start, origin), end: Math.min(stop, origin + length) });
    }
    return places;
  }

  function piecesOfSpan(number: number, coords: readonly number[]): ClosedPiece[] {
    const { start, length, from, path } = spans[number] as PartSpan;
    const detail = detailOf(number);
    const { layout, id, owner } = detail;
    let found: AxisPlace[][] = [[]];
    for (const [at, stop] of shape.entries()) {
      const own = layout.chunkShape[at] as number;
      const begin = (coords[at] as number) * (chunkShape[at] as number);
      const end = begin + (chunkShape[at] as number);
      const run = at === axis ? { start, stop: start + length, from } : { start: 0, stop, from: 0 };
      const places = placesAlong(own, begin, end, run);
      found = found.flatMap((before) => places.map((place) => [...before, place]));
    }
    return found.map((places) => ({
      ...{ owner, path, layout, part: id },
      coords: ownCoords(
        detail,
        places.map(({ index }) => index),
      ),
      origin: places.map(({ origin }) => origin),
      begin: places.map(({ begin }) => begin),
      end: places.map(({ end }) => end),
    }));
  }

  return {
    passed,
    pieces(coords) {
      const begin = (coords[axis] ?? 0) * chunkLength;
      const end = Math.min(begin + chunkLength, extent);
      const found: ClosedPiece[] = [];
      for (let number = spanAt(begin); number < spans.length && (starts[number] as number) < end; number++)
        found.push(...piecesOfSpan(number, coords));
      return found;
    },
  };
}

/** Steps of the joined array that a part has along an axis, and the first of its own. */
interface Run {
  readonly start: number;
  readonly stop: number;
  readonly from: number;
}
