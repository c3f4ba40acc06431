import { axisRole, isDownward, type Plane } from "../cf/axis-roles.js";
import { createCellListFinder } from "../cf/cell-lists.js";
import { type ColourBands, colourBandsOf, missingMarkOf } from "../cf/image-data.js";
import { flagColoursOf, flagValuesOf, isCategorical, packingOf } from "../cf/packing.js";
import { createPlacer, isLatitudes, isLongitudes, stepCoordinate, variablesOf } from "../cf/placement.js";
import { PNG_ZLIB_LEVEL } from "../codec/compute/picture.js";
import { encoderRevision } from "../codec/encoder-revision.js";
import {
  COLOUR_REVISION,
  COLOUR_SCALES,
  type ColourScaleName,
  isColourScaleName,
} from "../colour/colour-scales.js";
import { coarserVersions } from "../dataset/coarser-versions.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { wrongParameter } from "../http/query.js";
import type { QueryParameter } from "../http/router.js";
import { elementCount, type Variable } from "../model/data-tree.js";
import { completeCodec, decodeProblem } from "../zarr/plan/codec-rules.js";
import { createComputePlan } from "../zarr/plan/create-encoding-plan.js";
import type { ComputeStep } from "../zarr/plan/encoding-plan.js";
import { formatByteLength, formatCount } from "./page.js";
import type { PreviewService } from "./preview-service.js";
import { isIndexCoordinate } from "./variable-row.js";

/** Greatest width and height of a picture in pixels, unless a request says another. */
export const DEFAULT_PICTURE_SIZE = 320;

/** A picture of a variable: a plane of it, or of a coarser version. */
export interface PictureChoice {
  /** The snapshot that has `array`: the dataset, or its overviews. */
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  /** Axes that run down and to the right; undefined if the picture is a line, of the only axis. */
  readonly plane: Plane | undefined;
  /** Bands of an image that is shown in colour. */
  readonly bands: ColourBands | undefined;
  /** Elements per axis that are shown. */
  readonly boxShape: readonly number[];
  /** Place of the box in the grid of such boxes: the index along axes that are not shown. */
  readonly position: readonly number[];
  /** Whether the box is the centre of the plane, since the whole would take too long to read. */
  readonly isCentre: boolean;
}

/** An array that a picture may be made of, its snapshot, and the array whose stored chunks are read for it. */
type PictureSource = Pick<PictureChoice, "snapshot" | "array"> & { readonly base: ServedArray };

/**
 * Chooses the picture of a variable. It is a plane by the roles of axes, at the middle time, else at the first index; a variable with
 * one axis is a line. A plane of too many chunks is taken from the coarsest overview that has as many cells as the picture pixels. If
 * none may be read whole, its centre is shown.
 * @param size Greatest width and height in pixels.
 * @param isOneBand Whether an image in colour is shown as one of its bands. Default false.
 */
export function choosePicture(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  size: number = DEFAULT_PICTURE_SIZE,
  isOneBand = false,
): PictureChoice | { readonly problem: string } {
  const { variable, stored } = array;
  const { dims, shape, dataType } = variable;
  if (!"biuf".includes(dataType.kind)) return { problem: `it holds no numbers but ${dataType.numpyName}` };
  const attributesOf = (dim: string) => coordinateArray(snapshot, variable, dim)?.variable.attrs;
  const plane = placementOf(snapshot, variable)?.plane;
  if (dims.length === 0) return { problem: "it has no dimensions" };
  if (isIndexCoordinate(variable)) return { problem: "it is the coordinate of its own dimension" };
  if (shape.includes(0)) return { problem: "it has no values" };
  if (plane !== undefined && isPlaceList(snapshot, variable, plane))
    return { problem: "its cells are a list of places, and no grid" };
  const codecs = [...stored.codecs, ...(stored.variants ?? []).flat()];
  const codec = codecs.map((each) => decodeProblem(completeCodec(each))).find((each) => each !== undefined);
  if (codec !== undefined) return { problem: codec };

  const bands = isOneBand || plane === undefined ? undefined : colourBandsOf(variable);
  const whole = { snapshot, array, base: array };
  const { base, ...from } = plane === undefined ? whole : sourceOf(whole, plane, bands, size);
  const axes = axesOf(plane);
  const box = boxOf({ ...from, base }, axes, bands);
  if (box === undefined) {
    return {
      problem: `its chunks have ${formatByteLength(unitBytes(from.array, axes))}, and at most ${formatByteLength(MAX_DECODED_BYTES)} are read for a picture`,
    };
  }
  const position = box.position.map((index, axis) => {
    if (axes.includes(axis)) return index;
    const isTime = axisRole(dims[axis]!, attributesOf(dims[axis]!)) === "T";
    return isTime ? Math.floor(shape[axis]! / 2) : 0;
  });
  if (bands !== undefined) position[bands.axis] = 0;
  return { ...from, plane, bands, boxShape: box.boxShape, position, isCentre: box.isCentre };
}

const listFinders = new WeakMap<DatasetSnapshot, ReturnType<typeof createCellListFinder<Variable>>>();

/** Tells whether a picture would be stripes: along one of its axes are stations, points of tracks, or cells of a mesh. */
function isPlaceList(snapshot: DatasetSnapshot, variable: Variable, plane: Plane): boolean {
  let finder = listFinders.get(snapshot);
  if (finder === undefined) {
    finder = createCellListFinder(
      variablesOf(snapshot.arrays).values(),
      snapshot.tree.root.attrs.featureType,
    );
    listFinders.set(snapshot, finder);
  }
  return finder.listOf(variable) !== undefined || finder.isStriped(variable, plane);
}

/** Returns the width and height of a picture in pixels: the proportions of its cells, in a square of `size` pixels; 2 to 1 for a line. */
export function pictureSize(
  { boxShape, plane, array }: Pick<PictureChoice, "boxShape" | "plane" | "array">,
  size: number = DEFAULT_PICTURE_SIZE,
): { readonly width: number; readonly height: number } {
  if (plane === undefined) return { width: size, height: Math.round(size / 2) };
  const [rows, columns] = [plane.y, plane.x].map((axis) =>
    Math.min(boxShape[axis]!, array.variable.shape[axis]!),
  ) as [number, number];
  const scale = size / Math.max(rows, columns);
  return { width: Math.max(1, Math.round(columns * scale)), height: Math.max(1, Math.round(rows * scale)) };
}

/** Describes a picture in a line, for people who do not see it: `air at time 1460 of 2,920`. */
export function describePicture(choice: PictureChoice): string {
  const { array, plane, bands, boxShape, position, isCentre } = choice;
  const { name, dims, shape } = array.variable;
  const axes = axesOf(plane).toReversed();
  const places = dims.flatMap((dim, axis) =>
    axes.includes(axis) || shape[axis] === 1 || axis === bands?.axis
      ? []
      : [`${dim} ${formatCount(position[axis]!)} of ${formatCount(shape[axis]!)}`],
  );
  const shown = axes.map((axis) => formatCount(boxShape[axis]!)).join(" × ");
  const all = axes.map((axis) => formatCount(shape[axis]!)).join(" × ");
  const at = places.length === 0 ? "" : ` at ${places.join(", ")}`;
  return `${name}${at}${isCentre ? `: the centre, ${shown} of ${all} cells` : ""}`;
}

/** Returns the axes that a picture shows. Of equally long sides, the box of a plane grows along the first. */
function axesOf(plane: Plane | undefined): readonly number[] {
  return plane === undefined ? [0] : [plane.x, plane.y];
}

function sourceOf(
  whole: PictureSource,
  plane: Plane,
  bands: ColourBands | undefined,
  size: number,
): PictureSource {
  const { snapshot, array } = whole;
  const shareOf = (source: PictureSource) => shownShare(source, axesOf(plane), bands);
  if (shareOf(whole) === 1) return whole;
  const levels = coarserVersions(snapshot, array).map((each) => ({
    ...each,
    base: each.snapshot === snapshot ? each.array : array,
  }));
  const few = levels.filter((level) => shareOf(level) === 1);
  const wanted = pictureSize({ array, plane, boxShape: array.variable.shape }, size);
  const fine = few.findLast(
    ({ array: { variable } }) =>
      variable.shape[plane.x]! >= wanted.width && variable.shape[plane.y]! >= wanted.height,
  );
  // Centres of about the same share are made of the same stored chunks: the finest shows most.
  const widest = [whole, ...levels].reduce((best, each) =>
    shareOf(each) > 1.1 * shareOf(best) ? each : best,
  );
  return fine ?? few[0] ?? widest;
}

/** Revision of the way pictures are drawn: part of their ETags. */
const PICTURE_REVISION = "2";

/** Colours and size of a picture. */
export interface PictureStyle {
  /** Greatest width and height in pixels. */
  readonly size: number;
  readonly range?: readonly [low: number, high: number] | undefined;
  readonly scale?: ColourScaleName | undefined;
  readonly isReversed: boolean;
}

/**
 * Plans the pictures of all slices of an array: one chunk of the array that is returned is one PNG.
 * @throws ZpublishError `unsupported`
 */
export function planPicture(choice: PictureChoice, style: PictureStyle, flips: PictureFlips): ServedArray {
  const { array, plane, bands, boxShape } = choice;
  const { variable, document, stored } = array;
  const { size, ...colours } = style;
  const common = {
    from: variable.dataType,
    packing: packingOf(variable.attrs, missingMarkOf(variable, document.fill_value)),
    ...pictureSize(choice, size),
    revision: `${PICTURE_REVISION} ${COLOUR_REVISION} ${encoderRevision({ id: "zlib", level: PNG_ZLIB_LEVEL })}`,
  };
  const categories = isCategorical(variable.attrs) ? flagValuesOf(variable.attrs) : undefined;
  const categoryColours = categories && flagColoursOf(variable.attrs, categories.length);
  const compute: ComputeStep =
    plane === undefined
      ? { kind: "line", ...common, range: style.range }
      : { kind: "picture", ...common, ...plane, ...flips, ...colours, categories, categoryColours, bands };
  // A picture without values is a transparent one.
  const request = { path: variable.path, box: boxShape, compute, encode: [], absentIsAbsent: false };
  const plan = createComputePlan(stored, request);
  return Object.freeze({ ...array, plan });
}

/** Axes of a picture that are drawn from their end, so that north is up and east to the right. */
interface PictureFlips {
  readonly isFlippedY: boolean;
  readonly isFlippedX: boolean;
}

/** Reads the direction of a coordinate of a picture: along its columns if `isAcross`, else along its rows. */
type DirectionOf = (coordinate: ServedArray, isAcross: boolean) => Promise<-1 | 0 | 1>;

/**
 * Finds the axes to flip, so that a picture lies as in the explorer: values increase upwards, or downwards as {@link isDownward} says, and
 * to the right. Latitudes and longitudes of each cell count before coordinates of rows and columns. An image and axes without a
 * coordinate stay as they are stored.
 * @param array The variable in the dataset itself, which has the coordinates.
 */
export async function pictureFlips(
  snapshot: DatasetSnapshot,
  { variable }: ServedArray,
  { plane }: Pick<PictureChoice, "plane">,
  directionOf: DirectionOf,
): Promise<PictureFlips> {
  const { isImage = false, grid } = placementOf(snapshot, variable) ?? {};
  if (plane === undefined || isImage) return { isFlippedY: false, isFlippedX: false };
  const coordinate = (axis: number) => coordinateArray(snapshot, variable, variable.dims[axis]!);
  const ofY = grid ? snapshot.arrays.get(grid.latitude.path) : coordinate(plane.y);
  const ofX = grid ? snapshot.arrays.get(grid.longitude.path) : coordinate(plane.x);
  const [y, x] = await Promise.all([ofY && directionOf(ofY, false), ofX && directionOf(ofX, true)]);
  const upwards = ofY && isDownward(ofY.variable.attrs) ? -1 : 1;
  return { isFlippedY: y === upwards, isFlippedX: x === -1 };
}

/**
 * Reads the direction of a coordinate from its first and last values; along the columns of a grid, from the first ones.
 * @throws ZpublishError `source-unreadable` if they cannot be read: a picture must not be upside down instead.
 */
export async function readDirection(
  coordinate: ServedArray,
  previews: Pick<PreviewService, "values">,
  isAcross = false,
): Promise<-1 | 0 | 1> {
  const { variable, document } = coordinate;
  const values = await previews.values(coordinate);
  if (values === undefined) {
    const problem = `the coordinate '${variable.path}' of a picture cannot be read`;
    throw new ZpublishError("source-unreadable", problem);
  }
  const { missing, scale } = packingOf(variable.attrs, document.fill_value);
  const isRow = isAcross && variable.dims.length > 1;
  const { first, last } = values.stored ?? values;
  const numbers = [...first.slice(0, isRow ? variable.shape.at(-1) : undefined), ...(isRow ? [] : last)]
    // Dates are texts here.
    .map((text) => (Number.isNaN(Number(text)) ? Date.parse(text) : Number(text)))
    .filter((value) => Number.isFinite(value) && !missing.includes(value));
  const difference = ((numbers.at(-1) ?? 0) - (numbers[0] ?? 0)) * scale;
  // Neighbours on both sides of the date line.
  return Math.sign(isRow ? difference - 360 * Math.round(difference / 360) : difference) as -1 | 0 | 1;
}

/** Finds what the steps of a dimension of a variable are called by; undefined if they are only counted. */
export function coordinateArray(
  snapshot: DatasetSnapshot,
  variable: Variable,
  dim: string,
): ServedArray | undefined {
  const found = stepCoordinate(variablesOf(snapshot.arrays), variable, dim);
  return found && snapshot.arrays.get(found.path);
}

const placers = new WeakMap<DatasetSnapshot, ReturnType<typeof createPlacer<Variable>>>();

/** Tells whether a variable lies on the Earth, so that it has maps. */
export function hasMaps(snapshot: DatasetSnapshot, array: ServedArray): boolean {
  const { variable } = array;
  const picture = choosePicture(snapshot, array);
  if ("problem" in picture || picture.plane === undefined) return false;
  const { projection, grid, isDegrees = false } = placementOf(snapshot, variable) ?? {};
  if (grid !== undefined) return true;
  // Axes of one cell have no width.
  if (variable.shape[picture.plane.y] === 1 || variable.shape[picture.plane.x] === 1) return false;
  if (projection !== undefined || isDegrees) return true;
  const [y, x] = [picture.plane.y, picture.plane.x].map((axis) =>
    coordinateArray(snapshot, variable, variable.dims[axis]!),
  );
  return y !== undefined && x !== undefined && isLatitudes(y.variable) && isLongitudes(x.variable);
}

/** Returns how a variable lies on the Earth; undefined if it has fewer than two axes. */
function placementOf(snapshot: DatasetSnapshot, variable: Variable) {
  let place = placers.get(snapshot);
  if (place === undefined) {
    place = createPlacer({ variables: variablesOf(snapshot.arrays), attrs: snapshot.tree.root.attrs });
    placers.set(snapshot, place);
  }
  const bands = colourBandsOf(variable);
  return place(variable, bands === undefined ? undefined : variable.shape.with(bands.axis, 1));
}

/** Stored chunks that are read for a picture, at most. */
const MAX_CHUNKS = 16;
/** Decoded bytes of these chunks, at most. */
const MAX_DECODED_BYTES = 64 * 2 ** 20;
/** Stored chunks of a whole plane that is read all the same, and its bytes: rows of images are often chunks of few kilobytes. */
const MAX_SMALL_CHUNKS = 60;
const MAX_SMALL_BYTES = 4 * 2 ** 20;
/** Maximum of stored chunks from which an overview is made, and of their bytes: they are read if nothing is cached. */
const MAX_CHUNKS_BELOW = 1_024;
const MAX_BYTES_BELOW = 2 ** 30;
/** Cells per axis by which the centre of an array in memory is measured: it is one chunk, which need not be decoded. */
const MEMORY_UNIT = 256;

/** A box of an array in a grid of equal ones. */
interface PictureBox {
  readonly boxShape: readonly number[];
  readonly position: readonly number[];
  readonly isCentre: boolean;
}

/** Returns the bytes of the least part of an array that can be read. */
function unitBytes(array: ServedArray, axes: readonly number[]): number {
  return elementCount(unitShape(array, axes)) * array.variable.dataType.itemSize;
}

/** Returns the share of the cells that a picture shows: 1 for all of them, 0 for none. */
function shownShare(source: PictureSource, axes: readonly number[], bands: ColourBands | undefined): number {
  const { boxShape } = boxOf(source, axes, bands) ?? {};
  const { shape } = source.array.variable;
  return boxShape === undefined
    ? 0
    : axes.reduce((share, axis) => share * (boxShape[axis]! / shape[axis]!), 1);
}

/**
 * Returns the box of a picture: all cells along its axes, else as many whole chunks in their centre as may be read; undefined if that is
 * none. Its `position` is 0 along other axes. Of an image in colour it has all bands.
 */
function boxOf(
  { array, base }: PictureSource,
  axes: readonly number[],
  bands: ColourBands | undefined,
): PictureBox | undefined {
  const unit = unitShape(array, axes);
  const counts = countsOf(array, unit, axes);
  const depth = bands === undefined ? 1 : Math.ceil(bands.count / unit[bands.axis]!);
  const max = Math.floor(maxUnits(array, axes, base) / depth);
  if (max === 0) return undefined;
  const total = elementCount(counts) * depth;
  const isSmall = total <= MAX_SMALL_CHUNKS && total * unitBytes(array, axes) <= MAX_SMALL_BYTES;
  const isCentre = elementCount(counts) > max && !(isSmall && array === base);
  const taken = isCentre
    ? centreOf(
        counts,
        axes.map((axis) => unit[axis]!),
        max,
      )
    : counts;
  const cells = array.variable.shape;
  const boxShape = cells.map(() => 1);
  const position = cells.map(() => 0);
  if (bands !== undefined) boxShape[bands.axis] = bands.count;
  axes.forEach((axis, index) => {
    const length = cells[axis]!;
    boxShape[axis] = taken[index] === counts[index] ? length : taken[index]! * unit[axis]!;
    // The box with the middle cell: it is never cut off by the edge.
    position[axis] = Math.floor(Math.floor(length / 2) / boxShape[axis]);
  });
  return { boxShape, position, isCentre };
}

/** Returns how many units fit along each axis: the shorter side grows while it can. */
function centreOf(counts: readonly number[], lengths: readonly number[], max: number): readonly number[] {
  if (counts.length === 1) return [max];
  const taken = counts.map(() => 1);
  for (;;) {
    const growing = Array.from(taken.keys()).filter(
      (index) => taken[index]! < counts[index]! && elementCount(taken.with(index, taken[index]! + 1)) <= max,
    );
    const [shortest] = growing.sort((a, b) => taken[a]! * lengths[a]! - taken[b]! * lengths[b]!);
    if (shortest === undefined) return taken;
    taken[shortest]!++;
  }
}

/** Returns how many units may be read for a picture. */
function maxUnits(array: ServedArray, axes: readonly number[], base: ServedArray): number {
  const fitting = Math.floor(MAX_DECODED_BYTES / unitBytes(array, axes));
  const max = array.stored.chunks.kind === "memory" ? fitting : Math.min(MAX_CHUNKS, fitting);
  if (array === base) return max;
  const countOf = (each: ServedArray) => elementCount(countsOf(each, unitShape(each, axes), axes));
  const maxBelow = Math.min(MAX_CHUNKS_BELOW, MAX_BYTES_BELOW / unitBytes(base, axes));
  return Math.min(max, Math.floor((maxBelow * countOf(array)) / countOf(base)));
}

function countsOf({ variable }: ServedArray, unit: readonly number[], axes: readonly number[]): number[] {
  return axes.map((axis) => Math.ceil(variable.shape[axis]! / unit[axis]!));
}

function unitShape({ stored }: ServedArray, axes: readonly number[]): number[] {
  if (stored.chunks.kind !== "memory") return stored.chunkShape.map((length) => Math.max(1, length));
  return stored.shape.map((length, axis) => (axes.includes(axis) ? Math.min(length, MEMORY_UNIT) : 1));
}

const SCALE_NAMES = Object.keys(COLOUR_SCALES);
const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

/** Parameters of colours that all pictures have, for the API description. */
export const COLOUR_QUERY: Readonly<Record<"scale" | "reversed", QueryParameter>> = {
  scale: {
    description: "Colour scale. Default: a sequential one, or a diverging one if the range is symmetric",
    schema: { type: "string", enum: SCALE_NAMES },
  },
  reversed: {
    description: "Whether the scale begins with the colour of its greatest value",
    schema: { type: "string", enum: ["true", "false"], default: "false" },
  },
};

/** Parses a parameter that has the values of the first and the last colour. @throws ZpublishError `invalid-query` */
export function parseColourRange(
  text: string | undefined,
  parameter = "range",
): readonly [low: number, high: number] | undefined {
  if (text === undefined) return undefined;
  const parts = text.split(",");
  const [low = Number.NaN, high = Number.NaN] = parts.map((part) =>
    NUMBER.test(part) ? Number(part) : Number.NaN,
  );
  if (parts.length === 2 && low < high && Number.isFinite(high - low)) return [low, high];
  throw wrongParameter(parameter, "range", "two numbers 'low,high', the first less than the second", text);
}

/** Parses the parameters of colours. @param values As `parseQuery` returns them. @throws ZpublishError `invalid-query` */
export function parseColours(values: ReadonlyMap<string, readonly string[]>): Omit<PictureStyle, "size"> {
  const [range, scale, reversed = "false"] = ["range", "scale", "reversed"].map(
    (name) => values.get(name)?.[0],
  );
  if (scale !== undefined && !isColourScaleName(scale))
    throw wrongParameter("scale", "enum", `one of ${SCALE_NAMES.join(", ")}`, scale);
  if (reversed !== "true" && reversed !== "false")
    throw wrongParameter("reversed", "bool_parsing", "true or false", reversed);
  return { range: parseColourRange(range), scale, isReversed: reversed === "true" };
}

/** @throws ZpublishError `invalid-query` if colours are asked for @param reason Why there is no choice. */
export function assertNoColours(
  {
    range,
    scale,
    isReversed,
  }: Pick<PictureStyle, "range" | "scale"> & { readonly isReversed?: boolean | undefined },
  reason: string,
): void {
  const refuse = (name: string, what: string, received: string) => {
    throw wrongParameter(name, "not_applicable", `no ${what}, since ${reason}`, received);
  };
  if (range !== undefined) refuse("range", "range", `${range}`);
  if (scale !== undefined) refuse("scale", "scale", scale);
  if (isReversed) refuse("reversed", "scale", "true");
}
