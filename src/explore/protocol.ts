import type { AxisRole, Plane } from "../cf/axis-roles.js";
import type { CellList } from "../cf/cell-lists.js";
import type { GridProjection } from "../cf/grid-mapping.js";
import type { ColourBands } from "../cf/image-data.js";
import type { Packing } from "../cf/packing.js";
import type { ColourScaleName } from "../colour/colour-scales.js";
import type { ValueRange } from "../colour/value-range.js";
import type { JsonObject } from "../json/json-value.js";
import type { Variable } from "../model/data-tree.js";

/** Messages between the page and its worker. Every answer has the `id` of its request; those of cancelled requests are dropped. */
export type WorkerRequest = { readonly id: number } & (
  | OpenRequest
  /** Reads the coordinate of an axis. */
  | { readonly kind: "axis"; readonly variable: string; readonly axis: number }
  | ShowRequest
  | AheadRequest
  | ValueRangeRequest
  | ProbeRequest
  | SeriesRequest
  | TextRequest
  | CancelRequest
);

/** Answers to {@link WorkerRequest}. `show` and `series` have several; all others one. */
export type ExploreAnswer = { readonly id: number } & (
  | { readonly kind: "opened"; readonly dataset: DatasetDescription }
  | AxisAnswer
  | FrameAnswer
  | { readonly kind: "cached"; readonly steps: readonly number[] }
  | RangeAnswer
  | ProbeAnswer
  | SeriesAnswer
  | TextAnswer
  | TooMuchAnswer
  | FailedAnswer
);

/** Reads the metadata. The first request. */
export interface OpenRequest {
  readonly kind: "open";
  /** Absolute URLs of the Zarr v2 stores of the dataset or group and of its overviews, with a slash at their ends. */
  readonly store: string;
  readonly overviews: string | undefined;
  /** Path of the page's group in the dataset: empty, or `a/b`. */
  readonly group: string;
  /** Sent as `Authorization: Bearer …`. */
  readonly token: string | undefined;
}

/** The coordinate of an axis. */
export interface AxisAnswer {
  readonly kind: "axis";
  readonly values: AxisValues;
  /** Extent of the curvilinear grid that the axis is one of; undefined if it is of none. */
  readonly extent: GridExtent | undefined;
}

/** Extent of the two-dimensional coordinates of a curvilinear grid. */
export type GridExtent = Readonly<Record<"west" | "east" | "south" | "north", number>>;

/** A variable, and an index per axis. The indices of axes that are shown say nothing. */
export interface Selection {
  readonly variable: string;
  readonly at: readonly number[];
}

/** Axes that run to the right and upwards. A picture has both. */
export type PictureAxes = Plane;

/**
 * Part of the plane that is visible, in the coordinates of its axes: in cells (-0.5 is the edge of the first one) if an axis has no
 * numbers, or `inCells`. `left` may be greater than `right`, and `bottom` than `top`, if an axis is shown reversed.
 */
export type Box = Readonly<Record<"left" | "right" | "bottom" | "top", number>>;

/** A canvas, in pixels, and what it shows. */
export interface Viewport {
  readonly box: Box;
  readonly width: number;
  readonly height: number;
  /** Whether the box counts cells: no map, and no curvilinear grid. */
  readonly inCells: boolean;
  /** Device pixels per CSS pixel; 1 unless it is set. */
  readonly ratio?: number | undefined;
}

/** Range of the colours. */
export interface ShownRange {
  readonly low: number;
  readonly high: number;
  readonly isLog: boolean;
  /** Category values, each with the byte that it is painted as; other values are painted as "above". */
  readonly categories?: readonly (readonly [value: number, byte: number])[] | undefined;
}

/** Draws a picture. A `show` request ends the one before: chunks that the new one does not want are cancelled. */
export interface ShowRequest {
  readonly kind: "show";
  readonly selection: Selection;
  readonly axes: PictureAxes;
  readonly viewport: Viewport;
  readonly range: ShownRange;
  /** Bands that are composed in colour, each from 0 at the range's low end to 255 at its high end; undefined to show one of them. */
  readonly bands?: ColourBands | undefined;
  /** Whether the picture is moving or playing, so that it need not be averaged. */
  readonly isMoving: boolean;
  /** Whether to read it however much it is. */
  readonly isConfirmed: boolean;
}

/** Reads frames ahead for playing: indices along one axis, the next one first. Ends the `ahead` request before. */
export interface AheadRequest {
  readonly kind: "ahead";
  readonly show: ShowRequest;
  readonly along: number;
  readonly steps: readonly number[];
}

/** A picture. The first answer comes 100 ms after the request; the last has `done` equal to `total`. */
export interface FrameAnswer {
  readonly kind: "frame";
  /**
   * One byte per pixel, from the top left: {@link MISSING}, {@link BELOW}, {@link FIRST} to {@link LAST}, {@link ABOVE} or {@link UNREAD}.
   * Of bands, four: red, green, blue and opacity, which is 0 where nothing is read.
   */
  readonly pixels: Uint8Array<ArrayBuffer>;
  readonly width: number;
  readonly height: number;
  /** Chunks of this picture that are read, and that it has. */
  readonly done: number;
  readonly total: number;
  /** 0 for the variable itself, else the level of the overviews that is shown. */
  readonly level: number;
  /** Cells in the picture, and missing ones among them, as far as they are read. */
  readonly cells: number;
  readonly missing: number;
  /** What of the picture is read if all of it is too much; else undefined. */
  readonly part: PicturePart | undefined;
}

/** The part that is read of a picture that is too much to read unasked. */
export interface PicturePart {
  /** How many rows and columns of chunks one stands for, which is read; 1 if all are. */
  readonly everyRow: number;
  readonly everyColumn: number;
  /** Whether such a row or column of chunks is one row or column of cells. */
  readonly isOfRows: boolean;
  readonly isOfColumns: boolean;
  /** Share of the picture's width and height that is read, in its middle; 1 for all. */
  readonly share: number;
  /** Cost of the whole picture. */
  readonly whole: ReadingCost;
}

/** Byte of a pixel whose value is missing. */
export const MISSING = 0;
/** Byte of a value below the range. */
export const BELOW = 1;
/** Byte of the least value of the range, or of the first category. */
export const FIRST = 2;
/** Byte of the greatest value of the range. */
export const LAST = 253;
/** Byte of a value above the range. */
export const ABOVE = 254;
/** Byte of a pixel that is not read yet, or that lies outside of a curvilinear grid. */
export const UNREAD = 255;

/** Finds the range of a variable from a sample over several steps, and its histogram. */
export interface ValueRangeRequest {
  readonly kind: "range";
  readonly selection: Selection;
  readonly axes: PictureAxes | undefined;
  readonly percentiles: readonly [low: number, high: number];
  /** Only what is visible now; undefined for the whole variable. */
  readonly viewport?: Viewport | undefined;
  /** Whether a person agreed to read chunks that are not read unasked, of which no range is found otherwise. */
  readonly isConfirmed?: boolean | undefined;
}

/** Range and histogram of a sample. */
export interface RangeAnswer {
  readonly kind: "range";
  /** Undefined if all values are missing. */
  readonly range: ValueRange | undefined;
  readonly least: number;
  readonly greatest: number;
  /** Values per bin; bins of equal width from `least` to `greatest`. */
  readonly bins: readonly number[];
  /** Values of the sample, and missing ones among them. */
  readonly count: number;
  readonly missing: number;
}

/** Reads the value at a place of the picture. */
export interface ProbeRequest {
  readonly kind: "probe";
  readonly selection: Selection;
  readonly axes: PictureAxes;
  /** In the units of {@link Box}. */
  readonly x: number;
  readonly y: number;
  readonly inCells: boolean;
  /** Bands whose values are all told in the text. */
  readonly bands?: ColourBands | undefined;
  /** How far away the centre of a dot may be, in degrees of latitude; undefined for the nearest one, however far. */
  readonly reach?: number | undefined;
  /** Direction, to the right and upwards, in which the next cell of a list is looked for. */
  readonly towards?: readonly [right: number, up: number] | undefined;
}

/** A cell with its centre, and its value. */
export interface ProbeAnswer {
  readonly kind: "value";
  /** Index per axis of the variable; undefined outside of the grid. */
  readonly cell: readonly number[] | undefined;
  readonly x: number;
  readonly y: number;
  /** Unpacked; undefined if the cell is missing, or outside of the grid. */
  readonly value: number | undefined;
  /** Value with as many digits as the type and packing have; `missing`, or the meaning of a flag. */
  readonly text: string;
  /** Name of a station or track; undefined if it has none. */
  readonly name?: string | undefined;
}

/** Reads values along one axis, at the selection's indices of the others. */
export interface SeriesRequest {
  readonly kind: "series";
  readonly selection: Selection;
  readonly along: number;
  readonly isConfirmed: boolean;
}

/** Values of a series, as far as they are read: NaN for missing and for unread ones. The last answer has `done` equal to `total`. */
export interface SeriesAnswer {
  readonly kind: "series";
  readonly values: Float64Array<ArrayBuffer>;
  readonly done: number;
  readonly total: number;
}

/** Reads a variable as texts: one without axes or numbers, or the first values of a longer one. */
export interface TextRequest {
  readonly kind: "text";
  readonly variable: string;
  readonly maxCount: number;
}

/** Values of a variable as texts, in C order. */
export interface TextAnswer {
  readonly kind: "text";
  readonly texts: readonly string[];
  /** Values that the variable has. */
  readonly length: number;
}

/** Ends a request: what only it wants is no longer read. It has no answer. */
export interface CancelRequest {
  readonly kind: "cancel";
  readonly request: number;
}

/** What has to be read. */
export interface ReadingCost {
  readonly chunks: number;
  /** Decoded. */
  readonly bytes: number;
}

/** Answers `series`, and `show` of huge chunks, if they would read more than a person may expect; ask again with `isConfirmed`. */
export interface TooMuchAnswer extends ReadingCost {
  readonly kind: "too-much";
}

/** Answers a request that failed. A chunk that is absent is missing data and no failure. */
export interface FailedAnswer {
  readonly kind: "failed";
  /** What failed, for people. */
  readonly sentence: string;
  /** `X-Request-Id` of the server's answer, if there was one. */
  readonly requestId: string | undefined;
  /** Whether another attempt may succeed. */
  readonly mayRetry: boolean;
}

/** What the explorer knows of a dataset (or of the group that the page is about) once its metadata are read. Plain data. */
export interface DatasetDescription {
  readonly attrs: JsonObject;
  /** In the order of the store, groups before their children; coordinates included. */
  readonly variables: readonly VariableDescription[];
}

/** A variable. Its path is that below the group that the page is about. */
export interface VariableDescription extends Variable {
  readonly packing: Packing;
  /** `long_name` or a similar attribute, else the name. */
  readonly title: string;
  /** UDUNITS text; undefined if there is none, or for times and numbers without unit (`1`). */
  readonly units: string | undefined;
  readonly isCoordinate: boolean;
  readonly isCategorical: boolean;
  /** How it is shown first: as a map or image, as a plot of one axis, or as text (no axis, or no numbers). */
  readonly form: "image" | "plot" | "text";
  readonly axes: readonly AxisDescription[];
  /** Axes of the picture that is shown first; undefined unless `form` is `image`. */
  readonly plane: Plane | undefined;
  /** Where the cells of the plane lie on a map; undefined unless it is a curvilinear grid or a list of places. */
  readonly curvilinear: PlacedCells | undefined;
  /** Projection of the coordinates of the plane; undefined if there is none, or if it is not known here. */
  readonly projection: GridProjection | undefined;
  /** Sentence that says why a grid with latitudes and longitudes is no map, or what of a list is on it; undefined if all is well. */
  readonly unplaced: string | undefined;
  /** Coarser versions, finest first; empty if there are none in the dataset, and no overviews. */
  readonly levels: readonly LevelDescription[];
  /** Axis of an image along which its colours lie; undefined if it has none. */
  readonly bands: ColourBands | undefined;
  /** Sentence that says why a browser cannot read it; undefined if it can. */
  readonly problem: string | undefined;
}

/** Cells with coordinates that are none of the axes. */
export interface PlacedCells {
  /** Paths of the latitudes and longitudes of each cell, which may change in time. */
  readonly latitude: string;
  readonly longitude: string;
  /** Set if the cells are a list of places instead of a grid. If they have one axis, both axes of the plane are this one. */
  readonly list?: ListedCells | undefined;
}

/** Cells that are a list of places, as `CellList` describes them. */
export interface ListedCells extends Omit<CellList, "plane" | "latitude" | "longitude"> {
  /** Paths of what names the cells: stations, tracks, times. */
  readonly labels: readonly string[];
}

/** One axis of a variable. */
export interface AxisDescription {
  readonly dim: string;
  readonly length: number;
  readonly role: AxisRole | undefined;
  /** Path of its one-dimensional coordinate; undefined if it has none that is readable, so that indices are shown. */
  readonly coordinate: string | undefined;
  readonly isLatitude: boolean;
  readonly isLongitude: boolean;
}

/** A coarser version of a variable. */
export interface LevelDescription {
  readonly level: number;
  /** Whether it is in the overview store, and not in the dataset's. */
  readonly isInOverviews: boolean;
  /** Path in its store: `2/t2m`. */
  readonly path: string;
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  /** Cells of the variable per cell, by axis; fractions in overviews of images. */
  readonly factors: readonly number[];
}

/** Values of a coordinate axis, as the worker reads them once. */
export interface AxisValues {
  /** Unpacked numbers, NaN for missing ones; undefined if the coordinate holds texts. */
  readonly numbers: Float64Array | undefined;
  /** What is shown for each: dates as ISO text, texts as they are; undefined if numbers are shown. */
  readonly texts: readonly string[] | undefined;
  /** Edges of the cells by the coordinate's `bounds`, two per cell; undefined if midpoints between centres are edges. */
  readonly bounds: Float64Array | undefined;
  readonly units: string | undefined;
  /** Name of the CF calendar of `numbers`; undefined unless they are times. */
  readonly calendar: string | undefined;
}

/** Values of an axis that has no readable coordinate: its indices are shown. */
export const INDEX_AXIS: AxisValues = Object.freeze({
  numbers: undefined,
  texts: undefined,
  bounds: undefined,
  units: undefined,
  calendar: undefined,
});

/** Tells whether a picture is a map of a curvilinear grid, along its own rows and columns, or of a list of places. */
export function isOnGrid(
  { curvilinear, plane }: VariableDescription,
  { x, y }: Plane,
  inCells: boolean,
): boolean {
  const isList = curvilinear?.list !== undefined && x === y;
  return isList || (curvilinear !== undefined && !inCells && x === plane?.x && y === plane.y);
}

/** Returns the axes of a variable that are none of its picture. */
export function otherAxes({ dims }: VariableDescription, axes: PictureAxes | undefined): number[] {
  return dims.map((_, axis) => axis).filter((axis) => axis !== axes?.x && axis !== axes?.y);
}

/** Everything that the explorer's address holds: a link shows the same. What is undefined is chosen by rule. */
export interface View {
  readonly variable: string | undefined;
  readonly x: string | undefined;
  readonly y: string | undefined;
  readonly at: Readonly<Record<string, Position>>;
  readonly box: Box | undefined;
  readonly asImage: boolean;
  readonly colour: ColourChoice;
  /** Place and dimension of the series beside the picture, and how it is plotted. */
  readonly probe: Probe | undefined;
}

/** A position along a dimension: by coordinate, since datasets grow, by index where there is none, or always the last. */
export type Position = { readonly value: string | number } | { readonly index: number } | "last";

/** Choice of colours. */
export interface ColourChoice {
  readonly scale: ColourScaleName | undefined;
  readonly isReversed: boolean;
  readonly isLog: boolean;
  /** By percentiles (default 2 to 98), or by hand. */
  readonly range:
    | { readonly percentiles: readonly [low: number, high: number] }
    | { readonly low: number; readonly high: number }
    | undefined;
  readonly isSymmetric: boolean;
  /** Whether scale and range stay when another variable is chosen. */
  readonly isLocked: boolean;
}

/** The place of a series. */
export interface Probe {
  readonly x: number;
  readonly y: number;
  readonly along: string | undefined;
  readonly plot: "series" | "histogram";
}

const NO_CHOICE = { isReversed: false, isLog: false, isSymmetric: false, isLocked: false };

/** View of an address that says nothing. */
export const EMPTY_VIEW: View = Object.freeze({
  variable: undefined,
  x: undefined,
  y: undefined,
  at: {},
  box: undefined,
  asImage: false,
  colour: { scale: undefined, range: undefined, ...NO_CHOICE },
  probe: undefined,
});
