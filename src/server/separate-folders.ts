import type { CollectionConfig } from "../config/config.js";
import { resolveRoot } from "../config/locate.js";
import type { GivenDataset } from "../dataset/dataset-handle.js";
import { workThrough } from "../event-loop/work-through.js";
import { isCollectionRoot } from "../find/is-collection-root.js";
import type { StoreSettings } from "../stores/store-settings.js";
import type { ServerConfig } from "./server-config.js";

/** Locations that are looked at at a time. */
const LOOKS_AT_ONCE = 8;

/**
 * Makes collections of those datasets of the command line whose location is a folder of files and stores. Only a look can tell them
 * from Zarr stores. One that cannot be looked at stays a dataset, whose opening then fails.
 * @param isFolder Tells if a location is such a folder.
 */
export async function separateFolders(
  config: ServerConfig,
  isFolder: (
    location: string,
    stores: readonly StoreSettings[] | undefined,
  ) => Promise<boolean> = isCollectionRoot,
): Promise<ServerConfig> {
  const folders = new Map<GivenDataset, CollectionConfig>();
  const asked = config.datasets.filter(({ asCollection }) => asCollection !== undefined);
  await workThrough(asked, LOOKS_AT_ONCE, async (dataset) => {
    const collection = collectionOf(dataset);
    if (collection === undefined) return;
    if (await isFolder(dataset.location, dataset.stores).catch(() => false)) folders.set(dataset, collection);
  });
  if (folders.size === 0) return config;
  return {
    ...config,
    datasets: config.datasets.filter((dataset) => !folders.has(dataset)),
    collections: [...config.collections, ...asked.flatMap((dataset) => folders.get(dataset) ?? [])],
  };
}

function collectionOf({
  id: _id,
  location,
  asCollection,
  ...served
}: GivenDataset): CollectionConfig | undefined {
  const root = resolveRoot(location, "/");
  return root === undefined || asCollection === undefined
    ? undefined
    : { ...served, name: asCollection, root };
}
