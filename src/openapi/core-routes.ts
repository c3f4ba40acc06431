import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Catalog } from "../catalog/catalog.js";
import { ZpublishError } from "../errors.js";
import { memoPromise } from "../event-loop/joined.js";
import type { Document, DocumentReply } from "../http/reply.js";
import type { Route } from "../http/router.js";
import { packageVersion } from "../observe/versions.js";
import { renderDocsPage } from "../pages/docs-page.js";
import { PAGE_SCRIPT } from "../pages/page.js";
import type { CoreContext } from "../plugins/plugin.js";
import { homeRoute } from "./home-route.js";
import { openApiDocument } from "./openapi-document.js";

/** Files of swagger-ui-dist that the page needs, and their types. Nothing else of the package is served. */
const SWAGGER_FILES: Readonly<Record<string, string>> = {
  "swagger-ui.css": "text/css; charset=utf-8",
  "swagger-ui-bundle.js": "text/javascript; charset=utf-8",
  "favicon-32x32.png": "image/png",
};

/** Script that starts Swagger UI with the document beside the page. A separate file, so that the page needs no inline script. */
const START_SCRIPT = `window.addEventListener("DOMContentLoaded", () => {
  SwaggerUIBundle({
    url: new URL("openapi.json", document.baseURI).href,
    dom_id: "#swagger-ui",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    // Otherwise the page asks a validator on the internet about every document.
    validatorUrl: null,
  });
});
`;

const START_FILE = "start.js";

/** Content types of all files by name. */
const CONTENT_TYPES = new Map(
  Object.entries({ ...SWAGGER_FILES, [START_FILE]: "text/javascript; charset=utf-8" }),
);

/** Creates the assets of `/docs`; files are read at their first use. */
function createDocsAssets(createDocument: CoreContext["createDocument"]) {
  const require = createRequire(import.meta.url);
  const packageFile = require.resolve("swagger-ui-dist/package.json");
  const swagger = require(packageFile) as { version: string };
  const documents = new Map([...CONTENT_TYPES.keys()].map((name) => [name, memoPromise<Document>()]));

  async function load(name: string): Promise<Document> {
    const content = name === START_FILE ? START_SCRIPT : await readFile(join(dirname(packageFile), name));
    return createDocument(content, CONTENT_TYPES.get(name) as string);
  }

  return {
    /** Version of all assets together: of swagger-ui-dist and of this package. */
    version: `${swagger.version}-${packageVersion}`,
    /** Returns an asset; undefined if the page has none of that name. One that could not be read is read again. */
    read: (name: string) => documents.get(name)?.(() => load(name)),
  };
}

const HTML_TYPE = "text/html; charset=utf-8";

/**
 * Creates the routes that no plugin adds: the home page, the OpenAPI document, and the page to try it.
 * @param own `catalog`: descriptions of datasets for the home page; default: those of open datasets. `needsToken`: whether requests need
 * a token; default: they do not.
 */
export function coreRoutes(
  context: CoreContext,
  own: { readonly catalog?: Catalog; readonly needsToken?: boolean } = {},
): Route[] {
  const { title, datasetPath } = context;
  // Made at the first request, when the route table is complete.
  let openApi: Document | undefined;
  return [
    homeRoute(context, own.catalog),
    pageAssetRoute(context.createDocument),
    {
      path: "/openapi.json",
      priority: "page",
      operation: {
        summary: "Description of this API (OpenAPI 3.1)",
        contentType: "application/json",
        schema: { type: "object" },
        ranged: true,
      },
      handler() {
        openApi ??= context.createDocument(
          JSON.stringify(
            openApiDocument(context.routes(), {
              title,
              version: packageVersion,
              datasetPath,
              needsToken: own.needsToken ?? false,
            }),
          ),
          "application/json",
        );
        return reply(openApi);
      },
    },
    ...docsRoutes(context),
  ];
}

function docsRoutes(context: CoreContext): Route[] {
  const assets = createDocsAssets(context.createDocument);
  // Made at the first request, when the route table is complete.
  let docs: Document | undefined;
  return [
    {
      path: "/docs",
      priority: "page",
      operation: { summary: "Page that describes this API", contentType: HTML_TYPE },
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
        summary: "File of the page /docs",
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

/** Creates the route of the file that pages need. */
function pageAssetRoute(createDocument: CoreContext["createDocument"]): Route {
  const { name, content } = PAGE_SCRIPT;
  const document = createDocument(content, "text/javascript; charset=utf-8");
  return {
    path: "/assets/pages/{file}",
    priority: "page",
    operation: {
      summary: "File of the pages",
      contentType: "text/javascript",
      parameters: { file: "Name of the file, with a hash of its content" },
    },
    handler({ params }) {
      if (params.file !== name) throw new ZpublishError("not-found", `File '${params.file}' not found`);
      return { kind: "document", document, cacheControl: "public, max-age=31536000, immutable" };
    },
  };
}

function reply(document: Document): DocumentReply {
  return { kind: "document", document };
}
