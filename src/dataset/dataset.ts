import { createHash } from "node:crypto";
import { ZpublishError } from "../errors.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { stringifyJson } from "../json/stringify-json.js";
import { type DataTree, type Group, normalNodePath, type Variable } from "../model/data-tree.js";
import { dimensionsAttribute } from "../zarr/metadata-fields.js";
import type { PlannedArray } from "../zarr/plan/create-encoding-plan.js";
import type { CoarsenMethod, EncodingPlan } from "../zarr/plan/encoding-plan.js";
import type { StoredArray } from "../zarr/stored-array.js";
import type { NamedVersion, Refusal, StoredFile, StoredJoin, StoredVersions } from "../zarr/stored-tree.js";
import type { ArrayDocument } from "../zarr/v2.js";
import { type PlanWithCodecs, writePortableV3 } from "../zarr/v3/portable.js";
import { type V3Array, writeV3 } from "../zarr/v3/write-v3.js";

/** One variable of one snapshot, as plugins see it. Frozen. */
export interface ArrayView {
  readonly variable: Variable;
  /** The `.zarray` that is served. */
  readonly document: ArrayDocument;
  /** The `.zattrs` that is served: `_ARRAY_DIMENSIONS` included. */
  readonly zattrs: JsonObject;
}

/**
 * One variable of one snapshot, with everything that a chunk request needs. Made when the dataset opens. If the array does not change,
 * the next snapshot has another object of the same parts.
 */
export interface ServedArray extends ArrayView {
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
  /**
   * Other cuts of the array, whose chunks this server makes and caches: values are read from the one that suits a selection. Undefined
   * if there are none.
   */
  readonly cuts?: readonly StoredArray[] | undefined;
  /**
   * True if overviews make the array. Their other arrays are the dataset's own: the chunks of both have one ETag, and one entry of the
   * cache.
   */
  readonly isOfOverviews?: true;
}

/** One state of a dataset, as plugins see it. A request uses the one that it began with. Frozen. */
export interface DatasetView {
  readonly id: string;
  /** Hash of all served metadata, hexadecimal. The same on every instance whose encoders write the same bytes. */
  readonly revision: string;
  /**
   * Hash of what its files are, which a file of other values with the same metadata changes: for ETags of answers that are made of many
   * chunks. Chunks of a Zarr store that are written over are not seen.
   */
  readonly state: string;
  /** As in `StoredTree`. */
  readonly format?: string | undefined;
  /** Names of the dimensions that may grow: unlimited ones of a file, and the joined one. */
  readonly unlimited?: readonly string[];
  readonly tree: DataTree;
  /** By variable path: `a/b/t2m`. */
  readonly arrays: ReadonlyMap<string, ArrayView>;
  /** Arrays that cannot be served, and why. */
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
  /** `Cache-Control` of everything under the dataset. */
  readonly cacheControl: string;
  /** True if chunks are never rewritten in place, so that requests need not check it. */
  readonly immutable: boolean;
  /**
   * Coarser levels of the dataset, a tree of their own: groups `0` (the dataset itself), `1`, `2`, … below a root without arrays.
   * Level arrays are made when they are first asked for. Undefined if the configuration asks for none.
   */
  readonly overviews?: DatasetView | undefined;
  /** The dataset in its further encodings, by their names; undefined if the configuration asks for none. */
  readonly encodings?: ReadonlyMap<string, DatasetView> | undefined;
  /** The file that the dataset was read from; undefined unless the configuration offers it. */
  readonly file?: FileView | undefined;
  /** States of the dataset that its source keeps; undefined if it keeps none. Those of a version are the dataset's. */
  readonly versions?: Pick<StoredVersions, "list"> | undefined;
  /** Which state of a dataset this is, if its id is that of a version: `x@v1`. */
  readonly version?: DatasetVersion | undefined;
}

/** One state of a dataset, which never changes. */
export interface DatasetVersion {
  /** Id of the dataset. */
  readonly dataset: string;
  /** A tag, or the id of a snapshot. */
  readonly name: string;
}

/** Character between the id of a dataset and the name of one of its versions. */
export const VERSION_MARK = "@";

/**
 * Returns the id of a version of a dataset: with its name, or that of its snapshot if it is a branch, which moves, or if no path can have
 * the name.
 */
export function idOfVersion(dataset: string, { kind, name, snapshot }: NamedVersion): string {
  const isName = kind !== "branch" && /^[^/\p{Cc}]{1,200}$/u.test(name);
  return dataset + VERSION_MARK + (isName ? name : snapshot);
}

/** What makes a dataset a version of another one. */
export interface VersionConfig {
  readonly version?: DatasetVersion | undefined;
  /** All versions of the dataset. Default: those of its source. */
  readonly versions?: StoredVersions | undefined;
}

/** The file of a dataset, as plugins see it. */
export interface FileView {
  /** Without its folder. */
  readonly name: string;
  readonly byteLength: number;
  readonly contentType: string;
}

/** One state of a dataset. */
export interface DatasetSnapshot extends DatasetView {
  /** Identity of the source's location, for cache keys; see {@link "../zarr/stored-tree.js".StoredTree.identity}. */
  readonly identity: string;
  /** As in `StoredTree`. */
  readonly join?: StoredJoin | undefined;
  readonly arrays: ReadonlyMap<string, ServedArray>;
  /** Paths among `refused` of arrays that were served before: clients may still ask for their chunks. */
  readonly withdrawn: ReadonlySet<string>;
  readonly location: string;
  readonly overviews?: DatasetSnapshot | undefined;
  readonly encodings?: ReadonlyMap<string, DatasetSnapshot> | undefined;
  /** The dataset, of a snapshot that is one of its `encodings`: their chunks are its chunks. Undefined for datasets. */
  readonly encoded?: DatasetSnapshot | undefined;
  /** Levels of a snapshot that is the `overviews` of a dataset; undefined for datasets. */
  readonly levels?: OverviewLevels | undefined;
  readonly file?: (FileView & StoredFile) | undefined;
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

/** The datasets of a server, as plugins see them. Not all need be open: that of a route is when its handler is called (`Route.dataset`). */
export interface Datasets<Snapshot extends DatasetView = DatasetSnapshot> {
  /** Ids of all datasets: those configured, in order, then all others, sorted. The same array while nothing has changed; it is not to be changed. */
  ids(): readonly string[];
  /** Number of ids at the beginning of `ids()` that are configured. */
  readonly configuredCount: number;
  /** Tells whether a dataset offers its file, as far as that is known without opening it. */
  offersFile(id: string): boolean;
  /** Errors by id of datasets that could not be opened lately. Their messages may name files: they are for the log. */
  failures(): ReadonlyMap<string, ZpublishError>;
  /** Returns the last snapshot of a dataset if it is open, and does not count as a use of it. Undefined if it is not open. */
  opened(id: string): Snapshot | undefined;
  /**
   * Returns the current snapshot of an open dataset, such as the one whose route was called.
   * @throws ZpublishError `not-found`: `Dataset 'x' not found`; `internal` if it is not open.
   */
  get(id: string): Snapshot;
  /**
   * Returns the current snapshot of any dataset: at once if it is open and fresh, else when it is.
   * @throws ZpublishError `not-found`, or if it cannot be opened.
   */
  open(id: string): Snapshot | Promise<Snapshot>;
  /**
   * Refreshes a dataset before a request is answered with 404, and returns its snapshot. Another process or instance may
   * have told the client of newer metadata. Returns the same snapshot if it is `immutable`, or if refreshing is off.
   * @throws ZpublishError `source-unreadable` if the source cannot be read.
   */
  refreshBeforeNotFound(snapshot: Snapshot): Promise<Snapshot>;
}

/**
 * Finds the group that a path names. Leading, trailing and doubled slashes do not count, so that paths from `/groups` can
 * be used verbatim. A path without segments is the root.
 * @throws ZpublishError `not-found`: `Group 'a/b' not found in dataset 'x'`.
 */
export function findGroup(snapshot: Pick<DatasetView, "id" | "tree">, groupPath: string): Group {
  const path = normalNodePath(groupPath);
  const group = snapshot.tree.groups.get(`/${path}`);
  if (group === undefined) {
    throw new ZpublishError("not-found", `Group '${path}' not found in dataset '${snapshot.id}'`);
  }
  return group;
}

/** Returns the array of a path, with slashes as in {@link findGroup}. @throws ZpublishError `not-found` */
export function findArray<Served extends ArrayView>(
  snapshot: Pick<DatasetView, "id"> & { readonly arrays: ReadonlyMap<string, Served> },
  variablePath: string,
): Served {
  const path = normalNodePath(variablePath);
  const array = snapshot.arrays.get(path);
  if (array === undefined)
    throw new ZpublishError("not-found", `Variable '${path}' not found in dataset '${snapshot.id}'`);
  return array;
}

/** Returns the overviews of a dataset. @throws ZpublishError `not-found` if its configuration asks for none. */
export function overviewsOf<Overviews extends DatasetView>({
  id,
  overviews,
}: {
  readonly id: string;
  readonly overviews?: Overviews | undefined;
}): Overviews {
  if (overviews !== undefined) return overviews;
  throw new ZpublishError(
    "not-found",
    `Dataset '${id}' has no overviews: its configuration does not ask for them`,
  );
}

/** Returns a dataset in one of its further encodings. @throws ZpublishError `not-found` if its configuration has none of that name. */
export function encodingOf<Encoded extends DatasetView>(
  { id, encodings }: { readonly id: string; readonly encodings?: ReadonlyMap<string, Encoded> | undefined },
  name: string,
): Encoded {
  const found = encodings?.get(name);
  if (found !== undefined) return found;
  throw new ZpublishError("not-found", `Encoding '${name}' not found in dataset '${id}'`);
}

/**
 * Returns the path of a dataset's endpoints below the root path, with a slash at both ends: `/datasets/air/`; `/` if the server
 * publishes that dataset alone.
 * @param id As the path is to have it: percent-encoded, as it is for a decoded path, or `{dataset_id}` in a template.
 */
export type DatasetPath = (id: string) => string;

/** Path of each dataset of several. */
export const severalDatasets: DatasetPath = (id) => `/datasets/${id}/`;

const oneDataset: DatasetPath = () => "/";

/** Returns the paths of datasets in a configuration. */
export function datasetPathOf({ single }: { readonly single: boolean }): DatasetPath {
  return single ? oneDataset : severalDatasets;
}

/**
 * Makes what is served of an array that is planned.
 * @param isAsked Whether the operator asks for another encoding than the stored one.
 * @param planPortable Plans it for a portable store of Zarr v3; undefined if that is as v2 is.
 */
export function createServedArray(
  stored: StoredArray,
  planned: PlannedArray,
  dims: readonly string[],
  isAsked: boolean,
  planPortable?: PlanWithCodecs,
): ServedArray {
  const { plan, document, replacedCname } = planned;
  const variable: Variable = Object.freeze({
    name: stored.name,
    path: stored.path,
    dims,
    shape: stored.shape,
    chunkShape: document.chunks,
    dataType: stored.dataType,
    attrs: stored.attrs,
  });
  const zattrs: JsonObject = { ...stored.attrs, [dimensionsAttribute]: dims };
  const describeV3 = () =>
    planPortable === undefined
      ? writeV3(stored, planned, dims, isAsked)
      : writePortableV3(stored, planned, dims, isAsked, planPortable);
  const v3Problem = problemOf(describeV3);
  const parts: JsonValue[] = [stored.path, { ...document }, zattrs, plan.id];
  // Documents of v2 do not say all of a v3 array.
  if (stored.v3 !== undefined) parts.push({ ...stored.v3, files: null });
  const digest = digestOf(stringifyJson(parts));
  return Object.freeze({
    ...{ variable, document, zattrs, plan, replacedCname, stored, digest },
    ...{ v3Problem, describeV3 },
  });
}

/** Returns the message of what a function throws; undefined if it does not throw. */
function problemOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof ZpublishError) return error.message;
    throw error;
  }
}

/** Hashes a text to 128 bits. */
function digestOf(text: string): string {
  return createHash("sha256").update(text).digest().toString("base64url", 0, 16);
}
