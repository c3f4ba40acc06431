import { createBoundedMap } from "../collections/bounded-map.js";
import type { DatasetSnapshot } from "../dataset/dataset.js";
import { type IdPage, type IdPageQuery, idPageSteps } from "../dataset/id-page.js";
import { ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { publicDetail } from "../http/error-reply.js";
import type { DocumentReply } from "../http/reply.js";
import type { Route } from "../http/router.js";
import { type DatasetList, homePageSteps } from "../pages/home-page.js";
import { placeOf } from "../pages/page-place.js";
import { PlacedPage } from "../plugins/page-replies.js";
import type { PluginContext } from "../plugins/plugin.js";

/** Datasets on one page. */
const PAGE_DATASETS = 100;
/** Configured datasets that the page opens, the first ones; all others are described if they are open. */
const MAX_OPENED = 100;
/** Milliseconds that the page waits for datasets that have to be opened or refreshed first. */
const OPEN_TIMEOUT_MS = 1_000;
/** Pages that are kept, some hundred kilobytes each. */
const MAX_PAGES = 16;

/** Creates the route of the home page. */
export function homeRoute(context: PluginContext): Route {
  const pageOf = createHome(context);
  return {
    path: "/",
    priority: "page",
    operation: {
      summary: "What is published here, for people",
      contentType: "text/html; charset=utf-8",
      query: {
        q: {
          description: "Text in the ids of the datasets that are listed, in upper or lower case",
          schema: { type: "string" },
        },
        after: { description: "Id of the dataset behind which the list begins", schema: { type: "string" } },
      },
    },
    async handler(request): Promise<DocumentReply> {
      // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
      const place = placeOf(request);
      const asked = new URLSearchParams(request.query);
      const filter = asked.get("q")?.trim() ?? "";
      const page = await pageOf({ filter, after: asked.get("after") ?? "", limit: PAGE_DATASETS });
      return { kind: "document", document: page.at(place), quotesAddress: page.quotesAddress };
    },
  };
}

/** A page that was made for a query. */
interface KeptPage {
  readonly ids: readonly string[];
  readonly page: Promise<IdPage>;
  /** Text that differs if what the page shows of its datasets has changed. */
  state: string;
  placed: Promise<PlacedPage> | undefined;
}

/** Returns a function that renders the home page, again only if its datasets have changed. */
function createHome(context: PluginContext): (query: IdPageQuery) => Promise<PlacedPage> {
  const { datasets } = context;
  const pages = createBoundedMap<KeptPage>({ maxEntries: MAX_PAGES });

  function keptOf(query: IdPageQuery): KeptPage {
    const ids = datasets.ids();
    const key = JSON.stringify([query.filter, query.after]);
    const known = pages.get(key);
    if (known?.ids === ids) return known;
    const page = runCooperatively(idPageSteps(ids, datasets.configuredCount, query));
    const kept: KeptPage = { ids, page, state: "", placed: undefined };
    pages.set(key, kept);
    return kept;
  }

  async function render(list: DatasetList): Promise<PlacedPage> {
    const { title, versions, datasetPath } = context;
    const parts = { plugins: context.plugins(), routes: context.routes(), datasetPath, versions };
    const html = await runCooperatively(homePageSteps({ title, list, ...parts }));
    return new PlacedPage(html, context.createDocument);
  }

  return async (query) => {
    const kept = keptOf(query);
    const page = await kept.page;
    const { snapshots, failures } = await shownDatasets(context, page.ids);
    const revisions = Array.from(snapshots.values(), ({ id, revision }) => [id, revision]);
    const state = JSON.stringify([revisions, [...failures]]);
    if (kept.placed !== undefined && kept.state === state) return kept.placed;
    const placed = render({ total: kept.ids.length, filter: query.filter, page, snapshots, failures });
    kept.state = state;
    kept.placed = placed;
    placed.catch(() => {
      if (kept.placed === placed) kept.placed = undefined;
    });
    return placed;
  };
}

/**
 * Returns the datasets of a page that are open, and the reasons of those that cannot be. Opens those that are configured first, for as
 * long as a page may wait. Those of collections are not opened: every visit would open a hundred files, and close those in use.
 */
async function shownDatasets({ datasets }: PluginContext, ids: readonly string[]) {
  const opened = new Map<string, DatasetSnapshot>();
  const failed = new Map<string, string>();
  const awaited: Promise<unknown>[] = [];
  const fail = (id: string, error: unknown) =>
    failed.set(id, publicDetail(error instanceof ZpublishError ? error : undefined));
  const configured = new Set(datasets.ids().slice(0, Math.min(datasets.configuredCount, MAX_OPENED)));
  const known = datasets.failures();
  for (const id of ids) {
    if (configured.has(id)) {
      const opening = datasets.open(id);
      if (!(opening instanceof Promise)) opened.set(id, opening);
      else
        awaited.push(
          opening.then(
            (snapshot) => opened.set(id, snapshot),
            (error: unknown) => fail(id, error),
          ),
        );
      continue;
    }
    const snapshot = datasets.opened(id);
    if (snapshot !== undefined) opened.set(id, snapshot);
    else if (known.has(id)) fail(id, known.get(id));
  }
  if (awaited.length > 0) await settlesWithin(Promise.all(awaited), OPEN_TIMEOUT_MS);
  // In the order of the list, and without what is opened later.
  return { snapshots: inOrder(ids, opened), failures: inOrder(ids, failed) };
}

function inOrder<T>(ids: readonly string[], found: ReadonlyMap<string, T>): ReadonlyMap<string, T> {
  return new Map(ids.flatMap((id) => (found.has(id) ? [[id, found.get(id) as T]] : [])));
}
