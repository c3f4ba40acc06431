import { Validator } from "@seriousme/openapi-schema-validator";
import t from "tap";
import type { DocumentReply } from "../../src/http/reply.js";
import type { Route } from "../../src/http/router.js";
import { coreRoutes } from "../../src/openapi/core-routes.js";
import { openApiDocument } from "../../src/openapi/openapi-document.js";
import datasetInfo from "../../src/plugins/dataset-info/dataset-info-plugin.js";
import moduleVersion from "../../src/plugins/service-info/module-version.js";
import pluginInfo from "../../src/plugins/service-info/plugin-info.js";
import thumbnail from "../../src/plugins/thumbnail-plugin.js";
import { fakeContext } from "../support/datasets/fake-context.js";
import { fakeService } from "../support/datasets/fake-service.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";
import { airTemperature } from "../support/datasets/sample-datasets.js";
import { startServer } from "../support/servers/start-server.js";

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly parameters?: readonly object[];
  readonly responses: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>;
}

interface PathItem {
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description: string;
  }[];
  readonly get: Operation;
}

interface OpenApi {
  readonly openapi: string;
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, PathItem>>;
}

/** Routes like those of the zarr plugin. */
const ZARR = "/datasets/{dataset_id}/zarr";
const ZARR_ROUTES: readonly Route[] = [
  route(ZARR, "text/html"),
  route(`${ZARR}/{group_path:path}/`, "text/html"),
  route(`${ZARR}/{group_path:path}/.zmetadata`, "application/json", true),
  route(`${ZARR}/{var:path}/{chunk}`, "application/octet-stream", true),
];

function route(path: string, contentType: string, ranged = false): Route {
  const operation = { summary: `Summary of ${path}`, contentType, ranged };
  const priority = path.endsWith("{chunk}") ? "chunk" : "page";
  return { path, priority, operation, handler: () => ({ kind: "redirect", to: "with-slash" }) };
}

async function document(needsToken = false): Promise<OpenApi> {
  const context = fakeContext({});
  const routes = [...coreRoutes(context), ...ZARR_ROUTES];
  for (const plugin of [datasetInfo, moduleVersion, pluginInfo, thumbnail])
    routes.push(...(await plugin.routes(context)));
  // As clients get it: JSON has no undefined.
  const info = { title: "Test", version: "1.2.3", datasetPath: context.datasetPath, needsToken };
  return JSON.parse(JSON.stringify(openApiDocument(routes, info))) as OpenApi;
}

t.test("the document of all plugins obeys the schema of OpenAPI 3.1", async (t) => {
  const { json } = await startServer(t, {});
  t.match(await new Validator().validate((await json("/openapi.json")) as Record<string, unknown>), {
    valid: true,
  });
});

t.test("every path of the contract is there, slashes and all", async (t) => {
  const { openapi, paths } = await document();
  t.equal(openapi, "3.1.0");
  for (const path of [
    "/",
    "/docs",
    "/openapi.json",
    "/plugins",
    "/versions",
    "/datasets",
    "/datasets/{dataset_id}",
    "/datasets/{dataset_id}/",
    "/datasets/{dataset_id}/groups/{group_path}/keys",
    "/datasets/{dataset_id}/zarr/{var}/{chunk}",
  ]) {
    t.ok(paths[path], path);
  }
});

t.test("every parameter of a path is described, and those that span segments say so", async (t) => {
  const { paths } = await document();
  for (const [path, { parameters = [] }] of Object.entries(paths)) {
    const names = Array.from(path.matchAll(/\{([^}]+)\}/g), ([, name]) => name);
    t.strictSame(
      parameters.map(({ name }) => name),
      names,
      path,
    );
    t.ok(parameters.every((parameter) => parameter.in === "path" && parameter.required));
  }
  t.match(
    paths["/datasets/{dataset_id}/groups/{group_path}"]?.parameters?.[1]?.description,
    "span several segments",
  );
});

t.test("parameters of the query are described before the headers, and none is required", async (t) => {
  const { paths } = await document();
  const { parameters, get } = paths["/datasets/{dataset_id}/thumbnail/{var}.png"] as PathItem;
  t.strictSame(
    parameters?.map(({ name }) => name),
    ["dataset_id", "var"],
  );
  t.match(get.parameters?.slice(0, 5), [
    { name: "size", in: "query", required: false, schema: { minimum: 64, maximum: 1024, default: 320 } },
    { name: "range", in: "query" },
    { name: "scale", schema: { enum: ["viridis"] } },
    { name: "reversed" },
    { $ref: /IfNoneMatch/ },
  ]);
  t.ok(get.responses["200"]?.content?.["image/png"]);
});

t.test("operation ids are unique, tags declared, references resolve", async (t) => {
  const api = await document();
  const operations = Object.values(api.paths).map(({ get }) => get);
  const ids = operations.map(({ operationId }) => operationId);
  t.equal(new Set(ids).size, ids.length);
  t.ok(ids.every((id) => /^get_[A-Za-z0-9_]+$/.test(id)));
  const tags = new Set(api.tags.map(({ name }) => name));
  t.ok(operations.every((operation) => operation.tags.length === 1 && tags.has(operation.tags[0] as string)));
  t.strictSame([...tags].sort(), ["datasets", "encodings", "groups", "service", "zarr"]);
  for (const [, reference] of JSON.stringify(api).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const target = (reference as string)
      .split("/")
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], api);
    t.ok(target, reference as string);
  }
});

t.test("answers are those that apply", async (t) => {
  const { paths } = await document(true);
  const statuses = (path: string) => Object.keys(paths[path]?.get.responses ?? {});
  t.strictSame(statuses("/versions"), ["200", "206", "304", "401", "405", "412", "416", "500", "503"]);
  t.strictSame(statuses("/datasets/{dataset_id}"), ["301", "401", "403", "404", "405", "422", "500", "503"]);
  t.strictSame(statuses("/datasets/{dataset_id}/zarr"), [
    "301",
    "401",
    "403",
    "404",
    "405",
    "422",
    "500",
    "503",
  ]);
  t.strictSame(statuses("/datasets/{dataset_id}/groups").slice(0, 3), ["200", "206", "304"]);
  t.strictSame(statuses("/datasets/{dataset_id}/tree"), [
    "200",
    "304",
    "401",
    "403",
    "404",
    "405",
    "412",
    "422",
    "500",
    "503",
  ]);
  const chunk = statuses("/datasets/{dataset_id}/zarr/{var}/{chunk}");
  t.strictSame(chunk.slice(0, 4), ["200", "206", "302", "304"]);
});

t.test("a server without tokens has no locks", async (t) => {
  const open = JSON.stringify(await document());
  t.notMatch(open, /"security"|securitySchemes|"401"/);
  const locked = JSON.stringify(await document(true));
  t.match(locked, '"security":[{"bearer":[]},{"query":[]},{"cookie":[]}]');
  t.match(locked, '"securitySchemes":{"bearer"');
});

t.test("the server is the directory of the document, whatever the root path", async (t) => {
  const [server] = (await document()).servers;
  t.equal(new URL(server?.url ?? "", "http://h/prefix/openapi.json").pathname, "/prefix/");
});

async function service(snapshots = [airTemperature()]) {
  const routes: Route[] = [];
  const context = fakeContext({ snapshots, routes, title: "My <data>" });
  routes.push(...coreRoutes(context), ...(await datasetInfo.routes(context)));
  return fakeService(routes);
}

t.test("the home page shows datasets, endpoints, plugins and versions with relative links", async (t) => {
  const { text } = await service();
  const html = await text("/");
  for (const shown of [
    "My &lt;data&gt;",
    '<a class="id" href="datasets/air/">',
    "4x daily NMC reanalysis (1948)",
    "<b>time</b>: 2920",
    "/datasets/{dataset_id}/groups/{group_path}/keys",
    'href="openapi.json"',
    "zpublish/plugins/zarr",
    "20.20.2",
  ]) {
    t.ok(html.includes(shown), shown);
  }
  t.notMatch(html, /href="\/|href="http|<script/);
});

t.test("ten thousand datasets are on pages of a hundred, which lead to each other", async (t) => {
  const ids = Array.from({ length: 10_000 }, (_, index) => `d ${String(index).padStart(4, "0")}`);
  const { text, get } = await service(ids.map((id) => fakeSnapshot(id, {})));
  const linkOf = (html: string, rel: string) =>
    new RegExp(`<a rel="${rel}" href="\\./([^"]*)"`).exec(html)?.[1]?.replaceAll("&amp;", "&");
  const idsOf = (html: string) =>
    Array.from(html.matchAll(/class="id" href="datasets\/d%20(\d+)\/"/g), ([, id]) => `d ${id}`);
  let html = await text("/");
  t.same(idsOf(html), ids.slice(0, 100));
  t.equal(html.split("0 variables").length - 1, 100);
  t.match(html, "10,000 datasets to read");
  t.match(html, "1 to 100 of 10,000");
  t.equal(linkOf(html, "prev"), undefined);
  t.equal(linkOf(html, "next"), "?after=d+0099");
  t.equal(((await get("/")) as DocumentReply).document, ((await get("/")) as DocumentReply).document);
  const last = await text("/?after=d%209949");
  t.same(idsOf(last), ids.slice(9_950));
  t.equal(linkOf(last, "next"), undefined);
  const found = [];
  for (let query = "?q=7"; query !== undefined; query = linkOf(html, "next") as string) {
    html = await text(`/${query}`);
    found.push(...idsOf(html));
  }
  t.same(
    found,
    ids.filter((id) => id.includes("7")),
  );
  t.match(html, "(3,439 of 10,000)");
  t.match(html, '<input id="q" name="q" type="search" value="7"');
  const before = linkOf(html, "prev") as string;
  t.same(idsOf(await text(`/${before}`)), found.slice(3_300, 3_400));
  t.equal(linkOf(await text("/?after=d+0099"), "prev"), "", "the first page has no query");
});

t.test("the filter is a form that works without scripts, for many datasets", async (t) => {
  const { text } = await service(Array.from({ length: 30 }, (_, index) => fakeSnapshot(`D&${index}`, {})));
  const html = await text("/?q=%3Cd%26&token=a%22b");
  t.match(html, '<form class="filter" action="./"');
  t.match(html, 'value="&lt;d&amp;"');
  t.match(html, "No dataset has this text in its id.");
  t.match(html, '<input type="hidden" name="token" value="a&quot;b">');
  t.match(html, '<a href="./?token=a%22b">Show all</a>');
  t.match(await text("/?q=d%261&after=D%2617"), "D&amp;18");
  t.notMatch(await (await service()).text("/"), "<form");
});

t.test("the home page without datasets or plugins is a page", async (t) => {
  const context = fakeContext({ plugins: [] });
  t.match(await fakeService(coreRoutes(context)).text("/"), "There are none yet");
});

t.test("/openapi.json is made of the whole route table", async (t) => {
  const { text, get } = await service();
  const { info, paths } = JSON.parse(await text("/openapi.json")) as {
    readonly info: { readonly title: string };
    readonly paths: Readonly<Record<string, unknown>>;
  };
  t.equal(info.title, "My <data>");
  t.ok(paths["/datasets/{dataset_id}/dict"]);
  t.equal(((await get("/openapi.json")) as DocumentReply).document.contentType, "application/json");
});

t.test("/docs needs nothing that is not served here", async (t) => {
  const { text, get } = await service();
  const html = await text("/docs");
  const addresses = Array.from(html.matchAll(/(?:href|src)="([^"]*)"/g), ([, address]) => address as string);
  t.ok(addresses.length >= 5);
  for (const address of addresses) {
    t.notMatch(address, /^\/|^https?:/, address);
    if (!address.startsWith("docs/")) continue;
    const reply = (await get(`/${address}`)) as DocumentReply;
    t.ok(reply.document.bytes.byteLength > 100, address);
    t.match(reply.cacheControl, "immutable");
    const extension = (address.split("?")[0] as string).split(".").at(-1) as string;
    t.equal(
      reply.document.contentType.split(";")[0],
      { css: "text/css", js: "text/javascript", png: "image/png" }[extension],
    );
  }
});

t.test("an asset is immutable only under its version, and only assets of the page are served", async (t) => {
  const { get } = await service();
  const plain = (await get("/docs/swagger-ui.css")) as DocumentReply;
  t.equal(plain.cacheControl, undefined);
  t.equal(((await get("/docs/swagger-ui.css")) as DocumentReply).document, plain.document, "read once");
  for (const name of ["package.json", "index.html", "__proto__", "constructor"]) {
    await t.rejects(get(`/docs/${name}`), { code: "not-found" }, name);
  }
});

t.test("a POST is described with its body and further content types", async (t) => {
  const get = route("/select", "application/json", true);
  const operation = {
    ...get.operation,
    alternatives: ["text/csv"],
    query: { var: { description: "Variables", schema: { type: "string" }, required: true } },
    requestBody: { description: "Points", content: { "text/csv": { example: "lat,lon" } } },
  };
  const { paths } = openApiDocument([{ ...get, methods: ["GET", "POST"], operation }], {
    ...{ title: "t", version: "1", datasetPath: (id) => `/datasets/${id}/` },
  }) as unknown as { readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>> };
  const item = paths["/select"];
  t.strictSame(Object.keys(item ?? {}), ["get", "post"]);
  t.match(item?.get, { operationId: "get_select", requestBody: undefined });
  t.match(item?.post, {
    operationId: "post_select",
    parameters: [{ name: "var", in: "query", required: true }],
    requestBody: {
      required: true,
      content: { "text/csv": { schema: { type: "string" }, example: "lat,lon" } },
    },
  });
  t.strictSame(Object.keys(item?.post?.responses ?? {}), [
    ...["200", "405", "413", "415", "422", "500", "503"],
  ]);
  t.strictSame(Object.keys(item?.post?.responses["200"]?.content ?? {}), ["application/json", "text/csv"]);
});
