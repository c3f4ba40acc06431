import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import type { ByteStore, ObjectListing } from "../stores/byte-store.js";
import { openByteStore } from "../stores/open-byte-store.js";
import { withSlash } from "../stores/store-settings.js";
import { nameProblem } from "../zarr/stored-tree.js";
import { type Branch, type BranchContent, createBranchWalk } from "./branch-walk.js";
import type { FileFinder, FileFinderOptions, FoundFile, Problem } from "./file-finder.js";
import { NO_DOCUMENT, ROOT_DOCUMENTS } from "./file-state.js";
import { childPath, compact, isSameItems, isSameProblems } from "./folder.js";
import { createPathFilter, type PathFilter } from "./path-filter.js";

/** A prefix of a bucket: a folder, or a Zarr store. */
interface Prefix extends Branch<Prefix> {
  /** True if it is a store because of its name, whether or not it has a root document. */
  readonly hasStoreName: boolean;
  isStore: boolean;
}

type PrefixContent = BranchContent<Prefix>;

/** How prefixes are looked at. */
interface PrefixContext {
  readonly store: ByteStore;
  readonly filter: PathFilter;
  readonly withVersions: boolean;
}

const NO_CONTENT: PrefixContent = Object.freeze({ below: [], files: [], problems: [] });

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
  const look = createBranchWalk({
    top: createPrefix(""),
    lookAt: (prefix, signal) => lookAtPrefix(context, prefix, signal),
    isDue: ({ isStore }) => withVersions || !isStore,
  });
  return { root, look, locationOf: (path) => root + path };
}

function createPrefix(path: string): Prefix {
  const hasStoreName = path.endsWith(".zarr");
  const state = { isStore: hasStoreName, lookedAtIn: 0, failure: undefined };
  return { path, hasStoreName, ...state, content: NO_CONTENT };
}

/**
 * Looks at a prefix: lists it, or asks for the version of a store.
 * @returns Its content; the same object as before if nothing has changed.
 * @throws ZpublishError `source-unreadable`; `invalid-config` if the root is a store.
 */
async function lookAtPrefix(
  context: PrefixContext,
  prefix: Prefix,
  signal: AbortSignal | undefined,
): Promise<PrefixContent> {
  const { path, content } = prefix;
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
  if (!ROOT_DOCUMENTS.some((name) => listing.objects.includes(name))) {
    const next = await readListing(context, prefix, listing);
    return isSameContent(content, next) ? content : next;
  }
  if (isRoot) throw new ZpublishError("invalid-config", "expected a folder of datasets, found a Zarr store");
  prefix.isStore = true;
  return (await readStore(context, prefix, signal)) ?? NO_CONTENT;
}

function withoutDocument({ path, hasStoreName, content }: Prefix): PrefixContent {
  const problems = hasStoreName ? [{ path, reason: NO_DOCUMENT }] : [];
  return isSameProblems(content.problems, problems) && content.files.length === 0
    ? content
    : { ...NO_CONTENT, problems };
}

/** Reads the state of a store, the version of its first root document; undefined if it has none. @throws ZpublishError `source-unreadable` */
async function readStore(
  { store, filter, withVersions }: PrefixContext,
  { path, content }: Prefix,
  signal: AbortSignal | undefined,
): Promise<PrefixContent | undefined> {
  for (const name of ROOT_DOCUMENTS) {
    const found = await store.stat(`${path}/${name}`, signal);
    if (found === undefined) continue;
    if (!filter.takesStore(path)) return NO_CONTENT;
    const [known] = content.files;
    if (!withVersions)
      return known === undefined ? { ...NO_CONTENT, files: [{ path, isStore: true }] } : content;
    // The other documents have the attributes.
    const hasAttributes = name === ".zgroup" || name === ".zarray";
    const attributes = hasAttributes ? await store.stat(`${path}/.zattrs`, signal) : undefined;
    const version = [found.version.token, ...(attributes ? [attributes.version.token] : [])].join("_");
    if (known?.version === version) return content;
    return { ...NO_CONTENT, files: [{ path, isStore: true, version }] };
  }
  return undefined;
}

async function readListing(
  { filter, withVersions }: PrefixContext,
  prefix: Prefix,
  { objects, prefixes, versions }: ObjectListing,
): Promise<PrefixContent> {
  const slice = createSlice();
  const knownFiles = new Map(prefix.content.files.map((file) => [file.path, file]));
  const knownPrefixes = new Map(prefix.content.below.map((below) => [below.path, below]));
  const files: FoundFile[] = [];
  const found: Prefix[] = [];
  const problems: Problem[] = [];

  function take(path: string, isStore: boolean, version?: string): void {
    const known = knownFiles.get(path);
    if (known?.isStore === isStore && known.version === version) files.push(known);
    else files.push(version === undefined ? { path, isStore } : { path, isStore, version });
  }

  for (const [index, name] of objects.entries()) {
    if (slice.isOver()) await slice.next();
    const path = childPath(prefix, name);
    if (!filter.takesFile(path)) continue;
    const reason = keyProblem(path);
    if (reason !== undefined) problems.push({ path, reason });
    else take(path, false, withVersions ? versions?.[index] : undefined);
  }
  for (const name of prefixes) {
    if (slice.isOver()) await slice.next();
    const path = childPath(prefix, name);
    const hasStoreName = path.endsWith(".zarr");
    if (!filter.takesStore(path) && (hasStoreName || !filter.entersFolder(path))) continue;
    const reason = keyProblem(path);
    if (reason !== undefined) problems.push({ path, reason });
    // Without a request: a hundred thousand stores would be as many.
    else if (hasStoreName && !withVersions) take(path, true);
    else found.push(knownPrefixes.get(path) ?? createPrefix(path));
  }
  return { below: compact(found), files: compact(files), problems: compact(problems) };
}

/** Returns why something cannot be served under its key; undefined if it can. */
function keyProblem(path: string): string | undefined {
  return nameProblem(path) ?? (/[?#]/.test(path) ? 'no location can have "?" or "#" in it' : undefined);
}

function isSameContent(a: PrefixContent, b: PrefixContent): boolean {
  return (
    isSameItems(a.files, b.files) && isSameItems(a.below, b.below) && isSameProblems(a.problems, b.problems)
  );
}
