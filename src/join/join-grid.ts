import { stringifyJson } from "../json/stringify-json.js";
import type { CodecSpec } from "../zarr/codec-step.js";
import type { PartArrays } from "./part-forms.js";
import { isSameJson, type PartStored } from "./stored-form.js";

/** Grid and codecs of a joined array. */
export interface JoinedGrid {
  /** The array whose codecs the joined one has; undefined if items of all are converted, so that no chunk is passed through. */
  readonly model: PartStored | undefined;
  readonly chunkShape: readonly number[];
  readonly axisOrder: readonly number[];
  /** Whether chunks of an array may be those of the joined one as they are: one per array. */
  readonly isPassed: readonly boolean[];
}

/**
 * Chooses the grid of a joined array.
 *
 * Chunk shape along the other axes, axis order and codecs are those that most steps have, among the arrays whose items are not converted.
 * The chunk length along the joined axis is the one that most steps of these have. For an array that is shorter than its only chunk, it
 * is the length of the array: that chunk decodes to more than the array has, and cannot be passed through.
 * @param isPlain Tells whether items of an array stay as they are.
 */
export function joinGrid(
  { stored, weights }: PartArrays,
  axis: number,
  isPlain: (index: number) => boolean,
): JoinedGrid {
  const { layouts, layoutOf } = groupLayouts(stored, axis);
  const hasPlain = stored.some((_, index) => isPlain(index));
  const isCandidate = (index: number) => !hasPlain || isPlain(index);
  const layout = heaviest(weights, (index) => (isCandidate(index) ? layoutOf[index] : undefined));
  const model = layouts[layout] as PartStored;
  const length = heaviest(weights, (index) =>
    isCandidate(index) && layoutOf[index] === layout
      ? effectiveLength(stored[index] as PartStored, axis)
      : undefined,
  );
  return {
    model: hasPlain ? model : undefined,
    chunkShape: model.chunkShape.map((each, index) => (index === axis ? length : each)),
    axisOrder: model.axisOrder,
    isPassed: stored.map(
      ({ chunkShape }, index) =>
        chunkShape[axis] === length && layoutOf[index] === layout && hasPlain && isPlain(index),
    ),
  };
}

function effectiveLength({ shape, chunkShape }: PartStored, axis: number): number {
  return Math.max(1, Math.min(shape[axis] as number, chunkShape[axis] as number));
}

/** Returns the value of the greatest weight; the first of several. Values that are undefined do not count. */
function heaviest(weights: readonly number[], readValue: (index: number) => number | undefined): number {
  const sums = new Map<number, number>();
  weights.forEach((weight, index) => {
    const value = readValue(index);
    if (value !== undefined) sums.set(value, (sums.get(value) ?? 0) + weight);
  });
  let best = 0;
  let most = -1;
  for (const [value, sum] of sums) if (sum > most) [best, most] = [value, sum];
  return best;
}

/** Groups arrays whose chunks are alike, but for their length along an axis. */
function groupLayouts(stored: readonly PartStored[], axis: number) {
  const layouts: PartStored[] = [];
  const byText = new Map<string, number>();
  let last = -1;
  const layoutOf = stored.map((array) => {
    // Most parts are as the one before, which is quicker to tell than to make a text.
    if (last >= 0 && isAlike(layouts[last] as PartStored, array, axis)) return last;
    const text = textOf(array, axis);
    const layout = byText.get(text) ?? layouts.push(array) - 1;
    byText.set(text, layout);
    last = layout;
    return layout;
  });
  return { layouts, layoutOf };
}

function isAlike(a: PartStored, b: PartStored, axis: number): boolean {
  if (a === b) return true;
  return (
    (a.dataType === b.dataType || isSameJson(a.dataType.zarr, b.dataType.zarr)) &&
    a.compressorCount === b.compressorCount &&
    a.chunkShape.length === b.chunkShape.length &&
    a.chunkShape.every((length, index) => index === axis || length === b.chunkShape[index]) &&
    a.axisOrder.every((each, index) => each === b.axisOrder[index]) &&
    isSameFill(a.fill, b.fill) &&
    isSameCodecs(a.codecs, b.codecs)
  );
}

function isSameFill(a: PartStored["fill"], b: PartStored["fill"]): boolean {
  if (a === b) return true;
  if (!isSameJson(a.served, b.served)) return false;
  return a.item !== null && b.item !== null && Buffer.compare(a.item, b.item) === 0;
}

function isSameCodecs(a: readonly CodecSpec[], b: readonly CodecSpec[]): boolean {
  if (a === b) return true;
  return a.length === b.length && a.every((codec, index) => isSameJson(codec, b[index]));
}

function textOf(stored: PartStored, axis: number): string {
  const { chunkShape, axisOrder, codecs, compressorCount, fill, dataType } = stored;
  const others = chunkShape.filter((_, index) => index !== axis);
  // An item of zero bytes is the same as none.
  const item = fill.item?.some((byte) => byte !== 0) ? Buffer.from(fill.item).toString("base64") : null;
  return stringifyJson([others, axisOrder, codecs, dataType.zarr, fill.served, item, compressorCount]);
}
