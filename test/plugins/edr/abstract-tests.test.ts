import { Validator } from "@seriousme/openapi-schema-validator";
import t, { type Test } from "tap";
import { airOnGrid } from "../../support/datasets/edr-samples.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import {
  COLLECTION,
  COLLECTIONS,
  CONFORMANCE,
  COVERAGE_JSON,
  check,
  EXCEPTION,
  FEATURES,
  LANDING_PAGE,
} from "../../support/edr-schemas.js";
import { ALL_PLUGINS, startServer } from "../../support/servers/start-server.js";

type Json = Readonly<Record<string, unknown>>;
interface Link {
  readonly href: string;
  readonly rel: string;
  readonly type: string;
}
interface CollectionDocument {
  readonly id: string;
  readonly links: readonly Link[];
  readonly extent: {
    readonly spatial: { readonly bbox: readonly [readonly number[]]; readonly crs: string };
    readonly temporal: { readonly interval: readonly [readonly [string, string]] };
  };
  readonly data_queries: Readonly<
    Record<
      string,
      { readonly link: Link & { readonly variables: { readonly output_formats: readonly string[] } } }
    >
  >;
  readonly crs: readonly string[];
  readonly parameter_names: Readonly<Record<string, Json>>;
}

/** What the tests of the suite need. */
interface Site {
  readonly root: string;
  /** Asks as the suite does: with any address of the service. */
  readonly ask: (href: string, init?: RequestInit) => Promise<Response>;
  readonly json: <T = Json>(href: string) => Promise<T>;
  readonly collection: CollectionDocument;
}

const QUERIES = ["position", "area", "cube", "trajectory"] as const;

async function start(t: Test): Promise<Site> {
  const { url } = await startServer(t, { datasets: [datasetOf("air", airOnGrid())] });
  const root = `${url}/edr`;
  const ask = (href: string, init?: RequestInit) => fetch(href.startsWith("http") ? href : root + href, init);
  const json = async <T = Json>(href: string) => {
    const response = await ask(href);
    if (response.status !== 200) throw new Error(`${href}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  };
  return { root, ask, json, collection: await json<CollectionDocument>("/collections/air") };
}

/** Geometries that a query has no answer for, by the abstract tests of their types. */
const WRONG: Readonly<Record<string, readonly string[]>> = {
  position: [
    "",
    "coords=",
    "coords=POINT()",
    "coords=POINT(1)",
    "coords=LINESTRING(0 0,1 1)",
    "coords=POINT(a b)",
  ],
  area: ["", "coords=", "coords=POLYGON()", "coords=POLYGON((0 0,1 1,2 2))", "coords=POINT(0 0)"],
  cube: ["", "bbox=", "bbox=1,2,3", "bbox=0,10,10,0", "bbox=a,b,c,d"],
  trajectory: [
    ...[
      "",
      "coords=",
      "coords=LINESTRING()",
      "coords=LINESTRINGM()",
      "coords=LINESTRINGZM()",
      "coords=LINESTRINGZ()",
    ],
    ...["coords=LINESTRING(0 0)", "coords=LINESTRINGM(0 0,1 1)"],
  ],
};

/** The middle of the extent as the suite makes it, and a place for each query. */
function places({ extent }: CollectionDocument): Readonly<Record<string, string>> {
  const [west, south, east, north] = extent.spatial.bbox[0] as [number, number, number, number];
  const [x, y] = [west + (east - west) / 2, south + (north - south) / 2];
  const corners = [-20, 20].flatMap((dx) => [-20, 20].map((dy) => `${x + dx} ${y + (dx > 0 ? dy : -dy)}`));
  return {
    position: `coords=POINT(${x} ${y})`,
    area: `coords=POLYGON((${[...corners, corners[0]].join()}))`,
    cube: `bbox=${[x - 20, y - 20, x + 20, y + 20]}`,
    trajectory: `coords=LINESTRING(${x - 20} ${y - 20},${x} ${y},${x + 20} ${y + 20})`,
  };
}

/** Tests of the table of the suite (ets-ogcapi-edr10, teststatus.adoc), by numbers and names of the abstract tests of 1.0 and 1.1. */
const TESTS: Readonly<Record<string, (t: Test, site: Site) => Promise<void>>> = {
  "2, 3: core/root-op, core/root-success": async (t, { json, root, ask }) => {
    const page = await json<{ readonly links: readonly Link[] }>("");
    t.equal(check(LANDING_PAGE, page), undefined);
    const rels = page.links.map(({ rel }) => rel);
    for (const rel of ["service-desc", "service-doc", "conformance", "data", "self"])
      t.ok(rels.includes(rel), rel);
    t.equal((await ask(`${root}/`)).status, 200, "with a slash, as the suite asks");
    for (const { href } of page.links) t.equal((await ask(href)).status, 200, href);
  },
  "4, 5, 30, 31: core/api-definition, oas30/oas-definition": async (t, { json, ask }) => {
    const { links } = await json<{ readonly links: readonly Link[] }>("");
    const { href, type } = links.find(({ rel }) => rel === "service-desc") as Link;
    const response = await ask(href);
    t.equal(response.headers.get("content-type"), type);
    const api = (await response.json()) as Json;
    t.match(await new Validator().validate(api), { valid: true }, "by the schema of OpenAPI 3.0");
    t.match(api, {
      openapi: /^3\.0\./,
      info: { title: String, version: String },
      servers: [{ url: /^http/ }],
    });
  },
  "6, 7: core/conformance, core/conformance-success": async (t, { json }) => {
    const declared = await json<{ readonly conformsTo: readonly string[] }>("/conformance?f=json");
    t.equal(check(CONFORMANCE, declared), undefined);
    for (const version of ["1.0", "1.1"])
      t.ok(declared.conformsTo.includes(`http://www.opengis.net/spec/ogcapi-edr-1/${version}/conf/core`));
  },
  "8: core/crs84": async (t, { collection }) => {
    t.match(collection.extent.spatial.crs, /CRS84$/);
    t.ok(collection.crs.includes("CRS84"));
  },
  "9, 10, 14: collections/rc-md-op, rc-md-success, edr/rc-collection-info": async (t, { json }) => {
    const list = await json<{ readonly collections: readonly CollectionDocument[] }>("/collections");
    t.equal(check(COLLECTIONS, list), undefined);
    t.strictSame(
      list.collections.map(({ id }) => id),
      ["air"],
    );
  },
  "11, 12: collections/src-md-op, src-md-success": async (t, { json, collection }) => {
    const list = await json<{ readonly collections: readonly CollectionDocument[] }>("/collections");
    t.equal(check(COLLECTION, collection), undefined);
    t.strictSame(list.collections[0], collection);
  },
  "13: core/rc-extent": async (t, { collection: { extent } }) => {
    t.strictSame(extent.spatial.bbox, [[-180, -85, 180, 85]]);
    t.strictSame(extent.temporal.interval, [["2000-02-29T00:00:00Z", "2000-02-29T18:00:00Z"]]);
    t.match(extent, { vertical: { interval: [["250", "850"]], values: ["850", "500", "250"] } });
  },
  "15, 16: edr/rc-md-query-links, core/rc-collection-info-links": async (t, { ask, json }) => {
    const list = await json<{
      readonly links: readonly Link[];
      readonly collections: readonly CollectionDocument[];
    }>("/collections");
    const links = [...list.links, ...list.collections.flatMap((each) => each.links)];
    for (const { href, rel, type } of links) {
      t.ok(rel && type && /^http:\/\/[^/]+:\d+\/edr\/.*[^/]$/.test(href), `${rel} ${href}`);
      if (rel !== "data") t.equal((await ask(href)).status, 200, href);
    }
    const rels = links.map(({ rel }) => rel);
    for (const rel of ["self", "data", "collection"]) t.ok(rels.includes(rel), rel);
  },
  "17: edr/rc-parameters": async (t, { collection }) => {
    t.strictSame(Object.keys(collection.parameter_names).toSorted(), ["member/t", "sea", "surface", "t"]);
    t.match(collection.parameter_names.t, {
      type: "Parameter",
      unit: { symbol: "K" },
      observedProperty: { id: /air_temperature/, label: { en: "Temperature" } },
    });
  },
  "edr/rc-data-queries, rc-common-query-type, rc-common-variables": async (t, { collection }) => {
    t.strictSame(Object.keys(collection.data_queries), QUERIES);
    for (const [name, { link }] of Object.entries(collection.data_queries))
      t.match(link, {
        href: new RegExp(`/${name}$`),
        variables: {
          query_type: name,
          output_formats: ["CoverageJSON"],
          default_output_format: "CoverageJSON",
        },
      });
  },
  "34, 50, 66, 82, 35, 36, 51, 52, 67, 68, 83 to 85, 88, 89: wrong queries": async (t, { ask }) => {
    for (const [name, queries] of Object.entries(WRONG))
      for (const query of queries)
        for (const method of ["GET", "HEAD"]) {
          const response = await ask(`/collections/air/${name}?${query}`, { method });
          t.equal(response.status, 400, `${method} ${name} ${query}`);
          if (method === "GET") t.equal(check(EXCEPTION, await response.json()), undefined);
        }
  },
  "37, 53, 69, 91, 39, 43, 45, 47, 49 and those of other queries: the suite's queries": async (
    t,
    { ask, collection },
  ) => {
    const [from, to] = collection.extent.temporal.interval[0];
    for (const name of QUERIES)
      for (const f of collection.data_queries[name]!.link.variables.output_formats)
        for (const crs of collection.crs) {
          const query = `parameter-name=t&${places(collection)[name]}&crs=${crs}&f=${f}&datetime=${from}/${to}`;
          const response = await ask(`/collections/air/${name}?${query}`);
          t.equal(response.status, 200, `${name} ${query}`);
          if (f === "CoverageJSON") {
            t.equal(response.headers.get("content-type"), "application/prs.coverage+json");
            t.equal(check(COVERAGE_JSON, await response.json()), undefined, name);
          } else if (f === "GeoJSON") t.equal(check(FEATURES, await response.json()), undefined, name);
          else await response.arrayBuffer();
        }
  },
  "38, 40, 42, 44, 46, 48 and those of other queries: definitions of parameters": async (t, { json }) => {
    const api = await json<{
      readonly paths: Readonly<
        Record<string, Readonly<Record<"get" | "post", { readonly parameters: readonly Json[] }>>>
      >;
    }>("/api");
    for (const name of QUERIES)
      for (const path of [
        `/collections/{dataset_id}/${name}`,
        `/collections/{dataset_id}/instances/{instance}/${name}`,
      ]) {
        const parameters = api.paths[path]!.get.parameters.filter((each) => each.in === "query");
        const place = name === "cube" ? "bbox" : "coords";
        t.strictSame(
          parameters.map((each) => each.name),
          [place, "parameter-name", "datetime", "z", "crs", "f"],
          path,
        );
        for (const each of parameters)
          t.match(each, { in: "query", required: each.name === place, style: "form", explode: false });
        t.match(api.paths[path]!.post, { parameters: undefined, requestBody: { required: true } }, path);
        t.match(api.paths[path]!.get, { responses: { 204: {}, 400: {}, 404: {}, 413: {} } }, path);
      }
  },
  "41, 57, 73: edr/rc-z-response": async (t, { ask, json }) => {
    const levels = await json<Json>("/collections/air/position?coords=POINT(0 5)&parameter-name=t&z=500/850");
    t.match(levels, { domain: { axes: { z: { values: [850, 500] } } } });
    const ignored = await ask("/collections/air/position?coords=POINT(0 5)&parameter-name=surface&z=7");
    t.equal(ignored.status, 200, "z is ignored without vertical extent");
  },
  "43, 59, 75: core/datetime-response": async (t, { ask, json }) => {
    const query = "/collections/air/position?coords=POINT(0 5)&parameter-name=";
    const at = (hour: string) => `2000-02-29T${hour}:00:00Z`;
    for (const [datetime, hours] of [
      [at("12"), ["12"]],
      [`${at("05")}/${at("12")}`, ["06", "12"]],
      [`../${at("06")}`, ["00", "06"]],
      [`${at("12")}/..`, ["12", "18"]],
      ["../..", ["00", "06", "12", "18"]],
    ] as const)
      t.match(
        await json(`${query}surface&datetime=${datetime}`),
        { domain: { axes: { t: { values: hours.map(at) } } } },
        datetime,
      );
    t.equal((await ask(`${query}sea&datetime=1999-01-01`)).status, 200, "what has no time is always there");
    for (const wrong of ["2000-02-30", "2001-02-29", "2000-13-01", "/", "a/b/c"])
      t.equal((await ask(`${query}surface&datetime=${wrong}`)).status, 400, wrong);
  },
  "47: edr/rc-crs-response": async (t, { ask }) => {
    for (const crs of ["http://www.opengis.net/def/crs/OGC/1.3/CRS84", "CRS:84", "OGC:CRS84"])
      t.equal((await ask(`/collections/air/position?coords=POINT(0 5)&crs=${crs}`)).status, 200, crs);
    const wrong = await ask("/collections/air/position?coords=POINT(0 5)&crs=EPSG:3857");
    t.equal(wrong.status, 400);
    t.match(await wrong.json(), {
      code: "400",
      description: /EPSG:4326.*EPSG:3857/,
      status: 400,
      title: "Bad Request",
    });
  },
  "edr/query_type/no-data": async (t, { ask }) => {
    for (const query of ["datetime=1999-01-01T00:00:00Z", "z=1/2"]) {
      const response = await ask(`/collections/air/position?coords=POINT(0 5)&parameter-name=t&${query}`);
      t.strictSame([response.status, await response.text()], [204, ""], query);
    }
  },
  "core-query-parameters/operation, post/content_type, post/schema": async (t, { ask, json, collection }) => {
    for (const name of QUERIES) {
      const query = `${places(collection)[name]}&parameter-name=t,surface&z=500`;
      const [[key, place]] = [...new URLSearchParams(places(collection)[name])] as [[string, string]];
      const post = (body: string, type = "application/json") =>
        ask(`/collections/air/${name}`, { method: "POST", headers: { "content-type": type }, body });
      const body = JSON.stringify({ [key]: place, "parameter-name": ["t", "surface"], z: 500 });
      const response = await post(body);
      t.equal(response.status, 200, name);
      t.strictSame(await response.json(), await json(`/collections/air/${name}?${query}`), name);
      t.equal((await post("{}")).status, 400);
      t.equal((await post("[1]")).status, 400);
      t.equal((await post("{")).status, 400);
      t.equal((await post(body, "text/plain")).status, 415);
    }
  },
  "what is not there": async (t, { ask }) => {
    for (const path of [
      "/collections/nope",
      "/collections/nope/position?coords=POINT(0 5)",
      "/collections/air/instances/v1",
    ]) {
      const response = await ask(path);
      t.equal(response.status, 404, path);
      t.equal(check(EXCEPTION, await response.json()), undefined, path);
    }
    t.equal((await ask("/collections/air/position?coords=POINT(0 5)&parameter-name=mean")).status, 400);
    t.equal((await ask("/collections/air/position?coords=POINT(0 5)&f=GIF")).status, 400);
    t.equal((await ask("/collections/air/position?coords=POINT(0 5)&datetime=yesterday")).status, 400);
  },
};

t.test("the abstract tests", async (t) => {
  const site = await start(t);
  for (const [name, run] of Object.entries(TESTS)) await t.test(name, async (t) => run(t, site));
});

t.test("a list has pages, and opens nothing", async (t) => {
  const datasets = ["a", "b", "c"].map((id) => datasetOf(id, airOnGrid()));
  const { json } = await startServer(t, { datasets });
  type List = { readonly links: readonly Link[]; readonly collections: readonly { readonly id: string }[] };
  const seen: string[] = [];
  for (let path: string | undefined = "/edr/collections?limit=2"; path !== undefined; ) {
    const page: List = (await json(path)) as List;
    seen.push(...page.collections.map(({ id }) => id));
    const next = page.links.find(({ rel }) => rel === "next");
    path = next && new URL(next.href).pathname + new URL(next.href).search;
  }
  t.strictSame(seen, ["a", "b", "c"]);
});

t.test("versions of a dataset are instances", async (t) => {
  const listed = [
    { kind: "branch", name: "main", snapshot: "S2", time: "2026-11-05T10:20:30Z", message: "" },
    { kind: "tag", name: "v1", snapshot: "S1", time: "2026-11-04T10:20:30Z", message: "" },
    { kind: "snapshot", name: "S1", snapshot: "S1", time: "2026-11-04T10:20:30Z", message: "" },
  ] as const;
  const offsets: Readonly<Record<string, number>> = { v1: 1000, S1: 1000, S2: 2000 };
  const versions = {
    list: async () => listed,
    open: async (name: string) =>
      offsets[name] === undefined ? undefined : airOnGrid("standard", offsets[name]),
  };
  const source = { ...airOnGrid(), versions };
  const { json, get, url } = await startServer(t, { datasets: [datasetOf("air", source)] });
  const list = (await json("/edr/collections/air/instances")) as {
    readonly instances: readonly CollectionDocument[];
  };
  t.strictSame(
    list.instances.map(({ id }) => id),
    ["S2", "v1"],
  );
  const [, tag] = list.instances as [CollectionDocument, CollectionDocument];
  const own = tag.links.find(({ rel }) => rel === "self")!.href.slice(url.length);
  t.match(await json(own), { id: "v1", parameter_names: { t: {} } });
  const query = "coords=POINT(0 85)&parameter-name=t&z=850&datetime=2000-02-29T00:00:00Z";
  for (const [id, value] of [
    ["v1", 1000],
    ["S2", 2000],
  ] as const)
    t.match(await json(`/edr/collections/air/instances/${id}/position?${query}`), {
      ranges: { t: { values: [value] } },
    });
  t.match(await json("/edr/collections/air"), {
    data_queries: { instances: { link: { href: `${url}/edr/collections/air/instances` } } },
  });
  t.equal((await get("/edr/collections/air/instances/v9")).status, 404);
});

t.test("without the plugin there is nothing below /edr", async (t) => {
  const { get } = await startServer(t, { plugins: ALL_PLUGINS.filter(({ name }) => name !== "edr") });
  t.equal((await get("/edr")).status, 404);
});
