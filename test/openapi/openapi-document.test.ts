import t from "tap";
import type { Route } from "../../src/http/router.js";
import { coreRoutes } from "../../src/openapi/core-routes.js";
import { openApiDocument } from "../../src/openapi/openapi-document.js";
import datasetInfo from "../../src/plugins/dataset-info-plugin.js";
import moduleVersion from "../../src/plugins/module-version.js";
import pluginInfo from "../../src/plugins/plugin-info.js";
import thumbnail from "../../src/plugins/thumbnail-plugin.js";
import { fakeContext } from "../support/datasets/fake-context.js";

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
  readonly head: Operation;
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

async function document(): Promise<OpenApi> {
  const context = fakeContext({});
  const routes = [...coreRoutes(context), ...ZARR_ROUTES];
  for (const plugin of [datasetInfo, moduleVersion, pluginInfo, thumbnail])
    routes.push(...(await plugin.routes(context)));
  // As clients get it: JSON has no undefined.
  const info = { title: "Test", version: "1.2.3", datasetPath: context.datasetPath };
  return JSON.parse(JSON.stringify(openApiDocument(routes, info))) as OpenApi;
}

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
  const { parameters, get, head } = paths["/datasets/{dataset_id}/thumbnail/{var}.png"] as PathItem;
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
  t.strictSame(head.parameters, get.parameters);
  t.ok(get.responses["200"]?.content?.["image/png"]);
});

t.test("operation ids are unique, tags declared, references resolve", async (t) => {
  const api = await document();
  const operations = Object.values(api.paths).flatMap(({ get, head }) => [get, head]);
  const ids = operations.map(({ operationId }) => operationId);
  t.equal(new Set(ids).size, ids.length);
  t.ok(ids.every((id) => /^(get|head)_[A-Za-z0-9_]+$/.test(id)));
  const tags = new Set(api.tags.map(({ name }) => name));
  t.ok(operations.every((operation) => operation.tags.length === 1 && tags.has(operation.tags[0] as string)));
  t.strictSame([...tags].sort(), ["datasets", "groups", "service", "zarr"]);
  for (const [, reference] of JSON.stringify(api).matchAll(/"\$ref":"#\/([^"]+)"/g)) {
    const target = (reference as string)
      .split("/")
      .reduce<unknown>((value, key) => (value as Record<string, unknown> | undefined)?.[key], api);
    t.ok(target, reference as string);
  }
});

t.test("answers are those that apply", async (t) => {
  const { paths } = await document();
  const statuses = (path: string) => Object.keys(paths[path]?.get.responses ?? {});
  t.strictSame(statuses("/versions"), ["200", "206", "304", "401", "405", "412", "416", "500", "503"]);
  t.strictSame(statuses("/datasets/{dataset_id}"), ["301", "401", "404", "405", "422", "500", "503"]);
  t.strictSame(statuses("/datasets/{dataset_id}/zarr"), ["301", "401", "404", "405", "422", "500", "503"]);
  t.strictSame(statuses("/datasets/{dataset_id}/groups").slice(0, 3), ["200", "206", "304"]);
  t.strictSame(statuses("/datasets/{dataset_id}/tree"), [
    "200",
    "304",
    "401",
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

t.test("HEAD has the answers of GET, without bodies; it is not redirected to stores", async (t) => {
  const { paths } = await document();
  for (const { get, head } of Object.values(paths)) {
    const expected = Object.keys(get.responses).filter((status) => status !== "302");
    t.strictSame(Object.keys(head.responses), expected);
    t.ok(Object.values(head.responses).every(({ content }) => content === undefined));
  }
});

t.test("the server is the directory of the document, whatever the root path", async (t) => {
  const [server] = (await document()).servers;
  t.equal(new URL(server?.url ?? "", "http://h/prefix/openapi.json").pathname, "/prefix/");
});
