import type { CollectionConfig } from "../../config/config.js";
import { createSlice } from "../../event-loop/cooperative-task.js";
import { joined } from "../../event-loop/joined.js";
import { createFileFinder } from "../../find/collection-root.js";
import type { Findings, FoundFile, PathProblem } from "../../find/file-finder.js";
import { localVersion } from "../../find/file-state.js";
import { createGroupFinder } from "../../find/group-finder.js";
import { objectVersion } from "../../find/object-finder.js";
import { schemeOf, withSlash } from "../../stores/byte-store.js";
import { openByteStore } from "../../stores/open-byte-store.js";
import { printablePath } from "../../zarr/stored-tree.js";
import type { DatasetProvider } from "../dataset-provider.js";

/** Id of the root, if that is a group with arrays. */
const ROOT_ID = "root";
/** Names without an id that are told as problems. */
const MAX_PROBLEMS = 1_000;
const NOTHING: Findings = { files: [], problems: [] };

/**
 * Creates the provider of a collection. The id of a dataset is its path with `~` for `/`, so that it neither depends on other datasets
 * nor on the order in which they came.
 * @throws ZpublishError `invalid-config` for patterns that cannot be understood, and for roots that cannot be listed.
 */
export function createCollectionProvider(config: CollectionConfig, name = config.name): DatasetProvider {
  const { name: collection, root, include, exclude, groups = false, ...served } = config;
  const store = schemeOf(root) === "s3" ? openByteStore(root, config.stores ?? []) : undefined;
  const options = { root, include, exclude, stores: config.stores };
  const finder = groups ? createGroupFinder(options) : createFileFinder(options);
  const closing = new AbortController();
  let findings = NOTHING;
  let ids: readonly string[] | undefined;
  let unnamed: readonly PathProblem[] = [];

  const list = joined(async (asked: AbortSignal): Promise<readonly string[]> => {
    const signal = AbortSignal.any([asked, closing.signal]);
    const next = await finder.look(signal);
    if (ids === undefined || next.files !== findings.files) {
      const named = await nameAll(next.files);
      ids = named.ids;
      unnamed = named.problems;
    }
    findings = next;
    return ids;
  });

  async function find(id: string): Promise<FoundFile | undefined> {
    if (ids === undefined) await list(closing.signal);
    return known(id);
  }

  function known(id: string): FoundFile | undefined {
    const { files } = findings;
    const hasRoot = files[0]?.path === "";
    const asked = hasRoot && id === ROOT_ID ? "" : id.replaceAll("~", "/");
    const file = fileOf(asked, files);
    return file === undefined || problemOf(file.path, files) !== undefined ? undefined : file;
  }

  return {
    name,
    prefix: collection === "" ? "" : `${collection}~`,
    place: include?.map((pattern) => withSlash(root) + pattern).join(", ") ?? root,
    list,
    async open(id) {
      const file = await find(id);
      if (file === undefined) return undefined;
      // A slash says that it is no object, which saves a request.
      const end = file.isStore && store !== undefined ? "/" : "";
      const offered = served.file === true && { file: isOneFile(file) };
      return { ...served, ...offered, id, location: finder.locationOf(file.path) + end };
    },
    offersFile: (id) => served.file === true && isOneFile(known(id)),
    async versionOf(id) {
      const file = await find(id);
      if (file === undefined) return undefined;
      const location = finder.locationOf(file.path);
      const version = await (store === undefined ? localVersion(location) : objectVersion(store, file));
      return version === undefined ? undefined : JSON.stringify([location, version, served]);
    },
    isRemote: store !== undefined,
    problems: () =>
      [...findings.problems, ...unnamed].map(({ path, reason }) => ({ name: path || "/", reason })),
    async close() {
      closing.abort();
    },
  };
}

/** Tells whether what was found has all of its dataset: stores and references are many objects. */
function isOneFile(file: FoundFile | undefined): boolean {
  return file?.isStore === false && !/\.json$/i.test(file.path);
}

/** Finds the file with a path in a list that is sorted by paths. */
function fileOf(path: string, files: readonly FoundFile[]): FoundFile | undefined {
  let low = 0;
  let high = files.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (files[middle]!.path < path) low = middle + 1;
    else high = middle;
  }
  return files[low]?.path === path ? files[low] : undefined;
}

/** Makes the ids of all files. */
async function nameAll(
  files: readonly FoundFile[],
): Promise<{ readonly ids: readonly string[]; readonly problems: readonly PathProblem[] }> {
  const slice = createSlice();
  const ids: string[] = [];
  const problems: PathProblem[] = [];
  let more = 0;
  let last: string | undefined;
  for (const { path } of files) {
    if (slice.isOver()) await slice.next();
    // A bucket may have an object and a prefix of one name.
    if (path === last) continue;
    last = path;
    const reason = problemOf(path, files);
    if (reason === undefined) ids.push(path === "" ? ROOT_ID : path.replaceAll("/", "~"));
    else if (problems.length < MAX_PROBLEMS) problems.push({ path: printablePath(path), reason });
    else more++;
  }
  if (more > 0) problems.push({ path: "", reason: `${more} more names cannot be ids` });
  return { ids, problems };
}

/** Returns why a path has no id of its own; undefined if it has one. */
function problemOf(path: string, files: readonly FoundFile[]): string | undefined {
  if (path.includes("~")) return 'expected a name without "~", which stands for "/" in ids';
  if (path === ROOT_ID && files[0]?.path === "") return `the root has the id ${ROOT_ID}, since it has arrays`;
  return undefined;
}
