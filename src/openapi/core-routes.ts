import { ZpublishError } from "../errors.js";
import type { Document } from "../http/headers.js";
import type { DocumentReply } from "../http/reply.js";
import type { Route } from "../http/router.js";
import { packageVersion } from "../observe/versions.js";
import { renderDocsPage } from "../pages/docs-page.js";
import type { PluginContext } from "../plugins/plugin.js";
import { createDocsAssets } from "./docs-assets.js";
import { homeRoute } from "./home-route.js";
import { openApiDocument } from "./openapi-document.js";

const HTML_TYPE = "text/html; charset=utf-8";

/** Creates the routes that no plugin adds: the home page, the OpenAPI document, and the page to try it. */
export function coreRoutes(context: PluginContext): Route[] {
  const { title, datasetPath } = context;
  const assets = createDocsAssets(context.createDocument);
  // Made at the first request, when the route table is complete.
  let openApi: Document | undefined;
  let docs: Document | undefined;
  return [
    homeRoute(context),
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
