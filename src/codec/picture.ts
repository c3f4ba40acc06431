import { categoryColours, colourTable } from "../colour/colour-scales.js";
import { chooseRange } from "../colour/value-range.js";
import type { PictureStep } from "../zarr/plan/compute-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import { createItemReader } from "./item-reader.js";
import { encodePng } from "./png.js";
import { type SampledAxis, samplePlane } from "./sample-plane.js";

/** Values from which a range is chosen, at most: more take longer to sort, and change it hardly. */
const MAX_RANGE_VALUES = 10_000;
/** Index of missing values in the palette; colours follow it. */
const MISSING = 0;
/** Colours of a palette besides that of missing values. */
const MAX_COLOURS = 255;
/** Grey, for programs that ignore transparency. */
const MISSING_COLOUR = [0xc8, 0xc8, 0xc8];

/** Pixels as indices, and the colours from index 1: three bytes each. */
interface Colouring {
  readonly pixels: Uint8Array;
  readonly colours: Uint8Array;
}

/**
 * Draws the plane of a gathered box as a PNG, in which missing values are transparent.
 * @param items The whole box in C order.
 * @param chunkCoords Position of the box, which may pass the edge of the array.
 */
export function drawPicture(
  items: Uint8Array,
  { shape, served: { chunkShape }, itemSize }: EncodingPlan,
  step: PictureStep,
  chunkCoords: readonly number[],
): Uint8Array {
  const axisOf = (axis: number, pixels: number, isFlipped: boolean): SampledAxis => {
    const boxLength = chunkShape[axis] as number;
    const length = Math.min(boxLength, (shape[axis] as number) - (chunkCoords[axis] as number) * boxLength);
    const itemStride = chunkShape.slice(axis + 1).reduce((product, each) => product * each, 1);
    return { length, byteStride: itemStride * itemSize, pixels, isFlipped };
  };
  const { width, height } = step;
  const values = samplePlane(
    createItemReader(items, step.from, step.packing),
    axisOf(step.y, height, step.isFlippedY),
    axisOf(step.x, width, step.isFlippedX),
    step.categories !== undefined,
  );
  const { pixels, colours } =
    step.categories === undefined ? colourNumbers(values, step) : colourCategories(values, step.categories);
  return encodePng({ width, height, pixels, palette: Uint8Array.of(...MISSING_COLOUR, ...colours) });
}

function colourNumbers(values: Float64Array, step: PictureStep): Colouring {
  const { low, high, isDiverging } = rangeOf(values, step);
  const scale = step.scale ?? (isDiverging ? "rdbu" : "viridis");
  // Of the table's 256 colours the lowest gives way to missing values.
  const colours = colourTable(scale, step.isReversed).subarray(3);
  const pixels = new Uint8Array(values.length);
  for (let index = 0; index < values.length; index++) {
    const value = values[index] as number;
    if (Number.isNaN(value)) continue;
    const position = (value - low) / (high - low);
    // A range that doubles cannot express has no positions. Its values are not missing all the same.
    const colour = Math.floor((Number.isNaN(position) ? 0.5 : position) * MAX_COLOURS);
    pixels[index] = 1 + Math.min(Math.max(colour, 0), MAX_COLOURS - 1);
  }
  return { pixels, colours };
}

function rangeOf(values: Float64Array, { range, from }: PictureStep) {
  if (range !== undefined) return { low: range[0], high: range[1], isDiverging: range[0] === -range[1] };
  // Of booleans, one colour must not mean true in one picture and false in the next.
  if (from.kind === "b") return { low: 0, high: 1, isDiverging: false };
  const every = Math.ceil(values.length / MAX_RANGE_VALUES);
  let sample = values.filter((value, index) => index % every === 0 && Number.isFinite(value));
  if (sample.length === 0) sample = values.filter(Number.isFinite);
  // Only missing and infinite values: any range will do.
  return sample.length === 0 ? { low: 0, high: 1, isDiverging: false } : chooseRange(sample);
}

function colourCategories(values: Float64Array, listed: readonly number[]): Colouring {
  const found = new Set(values);
  for (const each of [Number.NaN, ...listed]) found.delete(each);
  const order = [...listed, ...[...found].sort((a, b) => a - b)];
  const count = Math.min(order.length, MAX_COLOURS);
  const indices = new Map(order.map((value, index) => [value, 1 + Math.min(index, count - 1)]));
  const pixels = Uint8Array.from(values, (value) => indices.get(value) ?? MISSING);
  return { pixels, colours: categoryColours(count) };
}
