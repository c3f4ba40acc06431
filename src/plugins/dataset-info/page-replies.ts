import type { DatasetSnapshot } from "../../dataset/dataset.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import { ASK_EACH_TIME } from "../../http/access/access-rules.js";
import type { Document } from "../../http/document.js";
import type { DocumentReply, RouteRequest } from "../../http/reply.js";
import type { Group } from "../../model/data-tree.js";
import { datasetPageSteps } from "../../pages/dataset-page.js";
import { placeOf, placePage } from "../../pages/page-place.js";
import type { PluginContext } from "../plugin.js";
import { createPreviewCollector } from "./collect-previews.js";

/** How long a page with first values is kept where chunks may be rewritten in place. */
const PAGE_FRESH_MS = 3_000;
/** How long a page is kept that some first values did not reach in time. */
const INCOMPLETE_FRESH_MS = 1_000;
/** Characters of all pages kept. */
const PAGES_MAX_CHARS = 32 * 1024 * 1024;
/** Documents kept per page: one for each address it is asked for under. */
const MAX_PLACES = 4;

/** Routes of other plugins that pages link to, where they are there. */
const SERVICE_LINKS = ["plugins", "versions", "docs"];

/** Pages for people, each made once and kept while it is fresh. */
export interface PageReplies {
  /** The page of a group, or with `nested` of the tree below it. */
  reply(
    snapshot: DatasetSnapshot,
    group: Group,
    nested: boolean,
    request: RouteRequest,
  ): Promise<DocumentReply>;
}

interface KeptPage {
  readonly snapshot: DatasetSnapshot;
  readonly page: Promise<MadePage>;
  /** On the clock of `performance.now()`; infinite while it is made. */
  staleAt: number;
  charCount: number;
}

interface MadePage {
  readonly html: string;
  readonly complete: boolean;
  /** By address; the same content makes the same document whenever it is made. */
  readonly documents: Map<string, Document>;
}

/** Makes {@link PageReplies}. */
export function createPageReplies(context: PluginContext): PageReplies {
  const collectPreviews = createPreviewCollector(() => context.previews);
  // In order of use, least recently used first.
  const kept = new Map<string, KeptPage>();
  let keptChars = 0;

  function drop(key: string, page: KeptPage): void {
    if (kept.get(key) !== page) return;
    kept.delete(key);
    keptChars -= page.charCount;
  }

  async function make(snapshot: DatasetSnapshot, group: Group, nested: boolean): Promise<MadePage> {
    const previews = await collectPreviews(snapshot, nested ? groupsBelow(snapshot, group) : [group]);
    const steps = datasetPageSteps({
      snapshot,
      group,
      nested,
      previews: previews.values,
      zarr: context.plugins().some(({ name }) => name === "zarr"),
      serviceTitle: context.title,
      serviceLinks: SERVICE_LINKS.filter((name) => context.routes().some(({ path }) => path === `/${name}`)),
    });
    const html = await runCooperatively(steps);
    return { html, complete: previews.complete, documents: new Map() };
  }

  function keep(key: string, snapshot: DatasetSnapshot, page: Promise<MadePage>): KeptPage {
    const entry: KeptPage = { snapshot, page, staleAt: Number.POSITIVE_INFINITY, charCount: 0 };
    kept.set(key, entry);
    page.then(
      ({ html, complete }) => {
        if (kept.get(key) !== entry) return;
        entry.charCount = html.length * 2;
        keptChars += entry.charCount;
        const freshMs = complete
          ? snapshot.immutable
            ? Number.POSITIVE_INFINITY
            : PAGE_FRESH_MS
          : INCOMPLETE_FRESH_MS;
        entry.staleAt = performance.now() + freshMs;
        for (const [oldKey, oldPage] of kept) {
          if (keptChars <= PAGES_MAX_CHARS) break;
          drop(oldKey, oldPage);
        }
      },
      () => drop(key, entry),
    );
    return entry;
  }

  function current(snapshot: DatasetSnapshot, group: Group, nested: boolean): Promise<MadePage> {
    const key = `${snapshot.id}\n${nested ? "tree" : "group"}\n${group.path}`;
    const known = kept.get(key);
    if (known !== undefined && known.snapshot === snapshot && performance.now() < known.staleAt) {
      kept.delete(key);
      kept.set(key, known);
      return known.page;
    }
    if (known !== undefined) drop(key, known);
    return keep(key, snapshot, make(snapshot, group, nested)).page;
  }

  return {
    async reply(snapshot, group, nested, request) {
      // Before anything is waited for: a request that was given up meanwhile has no headers any more.
      const place = placeOf(request);
      const page = await current(snapshot, group, nested);
      const address = `${place.serviceUrl} ${place.up}`;
      let document = page.documents.get(address);
      if (document === undefined) {
        document = context.createDocument(placePage(page.html, place), "text/html; charset=utf-8");
        if (page.documents.size >= MAX_PLACES) page.documents.clear();
        page.documents.set(address, document);
      }
      // A page without some of its values must not be kept by others for as long as a dataset's owner allows.
      const cacheControl = page.complete ? snapshot.cacheControl : ASK_EACH_TIME;
      return { kind: "document", document, cacheControl, quotesAddress: true };
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
