import type { ServedArray } from "../../dataset/dataset.js";

/** Decodes a few values for people. Chunks are never served this way. */
export interface PreviewService {
  /**
   * Returns the first and last values of a variable in C order, formatted as numpy prints them (`1.5`, `nan`,
   * `2000-01-01T00:00:00`, `'abc'`). CF times (`units: "hours since …"`) and `M8` are ISO dates. Undefined if the type or codec
   * cannot be decoded or the source failed.
   */
  values(array: ServedArray): Promise<PreviewValues | undefined>;
  /**
   * Returns all values of a short one-dimensional variable, unpacked, NaN for missing ones. Undefined if they are no numbers,
   * cannot be decoded, or are more than 262,144.
   * @throws ZpublishError if the source or a codec failed.
   */
  numbers(array: ServedArray): Promise<readonly number[] | undefined>;
}

/** The first and last values of a variable. */
export interface PreviewValues {
  readonly first: readonly string[];
  /** Empty if `first` has all values. */
  readonly last: readonly string[];
}
