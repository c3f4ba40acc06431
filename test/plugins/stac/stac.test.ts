import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import t from "tap";
import { createDataTree, sourceOf } from "../../../src/dataset/in-memory-tree.js";
import { createServer } from "../../../src/index.js";
import { gridFile } from "../../support/grid-file.js";
import { until } from "../../support/servers/process-table.js";
import { ALL_PLUGINS, accessOf, startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../../support/write-store.js";

const OPTIONS = { immutable: false, encoding: {}, variables: {} };

interface Link {
  readonly rel: string;
  readonly href: string;
  readonly title?: string;
}

/** What tests read of catalogs, collections and lists of them. */
interface Stac {
  readonly type: string;
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly links: readonly Link[];
  readonly collections: readonly Stac[];
  readonly extent: {
    readonly spatial: { readonly bbox: readonly number[][] };
    readonly temporal: { readonly interval: readonly (string | null)[][] };
  };
  readonly assets: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly [name: string]: unknown;
}

async function read(url: string, headers: Record<string, string> = {}): Promise<Stac> {
  const answer = await fetch(url, { headers });
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
  return (await answer.json()) as Stac;
}

const linksOf = ({ links }: Stac, rel: string) =>
  links.filter((link) => link.rel === rel).map(({ href }) => href);

async function openDatasets(url: string): Promise<number> {
  const metrics = await fetch(`${url}/metrics`).then((answer) => answer.text());
  return Number(/zpublish_open_datasets (\d+)/.exec(metrics)?.[1]);
}

t.test("a list opens no dataset; extents are there once one was open, and after a restart", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    "a/1.nc": gridFile({ days: [1, 2], title: "One" }),
    "a/2.nc": gridFile({ days: [3], latitudes: [-10, 10], longitudes: [170, 180, 190] }),
  });
  const cache = { directory: await makeDirectory(t), maxBytes: 2 ** 20, minChunkMs: 0 };
  const collections = [{ name: "days", root, ...OPTIONS }];
  const extentsOf = async (url: string) =>
    (await read(`${url}/stac/collections`)).collections.map(({ extent }) => [
      extent.spatial.bbox[0],
      extent.temporal.interval[0],
    ]);
  const unknown = [
    [-180, -90, 180, 90],
    [null, null],
  ];
  const first = [
    [5, 45, 12, 53],
    ["2000-01-02T00:00:00Z", "2000-01-03T00:00:00Z"],
  ];
  const second = [
    [170, -10, -170, 10],
    ["2000-01-04T00:00:00Z", "2000-01-04T00:00:00Z"],
  ];

  const before = await startServer(t, { collections, cache });
  t.same(await extentsOf(before.url), [unknown, unknown]);
  t.equal(await openDatasets(before.url), 0);
  await read(`${before.url}/stac/collections/days~a~1.nc`);
  t.same(await extentsOf(before.url), [first, unknown]);
  await read(`${before.url}/stac/collections/days~a~2.nc`);
  t.same(await extentsOf(before.url), [first, second]);
  await before.server.close();

  const after = await startServer(t, { collections, cache });
  // The first answer waits for what was kept no longer than a list may take.
  await until(async () => isDeepStrictEqual(await extentsOf(after.url), [first, second]));
  t.equal(await openDatasets(after.url), 0);
  await after.server.close();
});

t.test("a collection says what its dataset is, and how each plugin serves it", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "top.nc": gridFile({ days: [1, 2], title: 'One & "two" <three>' }) });
  const wkt = 'PROJCRS["UTM zone 32N",ID["EPSG",32632]]';
  const tree = await createDataTree({
    attrs: { summary: "What it is", keywords: "a, b; a", license: "CC-BY-4.0", institution: "An institute" },
    variables: {
      crs: {
        data: new Int32Array(1),
        shape: [],
        dims: [],
        attrs: { grid_mapping_name: "transverse_mercator", crs_wkt: wkt },
      },
      x: { data: Float64Array.of(5, 15, 25), shape: [3], dims: ["x"], attrs: { units: "m", axis: "X" } },
      y: { data: Float64Array.of(35, 15), shape: [2], dims: ["y"], attrs: { units: "m", axis: "Y" } },
      time: {
        data: Int32Array.of(1, 3),
        shape: [2],
        dims: ["time"],
        attrs: { units: "days since 2000-02-28", calendar: "360_day" },
      },
      band: { data: Float32Array.of(1, Number.NaN, 9), shape: [3], dims: ["x"], attrs: { units: "m" } },
    },
    groups: {
      deep: {
        variables: {
          v: {
            data: new Float32Array(12),
            shape: [2, 2, 3],
            dims: ["time", "y", "x"],
            attrs: { grid_mapping: "crs", units: "K", long_name: "Vee" },
          },
        },
      },
    },
  });
  const { url } = await startServer(t, {
    datasets: [
      { id: "ü&b", location: join(root, "top.nc"), file: true, ...OPTIONS },
      { id: "utm", location: "memory", source: sourceOf(tree)!, ...OPTIONS },
    ],
  });

  const top = await read(`${url}/stac/collections/${encodeURIComponent("ü&b")}`);
  t.equal(top.title, 'One & "two" <three>');
  t.equal(top.license, "other");
  const dataset = `${url}/datasets/${encodeURIComponent("ü&b")}`;
  t.same(
    Object.entries(top.assets).map(([name, { href }]) => [name, href]),
    [
      ["zarr", `${dataset}.zarr`],
      ["zarr3", `${dataset}/zarr3`],
      ["opendap", `${dataset}/opendap/${encodeURIComponent("ü&b")}.nc`],
      ["file", `${dataset}/file`],
      ["references", `${dataset}/references.json`],
      ["dataset_info", `${dataset}/info`],
      ["thumbnail", `${dataset}/thumbnail/t2m.png`],
      ["tiles", `${dataset}/tiles/t2m/tilejson.json`],
    ],
  );
  for (const [name, { href, type }] of Object.entries(top.assets)) {
    const path = { zarr: "/.zmetadata", zarr3: "/zarr.json", opendap: ".dds" }[name] ?? "";
    const answer = await fetch(`${href}${path}`);
    t.equal(answer.status, 200, name);
    if (path === "") t.equal(answer.headers.get("content-type"), type, name);
  }
  t.same(top.links.slice(-3), [
    { rel: "tilejson", href: `${dataset}/tiles/t2m/tilejson.json`, type: "application/json" },
    { rel: "xyz", href: `${dataset}/tiles/t2m/{z}/{x}/{y}.png`, type: "image/png" },
    {
      ...{ rel: "wms", href: `${dataset}/wms`, type: "image/png" },
      ...{ "wms:layers": ["t2m"], "wms:transparent": true },
    },
  ]);
  for (const { href } of top.links.slice(-3)) {
    const query = href.endsWith("/wms") ? "?request=GetCapabilities" : "";
    t.equal((await fetch(href.replace("{z}/{x}/{y}", "0/0/0") + query)).status, 200, href);
  }
  t.same(top["cube:dimensions"], {
    time: { type: "temporal", extent: ["2000-01-02T00:00:00Z", "2000-01-03T00:00:00Z"] },
    lat: {
      type: "spatial",
      axis: "y",
      extent: [45, 53],
      step: -4,
      unit: "degrees_north",
      reference_system: 4326,
    },
    lon: { type: "spatial", axis: "x", extent: [5, 12], unit: "degrees_east", reference_system: 4326 },
  });

  const utm = await read(`${url}/stac/collections/utm`);
  t.match(utm, {
    ...{ description: "What it is", keywords: ["a", "b"], license: "CC-BY-4.0" },
    providers: [{ name: "An institute", roles: ["producer"] }],
    // It has dates that others do not have: 30 February.
    extent: { temporal: { interval: [[null, null]] } },
    "cube:dimensions": {
      time: { type: "temporal", extent: [1, 3], unit: "days since 2000-02-28", reference_system: "360_day" },
      y: { type: "spatial", axis: "y", extent: [15, 35], step: -20, reference_system: 32632 },
    },
    "cube:variables": {
      band: { dimensions: ["x"], type: "data", unit: "m" },
      "deep/v": { dimensions: ["time", "y", "x"], description: "Vee", unit: "K" },
    },
    assets: {
      zarr3: {
        ...{ "proj:code": "EPSG:32632", "proj:wkt2": wkt, "proj:shape": [2, 3] },
        "proj:transform": [10, 0, 0, 0, -20, 45],
      },
    },
  });
  t.notOk("x" in (utm["cube:variables"] as object), "a dimension is no variable");
});

t.test("very many datasets are in several catalogs, and in pages of collections: each once", async (t) => {
  const ids = Array.from({ length: 2_250 }, (_, n) => `x${10_000 + n}`);
  const providers = { many: { list: async () => ids, open: async () => undefined } };
  const server = await createServer({ datasets: {}, providers, plugins: ["stac", "zarr"], port: 0 });
  t.teardown(() => server.close());
  const { url } = await server.listen();
  const known = ids.map((id) => `many~${id}`);

  const root = await read(`${url}/stac`);
  const catalogs = await Promise.all(linksOf(root, "child").map((href) => read(href)));
  t.same(
    catalogs.map((catalog) => linksOf(catalog, "child").length),
    [1_000, 1_000, 250],
  );
  t.equal(new Set(catalogs.map(({ id }) => id)).size, 3);
  t.same(
    catalogs.flatMap((catalog) => linksOf(catalog, "child")),
    known.map((id) => `${url}/stac/collections/${id}`),
  );
  const pages: Stac[] = [];
  const [list] = linksOf(root, "data");
  for (let at: string | undefined = `${list}?limit=900`; at !== undefined; ) {
    const page = await read(at);
    pages.push(page);
    at = linksOf(page, "next")[0];
  }
  t.same(
    pages.flatMap(({ collections }) => collections.map(({ id }) => id)),
    known,
  );
  t.same(
    pages.map(({ numberMatched, numberReturned }) => [numberMatched, numberReturned]),
    [
      [2_250, 900],
      [2_250, 900],
      [2_250, 450],
    ],
  );
  t.equal((await fetch(`${list}?limit=1001`)).status, 422);
  t.equal((await fetch(`${url}/stac/collections/none`)).status, 404);
});

t.test(
  "addresses are those that clients see: behind a proxy, below a root path, of one dataset",
  async (t) => {
    const root = await makeDirectory(t);
    await writeFiles(root, { "top.nc": gridFile({ days: [1] }) });
    const datasets = [{ id: "top", location: join(root, "top.nc"), ...OPTIONS }];
    const access = accessOf({ trustedProxies: ["127.0.0.1"] });
    const proxied = await startServer(t, { datasets, access });
    const headers = { "x-forwarded-host": "data.example", "x-forwarded-prefix": "/air" };
    const behind = await read(`${proxied.url}/stac/collections/top`, headers);
    t.same(linksOf(behind, "self"), ["http://data.example/air/stac/collections/top"]);
    t.equal(behind.assets.zarr?.href, "http://data.example/air/datasets/top.zarr");
    const below = await startServer(t, { datasets, rootPath: "/prefix" });
    t.same(linksOf(await read(`${below.url}/stac`), "child"), [`${below.url}/stac/collections/top`]);
    const alone = await startServer(t, { datasets, single: true });
    const single = await read(`${alone.url}/stac/collections/top`);
    t.equal(single.assets.zarr?.href, `${alone.url}/zarr`);
    const plugins = ALL_PLUGINS.filter(({ name }) => name === "stac");
    const without = await startServer(t, { datasets, plugins });
    t.same((await read(`${without.url}/stac/collections/top`)).assets, {});
  },
);
