import { createBoundedMap } from "../collections/bounded-map.js";
import { createSingleFlight } from "../collections/single-flight.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { ASK_EACH_TIME } from "../http/access/access-rules.js";
import type { Document, DocumentReply, RouteRequest } from "../http/reply.js";
import { elementCount, type Group } from "../model/data-tree.js";
import { type Coverage, readCoverage } from "../pages/coverage.js";
import { type DatasetPage, datasetPageSteps } from "../pages/dataset-page.js";
import { coordinatesOf, STORE_PREFIXES, type StorePrefix } from "../pages/group-section.js";
import { listingPieces } from "../pages/home-page.js";
import { looksOf } from "../pages/look-links.js";
import { encodeSegment, PAGE_HEADERS } from "../pages/page.js";
import { type PagePlace, placeOf, placePage, quotesAddress } from "../pages/page-place.js";
import type { PreviewService, PreviewValues } from "../pages/preview-service.js";
import { documentReply } from "./documents.js";
import type { CoreContext, DatasetPages } from "./plugin.js";

/** Milliseconds for which a page with first values is cached if chunks may be rewritten in place. */
const PAGE_FRESH_MS = 3_000;
/** Milliseconds for which a page without some of its first values is cached. */
const INCOMPLETE_FRESH_MS = 1_000;
/** Maximum bytes of all cached pages. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** Routes of other plugins that pages link to if the server has them. */
const SERVICE_LINKS = ["plugins", "versions", "docs"];

interface CachedPage extends MadePage {
  /** Weak, since datasets are closed to free their memory. */
  readonly snapshot: WeakRef<DatasetSnapshot>;
  readonly versions: WeakRef<DatasetPage["versions"]>;
  /** Milliseconds since process start. */
  readonly staleAt: number;
}

interface MadePage {
  readonly page: PlacedPage;
  readonly complete: boolean;
}

/** Creates replies with pages for people, each made once and cached while it is fresh. */
export function createPageReplies(context: CoreContext): DatasetPages {
  const collectPreviews = createPreviewCollector(() => context.previews);
  const cached = createBoundedMap<CachedPage>({
    maxBytes: MAX_CACHED_BYTES,
    byteLengthOf: ({ page }) => page.html.length * 2,
  });
  const flights = createSingleFlight<MadePage>();

  async function make(
    snapshot: DatasetSnapshot,
    group: Group,
    nested: boolean,
    versions: DatasetPage["versions"],
  ): Promise<MadePage> {
    const groups = nested || group.path === "/" ? groupsBelow(snapshot, group) : [group];
    let coverage: Coverage = {};
    const covering = readCoverage(snapshot, context.values, groups).then(
      (found) => {
        coverage = found;
      },
      // A page never fails because of what it shows at its top.
      () => undefined,
    );
    const [previews, isCovered] = await Promise.all([
      collectPreviews(snapshot, nested ? groupsBelow(snapshot, group) : [group]),
      settlesWithin(covering, PREVIEW_TIMEOUT_MS),
    ]);
    const plugins = new Set(context.plugins().map(({ name }) => name));
    const steps = datasetPageSteps({
      snapshot,
      group,
      nested,
      previews: previews.values,
      coverage,
      stores: storesOf(context),
      maxSelectionBytes: maxSelectionOf(context),
      plugins,
      hasFiles: plugins.has("file"),
      hasOpendap: plugins.has("opendap"),
      looks: looksOf(context.routes(), context.datasetPath),
      serviceTitle: context.title,
      isAlone: context.datasetPath("{dataset_id}") === "/",
      serviceLinks: SERVICE_LINKS.filter((name) => context.routes().some(({ path }) => path === `/${name}`)),
      versions,
    });
    const html = await runCooperatively(steps);
    return { page: new PlacedPage(html, context.createDocument), complete: previews.complete && isCovered };
  }

  function current(
    snapshot: DatasetSnapshot,
    group: Group,
    nested: boolean,
    versions: DatasetPage["versions"],
  ): MadePage | Promise<MadePage> {
    const key = `${snapshot.id}\n${nested ? "tree" : "group"}\n${group.path}`;
    const known = cached.get(key);
    const isSame = known?.snapshot.deref() === snapshot && known.versions.deref() === versions;
    if (isSame && performance.now() < known.staleAt) return known;
    return flights.run(`${snapshot.revision}\n${key}`, async () => {
      const made = await make(snapshot, group, nested, versions);
      const freshMs = !made.complete ? INCOMPLETE_FRESH_MS : snapshot.immutable ? Infinity : PAGE_FRESH_MS;
      const staleAt = performance.now() + freshMs;
      const held = { snapshot: new WeakRef(snapshot), versions: new WeakRef(versions) };
      cached.set(key, { ...made, ...held, staleAt });
      return made;
    });
  }

  return {
    async reply(
      snapshot: DatasetSnapshot,
      group: Group,
      nested: boolean,
      request: RouteRequest,
    ): Promise<DocumentReply> {
      // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
      const place = placeOf(request, context.datasetPath(encodeSegment(snapshot.id)));
      const versions = await versionsOf(context, snapshot);
      const { page, complete } = await current(snapshot, group, nested, versions);
      const document = page.at(place);
      // Other caches must not keep an incomplete page for as long as the dataset's configuration allows, nor one with versions: there may be
      // further ones.
      const isLasting = complete && snapshot.versions === undefined;
      const cacheControl = isLasting ? snapshot.cacheControl : ASK_EACH_TIME;
      const { quotesAddress } = page;
      return { kind: "document", document, cacheControl, quotesAddress, headers: PAGE_HEADERS };
    },
    listing(snapshot: DatasetSnapshot, below: string) {
      return documentReply(context, snapshot, "stores", below, "text/html; charset=utf-8", () => {
        const entries = storesOf(context).map((prefix) => `${prefix}/`);
        return listingPieces({ title: context.datasetPath(snapshot.id) + below, entries });
      });
    },
  };
}

const NO_VERSIONS: DatasetPage["versions"] = [];

/** Lists the versions of a dataset in the time that a page waits; none if they have no pages, or cannot be listed. */
async function versionsOf(
  context: CoreContext,
  { versions }: DatasetSnapshot,
): Promise<DatasetPage["versions"]> {
  if (versions === undefined || !hasVersions(context)) return NO_VERSIONS;
  let listed = NO_VERSIONS;
  const listing = versions.list().then(
    (found) => {
      listed = found;
    },
    () => undefined,
  );
  await settlesWithin(listing, PREVIEW_TIMEOUT_MS);
  return listed;
}

/** Tells whether the server lists the versions of its datasets. */
export function hasVersions(context: CoreContext): boolean {
  return context.routes().some(({ path }) => path === "/datasets/{dataset_id}/versions");
}

function* groupsBelow(snapshot: DatasetSnapshot, group: Group): Iterable<Group> {
  const prefix = group.path === "/" ? "/" : `${group.path}/`;
  yield group;
  for (const [path, other] of snapshot.tree.groups) {
    if (path !== group.path && path.startsWith(prefix)) yield other;
  }
}

/** Lists the prefixes of Zarr stores that the server has. */
function storesOf(context: CoreContext): readonly StorePrefix[] {
  return STORE_PREFIXES.filter((prefix) => context.plugins().some(({ name }) => name === prefix));
}

/** Returns the bytes that a selection may have; undefined if the server answers none. */
export function maxSelectionOf(context: CoreContext): number | undefined {
  return context.plugins().some(({ name }) => name === "select") ? context.maxSelectionBytes : undefined;
}

/** Maximum of documents per page: one for each address that clients use for it. */
const MAX_PLACES = 4;

/** A page that is made once, and its documents for the addresses that clients use for it. */
export class PlacedPage {
  /** As `placePage` takes it. */
  readonly html: string;
  /** Whether it contains the service's address. */
  readonly quotesAddress: boolean;
  readonly #createDocument: CoreContext["createDocument"];
  /** By address. Equal content makes equal documents, so dropping one is harmless. */
  readonly #documents = createBoundedMap<Document>({ maxEntries: MAX_PLACES });

  constructor(html: string, createDocument: CoreContext["createDocument"]) {
    this.html = html;
    this.quotesAddress = quotesAddress(html);
    this.#createDocument = createDocument;
  }

  /** Returns the document for a place. */
  at(place: PagePlace): Document {
    const address = `${this.quotesAddress ? place.serviceUrl : ""} ${place.up} ${place.tokenQuery}`;
    let document = this.#documents.get(address);
    if (document === undefined) {
      document = this.#createDocument(placePage(this.html, place), "text/html; charset=utf-8");
      this.#documents.set(address, document);
    }
    return document;
  }
}

/** Coordinates of one page whose first values are shown. */
const MAX_PREVIEWS = 32;
/** Groups in which they are looked for: as many as one page shows. */
const MAX_SEARCHED_GROUPS = 1_000;
/**
 * Milliseconds that a page waits for first values, and is then shown without those that are missing. The first page of all waits
 * for the pool to start, which takes half a second.
 */
const PREVIEW_TIMEOUT_MS = 1_000;
/** Maximum of previews in progress for all pages; beyond, pages are shown without. */
const MAX_IN_PROGRESS = 128;
/** Maximum bytes of a chunk that is decoded for a preview; larger ones take too long. */
const MAX_CHUNK_BYTES = 8 * 1024 * 1024;

/** First values of coordinates, as far as they came in time. */
interface CollectedPreviews {
  /** By variable path. */
  readonly values: ReadonlyMap<string, PreviewValues>;
  /** False if some did not come in time. Another attempt may have them. */
  readonly complete: boolean;
}

/** Collects the first values of the coordinates of groups. */
type CollectPreviews = (snapshot: DatasetSnapshot, groups: Iterable<Group>) => Promise<CollectedPreviews>;

/**
 * Creates a collector of previews for pages, with bounds on their number per page, on time, and on previews in progress.
 * @param previews Called at the first page, because the service may start then.
 */
function createPreviewCollector(previews: () => PreviewService): CollectPreviews {
  let inProgress = 0;

  async function preview(array: ServedArray, values: Map<string, PreviewValues>): Promise<void> {
    inProgress++;
    try {
      const found = await previews().values(array);
      if (found !== undefined) values.set(array.variable.path, found);
    } catch {
      // A page never fails because of a preview.
    } finally {
      inProgress--;
    }
  }

  return async (snapshot, groups) => {
    const arrays = previewableArrays(snapshot, groups);
    const admitted = arrays.slice(0, Math.max(0, MAX_IN_PROGRESS - inProgress));
    if (admitted.length === 0) return { values: new Map(), complete: arrays.length === 0 };
    const arriving = new Map<string, PreviewValues>();
    const all = Promise.all(admitted.map((array) => preview(array, arriving)));
    const inTime = await settlesWithin(all, PREVIEW_TIMEOUT_MS);
    return { values: new Map(arriving), complete: inTime && admitted.length === arrays.length };
  };
}

function previewableArrays(snapshot: DatasetSnapshot, groups: Iterable<Group>): ServedArray[] {
  const arrays: ServedArray[] = [];
  let searched = 0;
  for (const group of groups) {
    if (++searched > MAX_SEARCHED_GROUPS) break;
    for (const variable of coordinatesOf(group)) {
      if (arrays.length === MAX_PREVIEWS) return arrays;
      const array = snapshot.arrays.get(variable.path);
      if (array !== undefined && isSmall(array)) arrays.push(array);
    }
  }
  return arrays;
}

function isSmall({ stored }: ServedArray): boolean {
  // Items of object types, mostly short strings, have no fixed size.
  return elementCount(stored.chunkShape) * (stored.dataType.itemSize || 64) <= MAX_CHUNK_BYTES;
}
