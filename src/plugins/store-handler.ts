import type { DatasetSnapshot, Datasets, ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import type { DocumentPieces } from "../http/create-document.js";
import type { Reply, RouteRequest } from "../http/reply.js";
import type { Route } from "../http/router.js";
import {
  type DataTree,
  elementCount,
  type Group,
  normalNodePath,
  type Variable,
} from "../model/data-tree.js";
import { listingPieces } from "../pages/home-page.js";

/** Parameters of a request. */
export type Params = RouteRequest["params"];

/** Answers a request from a snapshot. */
type StoreAnswer = (snapshot: DatasetSnapshot, params: Params) => Reply | Promise<Reply>;

/** Chunks of an array's listing at most. GDAL takes chunks that a listing leaves out for absent, so a longer one does not exist. */
const MAX_LISTED_CHUNKS = 10_000;

/** @throws ZpublishError `not-found` if an array has too many chunks for a listing */
export function assertListable({ id }: DatasetSnapshot, { plan }: ServedArray): void {
  if (elementCount(plan.served.gridShape) <= MAX_LISTED_CHUNKS) return;
  const message = `Variable '${plan.path}' of dataset '${id}' has too many chunks to list`;
  throw new ZpublishError("not-found", message);
}

/**
 * Visits a group and everything below it, parents first.
 * @param onGroup Gets each group with its path below the first one: empty for that one, `a/b/` for others.
 * @param onVariable Gets each variable with its path below the first group.
 */
export function* visitBelow(
  tree: DataTree,
  group: Group,
  onGroup: (member: Group, prefix: string) => void,
  onVariable: (variable: Variable, path: string) => void,
): CooperativeTask<void> {
  const below = group.path === "/" ? "/" : `${group.path}/`;
  for (const member of tree.groups.values()) {
    yield;
    if (member !== group && !member.path.startsWith(below)) continue;
    const prefix = member === group ? "" : `${member.path.slice(below.length)}/`;
    onGroup(member, prefix);
    for (const variable of member.variables.values()) {
      yield;
      onVariable(variable, `${prefix}${variable.name}`);
    }
  }
}

/**
 * Creates a handler that answers from the snapshot at a place. Before a 404 it refreshes the dataset: a client may know of a
 * chunk from another instance, and takes a 404 for fill values.
 * @param mayBeNew Whether the path could exist in a newer snapshot.
 */
export function storeHandler(
  datasets: Datasets,
  place: StorePlace,
  answer: StoreAnswer,
  mayBeNew: (snapshot: DatasetSnapshot, params: Params) => boolean,
): Route["handler"] {
  return ({ params }) => {
    const dataset = datasets.get(params.dataset_id as string);
    const snapshot = place.snapshotOf(dataset);
    try {
      return answer(snapshot, params);
    } catch (error) {
      const isAbsent = error instanceof ZpublishError && error.code === "not-found";
      if (!isAbsent || !mayBeNew(snapshot, params)) throw error;
      return datasets.refreshBeforeNotFound(dataset).then((newer) => {
        if (newer === dataset) throw error;
        return answer(place.snapshotOf(newer), params);
      });
    }
  };
}

/**
 * Returns a route for every group and one for the root. The former matches an empty path too (`zarr//.zmetadata`), which OpenAPI
 * cannot express.
 */
export function withRoot(route: Route): Route[] {
  const { path, operation } = route;
  const { dataset_id = "" } = operation.parameters ?? {};
  const ofRoot = { ...operation, description: "Of the root group.", parameters: { dataset_id } };
  return [{ ...route, path: path.replace(/\/\{\w+:path\}/, ""), operation: ofRoot }, route];
}

/** Redirects a store without its slash. */
export function storeRedirect(datasets: Datasets, place: StorePlace): Route {
  return {
    path: place.path,
    priority: "page",
    operation: { summary: "Redirects to the store's listing", contentType: "text/html; charset=utf-8" },
    handler({ params }) {
      place.snapshotOf(datasets.get(params.dataset_id as string));
      return { kind: "redirect", to: "with-slash" };
    },
  };
}

/** Lists a group: documents, then child groups and arrays with a slash at the end. */
export function* groupListing(
  documents: readonly string[],
  group: Group,
  variables: Iterable<string>,
): CooperativeTask<readonly string[]> {
  const entries = [...documents];
  for (const name of yield* sortCooperatively([...group.childNames, ...variables], compareNames)) {
    yield;
    entries.push(`${name}/`);
  }
  return entries;
}

/** Compares by UTF-16 code units. */
function compareNames(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Writes a listing as HTML. @param title Path of the listing. */
export function* listingDocument(title: string, entries: CooperativeTask<readonly string[]>): DocumentPieces {
  yield* listingPieces({ title, entries: yield* entries });
}

/** Finds a group by a path that may also name an array. @throws ZpublishError `not-found` */
export function findNode(snapshot: DatasetSnapshot, path: string): Group {
  const group = snapshot.tree.groups.get(`/${path}`);
  if (group === undefined) throw nodeNotFound(snapshot, path);
  return group;
}

/** Tells if a path names neither a group nor an array. Clients request documents of both to find out which it is. */
export function isUnknownNode(snapshot: DatasetSnapshot, params: Params): boolean {
  const path = normalNodePath(params.group_path ?? params.var ?? "");
  return !snapshot.arrays.has(path) && !snapshot.tree.groups.has(`/${path}`);
}

const CHUNK_KEY = /^\d+(?:\.\d+)*$/;

/**
 * Throws for a chunk of an array that was served and is now refused: a client that knows the array would take 404 for fill values.
 * @throws ZpublishError `source-unreadable`
 */
export function refuseLostChunk(snapshot: DatasetSnapshot, variablePath: string, chunkKey: string): void {
  if (!snapshot.withdrawn.has(variablePath) || !CHUNK_KEY.test(chunkKey)) return;
  const reason = snapshot.refused.find(({ path }) => path === variablePath)?.reason;
  throw new ZpublishError(
    "source-unreadable",
    `chunk '${chunkKey}' of '${variablePath}' in dataset '${snapshot.id}', which is refused: ${reason}`,
  );
}

/** Creates the error for a path that names no group and no variable. */
export function nodeNotFound(snapshot: DatasetSnapshot, path: string): ZpublishError {
  return new ZpublishError("not-found", `Group or variable '${path}' not found in dataset '${snapshot.id}'`);
}

/** A place below a dataset at which its arrays, or coarser levels of them, are a Zarr store. */
export interface StorePlace {
  /** Path below the dataset: `zarr`, `overviews/zarr`. */
  readonly name: string;
  /** Template of its URL, without a slash at its end. */
  readonly path: string;
  /** Returns what is served there. @throws ZpublishError `not-found` if the dataset has no such thing. */
  readonly snapshotOf: (dataset: DatasetSnapshot) => DatasetSnapshot;
}

/**
 * Creates the routes of a plugin at every place that it serves: the dataset itself, and its overviews.
 * @param prefix Last segment of the places: `zarr`.
 */
export function routesAtPlaces(
  prefix: string,
  routesAt: (place: StorePlace) => readonly Route[],
): readonly Route[] {
  const overviews = routesAt(placeAt(`overviews/${prefix}`, overviewsOf));
  return [
    ...routesAt(placeAt(prefix, (dataset) => dataset)),
    ...overviews.map((route) => ({ ...route, operation: ofOverviews(route.operation) })),
  ];
}

function placeAt(name: string, snapshotOf: StorePlace["snapshotOf"]): StorePlace {
  return { name, path: `/datasets/{dataset_id}/${name}`, snapshotOf };
}

/** Returns the overviews of a dataset. @throws ZpublishError `not-found` if its configuration asks for none. */
export function overviewsOf({ id, overviews }: DatasetSnapshot): DatasetSnapshot {
  if (overviews !== undefined) return overviews;
  throw new ZpublishError(
    "not-found",
    `Dataset '${id}' has no overviews: its configuration does not ask for them`,
  );
}

function ofOverviews(operation: Route["operation"]): Route["operation"] {
  const levels =
    "Of the overviews: group `0` is the dataset itself, `1`, `2`, … have half, a quarter, … of its cells per axis.";
  const { summary, description } = operation;
  return {
    ...operation,
    summary: `${summary}, in overviews`,
    description: description === undefined ? levels : `${description} ${levels}`,
  };
}
