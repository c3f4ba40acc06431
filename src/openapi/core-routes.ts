import type { DatasetSnapshot } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { type CooperativeTask, startCooperatively } from "../event-loop/cooperative-task.js";
import { settlesWithin } from "../event-loop/settles-within.js";
import type { Document } from "../http/document.js";
import type { DocumentReply } from "../http/reply.js";
import type { Route } from "../http/routing/route.js";
import { packageVersion } from "../observe/package-version.js";
import { renderDocsPage } from "../pages/docs-page.js";
import { type HomePage, homePageSteps } from "../pages/home-page.js";
import { placeOf } from "../pages/page-place.js";
import { PlacedPage } from "../plugins/placed-page.js";
import type { PluginContext } from "../plugins/plugin.js";
import { createDocsAssets } from "./docs-assets.js";
import { openApiDocument } from "./openapi-document.js";

const HTML_TYPE = "text/html; charset=utf-8";

/** Datasets that the home page describes; further ones are links only. */
const MAX_DESCRIBED_DATASETS = 100;
/** Milliseconds that the home page waits for datasets that have to be opened or refreshed first. */
const DESCRIBE_TIMEOUT_MS = 1_000;

/** Creates the routes that no plugin adds: the home page, the OpenAPI document, and the page to try it. */
export function coreRoutes(context: PluginContext): Route[] {
  const { title, datasetPath } = context;
  const assets = createDocsAssets(context.createDocument);
  const home = createHome(context);
  // Made at the first request, when the route table is complete.
  let openApi: Document | undefined;
  let docs: Document | undefined;
  return [
    {
      path: "/",
      priority: "page",
      operation: { summary: "What is published here, for people", contentType: HTML_TYPE },
      handler(request) {
        const place = placeOf(request);
        const placed = (page: PlacedPage): DocumentReply => ({
          kind: "document",
          document: page.at(place),
          quotesAddress: page.quotesAddress,
        });
        const page = home();
        return page instanceof Promise ? page.then(placed) : placed(page);
      },
    },
    {
      path: "/openapi.json",
      priority: "page",
      operation: {
        summary: "This API as OpenAPI 3.1",
        contentType: "application/json",
        schema: { type: "object" },
        ranged: true,
      },
      handler() {
        openApi ??= context.createDocument(
          JSON.stringify(openApiDocument(context.routes(), { title, version: packageVersion, datasetPath })),
          "application/json",
        );
        return reply(openApi);
      },
    },
    {
      path: "/docs",
      priority: "page",
      operation: { summary: "This API to read and try", contentType: HTML_TYPE },
      handler() {
        docs ??= context.createDocument(
          renderDocsPage(context.title, context.routes(), assets.version),
          HTML_TYPE,
        );
        return reply(docs);
      },
    },
    {
      path: "/docs/{asset}",
      priority: "page",
      operation: {
        summary: "A file that the page to try the API needs",
        contentType: "application/octet-stream",
        parameters: { asset: "Name of the file" },
      },
      async handler({ params, query }) {
        const asset = params.asset as string;
        const document = await assets.read(asset);
        if (document === undefined) throw new ZpublishError("not-found", `Asset '${asset}' not found`);
        // A URL with the version names an asset that never changes.
        return query === `v=${assets.version}`
          ? { kind: "document", document, cacheControl: "public, max-age=31536000, immutable" }
          : reply(document);
      },
    },
  ];
}

function reply(document: Document): DocumentReply {
  return { kind: "document", document };
}

/** Returns a function that renders the home page, again only if its datasets have changed. */
function createHome(context: PluginContext): () => PlacedPage | Promise<PlacedPage> {
  let shownIds: readonly string[] = [];
  let shownState: string | undefined;
  let shown: PlacedPage | Promise<PlacedPage> | undefined;

  function pageOf(
    ids: readonly string[],
    snapshots: ReadonlyMap<string, DatasetSnapshot>,
  ): PlacedPage | Promise<PlacedPage> {
    const state = Array.from(snapshots.values(), ({ id, revision }) => `${id}\n${revision}`).join("\n");
    if (shown !== undefined && state === shownState && isSameList(ids, shownIds)) return shown;
    shownIds = ids;
    shownState = state;
    const { title, versions, datasetPath } = context;
    const plugins = context.plugins();
    const page = { title, ids, snapshots, plugins, routes: context.routes(), datasetPath, versions };
    const made = startCooperatively(homeSteps(context, page));
    shown = made;
    if (made instanceof Promise) {
      made.then(
        (placed) => {
          if (shown === made) shown = placed;
        },
        () => {
          if (shown === made) shown = undefined;
        },
      );
    }
    return made;
  }

  return () => {
    const ids = context.datasets.ids();
    const snapshots = describedSnapshots(context, ids);
    return snapshots instanceof Promise
      ? snapshots.then((settled) => pageOf(ids, settled))
      : pageOf(ids, snapshots);
  };
}

function* homeSteps({ createDocument }: PluginContext, page: HomePage): CooperativeTask<PlacedPage> {
  return new PlacedPage(yield* homePageSteps(page), createDocument);
}

function isSameList(a: readonly string[], b: readonly string[]): boolean {
  return a === b || (a.length === b.length && a.every((item, index) => item === b[index]));
}

/** Returns the datasets that are ready in time; the others are only links. */
function describedSnapshots(
  { datasets }: PluginContext,
  ids: readonly string[],
): ReadonlyMap<string, DatasetSnapshot> | Promise<ReadonlyMap<string, DatasetSnapshot>> {
  const described = ids.slice(0, MAX_DESCRIBED_DATASETS);
  const found = new Map<string, DatasetSnapshot>();
  const awaited: Promise<unknown>[] = [];
  for (const id of described) {
    const opened = datasets.open(id);
    if (!(opened instanceof Promise)) found.set(id, opened);
    else {
      const noted = opened.then(
        (snapshot) => found.set(id, snapshot),
        () => undefined,
      );
      awaited.push(noted);
    }
  }
  if (awaited.length === 0) return found;
  return settlesWithin(Promise.all(awaited), DESCRIBE_TIMEOUT_MS).then(
    () => new Map(described.flatMap((id) => (found.has(id) ? [[id, found.get(id) as DatasetSnapshot]] : []))),
  );
}
