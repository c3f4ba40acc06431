import { ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { isJsonObject } from "../json/json-value.js";
import { parseJsonAround } from "../json/parse-json.js";
import type { ByteStore } from "../stores/byte-store.js";
import { createFileStore } from "../stores/file-store.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { withSlash } from "../stores/store-settings.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { createStoreDocuments } from "../zarr-store/objects/store-documents.js";
import { type Branch, type BranchContent, createBranchWalk } from "./branch-walk.js";
import { createConsolidatedGroups } from "./consolidated-groups.js";
import type { FileFinder, FileFinderOptions, Findings, Problem } from "./file-finder.js";
import { childPath, compact, isSameItems, isSameProblems } from "./folder.js";
import { createPathFilter, type PathFilter } from "./path-filter.js";
import { realRoot } from "./real-root.js";

/** Nodes of one group that are asked for at a time. */
const NODES_AT_ONCE = 4;

/** A group of a Zarr hierarchy. */
interface Group extends Branch<Group> {
  /** Names of the arrays in it. They are not asked for again. */
  arrays: ReadonlySet<string>;
}

/** A hierarchy that is walked through. */
interface Hierarchy {
  readonly store: ByteStore;
  readonly filter: PathFilter;
  /** Tells if a path is an array or a group; undefined if it is neither. @throws ZpublishError `source-unreadable` */
  kindOf(path: string): Promise<"array" | "group" | undefined>;
}

/**
 * Creates a finder of the groups of a Zarr hierarchy that have arrays directly in them: each is found as a store. The root has the empty
 * path. Consolidated metadata is read if there is any. Otherwise groups are listed, and each new node is asked for its kind.
 * @throws ZpublishError `invalid-config`
 */
export function createGroupFinder(options: FileFinderOptions): FileFinder {
  const { include, exclude, stores = [] } = options;
  const isRemote = /^s3:\/\//i.test(options.root);
  if (!isRemote && !options.root.startsWith("/"))
    throw new ZpublishError(
      "invalid-config",
      `expected a directory or an S3 prefix, received ${options.root.slice(0, 200)}`,
    );
  const root = withSlash(options.root);
  const filter = createPathFilter(include, exclude);
  /** Path of the local directory; it may be a link that leads elsewhere later. */
  let place = "";
  let look: ReturnType<typeof createLook> | undefined = isRemote
    ? createLook(openByteStore(root, stores), filter)
    : undefined;

  return {
    root,
    async look(signal) {
      signal?.throwIfAborted();
      const real = isRemote ? "" : await realRoot(root);
      if (look === undefined || real !== place) look = createLook(createFileStore(real), filter);
      place = real;
      return look(signal);
    },
    locationOf: (path) => root + path,
  };
}

/** Creates what looks at one place. */
function createLook(store: ByteStore, filter: PathFilter): (signal?: AbortSignal) => Promise<Findings> {
  const documents = createStoreDocuments(store);
  const consolidated = createConsolidatedGroups(filter);
  let format: 2 | 3 = 2;
  const walk = createBranchWalk<Group>({
    top: createGroup(""),
    lookAt: (group, signal) => lookAtGroup({ store, filter, kindOf }, group, signal),
    isDue: () => true,
  });

  async function kindOf(path: string): Promise<"array" | "group" | undefined> {
    if (format === 3) {
      const found = await createStoreDocuments(store).read(`${path}/zarr.json`);
      return found === undefined ? undefined : kindOfDocument(found);
    }
    if ((await store.stat(`${path}/.zarray`)) !== undefined) return "array";
    return (await store.stat(`${path}/.zgroup`)) === undefined ? undefined : "group";
  }

  return async (signal) => {
    documents.begin();
    const [zarrJson, zmetadata] = await Promise.all([
      documents.read("zarr.json"),
      documents.read(".zmetadata"),
    ]);
    const listed = await consolidated.look(zarrJson, zmetadata);
    if (listed !== undefined) return listed;
    format = zarrJson === undefined ? 2 : 3;
    const isGroup =
      zarrJson === undefined
        ? (await store.stat(".zgroup")) !== undefined
        : (await kindOfDocument(zarrJson)) === "group";
    if (!isGroup) throw new ZpublishError("invalid-config", "expected a Zarr group, found none");
    return walk(signal);
  };
}

/** What cannot be understood counts as an array: its dataset names it. */
async function kindOfDocument(text: string): Promise<"array" | "group"> {
  const json = await runCooperatively(parseJsonAround(text, "consolidated_metadata")).catch(() => undefined);
  return isJsonObject(json) && json.node_type === "group" ? "group" : "array";
}

function createGroup(path: string): Group {
  const content = { below: [], files: [], problems: [] };
  return { path, arrays: new Set(), lookedAtIn: 0, failure: undefined, content };
}

async function lookAtGroup(
  { store, filter, kindOf }: Hierarchy,
  group: Group,
  signal: AbortSignal | undefined,
): Promise<BranchContent<Group>> {
  const { path, content } = group;
  const listing = await store.list?.(path === "" ? "" : `${path}/`, signal);
  if (listing === undefined) throw new ZpublishError("invalid-config", "expected groups that can be listed");
  const known = new Map(content.below.map((below) => [below.path, below]));
  const arrays = new Set<string>();
  const below: Group[] = [];
  const problems: Problem[] = [];
  await workThrough(listing.prefixes, NODES_AT_ONCE, async (name) => {
    signal?.throwIfAborted();
    const child = childPath(group, name);
    const isKnown = known.has(child);
    const kind = group.arrays.has(name) ? "array" : isKnown ? "group" : await kindOf(child);
    if (kind === "array") arrays.add(name);
    if (kind !== "group" || !(filter.takesStore(child) || filter.entersFolder(child))) return;
    const reason = nameProblem(child);
    if (reason === undefined) below.push(known.get(child) ?? createGroup(child));
    else problems.push({ path: child, reason });
  });
  group.arrays = arrays;
  const isFound = arrays.size > 0 && (path === "" || filter.takesStore(path));
  const files = isFound ? [content.files[0] ?? { path, isStore: true }] : [];
  const next = { below: compact(below), files, problems: compact(problems) };
  const isSame = isSameItems(content.below, next.below) && isSameItems(content.files, files);
  return isSame && isSameProblems(content.problems, next.problems) ? content : next;
}
