import type { CoordinateAxis } from "../cf/axis-labels.js";
import type { CellBox, CellPlaces, DegreeBounds, NearestCell } from "../cf/cell-search.js";
import type { Georeference } from "../cf/placement.js";
import type { NumericArray } from "../codec/items/item-values.js";
import type { ArrayView, DatasetView } from "../dataset/dataset.js";
import type { DataType } from "../model/data-type.js";
import type { StoredVersion } from "../zarr/chunk-reader.js";
import type { PickedAxis } from "../zarr/plan/item-pick.js";

export type { NumericArray };

/** Indexes of one axis that are read. */
export type AxisSelection = PickedAxis;

/** Bytes of a piece of a stream. */
export const PIECE_BYTES = 2 * 2 ** 20;

/** How values are read. */
export interface ReadValuesOptions {
  /**
   * Whether values are decoded as xarray's `decode_cf` does (with `decode_times=False`): missing ones are NaN, packed ones unpacked in
   * the float type that xarray chooses. Truth values and texts stay what they are. Default false: as stored.
   */
  readonly decode?: boolean | undefined;
  /** Byte order of `bytes`. Default: little. */
  readonly byteOrder?: "little" | "big" | undefined;
  /** Ends the work within a chunk: the promise is rejected with `cancelled`. */
  readonly signal?: AbortSignal | undefined;
  /** Bound of the result; a larger one is refused as `too-large` before anything is read. Default 1 GiB; none for `stream`. */
  readonly maxBytes?: number | undefined;
  /** Reserves the memory of the result, as `RouteRequest.reserve` does; called once, before anything is read. */
  readonly reserve?: ((byteLength: number) => Promise<void> | void | undefined) | undefined;
}

/** How a stream is read. */
export interface StreamValuesOptions extends ReadValuesOptions {
  /** Position in C order of the first item of the stream. Default 0. */
  readonly firstItem?: number | undefined;
  /** Items of the stream. Default: all from `firstItem` on. */
  readonly itemCount?: number | undefined;
  /** Largest piece in bytes, of which three are made ahead. Default 2 MiB. */
  readonly pieceBytes?: number | undefined;
  /** Whether the memory of a piece is used again as soon as the next one is asked for. Default false. */
  readonly reusesMemory?: boolean | undefined;
}

/** Values in C order. The caller owns them. */
export interface ValueBlock {
  /** One length per axis of the selection; of pieces of a stream and of points, the number of items. */
  readonly shape: readonly number[];
  /** Type of the values: after decoding if they are decoded, in the byte order asked for. */
  readonly dataType: DataType;
  /** Empty for variable-length types. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /**
   * Numbers over `bytes`; 64-bit integers and times as `bigint`s, half floats widened, truth values as 0 and 1. Texts without the zeros
   * that pad them, of UTF-8, or of Latin-1 if they are bytes of variable length. Undefined for other types, and for bytes in
   * the other byte order than this machine's.
   */
  readonly values: NumericArray | readonly string[] | undefined;
}

/** Cost of reading, known before anything is read. */
export interface ReadCost {
  readonly itemCount: number;
  /** Bytes of the result; of variable-length items a guess. */
  readonly byteLength: number;
  /** Stored chunks of the dataset, not of another encoding, that have selected items. */
  readonly chunks: number;
  /** Decoded bytes of these chunks. */
  readonly chunkBytes: number;
  /** Memory of a stream of the selection. */
  readonly streamBytes: number;
}

/** Coordinates of an array. */
export interface Coordinates extends Georeference {
  /** One per axis of the array. */
  readonly axes: readonly CoordinateAxis[];
  /** What tells them from those before their files were written over in place. */
  readonly version: StoredVersion;
}

/** Latitudes and longitudes of the cells of a grid, in memory that threads share. */
export interface GridCells extends CellPlaces<Float64Array> {
  /** Name of these cells in this process. */
  readonly key: string;
  /** As in {@link Coordinates}. */
  readonly version: StoredVersion;
}

/** Reads coordinates, each once for a snapshot. Look-ups of labels are in `cf/axis-labels.ts`. */
export interface CoordinateValues {
  /** Describes the axes of an array, and how it lies on the Earth. @throws what reading coordinates throws */
  coordinates(snapshot: DatasetView, array: ArrayView): Promise<Coordinates>;
  /**
   * Returns the latitudes and longitudes of the cells of an array's grid.
   * @throws ZpublishError `invalid-query` if the array has none, or if they move from one step to the next
   */
  cellPlaces(snapshot: DatasetView, array: ArrayView): Promise<GridCells>;
  /**
   * Returns the smallest box of rows and columns that holds all cells of a region, by their latitudes and longitudes; empty if there are
   * none. Longitudes go eastward from the first bound.
   * @throws ZpublishError `invalid-query` if the array has none, if they move from one step to the next, or if one bound of longitudes
   * is open: a circle has no end
   */
  cellBox(
    snapshot: DatasetView,
    array: ArrayView,
    latitudes: DegreeBounds,
    longitudes: DegreeBounds,
  ): Promise<CellBox>;
  /**
   * Finds the nearest cell to each place by great-circle distance, of equally near ones the first in C order.
   * @throws ZpublishError `invalid-query`, as `cellBox`, or if a place is none
   */
  nearestCells(
    snapshot: DatasetView,
    array: ArrayView,
    places: Iterable<readonly [latitude: number, longitude: number]>,
  ): Promise<readonly NearestCell[]>;
}

/** How a function of a module is run. */
export interface RunModuleOptions {
  /** Rejects the promise with `cancelled`; the function sees it as `isCancelled()`. */
  readonly signal?: AbortSignal | undefined;
}

/**
 * Reads decoded values of any array. Chunks are read, decoded, cropped and gathered in the pool. Selections have one entry per axis of
 * the array. All are refused as `invalid-query` if an index is outside of its axis.
 */
export interface Values extends CoordinateValues {
  /** Returns the type of an array's values: as stored, or decoded. */
  dataType(array: ArrayView, decode: boolean): DataType;
  /** Returns the cost of a selection from the plan of the stored chunks alone. Another encoding that is read in their place costs less. */
  cost(
    array: ArrayView,
    selection: readonly AxisSelection[],
    options?: Pick<StreamValuesOptions, "decode" | "pieceBytes">,
  ): ReadCost;
  /** Reads a selection. @throws ZpublishError `too-large`, `cancelled`, and what reading chunks throws */
  read(
    snapshot: DatasetView | undefined,
    array: ArrayView,
    selection: readonly AxisSelection[],
    options?: ReadValuesOptions,
  ): Promise<ValueBlock>;
  /**
   * Reads a selection in pieces, in C order. Pieces are made ahead of the one that is asked for, three at most unless a row of chunks
   * is larger. Work ends when the iterator is closed.
   * @throws as `read`
   */
  stream(
    snapshot: DatasetView | undefined,
    array: ArrayView,
    selection: readonly AxisSelection[],
    options?: StreamValuesOptions,
  ): AsyncIterable<ValueBlock>;
  /**
   * Reads one value per point; each chunk is decoded once.
   * @param points One row of indexes per point, as many as the array has axes, at least one. A point with a negative index is missing:
   * NaN if values are decoded to floats or the array has no fill value, NaT if they are dates or durations, else the fill value; no text
   * for texts of variable length.
   */
  readPoints(
    snapshot: DatasetView | undefined,
    array: ArrayView,
    points: ArrayLike<number>,
    options?: ReadValuesOptions,
  ): Promise<ValueBlock>;
  /**
   * Runs the default export of a module in the pool: `(data, { isCancelled }) => result`, or a promise of it. Both are copied between
   * threads, so the function gets and returns what structured clone can copy.
   * @throws ZpublishError that the function throws; `internal` naming the module for any other error, and if data or result cannot be
   * copied
   */
  run<T>(module: URL | string, data: unknown, options?: RunModuleOptions): Promise<T>;
}
