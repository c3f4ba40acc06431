import type { JsonObject } from "../json/json-value.js";
import type { DataType } from "./data-type.js";

/** One array of a group as clients see it, in its stored form (xarray's `decode_cf=False`). Frozen. */
export interface Variable {
  readonly name: string;
  /** Path below the root without a leading slash, as in a Zarr store: `a/b/t2m`. */
  readonly path: string;
  /** One name per axis; never missing, never two equal. */
  readonly dims: readonly string[];
  /** Elements per axis. */
  readonly shape: readonly number[];
  /** Elements per axis of a served chunk. `[]` for a scalar. */
  readonly chunkShape: readonly number[];
  readonly dataType: DataType;
  /** Without `_ARRAY_DIMENSIONS`. */
  readonly attrs: JsonObject;
}

/** One node of a data tree. Frozen. */
export interface Group {
  /** Begins with a slash: `/`, `/a`, `/a/b`. */
  readonly path: string;
  /** Last segment of the path; empty for the root. */
  readonly name: string;
  readonly attrs: JsonObject;
  /** By name, in the order of the source; sorted by name if it has no order. */
  readonly variables: ReadonlyMap<string, Variable>;
  /** Variables that are coordinates: named like their one dimension, or named by a `coordinates` attribute. */
  readonly coordinateNames: ReadonlySet<string>;
  /** Dimension name → length, in order of first appearance. */
  readonly dims: ReadonlyMap<string, number>;
  /** Names of the child groups, sorted. */
  readonly childNames: readonly string[];
}

/** A tree of groups; a flat dataset is a tree of one. Frozen. */
export interface DataTree {
  readonly root: Group;
  /** Every group by path, root first, parents before children, siblings sorted. */
  readonly groups: ReadonlyMap<string, Group>;
}
