import { crc32 } from "node:zlib";
import { type Packing, roundedPacking, unpacked } from "../../cf/packing.js";
import { categoryColours, colourTable } from "../../colour/colour-scales.js";
import { chooseRange, roundRange } from "../../colour/value-range.js";
import { ZpublishError } from "../../errors.js";
import { elementCount } from "../../model/data-tree.js";
import type { DataType } from "../../model/data-type.js";
import { readLongDouble } from "../../model/fill-value.js";
import type { ComputeStep, EncodingPlan, LineStep, PictureStep } from "../../zarr/plan/encoding-plan.js";
import { deflate } from "../deflate.js";
import { isNumeric, signedType } from "../item-rows.js";
import { itemValues, type NumericArray } from "../items/item-values.js";
import type { KernelMemory } from "../kernel/kernel-memory.js";
import { coarsen } from "./coarsen.js";

/** Level of zlib: higher ones take twice as long for pictures that are hardly smaller. Part of the id of plans for pictures. */
export const PNG_ZLIB_LEVEL = 3;

const SIGNATURE = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
/** Colour types of pixels: indices of a palette; red, green, blue, opacity (PNG specification, third edition, table 8). */
const INDEXED_COLOUR = 3;
const TRUE_COLOUR = 6;

/** A picture to encode. */
interface PixelPicture {
  readonly width: number;
  readonly height: number;
  /** One index per pixel, row by row from the top; without a palette four bytes: red, green, blue, opacity. */
  readonly pixels: Uint8Array;
  /** Three bytes per colour, red first. */
  readonly palette?: Uint8Array;
  /** Whether the first colour of the palette is opaque, too. Default: it is transparent. */
  readonly isOpaque?: boolean;
}

/** Encodes a picture as a PNG of 8-bit indices, or of colours. */
export function encodePng({ width, height, pixels, palette, isOpaque }: PixelPicture): Uint8Array {
  const header = new Uint8Array(13);
  const view = new DataView(header.buffer);
  view.setUint32(0, width);
  view.setUint32(4, height);
  header.set([8, palette === undefined ? TRUE_COLOUR : INDEXED_COLOUR, 0, 0, 0], 8);
  const lines = scanlines(pixels, palette === undefined ? 4 * width : width, height);
  return Buffer.concat([
    SIGNATURE,
    chunkOf("IHDR", header),
    // Colours without an entry are opaque.
    ...(palette === undefined ? [] : [chunkOf("PLTE", palette)]),
    ...(palette === undefined || isOpaque ? [] : [chunkOf("tRNS", Uint8Array.of(0))]),
    chunkOf("IDAT", deflate("zlib", lines, PNG_ZLIB_LEVEL)),
    chunkOf("IEND", new Uint8Array(0)),
  ]);
}

/** Puts the filter type 0, none, before each row: indices have no order that a filter could use. */
function scanlines(pixels: Uint8Array, width: number, height: number): Uint8Array {
  const lines = new Uint8Array((width + 1) * height);
  for (let row = 0; row < height; row++)
    lines.set(pixels.subarray(row * width, (row + 1) * width), row * (width + 1) + 1);
  return lines;
}

/** Returns a chunk: length, type, data, and the CRC-32 of type and data. */
function chunkOf(type: string, data: Uint8Array): Uint8Array {
  const chunk = new Uint8Array(12 + data.length);
  const view = new DataView(chunk.buffer);
  view.setUint32(0, data.length);
  for (let index = 0; index < 4; index++) chunk[4 + index] = type.charCodeAt(index);
  chunk.set(data, 8);
  view.setUint32(8 + data.length, crc32(chunk.subarray(4, 8 + data.length)));
  return chunk;
}

/** Reads the items at `begin + places[i]` as values: unpacked, NaN if they are missing. */
type ItemsReader = (begin: number, places: Uint32Array, values: Float64Array) => void;

/**
 * Creates a reader of numbers. 64-bit integers become the nearest doubles.
 * @param bytes Items in any alignment.
 * @throws ZpublishError `codec-failed` if items are no numbers and no booleans.
 */
export function createItemsReader(bytes: Uint8Array, dataType: DataType, packing: Packing): ItemsReader {
  const type = signedType(dataType, packing);
  const own = roundedPacking(packing, type);
  const itemAt = itemReader(bytes, type);
  return (begin, places, values) => {
    for (let i = 0; i < values.length; i++) values[i] = unpacked(itemAt(begin + places[i]!), own);
  };
}

function itemReader(bytes: Uint8Array, type: DataType): (index: number) => number {
  const isLittle = type.byteOrder !== ">";
  if (type.kind === "f" && type.itemSize === 16)
    return (index) => readLongDouble(bytes.subarray(16 * index, 16 * (index + 1)), isLittle);
  if (!isNumeric(type))
    throw new ZpublishError("codec-failed", `expected numbers, received ${type.numpyName}`);
  const items = itemValues(bytes, type) as NumericArray;
  return type.kind === "b" ? (index) => (items[index] === 0 ? 0 : 1) : (index) => Number(items[index]);
}

/** Positions per axis that a pixel takes values from, at most: nine values are close to a mean of all, and soon read. */
const MAX_POSITIONS = 3;

/** One axis of a plane as it is drawn. */
interface SampledAxis {
  /** Cells of the plane. */
  readonly length: number;
  /** Items between neighbouring cells. */
  readonly stride: number;
  readonly pixels: number;
  /** Whether the first pixel shows the last cell. */
  readonly isFlipped: boolean;
}

/**
 * Samples a plane to pixels. A pixel that covers several cells gets the mean of at most 3 × 3 of them, missing ones left out.
 * @param isNearest Whether a pixel gets the value of one cell, in its middle, as categories do.
 * @returns Values row by row, NaN for missing ones.
 */
function samplePlane(read: ItemsReader, y: SampledAxis, x: SampledAxis, isNearest: boolean): Float64Array {
  const rows = cellsOf(y, isNearest);
  const columns = cellsOf(x, isNearest);
  const values = new Float64Array(y.pixels * x.pixels);
  const counts = new Uint8Array(x.pixels);
  const cells = new Float64Array(columns.places.length);
  for (let pixelRow = 0; pixelRow < y.pixels; pixelRow++) {
    const sums = values.subarray(pixelRow * x.pixels, (pixelRow + 1) * x.pixels);
    counts.fill(0);
    for (let row = rows.begins[pixelRow]!; row < rows.begins[pixelRow + 1]!; row++) {
      read(rows.places[row]!, columns.places, cells);
      addRow(cells, columns.begins, sums, counts);
    }
    for (let pixel = 0; pixel < sums.length; pixel++) sums[pixel]! /= counts[pixel]!;
  }
  return values;
}

/** The cells that the pixels of an axis take values from. */
interface SampledCells {
  /** Places of the cells in items, pixel by pixel. */
  readonly places: Uint32Array;
  /** Index of the first cell of each pixel, and at the end the number of cells. */
  readonly begins: Uint32Array;
}

/** Adds the cells of a row to the sums of its pixels. */
function addRow(cells: Float64Array, begins: Uint32Array, sums: Float64Array, counts: Uint8Array): void {
  for (let pixel = 0; pixel < sums.length; pixel++) {
    const end = begins[pixel + 1]!;
    let sum = sums[pixel]!;
    let count = counts[pixel]!;
    for (let cell = begins[pixel]!; cell < end; cell++) {
      const value = cells[cell]!;
      if (Number.isNaN(value)) continue;
      sum += value;
      count++;
    }
    sums[pixel] = sum;
    counts[pixel] = count;
  }
}

/** Returns the cells of each pixel: the same ones in whatever order they are stored. */
function cellsOf({ length, stride, pixels, isFlipped }: SampledAxis, isNearest: boolean): SampledCells {
  const places = new Uint32Array(MAX_POSITIONS * pixels);
  const begins = new Uint32Array(pixels + 1);
  const placeOf = (cell: number) => (isFlipped ? length - 1 - cell : cell) * stride;
  let cells = 0;
  for (let pixel = 0; pixel < pixels; pixel++) {
    if (length <= pixels) places[cells++] = placeOf(Math.floor(((pixel + 0.5) * length) / pixels));
    else {
      const begin = Math.floor((pixel * length) / pixels);
      const end = Math.floor(((pixel + 1) * length) / pixels);
      const count = isNearest ? 1 : Math.min(MAX_POSITIONS, end - begin);
      for (let index = 0; index < count; index++)
        places[cells++] = placeOf(begin + Math.floor(((index + 0.5) * (end - begin)) / count));
    }
    begins[pixel + 1] = cells;
  }
  return { places: places.subarray(0, cells), begins };
}

/** Values from which a range is chosen, at most: more take longer to sort, and change it hardly. */
const MAX_RANGE_VALUES = 10_000;
/** Index of missing values in the palette; colours follow it. */
const MISSING = 0;
/** Colours of a palette besides that of missing values. */
const MAX_COLOURS = 255;
/** Grey, for programs that ignore transparency. */
const MISSING_COLOUR = [0xc8, 0xc8, 0xc8];
/** Grey, for values that are none of the categories, where these have colours of their own. */
const OTHER_COLOUR = [0x66, 0x66, 0x66];

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
    const boxLength = chunkShape[axis]!;
    const length = Math.min(boxLength, shape[axis]! - chunkCoords[axis]! * boxLength);
    return { length, stride: elementCount(chunkShape.slice(axis + 1)), pixels, isFlipped };
  };
  const { width, height, categories, bands } = step;
  const read = createItemsReader(items, step.from, step.packing);
  const [y, x] = [axisOf(step.y, height, step.isFlippedY), axisOf(step.x, width, step.isFlippedX)];
  if (bands !== undefined) {
    const stride = elementCount(chunkShape.slice(bands.axis + 1));
    const planes = Array.from({ length: bands.count }, (_, band) =>
      samplePlane((begin, places, cells) => read(begin + band * stride, places, cells), y, x, false),
    );
    return encodePng({ width, height, pixels: composeBands(planes, step) });
  }
  return encodeValues(samplePlane(read, y, x, categories !== undefined), width, height, step);
}

/** How values become colours. */
export interface ValueColours
  extends Pick<PictureStep, "from" | "range" | "scale" | "isReversed" | "categories" | "categoryColours"> {
  /** Colour of missing values: `#rrggbb`. Default: they are transparent. */
  readonly background?: string | undefined;
}

/** Encodes values as a PNG. @param values Row by row from the top; NaN for missing ones. */
export function encodeValues(
  values: Float64Array,
  width: number,
  height: number,
  colours: ValueColours,
): Uint8Array {
  const { categories, categoryColours } = colours;
  const background =
    colours.background === undefined ? undefined : Buffer.from(colours.background.slice(1), "hex");
  if (categories !== undefined && categoryColours !== undefined)
    return encodePng({ width, height, pixels: colourFlags(values, categories, categoryColours, background) });
  const { pixels, colours: palette } =
    categories === undefined ? colourNumbers(values, colours) : colourCategories(values, categories);
  const all = Uint8Array.of(...(background ?? MISSING_COLOUR), ...palette);
  return encodePng({ width, height, pixels, palette: all, isOpaque: background !== undefined });
}

/** Puts bands together: red, green, blue, and perhaps opacity. Bytes are channels as they are; longer numbers have a range. */
function composeBands(planes: readonly Float64Array[], step: PictureStep): Uint8Array {
  const colours = planes.slice(0, 3);
  const { low, high } =
    step.from.itemSize === 1
      ? { low: 0, high: 255 }
      : rangeOf(Float64Array.from(colours.flatMap((plane) => [...plane])), step);
  const pixels = new Uint8Array(4 * planes[0]!.length);
  const channelOf = (value: number) =>
    Math.max(0, Math.min(255, Math.round(((value - low) / (high - low)) * 255)));
  for (let pixel = 0; pixel < planes[0]!.length; pixel++) {
    if (colours.every((plane) => Number.isNaN(plane[pixel]))) continue;
    planes.forEach((plane, band) => {
      pixels[4 * pixel + band] = channelOf(plane[pixel]!);
    });
    if (planes.length === 3) pixels[4 * pixel + 3] = 255;
  }
  return pixels;
}

/** Colours categories that have colours of their own; others are grey. @param background Of missing values. */
function colourFlags(
  values: Float64Array,
  categories: readonly number[],
  colours: Uint8Array,
  background: Uint8Array | undefined,
): Uint8Array {
  const places = new Map(categories.map((value, index) => [value, 3 * index]));
  const pixels = new Uint8Array(4 * values.length);
  values.forEach((value, pixel) => {
    if (Number.isNaN(value) && background === undefined) return;
    const place = places.get(value);
    const known = place === undefined ? OTHER_COLOUR : colours.subarray(place, place + 3);
    const colour = Number.isNaN(value) ? background! : known;
    pixels.set([...colour, 255], 4 * pixel);
  });
  return pixels;
}

function colourNumbers(values: Float64Array, step: ValueColours): Colouring {
  const { low, high, isDiverging } = rangeOf(values, step);
  const scale = step.scale ?? (isDiverging ? "rdbu" : "viridis");
  // Of the table's 256 colours the lowest gives way to missing values.
  const colours = colourTable(scale, step.isReversed).subarray(3);
  const pixels = new Uint8Array(values.length);
  for (let index = 0; index < values.length; index++) {
    const value = values[index]!;
    if (Number.isNaN(value)) continue;
    const position = (value - low) / (high - low);
    // A range that doubles cannot express has no positions. Its values are not missing all the same.
    const colour = Math.floor((Number.isNaN(position) ? 0.5 : position) * MAX_COLOURS);
    pixels[index] = 1 + Math.min(Math.max(colour, 0), MAX_COLOURS - 1);
  }
  return { pixels, colours };
}

function rangeOf(values: Float64Array, { range, from }: Pick<ValueColours, "range" | "from">) {
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
    const value = values[index]!;
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

/** Values that are read for a pixel's width, at most: a line of more looks the same. */
const MAX_VALUES_PER_PIXEL = 512;
/** Grey and blue: the transparent background, and a line that can be seen on white and on black. */
const PALETTE = Uint8Array.of(0xc8, 0xc8, 0xc8, 0x4a, 0x86, 0xc5);
const FIRST_PLACE = new Uint32Array(1);
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
  { shape, served }: EncodingPlan,
  step: LineStep,
  chunkCoords: readonly number[],
): Uint8Array {
  const { width, height } = step;
  const boxLength = served.chunkShape[0]!;
  const length = Math.min(boxLength, shape[0]! - chunkCoords[0]! * boxLength);
  const readItems = createItemsReader(items, step.from, step.packing);
  const read = (index: number): number => {
    const value = new Float64Array(1);
    readItems(index, FIRST_PLACE, value);
    return value[0]!;
  };
  const spans = spansOf(read, length, width);
  const [low, high] = step.range ?? rangeOfLine(spans);
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
function spansOf(read: (index: number) => number, length: number, width: number): Span[] {
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
function valueAt(read: (index: number) => number, position: number, length: number): number {
  const within = Math.min(Math.max(position, 0), length - 1);
  const index = Math.floor(within);
  const below = read(index);
  const share = within - index;
  return share === 0 ? below : below + (read(index + 1) - below) * share;
}

/** Returns the range of all finite values, a little wider than they are. */
function rangeOfLine(spans: readonly Span[]): readonly [number, number] {
  const ends = spans.flatMap((span) => span ?? []).filter(Number.isFinite);
  if (ends.length === 0) return [0, 1];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  return low === high ? [low - 1, high + 1] : roundRange(low, high);
}

/**
 * Runs the compute step of a plan on a gathered box.
 * @param items The whole box in C order, padded with the fill item outside of the array.
 * @param chunkCoords Position of the box in the grid of `plan.served`.
 * @param memory For the result.
 * @returns Bytes that `plan.encode` begins with.
 * @throws ZpublishError `codec-failed`
 */
export function computeItems(
  items: Uint8Array,
  plan: EncodingPlan,
  step: ComputeStep,
  chunkCoords: readonly number[],
  memory: KernelMemory,
): Uint8Array {
  switch (step.kind) {
    case "coarsen":
      return coarsen(items, plan, step, chunkCoords, memory);
    case "picture":
      return drawPicture(items, plan, step, chunkCoords);
    case "line":
      return drawLine(items, plan, step, chunkCoords);
  }
}
