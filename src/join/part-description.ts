import type { JsonObject } from "../json/json-value.js";
import type { PartStored } from "./stored-form.js";

/**
 * One file of several that are one dataset, as far as the others have to be compared with it: plain data, which is kept between runs,
 * so that the file need not be opened for it.
 */
export interface PartDescription {
  /** Path below the folder that all parts have in common, for messages and chunk versions: `2024/sst-01.nc`. */
  readonly name: string;
  /** Every group, root (`path` "/") first, parents before children. Attributes of the first part are served. */
  readonly groups: readonly { readonly path: string; readonly attrs: JsonObject }[];
  readonly arrays: readonly PartArray[];
  /** Arrays and groups of the part that cannot be served. */
  readonly refused: readonly { readonly path: string; readonly reason: string }[];
}

/** An array of a part. */
export interface PartArray {
  readonly stored: PartStored;
  /** Names of its axes. */
  readonly dims: readonly string[];
  /**
   * Items in C order, in the stored type and byte order, of an array that is a coordinate: scalars, and 1-D arrays along the joined
   * dimension or of the name of their dimension. Items of a variable-length type are as vlen-utf8 writes them in one chunk: their number
   * and, before each, its length, as little-endian uint32. Undefined for all others, whose values are not compared.
   */
  readonly values?: Uint8Array;
}
