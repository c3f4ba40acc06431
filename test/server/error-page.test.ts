import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { severalDatasets } from "../../src/dataset/dataset.js";
import { ZpublishError } from "../../src/errors.js";
import { createCredentials } from "../../src/http/access/credentials.js";
import { prefersPage } from "../../src/http/error-reply.js";
import { createHttpServer } from "../../src/http/server.js";
import { createErrorPage } from "../../src/server/error-page.js";
import { withinLocation } from "../../src/zarr/stored-tree.js";
import { imageTags, writeTiff } from "../formats/tiff/tiff-writer.js";
import { jsonOf, rawRequest } from "../support/servers/raw-request.js";
import { createTestLog, routeOf, serveRoutes } from "../support/servers/serve-routes.js";
import { startServer } from "../support/servers/start-server.js";

/** What Chromium sends when someone opens an address. */
const BROWSER =
  "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7";

const errorPage = createErrorPage("My <data>", severalDatasets, (id) => id === "air");

t.test("a page is what browsers ask for when someone opens an address", (t) => {
  for (const [accept, expected] of [
    [BROWSER, true],
    ["text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", true],
    ["text/html", true],
    ["text/html;q=0.5", true],
    ["TEXT/HTML", true],
    [undefined, false],
    ["", false],
    ["*/*", false],
    ["application/json", false],
    ["application/json, text/html", false],
    ["application/json;q=0.5, text/html", true],
    ["application/json, text/html;q=0.9", false],
    ["text/html;q=0", false],
    ["text/*", false],
    ["image/avif,image/webp,*/*;q=0.8", false],
  ] as const)
    t.equal(prefersPage(accept), expected, accept ?? "none");
  t.end();
});

const routes = [
  routeOf("/datasets/{dataset_id}/", ({ params }) => {
    throw new ZpublishError("not-found", `Dataset '${params.dataset_id}' not found`);
  }),
  routeOf("/datasets/{dataset_id}/groups/{group_path:path}", ({ params }) => {
    throw new ZpublishError("not-found", `Group '${params.group_path}' not found in dataset 'air'`);
  }),
  routeOf(
    "/datasets/{dataset_id}/zarr/{var:path}/{chunk}",
    async () => {
      throw new ZpublishError("not-found", "Chunk '9' is absent");
    },
    "chunk",
  ),
  routeOf("/broken", async () => {
    throw new ZpublishError("unsupported", "/data/secret.tif: it is compressed with LERC", {
      details: { reason: "it is compressed with LERC, which is not <read>" },
    });
  }),
  routeOf("/failing", async () => {
    throw new Error("/data/secret.nc has a fault");
  }),
  routeOf("/busy", async () => {
    throw new ZpublishError("source-changed", "/data/secret.nc was replaced");
  }),
];

t.test("errors are pages for browsers and JSON for all others", async (t) => {
  const { port } = await serveRoutes(t, routes, { errorPage, rootPath: "/root" });
  for (const [path, status, ...shown] of [
    ["/root/nowhere/at/all", 404, "<h1>Not found</h1>", "There is nothing at this address.", 'href="../../"'],
    ["/", 404, 'href="./root/"'],
    ["/root/datasets/lost/", 404, "Dataset &#39;lost&#39; not found.", '<a href="../../">Start page</a>'],
    ["/root/datasets/air/groups/x/y", 404, '<a href="../../../../datasets/air/">Dataset <bdi>air</bdi></a>'],
    ["/root/datasets/air/zarr/t/9", 404, "Chunk &#39;9&#39; is absent."],
    ["/root/datasets/%zz/", 422, "<h1>This address is not valid</h1>"],
    ["/root/broken", 500, "stored in a way that the service cannot read", "LERC, which is not &lt;read&gt;."],
    ["/root/failing", 500, "Something went wrong in the service.", "tell the operator"],
    ["/root/busy", 503, "<h1>Not available at the moment</h1>", '<a href="">Try again</a>'],
  ] as const) {
    const page = await rawRequest(port, path, { headers: { Accept: BROWSER } });
    const html = page.body.toString();
    t.equal(page.status, status, path);
    t.match(page.headers, {
      "content-type": "text/html; charset=utf-8",
      "cache-control": "no-cache",
      "content-security-policy": /^default-src 'none'/,
      vary: "Accept",
    });
    for (const text of shown) t.ok(html.includes(text), `${path}: ${text}`);
    t.notMatch(html, /secret|<script|at async/);
    t.match(html, `<code>${page.headers["x-request-id"]}</code>`, "names the request");
    const head = await rawRequest(port, path, { method: "HEAD", headers: { Accept: BROWSER } });
    t.equal(head.status, status);
    t.match(head.headers, {
      "content-type": "text/html; charset=utf-8",
      "content-length": page.headers["content-length"],
    });
    for (const accept of ["*/*", "application/json"]) {
      const answer = await rawRequest(port, path, { headers: { Accept: accept } });
      t.equal(answer.status, status);
      t.match(answer.headers, { "content-type": "application/json", vary: "Accept" });
      t.ok((jsonOf(answer) as { readonly detail: unknown }).detail, path);
      t.notMatch(answer.body.toString(), /LERC/, "as before");
    }
  }
});

t.test(
  "a request by another method, and one of a server that starts, are answered with pages, too",
  async (t) => {
    const { port } = await serveRoutes(t, routes, { errorPage });
    const posted = await rawRequest(port, "/nowhere", { method: "POST", headers: { Accept: BROWSER } });
    t.equal(posted.status, 405);
    t.match(posted.body.toString(), "This service only reads");
    const server = createHttpServer({ log: createTestLog().log, errorPage });
    const starting = await server.listen("127.0.0.1", 0);
    t.teardown(() => server.close(0));
    const early = await rawRequest(starting.port, "/", { headers: { Accept: BROWSER } });
    t.equal(early.status, 503);
    t.match(early.body.toString(), "The server is starting");
    t.match(early.headers["retry-after"], /^\d+$/);
  },
);

t.test("a page without a token says so, and has a field for one", async (t) => {
  const tokens = [{ token: "right", patterns: [], expiresMs: Number.POSITIVE_INFINITY }];
  const credentials = createCredentials({ tokens, signingKey: "key" });
  const { port } = await serveRoutes(t, routes, { errorPage, credentials });
  const open = (path: string) => rawRequest(port, path, { headers: { Accept: BROWSER } });
  const none = await open("/datasets/lost/");
  t.equal(none.status, 401);
  t.match(none.headers, { "www-authenticate": /^Bearer/, vary: "Accept, Authorization, Cookie" });
  t.match(
    none.body.toString(),
    /<h1>You need a token<\/h1>[\s\S]*<form [\s\S]*<input id="token" name="token"/,
  );
  const wrong = (await open("/datasets/lost/?token=wrong")).body.toString();
  t.match(wrong, "<h1>This token is not valid</h1>");
  t.notMatch(wrong, "?token=", "and no link has it");
  t.match(
    (await open("/datasets/lost/?token=right")).body.toString(),
    '<a href="../../?token=right">Start page',
  );
});

t.test("a reason is about the content of a location, and names no place", async (t) => {
  for (const [code, message, reason] of [
    ["unsupported", "it is compressed with LERC, which is not read", "same"],
    ["invalid-metadata", ".zarray: invalid JSON", "same"],
    ["source-unreadable", "it cannot be read (EACCES)", undefined],
    ["invalid-metadata", "x.nc cannot be opened: /data/x.nc: it is damaged", undefined],
    ["unsupported", "a reference leads to 's3://bucket/x'", undefined],
    ["unsupported", "expected it below '/data'", undefined],
  ] as const) {
    const failing = withinLocation("/data/file", async () => {
      throw new ZpublishError(code, message);
    });
    const error = (await failing.catch((caught: unknown) => caught)) as ZpublishError;
    t.equal(error.message, `/data/file: ${message}`);
    t.equal(error.details.reason, reason && message, message);
  }
});

t.test("the page of a dataset that cannot be opened says why", async (t) => {
  const root = t.testdir();
  await mkdir(join(root, "tifs"));
  const image = { tags: imageTags(4, 4, 8, [259, "short", [34887]]), chunks: [new Uint8Array(16)] };
  await writeFile(join(root, "tifs", "scene.tif"), writeTiff([image]));
  const collection = { name: "", root: join(root, "tifs"), immutable: false, encoding: {}, variables: {} };
  const { url } = await startServer(t, { collections: [collection] });
  const [id] = (await (await fetch(`${url}/datasets`)).json()) as string[];
  const answer = await fetch(`${url}/datasets/${id}/`, { headers: { accept: BROWSER } });
  t.equal(answer.status, 500);
  const html = await answer.text();
  t.match(html, /The reason: it is compressed with LERC[^<]*\.<\/p>/);
  t.notOk(html.includes(root));
});
