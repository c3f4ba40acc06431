import type { DatasetSnapshot } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { renderDocsPage } from "../html/docs-page.js";
import { renderHomePage } from "../html/home-page.js";
import type { Document } from "../http/document.js";
import type { DocumentReply } from "../http/reply.js";
import type { Route } from "../http/route.js";
import { packageVersion } from "../observe/package-version.js";
import type { PluginContext } from "../plugins/plugin.js";
import { createDocsAssets } from "./docs-assets.js";
import { openApiDocument } from "./openapi-document.js";

const HTML_TYPE = "text/html; charset=utf-8";

/** Datasets that the home page describes; further ones are links only. */
const MAX_DESCRIBED_DATASETS = 100;

/** Routes every server has whatever its plugins: the home page, the OpenAPI document, and the page to try it. */
export function coreRoutes(context: PluginContext): Route[] {
  const assets = createDocsAssets(context.createDocument);
  const home = createHomeDocument(context);
  // Both are made at the first request, when the route table is complete.
  let openApi: Document | undefined;
  let docs: Document | undefined;
  return [
    {
      path: "/",
      weight: "page",
      operation: { summary: "What is published here, for people", contentType: HTML_TYPE },
      handler: () => reply(home()),
    },
    {
      path: "/openapi.json",
      weight: "page",
      operation: {
        summary: "This API as OpenAPI 3.1",
        contentType: "application/json",
        schema: { type: "object" },
        ranged: true,
      },
      handler() {
        openApi ??= context.createDocument(
          JSON.stringify(
            openApiDocument(context.routes(), { title: context.title, version: packageVersion }),
          ),
          "application/json",
        );
        return reply(openApi);
      },
    },
    {
      path: "/docs",
      weight: "page",
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
      weight: "page",
      operation: {
        summary: "A file that the page to try the API needs",
        contentType: "application/octet-stream",
        parameters: { asset: "Name of the file" },
      },
      async handler({ params, query }) {
        const asset = params.asset as string;
        const document = await assets.read(asset);
        if (document === undefined) throw new ZpublishError("not-found", `Asset '${asset}' not found`);
        // Under an address that names its version an asset never changes.
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

/** The home page, made anew only when the datasets it shows are others, or other states of the same. */
function createHomeDocument(context: PluginContext): () => Document {
  let shownState: string | undefined;
  let document: Document | undefined;
  return () => {
    const ids = context.datasets.ids();
    const snapshots = describedSnapshots(context, ids);
    const revisions = Array.from(snapshots.values(), ({ revision }) => revision);
    const state = JSON.stringify([ids, revisions]);
    if (document === undefined || state !== shownState) {
      shownState = state;
      document = context.createDocument(
        renderHomePage({
          title: context.title,
          ids,
          snapshots,
          plugins: context.plugins(),
          routes: context.routes(),
          versions: context.versions,
        }),
        HTML_TYPE,
      );
    }
    return document;
  };
}

function describedSnapshots(
  { datasets }: PluginContext,
  ids: readonly string[],
): ReadonlyMap<string, DatasetSnapshot> {
  const snapshots = new Map<string, DatasetSnapshot>();
  for (const id of ids.slice(0, MAX_DESCRIBED_DATASETS)) snapshots.set(id, datasets.get(id));
  return snapshots;
}
