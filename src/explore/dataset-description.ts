import type { AxisRole, Plane } from "../cf/axis-roles.js";
import type { Packing } from "../cf/packing.js";
import type { JsonObject } from "../json/json-value.js";
import type { DataType } from "../model/data-type.js";

/** What the explorer knows of a dataset (or of the group that the page is about) once its metadata are read. Plain data. */
export interface DatasetDescription {
  readonly attrs: JsonObject;
  /** In the order of the store, groups before their children; coordinates included. */
  readonly variables: readonly VariableDescription[];
}

/** A variable. */
export interface VariableDescription {
  /** Below the group that the page is about: `a/b/t2m`. */
  readonly path: string;
  readonly name: string;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  readonly dataType: DataType;
  /** Without `_ARRAY_DIMENSIONS`. */
  readonly attrs: JsonObject;
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
  /** Paths of the two-dimensional coordinates of a curvilinear grid, below the same group; undefined if there are none. */
  readonly curvilinear: { readonly latitude: string; readonly longitude: string } | undefined;
  /** Coarser versions, finest first; empty if the dataset has no overviews. */
  readonly levels: readonly LevelDescription[];
  /** Sentence that says why a browser cannot read it; undefined if it can. */
  readonly problem: string | undefined;
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

/** A coarser version of a variable: each cell along the horizontal axes stands for `2 ** level` of the variable's. */
export interface LevelDescription {
  readonly level: number;
  /** Path in the overview store: `2/t2m`. */
  readonly path: string;
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  /** Cells of the variable per cell, by axis. */
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

/**
 * Tells whether a picture is a map of a curvilinear grid: along its own rows and columns.
 * @param inCells Whether cells are counted, instead of coordinates used.
 */
export function isOnGrid(
  { curvilinear, plane }: VariableDescription,
  { x, y }: Plane,
  inCells: boolean,
): boolean {
  return curvilinear !== undefined && !inCells && x === plane?.x && y === plane.y;
}
