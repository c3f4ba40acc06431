import { hash } from "node:crypto";
import { combinations } from "../collections/combinations.js";
import type { JsonObject } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import type { PartChunkReader, PieceLayout } from "../zarr/chunk-reader.js";
import {
  type ClosedPiece,
  createPartChunkReader,
  type FindPieces,
  type PassedPiece,
} from "../zarr/part-reader.js";
import { type StoredLayout, storedLayoutOf } from "../zarr/plan/stored-layout.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { KnownPart } from "./describe-part.js";
import type { PartStored } from "./item-forms.js";
import type { PartSpan } from "./join-arrays.js";
import type { OpenParts } from "./open-parts.js";

/** Creates the reader of a joined array's chunks. Parts are opened when one of their chunks is first asked for. */
export function createJoinedReader(array: PartedArray, open: OpenParts): PartChunkReader {
  return createPartChunkReader(createFindPieces(array), ({ owner, path }) => open.reader(owner, path));
}

/** A joined array, and the parts that it is made of. */
interface PartedArray {
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

/** An array of a part, which need not be open. */
interface PartArrayPlace {
  readonly owner: KnownPart;
  /** Path of the array in the part. */
  readonly path: string;
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
export function createFindPieces({
  store,
  stored,
  axis,
  spans,
  parts,
}: PartedArray): FindPieces<PartArrayPlace> {
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
      if (starts[middle]! <= step) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  function detailOf(number: number): Detail {
    const known = details[number];
    if (known !== undefined) return known;
    const span = spans[number]!;
    const owner = parts[span.part]!;
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

  function passed(coords: readonly number[]): PassedPiece<PartArrayPlace> | undefined {
    const begin = (coords[axis] ?? 0) * chunkLength;
    const number = spanAt(begin);
    const { start, length, path } = spans[number]!;
    // In the last chunk, items after the end of the array belong to no part.
    const end = Math.min(begin + chunkLength, extent);
    const place = begin - start;
    if (end > start + length || place % chunkLength !== 0) return undefined;
    const detail = detailOf(number);
    if (!detail.isPassed) return undefined;
    const own = axis < 0 ? coords : ownCoords(detail, coords.with(axis, place / chunkLength));
    return { array: { owner: detail.owner, path }, part: detail.id, coords: own };
  }

  function piecesOfSpan(number: number, coords: readonly number[]): ClosedPiece<PartArrayPlace>[] {
    const { start, length, path } = spans[number]!;
    const detail = detailOf(number);
    const { layout, id, owner } = detail;
    const placesOf = (stop: number, at: number) => {
      const own = layout.chunkShape[at]!;
      const begin = coords[at]! * chunkShape[at]!;
      const end = begin + chunkShape[at]!;
      const run = at === axis ? { start, stop: start + length } : { start: 0, stop };
      return placesAlong(own, begin, end, run);
    };
    return Array.from(combinations(shape.map(placesOf)), (places) => ({
      ...{ array: { owner, path }, layout, part: id },
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
      const found: ClosedPiece<PartArrayPlace>[] = [];
      for (let number = spanAt(begin); number < spans.length && starts[number]! < end; number++)
        found.push(...piecesOfSpan(number, coords));
      return found;
    },
  };
}

/** Steps of the joined array that a part has along an axis. */
interface Run {
  readonly start: number;
  readonly stop: number;
}

/** Lists the chunks of a part along an axis that have items between two places of the joined array. */
function placesAlong(length: number, begin: number, end: number, { start, stop }: Run): AxisPlace[] {
  const places: AxisPlace[] = [];
  const first = Math.max(begin, start) - start;
  const last = Math.min(end, stop) - start;
  for (let index = Math.floor(first / length); index * length < last; index++) {
    const origin = start + index * length;
    places.push({ index, origin, begin: Math.max(start, origin), end: Math.min(stop, origin + length) });
  }
  return places;
}

/** A part's array as pieces of a joined one need it. */
interface PartLayout {
  readonly layout: PieceLayout;
  /** As `ChunkPiece.part`. */
  readonly id: string;
}

/**
 * Creates the layout of a part's array in terms of the joined array.
 * @param store Name of the joined dataset, as in `PartChunks`.
 * @param part Name of the part.
 * @param own The part's array. If it has no joined axis, its chunks have length 1 along that.
 * @param joined The joined array, whose absent chunks may mean something else.
 */
function createPartLayout(
  store: string,
  part: string,
  own: PartStored,
  { path, conversion }: Pick<PartSpan, "path" | "conversion">,
  joined: Pick<StoredArray, "fill" | "shape">,
  axis: number,
): PartLayout {
  const stored = storedLayoutOf(own);
  const newAxis = own.shape.length < joined.shape.length ? axis : null;
  const form = newAxis === null ? stored : withAxis(stored, newAxis);
  const change = conversion === undefined ? null : JSON.stringify(conversion);
  const id = hash("sha256", JSON.stringify([part, path, newAxis, change, textOf(stored)])).slice(0, 16);
  const title = `part '${part}', array '${path}'`;
  const hasOwnFill = conversion !== undefined || !isSameItem(form.fillItem, joined.fill.item);
  return { layout: Object.freeze({ ...form, name: `${store}\n${id}`, title, conversion, hasOwnFill }), id };
}

/** By the layout, which arrays of the same structure share. */
const texts = new WeakMap<StoredLayout, string>();

/** Returns a text that is equal for layouts that decode alike. */
function textOf(layout: StoredLayout): string {
  const known = texts.get(layout);
  if (known !== undefined) return known;
  const { fillItem, maxStoredByteLength: _bound, ...rest } = layout;
  const fill = fillItem && Buffer.from(fillItem).toString("hex");
  const text = stringifyJson({ ...rest, fill } as unknown as JsonObject);
  texts.set(layout, text);
  return text;
}

/** Returns a layout with another axis, along which chunks have length 1. */
function withAxis(layout: StoredLayout, axis: number): StoredLayout {
  const axisOrder = layout.axisOrder.map((each) => (each < axis ? each : each + 1));
  return { ...layout, chunkShape: layout.chunkShape.toSpliced(axis, 0, 1), axisOrder: [axis, ...axisOrder] };
}

function isSameItem(one: Uint8Array | null, other: Uint8Array | null): boolean {
  const longer = one ?? other ?? [];
  return longer.every((_, index) => (one?.[index] ?? 0) === (other?.[index] ?? 0));
}
