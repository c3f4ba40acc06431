import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import type { Document } from "../http/headers.js";
import { packageVersion } from "../observe/versions.js";
import type { PluginContext } from "../plugins/plugin.js";

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

/** The assets of one version. */
export interface DocsAssets {
  /** Version of all assets together: of swagger-ui-dist and of this package. */
  readonly version: string;
  /** Returns an asset; undefined if the page has none of that name. */
  read(name: string): Promise<Document | undefined>;
}

/** Creates the assets of `/docs`; files are read at their first use. */
export function createDocsAssets(createDocument: PluginContext["createDocument"]): DocsAssets {
  const require = createRequire(import.meta.url);
  const packageFile = require.resolve("swagger-ui-dist/package.json");
  const swagger = require(packageFile) as { version: string };
  const documents = new Map<string, Promise<Document>>();

  async function load(name: string, contentType: string): Promise<Document> {
    const content = name === START_FILE ? START_SCRIPT : await readFile(join(dirname(packageFile), name));
    return createDocument(content, contentType);
  }

  return {
    version: `${swagger.version}-${packageVersion}`,
    async read(name) {
      const contentType =
        name === START_FILE
          ? "text/javascript; charset=utf-8"
          : Object.hasOwn(SWAGGER_FILES, name)
            ? SWAGGER_FILES[name]
            : undefined;
      if (contentType === undefined) return undefined;
      let document = documents.get(name);
      if (document === undefined) {
        document = load(name, contentType);
        documents.set(name, document);
        // A file that could not be read once may be readable the next time.
        document.catch(() => documents.delete(name));
      }
      return document;
    },
  };
}
