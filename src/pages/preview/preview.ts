import type { ServedArray } from "../../dataset/dataset.js";

/** Decoded values for people to look at; never the way data is served. */
export interface PreviewService {
  /**
   * The first (and last) values of a variable in C order, formatted as text the way numpy prints them
   * (`1.5`, `nan`, `2000-01-01T00:00:00`, `'abc'`); undefined where its type or codec cannot be decoded or the source failed.
   * CF times (`units: "hours since …"`) and `M8` come as ISO dates.
   */
  values(array: ServedArray): Promise<PreviewValues | undefined>;
}

export interface PreviewValues {
  readonly first: readonly string[];
  /** Empty where `first` is all there is. */
  readonly last: readonly string[];
}
