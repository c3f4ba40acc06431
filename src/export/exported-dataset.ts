import type { ArrayView, DatasetView } from "../dataset/dataset.js";
import type { ByteRange } from "../http/reply.js";
import type { JsonObject } from "../json/json-value.js";
import { elementCount } from "../model/data-tree.js";
import { type DataType, GUESSED_ITEM_BYTES, parseDataType } from "../model/data-type.js";
import type { AxisSelection, ValueBlock, Values } from "../values/values.js";

/** What is written: variables of a dataset, or pieces of them. */
export interface ExportedDataset {
  /** The dataset whose arrays are read. */
  readonly snapshot: DatasetView;
  /** Whether values are decoded, and times written as dates where a format has such. */
  readonly isDecoded: boolean;
  readonly attrs: JsonObject;
  /** Lengths by name, in the order of the table. */
  readonly dims: ReadonlyMap<string, number>;
  readonly variables: readonly ExportedVariable[];
}

/** One variable that is written. */
export interface ExportedVariable {
  /** Unique, without slashes. */
  readonly name: string;
  readonly isCoordinate: boolean;
  readonly dims: readonly string[];
  readonly shape: readonly number[];
  /** Type of the values: as stored, or as decoded. */
  readonly dataType: DataType;
  readonly attrs: JsonObject;
  readonly source: ValueSource;
}

/** Where values come from. */
export type ValueSource =
  /**
   * One selection per axis of the array. `kept` are the axes that the variable has. `points` are axes whose indexes, lists of one length, are
   * taken together, as in xarray's pointwise `isel`: the first of them is kept. Where one of these is negative, the value is missing.
   */
  | {
      readonly array: ArrayView;
      readonly selection: readonly AxisSelection[];
      readonly kept: readonly number[];
      readonly points?: readonly number[] | undefined;
      /** Characters along the last axis, which become one text, as xarray decodes them. */
      readonly textLength?: number | undefined;
    }
  /** Values in memory. */
  | { readonly block: ValueBlock };

/** A file that a dataset becomes. */
export interface FileBody {
  /** Known of NetCDF and npy before any value is read. */
  readonly byteLength?: number;
  /** Memory that {@link FileBody.pieces} takes besides values that the dataset holds. Known if `byteLength` is. */
  readonly heldByteLength?: number;
  /**
   * Makes the file, or a range of it if its length is known. Only what lies in the range is read. The memory of a piece may be used again
   * when the next one is asked for.
   */
  pieces(range: ByteRange | undefined, signal: AbortSignal): AsyncIterable<Uint8Array>;
}

/**
 * Lays out a dataset in a format. Nothing is read, but texts of any length for the longest of them if the format has the length of a file.
 * @throws ZpublishError `invalid-query` if the format cannot hold the dataset
 */
export type DatasetWriter = (
  dataset: ExportedDataset,
  values: Values,
  signal: AbortSignal,
) => Promise<FileBody>;

/** Returns the bytes of all values. @param isTable Whether they are repeated in each row of a table */
export function exportedByteLength({ dims, variables }: ExportedDataset, isTable = false): number {
  const rowCount = elementCount([...dims.values()]);
  const bytesOf = ({ dataType, shape, source }: ExportedVariable) => {
    const textLength = "textLength" in source ? (source.textLength ?? 0) : 0;
    return (
      (isTable ? rowCount : elementCount(shape)) *
      (dataType.itemSize || Math.max(GUESSED_ITEM_BYTES, textLength))
    );
  };
  return variables.reduce((sum, variable) => sum + bytesOf(variable), 0);
}

/** Type of texts of any length. */
export const TEXT_TYPE = parseDataType("|O");

/** Name of the dimension of points, which has no column in tables. */
export const POINT = "point";
