import { messageOf, ZpublishError } from "../errors.js";
import { type CooperativeTask, createSlice, runCooperatively } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import { workThrough } from "../event-loop/work-through.js";
import { type ByteStore, type ObjectListing, withSlash } from "../stores/byte-store.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { looksLikeRepository, REPOSITORY_OBJECTS } from "../zarr-store/icechunk/repository.js";
import {
  type Branch,
  type BranchContent,
  childPath,
  type FileFinder,
  type FileFinderOptions,
  type Findings,
  type FoundFile,
  gatherFindings,
  NO_CONTENT,
  type PathProblem,
  updateBranch,
} from "./file-finder.js";
import { NO_DOCUMENT, ROOT_DOCUMENTS } from "./file-state.js";
import { createPathFilter, type PathFilter } from "./patterns.js";

/** Prefixes that are looked at at a time. */
const PREFIXES_AT_ONCE = 8;
/**
 * Prefixes that a look after the first asks for at most: the root, new ones, and those that were not asked for for the longest time. A
 * bucket has no times of its prefixes, and every listing is paid for: 256 a minute are two dollars a day.
 */
const PREFIXES_PER_LOOK = 256;

/** A prefix of a bucket: a folder, or a Zarr store. */
interface Prefix extends Branch<Prefix> {
  /** Number of the look that asked for it last; 0 if none did. */
  lookedAtIn: number;
  /** True if it is a store because of its name, whether or not it has a root document. */
  readonly hasStoreName: boolean;
  isStore: boolean;
}

/** How prefixes are looked at. */
interface PrefixContext {
  readonly store: ByteStore;
  readonly filter: PathFilter;
  readonly withVersions: boolean;
}

/**
 * Creates the finder of a prefix of a bucket. A prefix that ends in `.zarr` is a store, and no request is made for it unless versions
 * are asked for. Another one is listed, and is a store if it has a root document. Objects count at once, since they are written as a
 * whole.
 * @throws ZpublishError `invalid-config`
 */
export function createObjectFinder(options: FileFinderOptions): FileFinder {
  const { include, exclude, withVersions = false, stores = [] } = options;
  const root = withSlash(options.root);
  const context: PrefixContext = {
    ...{ store: openByteStore(root, stores), withVersions },
    filter: createPathFilter(include, exclude),
  };
  return { root, look: createWalk(context), locationOf: (path) => root + path };
}

/**
 * Creates a walk through prefixes, which returns what it found. The first walk sees all prefixes, each later one a bounded number of them.
 * One that is aborted is continued by the next.
 * @throws ZpublishError `source-unreadable` if the root cannot be read; `invalid-config` if it is a store
 */
function createWalk(context: PrefixContext): (signal?: AbortSignal) => Promise<Findings> {
  const top = createPrefix("");
  let findings: Findings | undefined;
  /** True if something has changed since the findings were made, also in a look that failed. */
  let hasChanged = true;
  let looks = 0;

  async function visit(prefix: Prefix, signal: AbortSignal | undefined): Promise<void> {
    signal?.throwIfAborted();
    let { content } = prefix;
    let failure: string | undefined;
    try {
      content = await lookAtPrefix(context, prefix, signal);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof ZpublishError && error.code === "invalid-config") throw error;
      failure = `it cannot be ${prefix === top ? "listed" : "read"}: ${messageOf(error)}`;
    }
    prefix.lookedAtIn = looks;
    if (updateBranch(prefix, content, failure)) hasChanged = true;
  }

  /** Returns the prefixes below the root that are due, those of the oldest looks first. Stores are due for their versions only. */
  function* dueBranches(): CooperativeTask<readonly Prefix[]> {
    const due: Prefix[] = [];
    const all = [...top.content.below];
    for (let prefix = all.pop(); prefix !== undefined; prefix = all.pop()) {
      yield;
      for (const below of prefix.content.below) all.push(below);
      const isDue = findings !== undefined && (context.withVersions || !prefix.isStore);
      if (prefix.lookedAtIn === 0 || isDue) due.push(prefix);
    }
    return yield* sortCooperatively(due, (a, b) => a.lookedAtIn - b.lookedAtIn);
  }

  return async (signal) => {
    looks++;
    await visit(top, signal);
    if (top.failure !== undefined) throw new ZpublishError("source-unreadable", top.failure);
    let left = findings === undefined ? Number.POSITIVE_INFINITY : PREFIXES_PER_LOOK - 1;
    const due = await runCooperatively(dueBranches());
    await workThrough(due.slice(0, left), PREFIXES_AT_ONCE, async (prefix, add) => {
      if (prefix.lookedAtIn === looks || left-- <= 0) return;
      await visit(prefix, signal);
      add(prefix.content.below.filter(({ lookedAtIn }) => lookedAtIn === 0));
    });
    if (findings === undefined || hasChanged)
      findings = await runCooperatively(gatherFindings(top, findings));
    hasChanged = false;
    return findings;
  };
}

function createPrefix(path: string): Prefix {
  const hasStoreName = path.endsWith(".zarr");
  const state = { isStore: hasStoreName, lookedAtIn: 0, failure: undefined };
  return { path, hasStoreName, ...state, content: NO_CONTENT };
}

/**
 * Looks at a prefix: lists it, or asks for the version of a store.
 * @throws ZpublishError `source-unreadable`; `invalid-config` if the root is a store.
 */
async function lookAtPrefix(
  context: PrefixContext,
  prefix: Prefix,
  signal: AbortSignal | undefined,
): Promise<BranchContent<Prefix>> {
  const { path } = prefix;
  const isRoot = path === "";
  const isEntered = isRoot || context.filter.entersFolder(path);
  if (prefix.isStore || !isEntered) {
    const found = await readStore(context, prefix, signal);
    prefix.isStore = found !== undefined || prefix.hasStoreName;
    if (found !== undefined || prefix.isStore || !isEntered) return found ?? withoutDocument(prefix);
  }
  const listing = await context.store.list?.(isRoot ? "" : `${path}/`, signal, context.withVersions);
  if (listing === undefined)
    throw new ZpublishError("invalid-config", "expected a bucket that can be listed");
  const isFound =
    ROOT_DOCUMENTS.some((name) => listing.objects.includes(name)) ||
    looksLikeRepository([...listing.objects, ...listing.prefixes]);
  if (!isFound) return readListing(context, prefix, listing);
  if (isRoot) throw new ZpublishError("invalid-config", "expected a folder of datasets, found a Zarr store");
  prefix.isStore = true;
  return (await readStore(context, prefix, signal)) ?? NO_CONTENT;
}

function withoutDocument({ path, hasStoreName }: Prefix): BranchContent<Prefix> {
  return hasStoreName ? { ...NO_CONTENT, problems: [{ path, reason: NO_DOCUMENT }] } : NO_CONTENT;
}

/** Reads the state of a store, the version of its first root document; undefined if it has none. @throws ZpublishError `source-unreadable` */
async function readStore(
  { store, filter, withVersions }: PrefixContext,
  { path }: Prefix,
  signal: AbortSignal | undefined,
): Promise<BranchContent<Prefix> | undefined> {
  const document = await findDocument(store, path, signal);
  if (document === undefined) return undefined;
  if (!filter.takesStore(path)) return NO_CONTENT;
  if (!withVersions) return { ...NO_CONTENT, files: [{ path, isStore: true }] };
  const version = await versionOfStore(store, path, document, signal);
  return { ...NO_CONTENT, files: [{ path, isStore: true, version }] };
}

/** The first root document of a store, and its version. */
interface FoundDocument {
  readonly name: string;
  readonly version: string;
}

async function findDocument(
  store: ByteStore,
  path: string,
  signal?: AbortSignal,
): Promise<FoundDocument | undefined> {
  for (const name of [...ROOT_DOCUMENTS, ...REPOSITORY_OBJECTS]) {
    const found = await store.stat(`${path}/${name}`, signal);
    if (found !== undefined) return { name, version: found.version.token };
  }
  return undefined;
}

async function versionOfStore(
  store: ByteStore,
  path: string,
  { name, version }: FoundDocument,
  signal?: AbortSignal,
): Promise<string> {
  // The other documents have the attributes.
  const hasAttributes = name === ".zgroup" || name === ".zarray";
  const attributes = hasAttributes ? await store.stat(`${path}/.zattrs`, signal) : undefined;
  return [version, ...(attributes ? [attributes.version.token] : [])].join("_");
}

/**
 * Returns the version of an object, or of a Zarr store by its root documents. Undefined if there is none.
 * @throws ZpublishError `source-unreadable`
 */
export async function objectVersion(
  store: ByteStore,
  { path, isStore }: Pick<FoundFile, "path" | "isStore">,
): Promise<string | undefined> {
  if (!isStore) return (await store.stat(path))?.version.token;
  const document = await findDocument(store, path);
  return document && versionOfStore(store, path, document);
}

async function readListing(
  { filter, withVersions }: PrefixContext,
  prefix: Prefix,
  { objects, prefixes, versions }: ObjectListing,
): Promise<BranchContent<Prefix>> {
  const slice = createSlice();
  const knownPrefixes = new Map(prefix.content.below.map((below) => [below.path, below]));
  const files: FoundFile[] = [];
  const found: Prefix[] = [];
  const problems: PathProblem[] = [];

  for (const [index, name] of objects.entries()) {
    if (slice.isOver()) await slice.next();
    const path = childPath(prefix, name);
    if (!filter.takesFile(path)) continue;
    const reason = keyProblem(path);
    if (reason !== undefined) problems.push({ path, reason });
    else {
      const version = withVersions ? versions?.[index] : undefined;
      files.push(version === undefined ? { path, isStore: false } : { path, isStore: false, version });
    }
  }
  for (const name of prefixes) {
    if (slice.isOver()) await slice.next();
    const path = childPath(prefix, name);
    const hasStoreName = path.endsWith(".zarr");
    if (!filter.takesStore(path) && (hasStoreName || !filter.entersFolder(path))) continue;
    const reason = keyProblem(path);
    if (reason !== undefined) problems.push({ path, reason });
    // Without a request: a hundred thousand stores would be as many.
    else if (hasStoreName && !withVersions) files.push({ path, isStore: true });
    else found.push(knownPrefixes.get(path) ?? createPrefix(path));
  }
  return { below: found.slice(), files: files.slice(), problems };
}

/** Returns why something cannot be served under its key; undefined if it can. */
function keyProblem(path: string): string | undefined {
  return nameProblem(path) ?? (/[?#]/.test(path) ? 'no location can have "?" or "#" in it' : undefined);
}
