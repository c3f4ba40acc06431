import type { ZpublishError } from "../errors.js";
import type { JsonObject } from "../json/json-value.js";
import type { DataTree, Variable } from "../model/data-tree.js";
import type { CoarsenMethod } from "../zarr/plan/compute-step.js";
import type { EncodingPlan } from "../zarr/plan/encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { Refusal, StoredJoin } from "../zarr/stored-tree.js";
import type { ArrayDocument } from "../zarr/v2/array-document.js";
import type { V3Array } from "../zarr/v3/write-v3.js";

/**
 * One variable of one snapshot, with everything that a chunk request needs. Made when the dataset opens. Frozen. If the
 * array does not change, the next snapshot has another object of the same parts.
 */
export interface ServedArray {
  readonly variable: Variable;
  /** The `.zarray` that is served. */
  readonly document: ArrayDocument;
  /** The `.zattrs` that is served: `_ARRAY_DIMENSIONS` included. */
  readonly zattrs: JsonObject;
  readonly plan: EncodingPlan;
  /** Reason why Zarr v3 cannot describe the array; undefined if it can. */
  readonly v3Problem: string | undefined;
  /** Describes the array in Zarr v3 at each call: kept for all arrays, descriptions take much memory. @throws if it cannot. */
  describeV3(): V3Array;
  /** Same as in `ServedCodecs`. */
  readonly replacedCname: string | undefined;
  /** The stored array, for `inspect` and previews. */
  readonly stored: StoredArray;
  /** Hash of the path, both documents and the plan: the array's part of the dataset's revision. */
  readonly digest: string;
}

/** One state of a dataset. A request uses the one that it began with. Frozen. */
export interface DatasetSnapshot {
  readonly id: string;
  /** Hash of all served metadata, hexadecimal. The same on every instance whose encoders write the same bytes. */
  readonly revision: string;
  /** Identity of the source's location, for cache keys; see {@link "../zarr/stored-tree.js".StoredTree.identity}. */
  readonly identity: string;
  /** As in `StoredTree`. */
  readonly format?: string | undefined;
  /** As in `StoredTree`. */
  readonly join?: StoredJoin | undefined;
  readonly tree: DataTree;
  /** By variable path: `a/b/t2m`. */
  readonly arrays: ReadonlyMap<string, ServedArray>;
  readonly refused: readonly Refusal[];
  /** Paths among `refused` of arrays that were served before: clients may still ask for their chunks. */
  readonly withdrawn: ReadonlySet<string>;
  readonly warnings: readonly string[];
  /** `Cache-Control` of everything under the dataset. */
  readonly cacheControl: string;
  /** True if chunks are never rewritten in place, so that requests need not check it. */
  readonly immutable: boolean;
  readonly location: string;
  /**
   * Coarser levels of the dataset, a tree of their own: groups `0` (the dataset itself), `1`, `2`, … below a root without arrays.
   * Level arrays are made when they are first asked for. Undefined if the configuration asks for none.
   */
  readonly overviews?: DatasetSnapshot | undefined;
  /** Levels of a snapshot that is the `overviews` of a dataset; undefined for datasets. */
  readonly levels?: OverviewLevels | undefined;
}

/** What a snapshot of overviews is made of. */
export interface OverviewLevels {
  /** The dataset that is coarsened. */
  readonly dataset: DatasetSnapshot;
  /** Number of levels above the dataset. */
  readonly count: number;
  /** Dimensions that are coarsened, by name. */
  readonly horizontal: ReadonlySet<string>;
  readonly method: CoarsenMethod;
  /** Convention of the metadata in Zarr v2. */
  readonly metadata: "geo" | "ome";
}

/**
 * The datasets of a server, as plugins see them. Not all need be open. Before the server calls a route's handler, it opens
 * the dataset with the id `dataset_id`, or refreshes it after a time without requests.
 */
export interface Datasets {
  /** Ids of all datasets: those configured, in order, then all others, sorted. The same array while nothing has changed; it is not to be changed. */
  ids(): readonly string[];
  /** Number of ids at the beginning of `ids()` that are configured. */
  readonly configuredCount: number;
  /** Errors by id of datasets that could not be opened lately. Their messages may name files: they are for the log. */
  failures(): ReadonlyMap<string, ZpublishError>;
  /** Returns the last snapshot of a dataset if it is open, and does not count as a use of it. Undefined if it is not open. */
  opened(id: string): DatasetSnapshot | undefined;
  /**
   * Returns the current snapshot of an open dataset, such as the one whose route was called.
   * @throws ZpublishError `not-found`: `Dataset 'x' not found`; `internal` if it is not open.
   */
  get(id: string): DatasetSnapshot;
  /**
   * Returns the current snapshot of any dataset: at once if it is open and fresh, else when it is.
   * @throws ZpublishError `not-found`, or if it cannot be opened.
   */
  open(id: string): DatasetSnapshot | Promise<DatasetSnapshot>;
  /**
   * Refreshes a dataset before a request is answered with 404, and returns its snapshot. Another process or instance may
   * have told the client of newer metadata. Returns the same snapshot if it is `immutable`, or if refreshing is off.
   * @throws ZpublishError `source-unreadable` if the source cannot be read.
   */
  refreshBeforeNotFound(snapshot: DatasetSnapshot): Promise<DatasetSnapshot>;
}
