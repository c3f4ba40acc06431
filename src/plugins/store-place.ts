import type { DatasetSnapshot } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import type { Route } from "../http/router.js";

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
