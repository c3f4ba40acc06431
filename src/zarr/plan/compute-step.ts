import type { Packing } from "../../cf/packing.js";
import type { ColourScaleName } from "../../colour/colour-scales.js";
import type { DataType } from "../../model/data-type.js";

/**
 * Work on the items of a gathered box before they are encoded: of a plan of kind `rechunk`. `shape`, `stored` and `served` of such a
 * plan describe the array that is read; its `served` chunks are the boxes that are gathered. Plain data.
 */
export type ComputeStep = CoarsenStep | PictureStep | LineStep;

/**
 * How cells of the level below become one of the level above. Missing values are left out, but by `nearest`, which takes the first cell
 * of each block. Of values that are equally frequent `mode` takes the smallest.
 */
export type CoarsenMethod = "mean" | "nearest" | "max" | "mode";

/** How an array comes to a coarser level. `bounds` is for the two bounds of each cell of an axis, which become those of the coarser cell. */
export type LevelMethod = CoarsenMethod | "bounds";

/** Makes a chunk of a coarser level, in C order. */
export interface CoarsenStep {
  readonly kind: "coarsen";
  readonly method: LevelMethod;
  /** Cells per axis that become one: 2 along horizontal axes, else 1. */
  readonly factors: readonly number[];
  /** Type of the items that are read. */
  readonly from: DataType;
  /** Type of the items that are made. */
  readonly to: DataType;
  /**
   * Packing of the items that are read; its valid range is not applied, as in xarray. Means are written unpacked if `to` is a float, and
   * else rounded half to even. All other methods select items, and `to` is `from`.
   */
  readonly packing: Packing;
  /** One item of the type `to` that stands for a missing value; null for zero bytes. */
  readonly missingItem: Uint8Array | null;
  /** One item of the type `to` for cells outside of the array; null for zero bytes. */
  readonly fillItem: Uint8Array | null;
  /** Names what the bytes depend on besides. */
  readonly revision: string;
}

/** Makes a small picture (PNG) of a box whose axes have length 1 but for `y` and `x`. */
export interface PictureStep {
  readonly kind: "picture";
  readonly from: DataType;
  readonly packing: Packing;
  /** Axes of the box that run down and to the right. */
  readonly y: number;
  readonly x: number;
  /** Whether the first row is the lowest: latitudes ascend. */
  readonly isFlippedY: boolean;
  /** Whether the first column is the rightmost: longitudes descend. */
  readonly isFlippedX: boolean;
  /** Greatest width and height in pixels; the picture has the proportions of the box. */
  readonly width: number;
  readonly height: number;
  /** Range of the colours; undefined if the values of the picture decide. */
  readonly range?: readonly [low: number, high: number] | undefined;
  /** Undefined: a sequential one, or a diverging one if the range is symmetric. */
  readonly scale?: ColourScaleName | undefined;
  readonly isReversed: boolean;
  /**
   * Values that are categories, in the order of their colours; others that occur follow them. Categories have no range and no scale.
   * Undefined if values are no categories.
   */
  readonly categories?: readonly number[] | undefined;
  /** Names what the bytes depend on besides: colours, the way of drawing, and the encoder. */
  readonly revision: string;
}

/** Makes a small picture (PNG) of a box with one axis: its values as a line from left to right. */
export interface LineStep {
  readonly kind: "line";
  readonly from: DataType;
  readonly packing: Packing;
  /** Size in pixels. */
  readonly width: number;
  readonly height: number;
  /** Values at the bottom and the top; undefined if the values of the picture decide. */
  readonly range?: readonly [low: number, high: number] | undefined;
  /** Same as in {@link PictureStep}. */
  readonly revision: string;
}
