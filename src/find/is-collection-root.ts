import { type StoreSettings, withSlash } from "../stores/byte-store.js";
import { createFileCalls } from "../stores/file-calls.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { ROOT_DOCUMENTS, statPath, storeState } from "./file-state.js";

/** Names of what is a file or a store, and no folder, though nothing may be there yet. */
const FILE_NAME = /\.(?:zarr|nc|nc4|cdf|netcdf|h5|hdf5|hdf|he5|tiff?|zip|json|parq|parquet)$/i;

/**
 * Tells if a location is a folder of files and stores, and no store or file itself. It takes some calls to the file system, or some
 * requests to a bucket. False for web servers, which list nothing, and for what does not exist.
 * @param location Absolute path, or a URL.
 * @throws ZpublishError `source-unreadable`, `invalid-config`; what the file system throws, NoAnswerError
 */
export async function isCollectionRoot(
  location: string,
  stores: readonly StoreSettings[] = [],
): Promise<boolean> {
  if (location.startsWith("/")) return isFolder(location);
  return /^s3:/i.test(location) && isPrefix(location, stores);
}

async function isFolder(path: string): Promise<boolean> {
  // What has the name of a store may get its documents yet.
  if (/\.zarr\/*$/i.test(path)) return false;
  const calls = createFileCalls(path);
  const found = await statPath(calls, path);
  return found?.isDirectory() === true && (await storeState(calls, path)) === undefined;
}

async function isPrefix(location: string, stores: readonly StoreSettings[]): Promise<boolean> {
  const url = location.replace(/\/+$/, "");
  if (FILE_NAME.test(url)) return false;
  const store = openByteStore(withSlash(url), stores);
  const documents = await Promise.all(ROOT_DOCUMENTS.map((name) => store.stat(name)));
  if (documents.some((document) => document !== undefined)) return false;
  const listing = await store.list?.("");
  return listing !== undefined && listing.objects.length + listing.prefixes.length > 0;
}
