import { categoryColours, colourTable } from "../colour/colour-scales.js";
import { chooseRange } from "../colour/value-range.js";
import { elementCount } from "../model/data-tree.js";
import type { EncodingPlan, PictureStep } from "../zarr/plan/encoding-plan.js";
import { createItemsReader } from "./item-reader.js";
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
  { shape, served: { chunkShape } }: EncodingPlan,
  step: PictureStep,
  chunkCoords: readonly number[],
): Uint8Array {
  const axisOf = (axis: number, pixels: number, isFlipped: boolean): SampledAxis => {
    const boxLength = chunkShape[axis] as number;
    const length = Math.min(boxLength, (shape[axis] as number) - (chunkCoords[axis] as number) * boxLength);
    return { length, stride: elementCount(chunkShape.slice(axis + 1)), pixels, isFlipped };
  };
  const { width, height } = step;
  const values = samplePlane(
    createItemsReader(items, step.from, step.packing),
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
  const sample = finiteValues(values, every) ?? finiteValues(values, 1);
  // Only missing and infinite values: any range will do.
  return sample === undefined ? { low: 0, high: 1, isDiverging: false } : chooseRange(sample);
}

/** Returns the finite ones of every n-th value; undefined if there are none. */
function finiteValues(values: Float64Array, every: number): Float64Array | undefined {
  const finite = new Float64Array(Math.ceil(values.length / every));
  let count = 0;
  for (let index = 0; index < values.length; index += every) {
    const value = values[index] as number;
    if (Number.isFinite(value)) finite[count++] = value;
  }
  return count === 0 ? undefined : finite.subarray(0, count);
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
