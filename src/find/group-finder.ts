import { ZpublishError } from "../errors.js";
import { createSlice, runCooperatively } from "../event-loop/cooperative-task.js";
import { workThrough } from "../event-loop/work-through.js";
import { isJsonObject } from "../json/json-value.js";
import { parseJsonAround } from "../json/parse-json.js";
import { type ByteStore, schemeOf, withSlash } from "../stores/byte-store.js";
import { createFileStore } from "../stores/file-store.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { listedDocuments, readConsolidated } from "../zarr-store/consolidated.js";
import { describesArray } from "../zarr-store/documents.js";
import { createStoreDocuments } from "../zarr-store/object-hierarchy.js";
import {
  assembleFindings,
  type BranchContent,
  childPath,
  createBranchWalk,
  type FileFinder,
  type FileFinderOptions,
  type Findings,
  type FoundFile,
  NO_CONTENT,
  type PathProblem,
  type RemoteBranch,
} from "./file-finder.js";
import { realRoot } from "./file-state.js";
import { createPathFilter, type PathFilter } from "./patterns.js";

/** Nodes of one group that are asked for at a time. */
const NODES_AT_ONCE = 4;

type Look = (signal?: AbortSignal) => Promise<Findings>;

/**
 * Creates a finder of the groups of a Zarr hierarchy that have arrays directly in them: each is found as a store. The root has the empty
 * path. Consolidated metadata is read if there is any. Otherwise groups are listed, and each new node is asked for its kind.
 * @throws ZpublishError `invalid-config`
 */
export function createGroupFinder(options: FileFinderOptions): FileFinder {
  const { include, exclude, stores = [] } = options;
  const isRemote = schemeOf(options.root) === "s3";
  if (!isRemote && !options.root.startsWith("/"))
    throw new ZpublishError(
      "invalid-config",
      `expected a directory or an S3 prefix, received ${options.root.slice(0, 200)}`,
    );
  const root = withSlash(options.root);
  const filter = createPathFilter(include, exclude);
  /** Path of the local directory; it may be a link that leads elsewhere later. */
  let place = "";
  let look: Look | undefined = isRemote ? createLook(openByteStore(root, stores), filter) : undefined;

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
function createLook(store: ByteStore, filter: PathFilter): Look {
  const documents = createStoreDocuments(store);
  let texts: readonly (string | undefined)[] = [];
  let listed: Findings | undefined;
  let isV3 = false;
  const walk = createGroupWalk(store, filter, () => isV3);

  return async (signal) => {
    documents.begin();
    const [zarrJson, zmetadata] = await Promise.all([
      documents.read("zarr.json"),
      documents.read(".zmetadata"),
    ]);
    if (texts[0] !== zarrJson || texts[1] !== zmetadata) {
      const nodes = await readConsolidated(zarrJson, zmetadata);
      listed = nodes && (await groupsWithArrays(nodes, filter, listed));
      texts = [zarrJson, zmetadata];
    }
    if (listed !== undefined) return listed;
    isV3 = zarrJson !== undefined;
    const isGroup =
      zarrJson === undefined
        ? (await store.stat(".zgroup")) !== undefined
        : (await kindOfDocument(zarrJson)) === "group";
    if (!isGroup) throw new ZpublishError("invalid-config", "expected a Zarr group, found none");
    return walk(signal);
  };
}

/** Finds groups in consolidated metadata. @param before Findings of the look before */
async function groupsWithArrays(
  nodes: Awaited<ReturnType<typeof readConsolidated>> & object,
  filter: PathFilter,
  before: Findings | undefined,
): Promise<Findings> {
  const slice = createSlice();
  const files: FoundFile[] = [];
  const problems: PathProblem[] = [];
  const seen = new Set<string>();
  for (const [path, documents] of nodes) {
    if (slice.isOver()) await slice.next();
    if (path === "" || !describesArray(listedDocuments(documents))) continue;
    const group = path.slice(0, Math.max(0, path.lastIndexOf("/")));
    if (seen.has(group)) continue;
    seen.add(group);
    if (group !== "" && !isFound(group, filter)) continue;
    const reason = group === "" ? undefined : nameProblem(group);
    if (reason === undefined) files.push({ path: group, isStore: true });
    else problems.push({ path: group, reason });
  }
  return runCooperatively(assembleFindings(files, problems, before));
}

/** Tells whether a group is to be found, and all groups that it is in are entered. */
function isFound(group: string, { takesStore, entersFolder }: PathFilter): boolean {
  const parents = group.split("/").slice(0, -1);
  return (
    takesStore(group) && parents.every((_, index) => entersFolder(parents.slice(0, index + 1).join("/")))
  );
}

/** What cannot be understood counts as an array: its dataset names it. */
async function kindOfDocument(text: string): Promise<"array" | "group"> {
  const json = await runCooperatively(parseJsonAround(text, "consolidated_metadata")).catch(() => undefined);
  return isJsonObject(json) && json.node_type === "group" ? "group" : "array";
}

/** A group of a Zarr hierarchy. */
interface Group extends RemoteBranch<Group> {
  /** Names of the arrays in it. They are not asked for again. */
  arrays: ReadonlySet<string>;
}

function createGroup(path: string): Group {
  return { path, arrays: new Set(), lookedAtIn: 0, failure: undefined, content: NO_CONTENT };
}

/** Creates the walk through a hierarchy without consolidated metadata. */
function createGroupWalk(store: ByteStore, filter: PathFilter, isV3: () => boolean): Look {
  async function kindOf(path: string): Promise<"array" | "group" | undefined> {
    if (isV3()) {
      const document = await createStoreDocuments(store).read(`${path}/zarr.json`);
      return document === undefined ? undefined : kindOfDocument(document);
    }
    if ((await store.stat(`${path}/.zarray`)) !== undefined) return "array";
    return (await store.stat(`${path}/.zgroup`)) === undefined ? undefined : "group";
  }

  async function lookAtGroup(group: Group, signal: AbortSignal | undefined): Promise<BranchContent<Group>> {
    const { path, content } = group;
    const listing = await store.list?.(path === "" ? "" : `${path}/`, signal);
    if (listing === undefined)
      throw new ZpublishError("invalid-config", "expected groups that can be listed");
    const known = new Map(content.below.map((below) => [below.path, below]));
    const arrays = new Set<string>();
    const below: Group[] = [];
    const problems: PathProblem[] = [];
    await workThrough(listing.prefixes, NODES_AT_ONCE, async (name) => {
      signal?.throwIfAborted();
      const child = childPath(group, name);
      const kind = group.arrays.has(name) ? "array" : known.has(child) ? "group" : await kindOf(child);
      if (kind === "array") arrays.add(name);
      if (kind !== "group" || !(filter.takesStore(child) || filter.entersFolder(child))) return;
      const reason = nameProblem(child);
      if (reason === undefined) below.push(known.get(child) ?? createGroup(child));
      else problems.push({ path: child, reason });
    });
    group.arrays = arrays;
    const isTaken = arrays.size > 0 && (path === "" || filter.takesStore(path));
    return { below, files: isTaken ? [{ path, isStore: true }] : [], problems };
  }

  return createBranchWalk(createGroup(""), lookAtGroup, () => true);
}
