import { compileGlob, segmentsOf } from "./glob.js";

/** Decides what is found below a root. Paths are relative to the root, and lie in folders that it enters. */
export interface PathFilter {
  /** Tells if a file of that path is to be found. */
  takesFile(path: string): boolean;
  /** Tells if a Zarr store of that path is to be found. */
  takesStore(path: string): boolean;
  /** Tells if something to be found may lie below a folder. */
  entersFolder(path: string): boolean;
}

/** Files of all formats that are known by their extension. Without `.json`, which is mostly something else than references. */
const KNOWN_FILES = /\.(?:nc|nc4|cdf|netcdf|h5|hdf5|hdf|he5|tiff?|zip)$/i;

const HIDDEN_NAME = /(?:^|\/)\.[^/]*$/;

/**
 * Creates a filter. Names with a leading dot are found only if a pattern has the dot.
 * @param include Default: files with known extensions, and all stores.
 * @throws ZpublishError `invalid-config`
 */
export function createPathFilter(
  include: readonly string[] | undefined,
  exclude: readonly string[] = [],
): PathFilter {
  const excluded = exclude.map((pattern) => compileGlob(pattern, true));
  const isExcluded = (path: string) => excluded.some((matches) => matches(path));
  if (include === undefined) {
    const isSeen = (path: string) => !HIDDEN_NAME.test(path) && !isExcluded(path);
    return {
      takesFile: (path) => KNOWN_FILES.test(path) && isSeen(path),
      takesStore: isSeen,
      entersFolder: isSeen,
    };
  }
  const included = include.map((pattern) => compileGlob(pattern));
  const folders = include.map(folderFilter);
  const takes = (path: string) => included.some((matches) => matches(path)) && !isExcluded(path);
  return {
    takesFile: takes,
    takesStore: takes,
    entersFolder(path) {
      const names = path.split("/");
      return folders.some((enters) => enters(names)) && !isExcluded(path);
    },
  };
}

/** Compiles which folders a pattern leads into. */
function folderFilter(pattern: string): (names: readonly string[]) => boolean {
  const segments = segmentsOf(pattern.replace(/^(?:\.\/)+/, "")).map((segment) =>
    segment === "**" ? undefined : segment === "" ? () => false : compileGlob(segment),
  );

  /** Tells if names from an index on are matched by segments, so that at least one segment is left. */
  function enters(names: readonly string[], at: number, segment: number): boolean {
    if (segment === segments.length) return false;
    const name = names[at];
    if (name === undefined) return true;
    const matches = segments[segment];
    if (matches !== undefined) return matches(name) && enters(names, at + 1, segment + 1);
    return (!name.startsWith(".") && enters(names, at + 1, segment)) || enters(names, at, segment + 1);
  }
  return (names) => enters(names, 0, 0);
}
