import { type Catalog, catalogOfOpen } from "../catalog/catalog.js";
import { createBoundedMap } from "../collections/bounded-map.js";
import {
  FOLDER_END,
  type IdFolder,
  type IdPage,
  type IdPageQuery,
  idFolderSteps,
  idPageSteps,
} from "../dataset/id-page.js";
import { errorFromData, messageOf, ZpublishError } from "../errors.js";
import { runCooperatively } from "../event-loop/cooperative-task.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import { publicDetail, publicReason } from "../http/error-reply.js";
import type { DocumentReply } from "../http/reply.js";
import type { Route } from "../http/router.js";
import { type DatasetList, homePageSteps, type ListedDataset } from "../pages/home-page.js";
import { PAGE_HEADERS } from "../pages/page.js";
import { placeOf } from "../pages/page-place.js";
import { PlacedPage } from "../plugins/page-replies.js";
import type { CoreContext } from "../plugins/plugin.js";

/** Datasets on one page. A folder with no more is shown with all folders in it. */
const PAGE_DATASETS = 100;
/** Configured datasets that the page opens, the first ones; all others are described if they are open. */
const MAX_OPENED = 100;
/** Milliseconds that the page waits for datasets that have to be opened or refreshed first, and then for their descriptions. */
const OPEN_TIMEOUT_MS = 1_000;
/** Pages that are kept, some hundred kilobytes each. */
const MAX_PAGES = 16;

/**
 * Creates the route of the home page.
 * @param catalog Descriptions of datasets that are not open. Default: there are none.
 */
export function homeRoute(context: CoreContext, catalog: Catalog = catalogOfOpen(context)): Route {
  const pageOf = createHome(context, catalog);
  return {
    path: "/",
    priority: "page",
    operation: {
      summary: "Home page: the datasets that are published here",
      contentType: "text/html; charset=utf-8",
      query: {
        q: {
          description: "Text in the ids of the datasets that are listed, in upper or lower case",
          schema: { type: "string" },
        },
        folder: {
          description: "Beginning of the ids of the datasets that are listed, up to a `~`",
          schema: { type: "string" },
        },
        after: { description: "Id of the dataset behind which the list begins", schema: { type: "string" } },
      },
    },
    async handler(request): Promise<DocumentReply> {
      // Before the first `await`: a request that is cancelled meanwhile has no headers any more.
      const place = placeOf(request);
      const asked = new URLSearchParams(request.query);
      const page = await pageOf({
        filter: asked.get("q")?.trim() ?? "",
        folder: asked.get("folder") ?? "",
        after: asked.get("after") ?? "",
        limit: PAGE_DATASETS,
      });
      const { quotesAddress } = page;
      return { kind: "document", document: page.at(place), quotesAddress, headers: PAGE_HEADERS };
    },
  };
}

/** What a page lists. */
interface HomeQuery extends IdPageQuery {
  /** As in {@link idFolderSteps}. */
  readonly folder: string;
}

/** The ids of a page, and the folder that they are in. */
interface FolderPage extends IdFolder {
  /** Ids of datasets, and of folders if there are too many datasets in them for one page. */
  readonly page: IdPage;
}

/** A page that was made for a query. */
interface KeptPage {
  readonly ids: readonly string[];
  readonly found: Promise<FolderPage>;
  /** What the page shows of its datasets. */
  shown: readonly unknown[];
  placed: Promise<PlacedPage> | undefined;
}

async function findPage(
  ids: readonly string[],
  configuredCount: number,
  query: HomeQuery,
): Promise<FolderPage> {
  const found = await runCooperatively(idFolderSteps(ids, configuredCount, query.folder));
  const isWhole = query.filter !== "" || found.below.length <= query.limit;
  const listed = isWhole ? found.below : found.entries;
  return { ...found, page: await runCooperatively(idPageSteps(listed, found.configuredCount, query)) };
}

/** Returns a function that renders the home page, again only if its datasets have changed. */
function createHome(context: CoreContext, catalog: Catalog): (query: HomeQuery) => Promise<PlacedPage> {
  const { datasets } = context;
  const pages = createBoundedMap<KeptPage>({ maxEntries: MAX_PAGES });

  function keptOf(query: HomeQuery): KeptPage {
    const ids = datasets.ids();
    const key = JSON.stringify([query.filter, query.folder, query.after]);
    const known = pages.get(key);
    if (known?.ids === ids) return known;
    const kept: KeptPage = {
      ...{ ids, found: findPage(ids, datasets.configuredCount, query) },
      ...{ shown: [], placed: undefined },
    };
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
    const { folder, below, counts, page } = await kept.found;
    const listed = await listedDatasets(
      context,
      catalog,
      page.ids.filter((id) => !counts.has(id)),
    );
    const alike = catalog.alike().filter(({ ids }) => isBelow(ids, folder));
    const shown = [...alike, ...[...listed.values()].flatMap(({ summary, problem }) => [summary, problem])];
    const isSame = shown.length === kept.shown.length && shown.every((each, at) => each === kept.shown[at]);
    if (kept.placed !== undefined && isSame) return kept.placed;
    const total = below.length;
    const placed = render({ total, filter: query.filter, folder, page, counts, listed, alike });
    kept.shown = shown;
    kept.placed = placed;
    placed.catch(() => {
      if (kept.placed === placed) kept.placed = undefined;
    });
    return placed;
  };
}

/** Tells whether some datasets are in a folder. */
function isBelow(ids: ReadonlySet<string>, folder: string): boolean {
  if (folder === "") return true;
  for (const id of ids) if (id.startsWith(folder + FOLDER_END)) return true;
  return false;
}

/**
 * Returns what is known of the datasets of a page. Opens those that are configured first, for as long as a page may wait. Those of
 * collections are not opened: every visit would open a hundred files, and close those in use.
 */
async function listedDatasets(
  { datasets }: CoreContext,
  catalog: Catalog,
  ids: readonly string[],
): Promise<ReadonlyMap<string, ListedDataset>> {
  const configured = new Set(datasets.ids().slice(0, Math.min(datasets.configuredCount, MAX_OPENED)));
  const failures = new Map(datasets.failures());
  const opening = ids.flatMap((id) => {
    const snapshot = configured.has(id) ? datasets.open(id) : undefined;
    return snapshot instanceof Promise
      ? [snapshot.catch((error: unknown) => failures.set(id, asFailure(error)))]
      : [];
  });
  if (opening.length > 0) await settlesWithin(Promise.all(opening), OPEN_TIMEOUT_MS);
  const descriptions = await catalog.descriptions(ids, OPEN_TIMEOUT_MS);
  return new Map(
    ids.map((id): [string, ListedDataset] => {
      const description = descriptions.get(id);
      if (description !== undefined && "summary" in description) return [id, description];
      const problem = description?.problem ?? failures.get(id);
      if (problem === undefined) return [id, { isAwaited: catalog.isAwaited(id) }];
      const error = errorFromData(problem);
      return [id, { problem: publicReason(error) ?? publicDetail(error) }];
    }),
  );
}

function asFailure(error: unknown): ZpublishError {
  return error instanceof ZpublishError ? error : new ZpublishError("internal", messageOf(error));
}
