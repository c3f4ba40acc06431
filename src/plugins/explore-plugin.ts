import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { type DatasetSnapshot, findGroup } from "../dataset/dataset.js";
import { messageOf, ZpublishError } from "../errors.js";
import { memoPromise } from "../event-loop/joined.js";
import { ASK_EACH_TIME } from "../http/access/access-rules.js";
import type { HeaderLines } from "../http/headers.js";
import type { ContentCoding, Document, DocumentReply, RouteRequest } from "../http/reply.js";
import type { Route } from "../http/router.js";
import type { Group } from "../model/data-tree.js";
import { packageVersion } from "../observe/versions.js";
import { renderExplorePage } from "../pages/explore-page.js";
import { looksOf } from "../pages/look-links.js";
import { encodeSegment } from "../pages/page.js";
import { placeOf } from "../pages/page-place.js";
import { hasVersions, maxSelectionOf, PlacedPage } from "./page-replies.js";
import type { CoreContext, Plugin } from "./plugin.js";

/** The plugin of the explorer: a page that draws maps and plots of a dataset, which the browser reads as a Zarr v2 store. */
const explorePlugin = {
  name: "explore",
  version: packageVersion,
  path: "zpublish/plugins/explore",
  routes: createRoutes,
} satisfies Plugin;
export default explorePlugin;

const DATASET = "/datasets/{dataset_id}";
const PARAMETERS = {
  dataset_id: "Id of a dataset, as `/datasets` lists it",
  group_path: "Path of a group, as `groups` lists it",
};

/**
 * Headers of the page and its files. The policy permits nothing from other origins, and no code but these files; a worker has the
 * policy of its own script's answer (Content Security Policy Level 3, §4.2.2).
 */
const HEADERS: HeaderLines = Object.freeze([
  [
    "Content-Security-Policy",
    [
      "default-src 'none'",
      "script-src 'self'",
      "worker-src 'self'",
      "connect-src 'self'",
      "style-src 'self'",
      "img-src 'self' data: blob:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'self'",
    ].join("; "),
  ],
  ["Referrer-Policy", "no-referrer"],
] as const);

async function createRoutes(context: CoreContext): Promise<readonly Route[]> {
  // Without the store there is nothing that the explorer could read.
  if (!context.plugins().some(({ name }) => name === "zarr")) return [];
  const { datasets, createDocument } = context;
  const assets = await openExploreAssets(createDocument);

  function reply(snapshot: DatasetSnapshot, group: Group, request: RouteRequest): DocumentReply {
    const page = context.memo(snapshot, `explore ${group.path}`, () => {
      const html = renderExplorePage({
        snapshot,
        group,
        assets: assets.names,
        looks: looksOf(context.routes(), context.datasetPath),
        maxSelectionBytes: maxSelectionOf(context),
        hasVersions: hasVersions(context),
      });
      return new PlacedPage(html, createDocument);
    });
    return {
      kind: "document",
      document: page.at(placeOf(request, context.datasetPath(encodeSegment(snapshot.id)))),
      // However long the dataset's documents may be kept: the page names files of this very build.
      cacheControl: ASK_EACH_TIME,
      quotesAddress: page.quotesAddress,
      headers: HEADERS,
    };
  }

  const page = (path: string, summary: string): Route => ({
    path: `${DATASET}${path}`,
    priority: "page",
    operation: { summary, contentType: "text/html; charset=utf-8", parameters: PARAMETERS },
    handler(request) {
      const snapshot = datasets.get(request.params.dataset_id as string);
      return reply(snapshot, findGroup(snapshot, request.params.group_path ?? ""), request);
    },
  });
  return [
    page("/explore", "Explorer of a dataset: maps and plots, drawn by the browser"),
    page("/groups/{group_path:path}/explore", "Explorer of a group and the groups below it"),
    {
      path: "/assets/explore/{file}",
      priority: "page",
      operation: {
        summary: "File of the explorer",
        contentType: "application/octet-stream",
        parameters: { file: "Name of the file, with a hash of its content" },
      },
      async handler({ params }) {
        const file = params.file as string;
        const document = await assets.read(file);
        if (document === undefined) throw new ZpublishError("not-found", `Asset '${file}' not found`);
        return {
          kind: "document",
          document,
          cacheControl: "public, max-age=31536000, immutable",
          headers: HEADERS,
        };
      },
    },
  ];
}

/** Folder of the explorer's files, as `scripts/explore/build-explore.ts` writes them. */
const ASSETS = new URL("../explore/assets/", import.meta.url);

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/**
 * Reads the list of the explorer's files.
 * @param folder Default: the assets of this build.
 * @throws ZpublishError `internal` if the build has none.
 */
export async function openExploreAssets(createDocument: CoreContext["createDocument"], folder: URL = ASSETS) {
  let names: Readonly<Record<string, string>>;
  try {
    names = JSON.parse(await readFile(new URL("assets.json", folder), "utf8"));
  } catch (error) {
    throw new ZpublishError(
      "internal",
      "plugin 'explore': expected the explorer's files in this build, received none; build them with " +
        `'npm run build:explore', or switch the plugin off with '--no-plugin explore' (${messageOf(error)})`,
      { cause: error },
    );
  }
  const documents = new Map(Object.values(names).map((file) => [file, memoPromise<Document>()]));

  async function load(file: string): Promise<Document> {
    const read = (ending: string) => readFile(new URL(file + ending, folder));
    const [bytes, br, gzip] = await Promise.all([read(""), read(".br"), read(".gz")]);
    const contentType = CONTENT_TYPES[extname(file)] ?? "application/octet-stream";
    return withEncoded(createDocument(bytes, contentType), { br, gzip });
  }

  return {
    /** Names of the files by their names in the source: `page.js` → `page-0123456789ab.js`. */
    names,
    /** Returns a file, which is read at its first use; undefined if there is none of that name. One that could not be read is read again. */
    read: (file: string) => documents.get(file)?.(() => load(file)),
  };
}

/** Gives a document compressed forms that are made already, better than a server has time for. */
function withEncoded(document: Document, encoded: Readonly<Record<ContentCoding, Uint8Array>>): Document {
  const smaller = (coding: ContentCoding) =>
    encoded[coding].byteLength < document.bytes.byteLength ? encoded[coding] : undefined;
  return Object.freeze({ ...document, encoded: smaller });
}
