import type { CoordinateAxis } from "../cf/axis-labels.js";
import type { ColourScaleName } from "../colour/colour-scales.js";
import type { ArrayView, DatasetView } from "../dataset/dataset.js";
import type { BodyReply } from "../http/reply.js";
import type { MapExtent } from "./project-grid.js";
import type { MapCrs, MapFrame } from "./sample-grid.js";

export type { MapCrs, MapExtent, MapFrame };

/** How the values of a map become colours. */
export interface MapStyle {
  /** Values of the first and the last colour. Default: that of the layer. */
  readonly range?: readonly [low: number, high: number] | undefined;
  /** Default: that of the layer. */
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
 * What a map shows of the axes that do not lie on the Earth, by dimension: a label, `nearest::label` (also `ffill`, `bfill`, `exact`), or
 * an index. `time` is the axis of times whatever its name. Others show the last time, and else the first step.
 */
export type MapSteps = ReadonlyMap<string, { readonly label: string } | { readonly index: number }>;

/** A category of a layer. */
export interface MapCategory {
  readonly value: number;
  /** `#rrggbb` */
  readonly colour: string;
  /** Undefined if it has no name. */
  readonly meaning: string | undefined;
}

/** What maps of a variable have in common, as far as its values are not read. */
export interface MapPlace {
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
}

/** What maps of a variable have in common. */
export interface MapLayer extends MapPlace {
  readonly range: readonly [low: number, high: number];
  readonly scale: ColourScaleName;
}

/** Draws maps of variables. Everything is computed in the pool; pictures are cached apart from chunks. */
export interface Maps {
  /** Describes the maps of a variable, of which coordinates alone are read. @throws as `layer` */
  place(snapshot: DatasetView, array: ArrayView): Promise<MapPlace>;
  /**
   * Describes the maps of a variable. The range is that of some of its values.
   * @throws ZpublishError `not-found` if it has none, saying why
   */
  layer(snapshot: DatasetView, array: ArrayView): Promise<MapLayer>;
  /**
   * Replies with a map as a PNG, whose missing values are transparent. Its ETag is known before anything is drawn.
   * @throws ZpublishError as `layer`; `invalid-query` if a step is none; `too-large` if the map would be made of too many chunks
   */
  draw(
    snapshot: DatasetView,
    array: ArrayView,
    frame: MapFrame,
    steps: MapSteps,
    options?: MapOptions,
  ): Promise<BodyReply>;
  /** Reads the value in the middle of a map; undefined if it is missing, or if there is no cell. @throws as `draw` */
  valueAt(
    snapshot: DatasetView,
    array: ArrayView,
    frame: MapFrame,
    steps: MapSteps,
    signal: AbortSignal,
  ): Promise<number | undefined>;
  /** Replies with the colours of a layer as a PNG: from the least to the greatest value, or one stripe for each category. */
  legend(
    snapshot: DatasetView,
    array: ArrayView,
    size: { readonly width: number; readonly height: number },
    style?: MapStyle,
  ): Promise<BodyReply>;
}
