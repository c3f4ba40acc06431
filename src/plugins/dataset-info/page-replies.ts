import type { DatasetSnapshot } from "../../dataset/dataset.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import { ASK_EACH_TIME } from "../../http/access/access-rules.js";
import type { DocumentReply, RouteRequest } from "../../http/reply.js";
import type { Group } from "../../model/data-tree.js";
import { datasetPageSteps } from "../../pages/dataset-page.js";
import { STORE_PREFIXES, type StorePrefix } from "../../pages/group-section.js";
import { looksOf } from "../../pages/look-links.js";
import { encodeSegment } from "../../pages/page.js";
import { placeOf } from "../../pages/page-place.js";
import { PlacedPage } from "../placed-page.js";
import type { PluginContext } from "../plugin.js";
import { createPreviewCollector } from "./collect-previews.js";

/** Milliseconds for which a page with first values is cached if chunks may be rewritten in place. */
const PAGE_FRESH_MS = 3_000;
/** Milliseconds for which a page without some of its first values is cached. */
const INCOMPLETE_FRESH_MS = 1_000;
/** Maximum bytes of all cached pages. */
const MAX_CACHED_BYTES = 32 * 1024 * 1024;

/** Routes of other plugins that pages link to if the server has them. */
const SERVICE_LINKS = ["plugins", "versions", "docs"];

/** Pages for people, each made once and cached while it is fresh. */
export interface PageReplies {
  /** Replies with the page of a group, or with `nested` of the tree below it. */
  reply(
    snapshot: DatasetSnapshot,
    group: Group,
    nested: boolean,
    request: RouteRequest,
  ): Promise<DocumentReply>;
}

interface CachedPage {
  /** Weak, since datasets are closed to free their memory. */
  readonly snapshot: WeakRef<DatasetSnapshot>;
  readonly page: Promise<MadePage>;
  /** Milliseconds since process start; infinite while the page is made. */
  staleAt: number;
  byteLength: number;
}

interface MadePage {
  readonly page: PlacedPage;
  readonly complete: boolean;
}

/** Creates {@link PageReplies}. */
export function createPageReplies(context: PluginContext): PageReplies {
  const collectPreviews = createPreviewCollector(() => context.previews);
  /** Least recently used first. */
  const cached = new Map<string, CachedPage>();
  let cachedBytes = 0;

  function drop(key: string, page: CachedPage): void {
    if (cached.get(key) !== page) return;
    cached.delete(key);
    cachedBytes -= page.byteLength;
  }

  async function make(snapshot: DatasetSnapshot, group: Group, nested: boolean): Promise<MadePage> {
    const previews = await collectPreviews(snapshot, nested ? groupsBelow(snapshot, group) : [group]);
    const steps = datasetPageSteps({
      snapshot,
      group,
      nested,
      previews: previews.values,
      stores: storesOf(context),
      looks: looksOf(context.routes(), context.datasetPath),
      serviceTitle: context.title,
      isAlone: context.datasetPath("{dataset_id}") === "/",
      serviceLinks: SERVICE_LINKS.filter((name) => context.routes().some(({ path }) => path === `/${name}`)),
    });
    const html = await runCooperatively(steps);
    return { page: new PlacedPage(html, context.createDocument), complete: previews.complete };
  }

  function add(key: string, snapshot: DatasetSnapshot, page: Promise<MadePage>): CachedPage {
    const entry: CachedPage = {
      snapshot: new WeakRef(snapshot),
      page,
      staleAt: Number.POSITIVE_INFINITY,
      byteLength: 0,
    };
    cached.set(key, entry);
    page.then(
      ({ page: { html }, complete }) => {
        if (cached.get(key) !== entry) return;
        entry.byteLength = html.length * 2;
        cachedBytes += entry.byteLength;
        const freshMs = complete
          ? snapshot.immutable
            ? Number.POSITIVE_INFINITY
            : PAGE_FRESH_MS
          : INCOMPLETE_FRESH_MS;
        entry.staleAt = performance.now() + freshMs;
        for (const [oldKey, oldPage] of cached) {
          if (cachedBytes <= MAX_CACHED_BYTES) break;
          drop(oldKey, oldPage);
        }
      },
      () => drop(key, entry),
    );
    return entry;
  }

  function current(snapshot: DatasetSnapshot, group: Group, nested: boolean): Promise<MadePage> {
    const key = `${snapshot.id}\n${nested ? "tree" : "group"}\n${group.path}`;
    const known = cached.get(key);
    if (known !== undefined && known.snapshot.deref() === snapshot && performance.now() < known.staleAt) {
      cached.delete(key);
      cached.set(key, known);
      return known.page;
    }
    if (known !== undefined) drop(key, known);
    return add(key, snapshot, make(snapshot, group, nested)).page;
  }

  return {
    async reply(snapshot, group, nested, request) {
      // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
      const place = placeOf(request, context.datasetPath(encodeSegment(snapshot.id)));
      const { page, complete } = await current(snapshot, group, nested);
      const document = page.at(place);
      // Other caches must not keep an incomplete page for as long as the dataset's configuration allows.
      const cacheControl = complete ? snapshot.cacheControl : ASK_EACH_TIME;
      return { kind: "document", document, cacheControl, quotesAddress: page.quotesAddress };
    },
  };
}

function* groupsBelow(snapshot: DatasetSnapshot, group: Group): Iterable<Group> {
  const prefix = group.path === "/" ? "/" : `${group.path}/`;
  yield group;
  for (const [path, other] of snapshot.tree.groups) {
    if (path !== group.path && path.startsWith(prefix)) yield other;
  }
}

/** Lists the prefixes of Zarr stores that the server has. */
export function storesOf(context: PluginContext): readonly StorePrefix[] {
  return STORE_PREFIXES.filter((prefix) => context.plugins().some(({ name }) => name === prefix));
}
