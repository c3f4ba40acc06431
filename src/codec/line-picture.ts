import { roundRange } from "../colour/value-range.js";
import type { EncodingPlan, LineStep } from "../zarr/plan/encoding-plan.js";
import { createItemReader, type ItemReader } from "./item-reader.js";
import { encodePng } from "./png.js";

/** Values that are read for a pixel's width, at most: a line of more looks the same. */
const MAX_VALUES_PER_PIXEL = 512;
/** Grey and blue: the transparent background, and a line that can be seen on white and on black. */
const PALETTE = Uint8Array.of(0xc8, 0xc8, 0xc8, 0x4a, 0x86, 0xc5);
/** Pixels of a line from top to bottom, at least. */
const THICKNESS = 2;

/** Least and greatest value in the width of one pixel; undefined if all are missing. */
type Span = readonly [low: number, high: number] | undefined;

/**
 * Draws the values of a gathered box with one axis as a line on a transparent ground. It is interrupted by missing values.
 * @param chunkCoords Position of the box, which may pass the edge of the array.
 */
export function drawLine(
  items: Uint8Array,
  { shape, served, itemSize }: EncodingPlan,
  step: LineStep,
  chunkCoords: readonly number[],
): Uint8Array {
  const { width, height } = step;
  const boxLength = served.chunkShape[0] as number;
  const length = Math.min(boxLength, (shape[0] as number) - (chunkCoords[0] as number) * boxLength);
  const read = createItemReader(items, step.from, step.packing);
  const spans = spansOf((index) => read(index * itemSize), length, width);
  const [low, high] = step.range ?? rangeOf(spans);
  const rowOf = (value: number) => {
    const position = (value - low) / (high - low);
    const row = Math.round((1 - (Number.isNaN(position) ? 0.5 : position)) * (height - 1));
    return Math.min(Math.max(row, 0), height - 1);
  };
  const pixels = new Uint8Array(width * height);
  spans.forEach((span, column) => {
    if (span === undefined) return;
    const bottom = Math.max(rowOf(span[0]), THICKNESS - 1);
    const top = Math.min(rowOf(span[1]), bottom - THICKNESS + 1);
    for (let row = top; row <= bottom; row++) pixels[row * width + column] = 1;
  });
  return encodePng({ width, height, pixels, palette: PALETTE });
}

/** Returns the values that a line passes in each pixel's width: between neighbours it is straight. */
function spansOf(read: ItemReader, length: number, width: number): Span[] {
  return Array.from({ length: width }, (_, column) => {
    const [left, right] = [(column * length) / width - 0.5, ((column + 1) * length) / width - 0.5];
    const values = [valueAt(read, left, length), valueAt(read, right, length)];
    const first = Math.max(0, Math.ceil(left));
    const last = Math.min(length - 1, Math.floor(right));
    const step = Math.max(1, (last - first) / MAX_VALUES_PER_PIXEL);
    for (let index = first; index <= last; index += step) values.push(read(Math.floor(index)));
    const present = values.filter((value) => !Number.isNaN(value));
    return present.length === 0 ? undefined : [Math.min(...present), Math.max(...present)];
  });
}

/** Returns the value of the line between two neighbours, NaN if one of them is missing. */
function valueAt(read: ItemReader, position: number, length: number): number {
  const within = Math.min(Math.max(position, 0), length - 1);
  const index = Math.floor(within);
  const below = read(index);
  const share = within - index;
  return share === 0 ? below : below + (read(index + 1) - below) * share;
}

/** Returns the range of all finite values, a little wider than they are. */
function rangeOf(spans: readonly Span[]): readonly [number, number] {
  const ends = spans.flatMap((span) => span ?? []).filter(Number.isFinite);
  if (ends.length === 0) return [0, 1];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low === high ? [low - 1, high + 1] : roundRange(low, high);
}
