import { stringifyJson } from "../../json/stringify-json.js";
import type { ItemConversion } from "../../zarr/item-conversion.js";
import type { PartStored } from "./stored-form.js";

/** An array of one part, and how much of the joined array it is. */
export interface GridMember {
  readonly stored: PartStored;
  /** Steps that the joined array has of it. */
  readonly weight: number;
  /** How its items become those of the joined array; undefined if they are the same. */
  readonly conversion: ItemConversion | undefined;
}

/** Grid and codecs of a joined array. */
export interface JoinedGrid {
  /** The member whose codecs and axis order the array has; undefined if items of all are converted, so that none is passed through. */
  readonly model: PartStored | undefined;
  readonly chunkShape: readonly number[];
  readonly axisOrder: readonly number[];
  /** Tells whether a chunk of a member may be one of the joined array as it is. */
  isPassed(member: GridMember): boolean;
}

/**
 * Chooses the grid of a joined array.
 *
 * Chunk shape along the other axes, axis order and codecs are those that most steps have, among the parts whose items are not converted.
 * The chunk length along the joined axis is the one that most steps of these parts have. For a part that is shorter than its only
 * chunk, it is the length of the part: that chunk decodes to more than the part has, and cannot be passed through.
 */
export function joinGrid(members: readonly GridMember[], axis: number): JoinedGrid {
  const plain = members.filter(({ conversion }) => conversion === undefined);
  const candidates = plain.length > 0 ? plain : members;
  const keyOf = createKeys(axis);
  const layout = heaviest(candidates, ({ stored }) => keyOf(stored));
  const alike = candidates.filter(({ stored }) => keyOf(stored) === layout);
  const length = heaviest(alike, ({ stored }) => effectiveLength(stored, axis));
  const { stored: model } = alike[0] as GridMember;
  return {
    model: plain.length > 0 ? model : undefined,
    chunkShape: model.chunkShape.map((each, index) => (index === axis ? length : each)),
    axisOrder: model.axisOrder,
    isPassed: ({ stored, conversion }) =>
      conversion === undefined &&
      plain.length > 0 &&
      stored.chunkShape[axis] === length &&
      keyOf(stored) === layout,
  };
}

function effectiveLength({ shape, chunkShape }: PartStored, axis: number): number {
  return Math.max(1, Math.min(shape[axis] as number, chunkShape[axis] as number));
}

/** Returns the value that members of the greatest weight have; the first of several. */
function heaviest<T>(members: readonly GridMember[], readValue: (member: GridMember) => T): T {
  const weights = new Map<T, number>();
  for (const member of members) {
    const value = readValue(member);
    weights.set(value, (weights.get(value) ?? 0) + member.weight);
  }
  let best: [T, number] | undefined;
  for (const entry of weights) if (best === undefined || entry[1] > best[1]) best = entry;
  return (best as [T, number])[0];
}

/**
 * Creates a function that returns a text which is equal for arrays whose chunks are alike, but for their length along an axis. Parts
 * often share their objects, so the text of the last one is kept.
 */
function createKeys(axis: number): (stored: PartStored) => string {
  const keys = new WeakMap<object, string>();
  let last: PartStored | undefined;
  let lastKey = "";
  return (stored) => {
    if (stored === last) return lastKey;
    let key = keys.get(stored);
    if (key === undefined) {
      key = last !== undefined && isAlike(stored, last, axis) ? lastKey : textOf(stored, axis);
      keys.set(stored, key);
    }
    last = stored;
    lastKey = key;
    return key;
  };
}

/** Tells quickly that chunks are alike; false if that takes a closer look. */
function isAlike(a: PartStored, b: PartStored, axis: number): boolean {
  return (
    a.dataType === b.dataType &&
    a.codecs === b.codecs &&
    a.fill === b.fill &&
    a.variants === b.variants &&
    a.compressorCount === b.compressorCount &&
    a.chunkShape.every((length, index) => index === axis || length === b.chunkShape[index]) &&
    a.axisOrder.every((each, index) => each === b.axisOrder[index])
  );
}

function textOf(stored: PartStored, axis: number): string {
  const { chunkShape, axisOrder, codecs, compressorCount, fill, dataType, variants } = stored;
  const others = chunkShape.filter((_, index) => index !== axis);
  // Bytes of zeros are the same as none.
  const item = fill.item?.some((byte) => byte !== 0) ? Buffer.from(fill.item).toString("base64") : null;
  const kind = [dataType.zarr, fill.served, item, compressorCount];
  return stringifyJson([others, axisOrder, codecs, ...kind, variants ?? []]);
}
