import type { DataTree, Variable } from "../model/data-tree.js";
import type { JsonObject } from "../model/json-value.js";
import type { Refusal, StoredArray } from "../source/source.js";
import type { EncodingPlan } from "../zarr/encoding-plan.js";
import type { ArrayDocument } from "../zarr/v2-documents.js";

/**
 * One variable of one snapshot with everything a chunk request needs, made when the dataset opened. Frozen. Of an array
 * that has not changed, the next snapshot has another object of the same parts.
 */
export interface ServedArray {
  readonly variable: Variable;
  /** The `.zarray` that is served. */
  readonly document: ArrayDocument;
  /** The `.zattrs` that is served: `_ARRAY_DIMENSIONS` included. */
  readonly zattrs: JsonObject;
  readonly plan: EncodingPlan;
  /** As stored: what `inspect` and previews look at. */
  readonly stored: StoredArray;
  /** Hash of the path, both documents and the plan: what of the array goes into the dataset's revision. */
  readonly digest: string;
}

/** One state of a dataset. Requests hold on to the one they began with. Frozen. */
export interface DatasetSnapshot {
  readonly id: string;
  /** Hash of all that is served as metadata; the same on every instance whose encoders write the same. Hexadecimal. */
  readonly revision: string;
  /** Identity of the source's place, for cache keys; see {@link "../source/source.js".StoredTree.identity}. */
  readonly identity: string;
  readonly tree: DataTree;
  /** By variable path: `a/b/t2m`. */
  readonly arrays: ReadonlyMap<string, ServedArray>;
  readonly refused: readonly Refusal[];
  /** Paths among `refused` of arrays that were served before: somebody may still ask for their chunks. */
  readonly withdrawn: ReadonlySet<string>;
  readonly warnings: readonly string[];
  /** `Cache-Control` of everything under the dataset. */
  readonly cacheControl: string;
  /** True: chunks are never rewritten in place, so that nobody looks whether they were. */
  readonly immutable: boolean;
  readonly location: string;
}

/**
 * The datasets of a server, as plugins see them. Not all need be open: one is opened, and what nobody asked for in a
 * while looked at again, before the handler of a route with its id as `dataset_id` is called.
 */
export interface Datasets {
  /** Ids in the order configured. */
  ids(): readonly string[];
  /**
   * The current state: of the dataset whose route was called, or of another that is open.
   * @throws ZpublishError `not-found`: `Dataset 'x' not found`; `internal` where it is not open.
   */
  get(id: string): DatasetSnapshot;
  /**
   * The current state of any dataset, opened if need be: at once where it is open and was looked at in time.
   * @throws ZpublishError as `get`, and what keeps it from being opened.
   */
  open(id: string): DatasetSnapshot | Promise<DatasetSnapshot>;
  /**
   * The state by which it may be said that something is not there: one that was looked for after this call. Others may have
   * told the client of a newer one: another process, another instance. The same state where it is `immutable`, or nobody looks
   * for new metadata.
   * @throws ZpublishError `source-unreadable` where it cannot be looked for.
   */
  lookBeforeAbsence(snapshot: DatasetSnapshot): Promise<DatasetSnapshot>;
  /** Whether `open` would answer this state at once. */
  isCurrent(snapshot: DatasetSnapshot): boolean;
}
