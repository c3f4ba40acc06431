import type { CoordinateAxis } from "../cf/axis-labels.js";
import type { ColourScaleName } from "../colour/colour-scales.js";
import type { ArrayView, DatasetView } from "../dataset/dataset.js";
import type { BodyReply } from "../http/reply.js";
import type { MapExtent } from "./project-grid.js";
import type { MapCrs, MapFrame } from "./sample-grid.js";

export type { MapCrs, MapExtent, MapFrame };

/** How the values of a map become colours. */
export interface MapStyle {
  /** Values of the first and the last colour. Default: that of the variable. */
  readonly range?: readonly [low: number, high: number] | undefined;
  /** Default: a sequential one, or a diverging one if the range is symmetric. */
  readonly scale?: ColourScaleName | undefined;
  /** Whether the scale begins with the colour of its greatest value. Default false. */
  readonly isReversed?: boolean | undefined;
}

/** How a map is drawn. */
export interface MapOptions extends MapStyle {
  /** Colour of missing values and of what lies beside the grid: `#rrggbb`. Default: they are transparent. */
  readonly background?: string | undefined;
  /** Whether values between the centres of cells are interpolated. Default false: a pixel has the value of the cell it lies in. */
  readonly isLinear?: boolean | undefined;
}

/**
 * What a map shows of the axes that do not lie on the Earth, by dimension: an index, or a label, which may begin with `nearest::`,
 * `ffill::` or `bfill::`. `time` is the axis of times whatever its name. Others show the last time, and else the first step.
 */
export type MapSteps = ReadonlyMap<string, number | string>;

/** A category of values. */
export interface MapCategory {
  readonly value: number;
  /** `#rrggbb` */
  readonly colour: string;
  /** Undefined if it has no name. */
  readonly meaning: string | undefined;
}

/** Pixels of a legend, unless another size is asked for. */
export const LEGEND_SIZE = { width: 256, height: 16 } as const;

/** What maps of a variable have in common. */
export interface MapPlace {
  readonly snapshot: DatasetView;
  readonly array: ArrayView;
  /** Long name, or another attribute that describes it, or else path. */
  readonly title: string;
  /** Degrees; undefined if no cell has a place. */
  readonly extent: MapExtent | undefined;
  /** Axes of the array that run along the rows and the columns of the grid. */
  readonly y: number;
  readonly x: number;
  /** One per axis of the array. */
  readonly axes: readonly CoordinateAxis[];
  /** Index that is shown by default, one per axis; 0 for those of the grid. */
  readonly position: readonly number[];
  /** Whether values may be interpolated: cells have coordinates of rows and columns, and are no categories. */
  readonly isContinuous: boolean;
  /** Undefined if values are no categories, which have neither range nor scale. */
  readonly categories: readonly MapCategory[] | undefined;
  /** Tells whether this is still so: coordinates were not written over. Takes microseconds; false if it would have to wait. */
  isCurrent(): boolean;
}

/** A map as a PNG, whose missing values are transparent. Its ETag is known before it is drawn. */
export interface MapPicture extends BodyReply {
  /** Tells whether the picture is still the same: coordinates and chunks were not written over. Takes microseconds; false if it would have to wait. */
  isCurrent(): boolean;
}

/** Draws maps of variables. Everything is computed in the pool; pictures are cached apart from chunks. */
export interface Maps {
  /**
   * Describes the maps of a variable, by its coordinates alone. All other functions take what this one returns.
   * @param path That of the variable.
   * @throws ZpublishError `not-found` if there is no such variable, or if it has no maps, saying why
   */
  place(snapshot: DatasetView, path: string): Promise<MapPlace>;
  /** Chooses the values of the first and the last colour by some values of the variable. */
  range(place: MapPlace): Promise<readonly [low: number, high: number]>;
  /**
   * Replies with a map.
   * @throws ZpublishError `invalid-query` if a step is none; `too-large` if the map would be made of too many chunks
   */
  draw(place: MapPlace, frame: MapFrame, steps: MapSteps, options?: MapOptions): Promise<MapPicture>;
  /** Reads the value in the middle of a map; undefined if it is missing, or if there is no cell. @throws as `draw` */
  valueAt(
    place: MapPlace,
    frame: MapFrame,
    steps: MapSteps,
    signal: AbortSignal,
  ): Promise<number | undefined>;
  /** Replies with the colours of maps as a PNG: from the least to the greatest value, or one stripe for each category. */
  legend(
    place: MapPlace,
    size: { readonly width: number; readonly height: number },
    style?: MapStyle,
  ): Promise<BodyReply>;
}
