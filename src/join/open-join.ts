import { stat } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { createFileFinder } from "../find/collection-root.js";
import { type SplitPattern, splitPattern } from "../find/patterns.js";
import { type OpenSourceOptions, openSource } from "../open/open-source.js";
import { schemeOf } from "../stores/byte-store.js";
import type { Source } from "../zarr/stored-tree.js";
import { createJoinSource, type Joining } from "./join-source.js";
import { createOpenPlaced } from "./part-places.js";

/**
 * Opens files as one dataset. Nothing is read before `readTree`.
 * @param location A pattern, such as `/data/sst-*.nc` or `s3://bucket/sst/**\/*.zarr`, or a folder: of that, files and stores of all
 * known formats.
 * @throws ZpublishError `invalid-config` if the files of the location cannot be listed
 */
export async function openJoin(
  location: string,
  join: Joining,
  options: OpenSourceOptions = {},
): Promise<Source> {
  const { root, include } = splitPattern(location) ?? (await splitPlain(location));
  const isRemote = schemeOf(root) !== undefined;
  const patterns = include === undefined ? undefined : [include];
  const finder = createFileFinder({
    root: isRemote ? root : resolve(root),
    include: patterns,
    withVersions: true,
    stores: options.stores,
  });
  return createJoinSource({
    ...{ location, join, kept: options.kept, finder },
    patterns: include ?? "",
    // Reading a file of this machine takes no longer than reading its index from another one.
    openPart: (part) => openSource(part, isRemote ? options : { ...options, kept: undefined }),
    openPlaced: createOpenPlaced((name) => finder.locationOf(name), options),
  });
}

/** Splits a location without wildcards: a single file is one in its folder. */
async function splitPlain(location: string): Promise<Partial<SplitPattern> & Pick<SplitPattern, "root">> {
  const isRemote = ![undefined, "file"].includes(schemeOf(location));
  if (isRemote) return { root: `${location.replace(/\/+$/, "")}/` };
  const path = location.startsWith("file:") ? fileURLToPath(location) : resolve(location);
  const isFile = await stat(path).then(
    (found) => found.isFile(),
    () => false,
  );
  return isFile ? { root: dirname(path), include: escaped(basename(path)) } : { root: path };
}

function escaped(name: string): string {
  return name.replace(/[\\*?[\]{}]/g, "\\$&");
}
