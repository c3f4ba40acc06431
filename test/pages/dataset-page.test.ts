import { execFile } from "node:child_process";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import t from "tap";
import { createSnapshot } from "../../src/dataset/snapshot.js";
import { runNow } from "../../src/event-loop/cooperative-task.js";
import type { Group } from "../../src/model/data-tree.js";
import { type DatasetPage, datasetPageSteps } from "../../src/pages/dataset-page.js";
import { listingPieces } from "../../src/pages/home-page.js";
import { clientMissing, PYTHON } from "../support/clients/require-client.js";
import { type FakeGroup, fakeSnapshot, fakeType } from "../support/datasets/fake-snapshot.js";
import { storedArray, storedTree } from "../support/datasets/fake-source.js";
import { airTemperature, climateTree } from "../support/datasets/sample-datasets.js";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { accessOf, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

function render(page: Partial<DatasetPage> & Pick<DatasetPage, "snapshot">): string {
  const steps = datasetPageSteps({
    group: page.snapshot.tree.root,
    nested: false,
    previews: new Map(),
    coverage: {},
    stores: ["zarr", "zarr3"],
    looks: { explorer: true, pictures: true },
    plugins: new Set(["zarr", "zarr3", "file", "opendap", "dataset_info"]),
    hasFiles: true,
    hasOpendap: true,
    maxSelectionBytes: 2 ** 30,
    serviceTitle: "Service",
    isAlone: false,
    serviceLinks: ["docs"],
    versions: [],
    ...page,
  });
  return runNow(steps);
}

function groupAt(snapshot: DatasetPage["snapshot"], path: string): Group {
  return snapshot.tree.groups.get(path) as Group;
}

/** Elements without an end tag. */
const VOID = new Set(["meta", "link", "br", "rect", "path", "img"]);

/** Returns unclosed or misnested tags of a page; none if it is well formed. */
function misnested(html: string): string[] {
  const open: string[] = [];
  const wrong: string[] = [];
  for (const [, slash, name = "", rest = ""] of html.matchAll(
    /<(\/?)([a-z][a-z0-9]*)((?:"[^"]*"|[^">])*)>/g,
  )) {
    if (slash === "/") {
      const last = open.pop();
      if (last !== name) wrong.push(`</${name}> closes <${last}>`);
    } else if (!VOID.has(name) && !rest.endsWith("/")) open.push(name);
  }
  return [...wrong, ...open.map((name) => `<${name}> is not closed`)];
}

function links(html: string): string[] {
  return Array.from(html.matchAll(/<a href="([^"]*)"/g), ([, link]) => link as string);
}

t.test("a dataset's page shows what xarray's representation shows", async (t) => {
  const html = render({
    snapshot: airTemperature(),
    previews: new Map([
      ["lat", { first: ["75.0", "72.5"], last: ["15.0"] }],
      ["time", { first: ["1948-01-01T00:00:00"], last: [], stored: { first: ["1297320.0"], last: [] } }],
    ]),
    coverage: {
      period: ["1948-01-01T00:00:00", "1949-12-30T18:00:00"],
      calendar: "noleap",
      extent: { west: -160, east: -30, south: 15, north: 75 },
    },
  });
  for (const shown of [
    "<dt>Period</dt><dd>1948-01-01 00:00 to 1949-12-30 18:00, calendar noleap</dd>",
    "<dt>Area</dt><dd>160°W to 30°W, 15°N to 75°N</dd>",
    "<b>time</b>: 2920",
    "4x daily NMC reanalysis (1948)",
    '<b class="name">lat</b>',
    '<span class="name">land_mask</span>',
    "(time, lat, lon)",
    "int16 → float32, <bdi>degK</bdi>",
    "float32 → datetime64[ns]<",
    "<dt>Decoded as</dt><dd>float32, stored × 0.01, 0 means missing</dd>",
    "<dt>Decoded as</dt><dd>datetime64[ns], hours since 1800-01-01</dd>",
    "<dt>Stored values</dt><dd>1297320.0</dd>",
    "2,920 × 25 × 53",
    "16 of 365 × 25 × 27, 481 KiB each",
    "7.38 MiB",
    "blosc (cname lz4, clevel 5, shuffle 1, blocksize 0)",
    "shuffle (elementsize 4)",
    "rechunked when served",
    "4xDaily Air temperature at sigma level 995</span>",
    '<span class="v">75.0</span> <span class="v">72.5</span> <span class="v">…</span> <span class="v">15.0</span>',
    "cloud_top",
    "codec &#39;jpeg2k&#39; is unknown",
  ]) {
    t.ok(html.includes(shown), shown);
  }
  t.strictSame(misnested(html), []);
  const scripts = Array.from(html.matchAll(/<script[^>]*>/g), ([tag]) => tag);
  t.equal(scripts.length, 2);
  t.equal(scripts[1], '<script type="application/ld+json">');
  t.match(scripts[0], /^<script defer src="\ufdd3assets\/pages\/copy-[0-9a-f]{12}\.js\ufdd2">$/);
  t.notMatch(html, /javascript:|\son[a-z]+=|\sstyle=|NaN B|undefined/);
});

t.test("a page tells search engines what its dataset is, whatever texts are in it", (t) => {
  const hostile = "</script><script>alert(1)</script><!-- \ufdd0 \ud800 \u202e & \u2028 \\ufdd4 \\";
  const attrs = { title: hostile, license: "CC-BY-4.0", keywords: "a,b", creator_name: "x".repeat(1_000) };
  const t2m = { dims: ["x"], shape: [9], attrs: { long_name: hostile, units: "K" } };
  const html = render({
    snapshot: fakeSnapshot("<air>", { attrs, variables: { [hostile.slice(0, 40)]: t2m } }),
    coverage: { period: ["2000-01-01", "2000-01-31"], extent: { west: 5, east: 12, south: 45, north: 53 } },
  });
  const [, json = ""] = /<script type="application\/ld\+json">(.*?)<\/script>/s.exec(html) ?? [];
  t.notMatch(json, /[<>&]/);
  const plain = hostile.replace(/[\ufdd0\ud800\u202e]/g, "\ufffd");
  t.match(JSON.parse(json), {
    ...{
      "@context": { "@vocab": "https://schema.org/" },
      "@type": "Dataset",
      "@id": "\ufdd4",
      url: "\ufdd4",
    },
    ...{ identifier: "<air>", name: plain, license: "CC-BY-4.0", keywords: ["a", "b"] },
    creator: { name: `${"x".repeat(199)}…` },
    spatialCoverage: { geo: { box: "45 5 53 12" } },
    temporalCoverage: "2000-01-01/2000-01-31",
    variableMeasured: [{ "@type": "PropertyValue", description: plain, unitText: "K" }],
    distribution: [
      { contentUrl: "\ufdd7" },
      { contentUrl: "\ufdd4zarr3" },
      { contentUrl: "\ufdd4opendap/%3Cair%3E.nc" },
    ],
  });
  t.ok(JSON.parse(json).description.length >= 50);
  t.notMatch(render({ snapshot: fakeSnapshot("air", {}), nested: true }), "ld+json");
  t.end();
});

t.test("a grid without latitudes and longitudes has the ranges of its axes", (t) => {
  const axis = (name: string, attrs = {}) => ({ dims: [name], shape: [9], attrs });
  const variables = { y: axis("y", { units: "m" }), x: axis("x", { units: "m" }), band: axis("band") };
  const previews = new Map([
    ["x", { first: ["399965.0", "399975.0"], last: ["509755.0"] }],
    ["y", { first: ["5100035.0"], last: ["4990245.0"] }],
    ["band", { first: ["1", "2"], last: [] }],
  ]);
  const html = render({ snapshot: fakeSnapshot("utm", { variables }), previews });
  t.match(html, "<dt>Area</dt><dd>x 399965 to 509755 m, y 4990245 to 5100035 m</dd>");
  t.notMatch(render({ snapshot: fakeSnapshot("utm", { variables }) }), "<dt>Area</dt>");
  t.end();
});

t.test("every link is relative but those of attributes", async (t) => {
  const snapshot = climateTree();
  for (const group of [snapshot.tree.root, groupAt(snapshot, "/model b/fine")]) {
    for (const link of links(render({ snapshot, group }))) t.match(link, /^[\ufdd1\ufdd3]/, link);
  }
  const [external, ...others] = links(render({ snapshot: airTemperature() })).filter(
    (link) => !link.startsWith("\ufdd1") && !link.startsWith("\ufdd3"),
  );
  t.equal(external, "http://www.esrl.noaa.gov/psd/data/gridded/data.ncep.reanalysis.html");
  t.strictSame(others, []);
});

t.test("code for each client has the address, a variable, and indices if they are needed", async (t) => {
  const html = render({ snapshot: airTemperature() });
  t.ok(html.includes("xr.open_zarr(&quot;\ufdd7&quot;)"));
  t.ok(html.includes("data = ds[&quot;air&quot;].isel(time=0)"));
  t.ok(
    html.includes("gdal_translate &#39;ZARR:&quot;/vsicurl/\ufdd4zarr&quot;:/air:0&#39; &#39;air.tif&#39;"),
  );
  t.ok(html.includes("await zarr.get(array, [0, null, null]);"));
  t.match(html, "zarr.open.v2(");
  t.match(html, "zarr3/zarr.json");
  t.match(html, "array = root[&quot;air&quot;]");
  t.ok(html.indexOf("xr.open_zarr") < html.indexOf("zarr.open_group"), "xarray first");
  t.ok(html.indexOf("Data variables") < html.indexOf("Other addresses"));
  t.match(render({ snapshot: airTemperature(), stores: ["zarr3"] }), "zarr.open.v3(");
  t.notMatch(render({ snapshot: airTemperature(), stores: [] }), "/zarr");
  t.notMatch(html, "open_datatree");
  t.match(render({ snapshot: climateTree() }), "open_datatree");
});

t.test("each variable has files to download, with their sizes before they are asked for", async (t) => {
  const html = render({ snapshot: airTemperature() });
  for (const shown of [
    "<summary>Download: NetCDF, CSV, JSON, npy, Arrow</summary>",
    '<a href="\ufdd1select?var=air&amp;f=nc\ufdd5" download>NetCDF</a> <span class="muted">7.39 MiB</span>',
    '<a href="\ufdd1select?var=air&amp;f=csv\ufdd5" download>CSV</a> <span class="muted">about 162 MiB</span>',
    '<a href="\ufdd1select?var=air&amp;f=arrow\ufdd5" download>Arrow</a>',
    'aria-label="URL of NetCDF">\ufdd4select?var=air&amp;f=nc</pre>',
    "urlretrieve(&quot;\ufdd4select?var=air&amp;f=nc&quot;, &quot;air.nc&quot;)\nds = xr.open_dataset(&quot;air.nc&quot;)",
    "df = pd.read_csv(&quot;\ufdd4select?var=air&amp;f=csv&quot;)",
  ])
    t.ok(html.includes(shown), shown);
  const deep = render({ snapshot: climateTree(), group: groupAt(climateTree(), "/model b/fine") });
  t.match(deep, "\ufdd1select?var=model%20b/fine/");
  t.notMatch(render({ snapshot: airTemperature(), maxSelectionBytes: undefined }), "select?");
  const large = render({ snapshot: airTemperature(), maxSelectionBytes: 20_000_000 });
  t.match(large, "select?var=air&amp;f=nc");
  t.notMatch(large, "select?var=air&amp;f=csv");
  t.match(
    large,
    /<p>CSV <span class="muted">[\d.]+ MiB of values; no more than 19.1 MiB may be asked for at once: choose a part in the explorer<\/span>/,
  );
});

t.test("a variable on the Earth has the addresses of its maps, if the server has maps", (t) => {
  const looks = { explorer: true, pictures: true, tiles: true, wms: true };
  const html = render({ snapshot: airTemperature(), looks });
  for (const shown of [
    "Use in a map: tiles, WMS",
    "\ufdd4tiles/air/{z}/{x}/{y}.png</pre>",
    "new TileJSON({ url: &quot;\ufdd4tiles/air/tilejson.json&quot;",
    "L.tileLayer(&quot;\ufdd4tiles/air/{z}/{x}/{y}.png&quot;).addTo(map);",
    "\ufdd4wms?SERVICE=WMS&amp;REQUEST=GetCapabilities</pre>",
    "&amp;layers=air&amp;styles=&amp;url=\ufdd4wms&quot;, &quot;air&quot;, &quot;wms&quot;)",
  ])
    t.ok(html.includes(shown), shown);
  for (const coordinate of ["time", "lat", "lon"]) t.notMatch(html, `tiles/${coordinate}/`);
  t.notMatch(render({ snapshot: airTemperature() }), "Use in a map");
  t.match(render({ snapshot: airTemperature(), looks: { ...looks, tiles: false } }), "Use in a map: WMS");
  t.end();
});

t.test("a group's page shows its path and links up and down", async (t) => {
  const snapshot = climateTree();
  const html = render({ snapshot, group: groupAt(snapshot, "/model b") });
  t.match(html, '<h1><bdi>climate</bdi> <span class="path">/model b</span></h1>');
  t.match(html, "\ufdd1groups/model%20b/coarse");
  t.match(html, "\ufdd1groups/model%20b/keys");
  t.match(html, "\ufdd4zarr/model%20b");
  const deep = render({ snapshot, group: groupAt(snapshot, "/model b/fine") });
  t.match(deep, '<a href="\ufdd1groups/model%20b\ufdd2"><bdi>model b</bdi></a>');
  t.match(deep, '<li aria-current="page"><bdi>fine</bdi></li>');
  t.strictSame(misnested(deep), []);
  t.ok(deep.includes("ds = xr.open_zarr(&quot;\ufdd7/model%20b/fine&quot;)"));
  t.match(render({ snapshot: airTemperature() }), "stored * 0.01", "packed numbers are unpacked");
  t.notMatch(render({ snapshot: airTemperature(), stores: [] }), "Code that reads it");
});

t.test("the tree nests every group", async (t) => {
  const snapshot = climateTree();
  const html = render({ snapshot, nested: true });
  t.equal(html.split('<details class="group"').length - 1, 6);
  t.match(html, "7 groups · 21 variables");
  t.strictSame(misnested(html), []);
});

t.test("a hostile dataset stays text", async (t) => {
  const evil = `"><script>alert('x')</script><img src=x onerror=y>\u202e\u0000`;
  const html = render({
    snapshot: fakeSnapshot(
      evil,
      {
        attrs: { [evil]: evil, title: evil, link: `http://x"><script>`, script: "javascript:alert(1)" },
        variables: { [evil]: { dims: [evil], shape: [3], attrs: { long_name: evil, units: evil } } },
        groups: { [evil]: {} },
      },
      { refused: [{ path: evil, reason: evil }] },
    ),
    previews: new Map([[evil, { first: [evil], last: [evil] }]]),
    serviceTitle: evil,
  });
  t.notMatch(html, /<script(?! defer src="\ufdd3assets| type="application\/ld\+json">)|<img src=x|\u202e/);
  t.notOk(html.includes("\0"));
  t.notMatch(html, /href="javascript/);
  t.strictSame(misnested(html), []);
});

t.test("a long attribute folds, and is whole when unfolded", async (t) => {
  const value = "0123456789 ".repeat(1000).trim();
  const html = render({ snapshot: fakeSnapshot("x", { attrs: { value, short: "1" } }) });
  t.match(
    html,
    `<details class="long"><summary>${value.slice(0, 300)}</summary><div>${value}</div></details>`,
  );
});

t.test("pictures are fetched when they come into view, and lead to the explorer", async (t) => {
  const html = render({ snapshot: airTemperature() });
  const image =
    '<img src="\ufdd1thumbnail/air.png\ufdd2" alt="Explore air at time 1,460 of 2,920" width="320" height="151" loading="lazy" decoding="async">';
  const large =
    '<img src="\ufdd1thumbnail/air.png?size=704\ufdd5" alt="Explore air at time 1,460 of 2,920" width="704" height="332" decoding="async">';
  t.ok(
    html.includes(`<figure class="large"><a href="\ufdd1explore\ufdd2#v=air">${large}</a>`),
    "a large one is at the top",
  );
  t.ok(html.includes(`<a class="picture" href="\ufdd1explore\ufdd2#v=air">${image}</a>`));
  t.same(
    Array.from(html.matchAll(/thumbnail\/(\w+)\.png\ufdd2/g), ([, name]) => name),
    ["land_mask", "air", "precipitation_rate_at_surface_since_previous_postprocessing"],
    "variables with two axes of numbers have one",
  );
  t.ok(html.includes('<a class="explore" href="\ufdd1explore\ufdd2">Explore</a>'));
  t.ok(html.includes('<meta property="og:image" content="\ufdd4thumbnail/air.png">'));
  t.ok(html.includes('<meta property="og:description" content="4x daily NMC reanalysis (1948)">'));
  t.ok(html.includes('<meta property="og:title" content="air · Service">'));
});

t.test("the picture of a dataset is a map if it has one, else whatever there is", async (t) => {
  const imageOf = (variables: FakeGroup["variables"]) =>
    /og:image" content="\ufdd4thumbnail\/(\w+)\.png/.exec(
      render({ snapshot: fakeSnapshot("d", { variables: variables ?? {} }) }),
    )?.[1];
  const series = { dims: ["time"], shape: [10] };
  const table = { dims: ["time", "row", "level"], shape: [10, 5, 4] };
  const map = { dims: ["lat", "lon"], shape: [9, 18] };
  t.equal(imageOf({ series, table, map }), "map");
  t.equal(imageOf({ series, table }), "table");
  t.equal(imageOf({ series }), "series");
  t.equal(imageOf({ name: { ...map, type: fakeType("U", 20) } }), undefined);
});

t.test("what a server does not have is not linked to", async (t) => {
  const snapshot = airTemperature();
  const neither = render({ snapshot, looks: { explorer: false, pictures: false }, hasOpendap: false });
  t.notMatch(neither, /<img|href="[^"]*explore|og:image|OPeNDAP/);
  t.match(render({ snapshot }), /\ufdd4opendap\/air\.nc</);
  const pictures = render({ snapshot, looks: { explorer: false, pictures: true } });
  t.match(pictures, '<span class="picture"><img src="\ufdd1thumbnail/air.png');
  t.notMatch(pictures, /href="[^"]*explore/);
  const explorer = render({ snapshot, looks: { explorer: true, pictures: false } });
  t.notMatch(explorer, /<img|og:image/);
  t.match(explorer, '<a href="\ufdd1explore\ufdd2#v=air">Explore air</a>');
});

t.test("thousands of variables and groups make a page that a browser shows", async (t) => {
  const variable = { dims: ["y", "x"], shape: [1000, 1000], attrs: { units: "K", comment: "c".repeat(500) } };
  const variables = Object.fromEntries(Array.from({ length: 20_000 }, (_, index) => [`v${index}`, variable]));
  const flat = render({ snapshot: fakeSnapshot("flat", { variables }) });
  t.ok(flat.length < 5_000_000, `${flat.length} characters`);
  t.match(flat, "15,000 more variables");
  t.equal(flat.split("<img ").length - 1, 201, "a bounded number of pictures");

  const groups = Object.fromEntries(
    Array.from({ length: 20_000 }, (_, index): [string, FakeGroup] => [
      `g${index}`,
      { variables: { a: { dims: [], shape: [], type: fakeType("i", 8) } } },
    ]),
  );
  const wide = render({ snapshot: fakeSnapshot("wide", { groups }), nested: true });
  t.ok(wide.length < 6_000_000, `${wide.length} characters`);
  t.match(wide, "14,000 more groups");
  t.strictSame(misnested(wide), []);
});

t.test("attributes of many megabytes are cut, and the page says so", async (t) => {
  const attrs = Object.fromEntries(
    Array.from({ length: 40 }, (_, index) => [`a${index}`, "x".repeat(1_000_000)]),
  );
  const html = render({ snapshot: fakeSnapshot("fat", { attrs }) });
  t.ok(html.length < 5_000_000, `${html.length} characters`);
  t.match(html, "800,000 more characters");
});

t.test("a tree as deep as paths can be is a page", async (t) => {
  let group: FakeGroup = {};
  for (let depth = 0; depth < 400; depth++) group = { groups: { g: group } };
  const html = render({ snapshot: fakeSnapshot("deep", group), nested: true });
  t.ok(html.split('<details class="group"').length < 40);
  t.strictSame(misnested(html), []);
});

t.test(
  "a page says in which format a dataset is stored, and where unless it is on this machine",
  async (t) => {
    const placeIn = (more: object) =>
      /<dt>Stored as<\/dt><dd>(.*?)<\/dd>/.exec(render({ snapshot: { ...airTemperature(), ...more } }))?.[1];
    const parts = Array.from({ length: 1_200 }, (_, index) => ({
      name: String(index >> 1),
      ...{ start: index, length: 1 },
    }));
    const stacked = { kind: "stack", dimension: "run", parts: [] };
    t.equal(placeIn({ location: "/data/air.zarr" }), undefined);
    for (const [more, text] of [
      [{ location: "/data/air.nc", format: "NetCDF-4" }, "NetCDF-4"],
      [{ location: "https://h/air.zarr" }, "Zarr at <bdi>https://h/air.zarr</bdi>"],
      [
        { location: "https://h/air.tif", format: "GeoTIFF <x>" },
        "GeoTIFF &lt;x&gt; at <bdi>https://h/air.tif</bdi>",
      ],
      [
        { location: "/data/*.nc", join: { kind: "concat", dimension: "t<", parts } },
        'Zarr in 600 files, joined along <span class="mono"><bdi>t&lt;</bdi></span>',
      ],
      [
        { location: "s3://b/x", format: "NetCDF-3", join: stacked },
        'NetCDF-3 in 0 files, stacked along <span class="mono"><bdi>run</bdi></span> at <bdi>s3://b/x</bdi>',
      ],
    ] as const)
      t.equal(placeIn(more), text);
  },
);

t.test("the page of a dataset links to its overviews, level by level", async (t) => {
  const tree = storedTree([
    {
      path: "/",
      attrs: {},
      arrays: [
        storedArray("sst", { shape: [2, 9, 16], chunkShape: [1, 4, 4], dimNames: ["time", "lat", "lon"] }),
      ],
    },
    { path: "/deep", attrs: {}, arrays: [] },
  ]);
  const config = { id: "d", location: "here", immutable: false, encoding: {}, variables: {} };
  const overviews = { levels: "auto", method: "mean" } as const;
  const snapshot = createSnapshot({ ...config, overviews }, tree, "");
  const page = render({ snapshot });
  t.same(misnested(page), []);
  t.match(page, "The dataset and 2 coarser levels:");
  t.match(page, 'overviews/zarr/1/\ufdd2">1</a> <span class="muted">sst: 2 × 5 × 8, 160 B</span>');
  t.match(page, "overviews/zarr3/zarr.json");
  t.notMatch(render({ snapshot, group: groupAt(snapshot, "/deep") }), "Overviews");
  t.notMatch(render({ snapshot: createSnapshot(config, tree, "") }), "Overviews");
  t.notMatch(render({ snapshot, stores: [] }), "Overviews");
});

const run = promisify(execFile);
const renderListing = (listing: Parameters<typeof listingPieces>[0]) => [...listingPieces(listing)].join("");
const ENTRIES = [".zattrs", ".zgroup", ".zmetadata", "air/", "http_status/", 'it\'s "odd" & <so>/', "日本/"];

t.test("there is one relative link per line, and no other but the parent's", async (t) => {
  const html = renderListing({ title: "/datasets/x/zarr/", entries: ENTRIES });
  const links = html.split("\n").flatMap((line) => {
    const found = [...line.matchAll(/href="([^"]*)"/g)];
    t.ok(found.length <= 1, "at most one link per line");
    return found.map((match) => match[1] as string);
  });
  t.equal(links.shift(), "../");
  t.strictSame(
    links.map((link) => decodeURIComponent(link)),
    ENTRIES,
  );
  t.notOk(html.includes("http://"), "no text that clients take for an address");
  t.ok(html.endsWith("\n"));
  t.notMatch(renderListing({ title: "/datasets/<b>/zarr/", entries: ["<script>/"] }), /<script>|<b>/);
});

t.test("Python and GDAL list it, also behind a path prefix", async (t) => {
  const server = createServer((request, response) => {
    const path = request.url?.replace(/^\/prefix/, "") ?? "";
    if (!path.endsWith("/zarr/")) {
      response.writeHead(404).end();
      return;
    }
    const body = renderListing({ title: "/datasets/x/zarr/", entries: ENTRIES });
    response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(body);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.teardown(() => server.close());
  const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const programs = {
    fsspec:
      "import fsspec, json, sys\nprint(json.dumps(fsspec.filesystem('http').ls(sys.argv[1], detail=False)))",
    gdal: "import json, sys\nfrom osgeo import gdal\nprint(json.dumps(gdal.ReadDir('/vsicurl/' + sys.argv[1][:-1]) or []))",
  };
  for (const prefix of ["", "/prefix"]) {
    const url = `${origin}${prefix}/datasets/x/zarr/`;
    for (const [client, program] of Object.entries(programs)) {
      await t.test(`${client} ${prefix}`, { skip: clientMissing(client as "gdal") }, async (t) => {
        const listed = await python(program, url);
        const names = listed.map((entry) => decodeURIComponent(entry.replace(url, "")).replace(/\/$/, ""));
        t.strictSame(names.sort(), ENTRIES.map((entry) => entry.replace(/\/$/, "")).sort());
      });
    }
  }
});

/** Returns the JSON list that a program prints. */
async function python(program: string, url: string): Promise<string[]> {
  const { stdout } = await run(PYTHON, ["-c", program, url]);
  return JSON.parse(stdout) as string[];
}

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested ü", nestedSource())];
const TOKEN = "a-token+of/a-client==";

const PAGES = [
  "/",
  "/datasets/flat/",
  "/datasets/flat/explore",
  "/datasets/nested%20%C3%BC/",
  "/datasets/nested%20%C3%BC/tree",
  "/datasets/nested%20%C3%BC/groups//a/b",
  "/datasets/nested%20%C3%BC/groups/a/explore",
];

/** Absolute URLs that a page links to or shows. */
function linksOf(html: string, page: string): Set<string> {
  const links = [...html.matchAll(/ (?:href|src)="([^"]*)"/g)].map(
    (match) => new URL((match[1] as string).replaceAll("&amp;", "&"), page).href,
  );
  return new Set(links.filter((link) => !link.startsWith("data:")));
}

for (const query of ["", `?token=${encodeURIComponent(TOKEN)}`]) {
  t.test(`every link of every page leads somewhere${query && ", with the token of the page"}`, async (t) => {
    const directory = await makeDirectory(t);
    await writeFiles(directory, { tokens: `${TOKEN}\n` });
    const tokenFile = query === "" ? null : join(directory, "tokens");
    const { url } = await startServer(t, {
      datasets: DATASETS,
      rootPath: "/prefix",
      access: accessOf({ tokenFile }),
    });
    const asked = new Map<string, number>();
    for (const path of PAGES) {
      const page = await fetch(url + path + query);
      t.equal(page.status, 200, path);
      for (const link of linksOf(await page.text(), url + path + query)) {
        t.ok(link.startsWith(`${url}/`), link);
        const known = asked.get(link) ?? (await fetch(link)).status;
        asked.set(link, known);
        t.equal(known, 200, `${path} links to ${link}`);
      }
    }
    t.ok(asked.size > 40, `${asked.size} links`);
  });
}

t.test("a page with a token says it to nothing but its links", async (t) => {
  const { url } = await startServer(t, { datasets: DATASETS });
  const html = await (await fetch(`${url}/datasets/flat/?token=secret`)).text();
  for (const [, before] of html.matchAll(/(.{0,80})token=secret/g)) {
    t.match(before, /(?:href|src)="[^"]*(?:\?|&amp;)$/);
    t.notMatch(before, /https?:/, "nor to absolute URLs, which are copied");
  }
});

t.test("the home page has one picture per dataset, fetched when it comes into view", async (t) => {
  const { url } = await startServer(t, { datasets: DATASETS });
  const html = await (await fetch(`${url}/`)).text();
  t.equal(html.split("<img ").length - 1, 2);
  t.match(
    html,
    '<a class="picture" href="datasets/flat/explore#v=t"><img src="datasets/flat/thumbnail/t.png"',
  );
  t.match(html, 'href="datasets/nested%20%C3%BC/groups/a/explore#v=v"');
  t.equal(html.split(' loading="lazy"').length - 1, 2);
  t.match(html, `<meta property="og:image" content="${url}/datasets/flat/thumbnail/t.png">`);
  t.match(html, "2 datasets to read over HTTP, as Zarr stores and as JSON: flat, nested ü");
  const plain = await startServer(t, { datasets: DATASETS, plugins: [{ name: "zarr" }] });
  t.notMatch(await (await fetch(`${plain.url}/`)).text(), /<img|og:image|href="[^"]*explore/);
});
