import { ZpublishError } from "../errors.js";
import { createSlice, runCooperatively } from "../event-loop/cooperative-task.js";
import { type ByteStore, schemeOf, withSlash } from "../stores/byte-store.js";
import { createFileStore } from "../stores/file-store.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { listedDocuments, readConsolidated } from "../zarr-store/consolidated.js";
import { describesArray } from "../zarr-store/documents.js";
import { createStoreDocuments } from "../zarr-store/object-hierarchy.js";
import {
  assembleFindings,
  type FileFinder,
  type FileFinderOptions,
  type Findings,
  type FoundFile,
  type PathProblem,
} from "./file-finder.js";
import { realRoot } from "./file-state.js";
import { createPathFilter, type PathFilter } from "./patterns.js";

type Look = () => Promise<Findings>;

/**
 * Creates a finder of the groups of a Zarr hierarchy that have arrays directly in them: each is found as a store. The root has the empty
 * path. A look reads the consolidated metadata.
 * @throws ZpublishError `invalid-config`; a look also if there is no consolidated metadata
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
      return look();
    },
    locationOf: (path) => root + path,
  };
}

/** Creates what looks at one place. */
function createLook(store: ByteStore, filter: PathFilter): Look {
  const documents = createStoreDocuments(store);
  let texts: readonly (string | undefined)[] = [];
  let listed: Findings | undefined;

  return async () => {
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
    throw new ZpublishError("invalid-config", "expected a Zarr group with consolidated metadata, found none");
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
