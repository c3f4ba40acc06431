import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { netcdf3File } from "../../../bench/data/netcdf3-file.js";
import { makeDemoData } from "../../../scripts/demo/demo-data.js";
import { installPacked } from "./install-packed.js";
import { npxZpublish } from "./npx-zpublish.js";

t.setTimeout(600_000);

const folder = await installPacked(t, "zpublish-stac");

const ZARR = "application/vnd+zarr; version=2";
const NETCDF = "application/x-netcdf";

/** Writes JSON documents and others below a folder. */
function write(folder: string, files: Readonly<Record<string, unknown>>): void {
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(
      join(folder, name),
      typeof content === "string" || content instanceof Uint8Array ? content : JSON.stringify(content),
    );
  }
}

const item = (id: string, assets: object, more: object = {}) => ({
  ...{ type: "Feature", stac_version: "1.0.0", id, collection: "sst", geometry: null, properties: {} },
  ...{ assets, links: [{ rel: "root", href: "../../catalog.json" }], ...more },
});
const link = (rel: string, href: string) => ({ rel, href, type: "application/json" });
const asset = (href: string, type: string) => ({ href, type, roles: ["data"] });

/** Writes a catalogue with a loop, broken items, and assets that are no data. */
async function writeCatalog(folder: string): Promise<void> {
  await makeDemoData(join(folder, "data"));
  const day = netcdf3File([["x", 2]], [{ name: "value", dims: [0], values: Float32Array.of(1, 2) }]);
  write(folder, {
    "data/day.nc": day,
    "catalog.json": {
      ...{ type: "Catalog", stac_version: "1.0.0", id: "all", description: "all" },
      links: [
        link("self", "https://elsewhere.example/catalog.json"),
        link("child", "sst/collection.json"),
        link("item", "alone.json"),
      ],
    },
    "alone.json": { ...item("alone", { data: asset("data/climate.zarr", ZARR) }), collection: undefined },
    "sst/collection.json": {
      ...{ type: "Collection", stac_version: "1.0.0", id: "sst", description: "sst" },
      assets: {
        whole: asset("../data/air.zarr", "application/vnd.zarr"),
        thumbnail: asset("a.png", "image/png"),
      },
      links: [
        ...["one", "two", "broken", "gone", "slash"].map((name) => link("item", `./items/${name}.json`)),
        link("child", "../catalog.json"),
      ],
    },
    "sst/items/one.json": item("one", {
      data: asset("../../data/day.nc", NETCDF),
      text: asset("a.txt", "text/plain"),
    }),
    "sst/items/two.json": item("two", {
      zarr: asset("../../data/air.zarr", ZARR),
      netcdf: asset("../../data/day.nc", NETCDF),
      bucket: asset("ftp://example.org/day.nc", NETCDF),
    }),
    "sst/items/broken.json": "{",
    "sst/items/slash.json": item("a/b", { data: asset("../../data/day.nc", NETCDF) }),
  });
}

const IDS = [
  "catalog~alone",
  "catalog~sst",
  "catalog~sst~one",
  "catalog~sst~two~netcdf",
  "catalog~sst~two~zarr",
];

async function idsOf(url: string): Promise<string[]> {
  return (await (await fetch(`${url}/datasets`)).json()) as string[];
}

async function untilIds(url: string, expected: readonly string[]): Promise<void> {
  for (let turn = 0; turn < 500; turn++) {
    if ((await idsOf(url)).join() === expected.join()) return;
    await sleep(20);
  }
  throw new Error(`expected ${expected}, received ${await idsOf(url)}`);
}

/** Writes the configuration of a server. */
function configure(folder: string, catalog: string): string[] {
  const options = { catalog, refresh: 0.1, dataset: { cacheControl: "no-store" } };
  write(folder, {
    "zpublish.json": { refresh: 0.1, plugins: { catalog: { module: "zpublish-stac", options } } },
  });
  return ["--config", "zpublish.json"];
}

async function checkDatasets(t: Test, url: string): Promise<void> {
  await untilIds(url, IDS);
  const chunk = await fetch(`${url}/datasets/catalog~sst~one/zarr/value/0`);
  t.equal(chunk.headers.get("cache-control"), "no-store");
  t.same([...new Uint8Array(await chunk.arrayBuffer())], [0x3f, 0x80, 0, 0, 0x40, 0, 0, 0]);
  t.match(await (await fetch(`${url}/datasets/catalog~sst/zarr/.zmetadata`)).text(), '"air/.zarray"');
  t.equal((await fetch(`${url}/datasets/catalog~sst~two~zarr/zarr/air/0.0.0`)).status, 200);
  t.equal((await fetch(`${url}/datasets/catalog~sst~broken/zarr/.zmetadata`)).status, 404);
}

t.test("zpublish-stac, installed beside zpublish, publishes a catalogue of files, which grows", async (t) => {
  await writeCatalog(join(folder, "stac"));
  const { url, log } = await npxZpublish(t, folder, configure(folder, "stac/catalog.json"));
  await checkDatasets(t, url);
  for (const [name, reason] of [
    ["broken.json", /JSON/],
    ["gone.json", /found none/],
    ["slash.json", /expected ids without .* received .*a\/b/],
    ["two.json", /asset bucket.*ftp:/],
  ] as const) {
    const lines = log()
      .split("\n")
      .filter((line) => line.includes(name));
    t.equal(lines.length, 1, `${name} is named once`);
    t.match(lines[0], reason);
  }
  write(join(folder, "stac"), {
    "sst/items/gone.json": item("gone", { data: asset("../../data/day.nc", NETCDF) }),
  });
  await untilIds(url, [...IDS, "catalog~sst~gone"].sort());
  rmSync(join(folder, "stac/sst/items/gone.json"));
  rmSync(join(folder, "stac/alone.json"));
  await untilIds(url, IDS.slice(1));
  // A catalogue that cannot be read is no empty one.
  rmSync(join(folder, "stac/catalog.json"));
  while (!log().includes("catalog.json: expected a document, found none")) await sleep(20);
  t.same(await idsOf(url), IDS.slice(1));
});

t.test("zpublish-stac reads a catalogue on the web, again only if it has changed", async (t) => {
  const root = join(folder, "stac");
  rmSync(root, { recursive: true });
  await writeCatalog(root);
  write(root, {
    "sst/items/slash.json": item("local", { data: asset(`file://${root}/data/day.nc`, NETCDF) }),
  });
  const counts = { sent: 0, unchanged: 0, failed: 0 };
  let isBroken = false;
  const server = createServer((request, response) => {
    const path = join(root, new URL(request.url ?? "", "http://host").pathname);
    const isDocument = path.endsWith(".json");
    if (isBroken && isDocument && !path.endsWith("catalog.json")) {
      counts.failed++;
      response.writeHead(500).end();
      return;
    }
    if (!statSync(path, { throwIfNoEntry: false })?.isFile()) {
      response.writeHead(404).end();
      return;
    }
    const bytes = readFileSync(path);
    const etag = `"${createHash("md5").update(bytes).digest("hex")}"`;
    if (isDocument && request.headers["if-none-match"] === etag) {
      counts.unchanged++;
      response.writeHead(304).end();
      return;
    }
    if (isDocument) counts.sent++;
    const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
    const begin = Number(range?.[1] ?? 0);
    const part = bytes.subarray(begin, range?.[2] ? Number(range[2]) + 1 : undefined);
    const fields =
      range === null ? {} : { "content-range": `bytes ${begin}-${begin + part.length - 1}/${bytes.length}` };
    response.writeHead(range === null ? 200 : 206, { etag, "content-length": part.length, ...fields });
    response.end(request.method === "HEAD" ? undefined : part);
  }).listen(0, "127.0.0.1");
  t.teardown(() => server.close());
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const { url, log } = await npxZpublish(
    t,
    folder,
    configure(folder, `http://127.0.0.1:${port}/catalog.json`),
  );
  await checkDatasets(t, url);
  t.notOk((await idsOf(url)).includes("catalog~sst~local"), "a file of this machine");
  t.match(log(), /slash\.json \(asset data\)/);
  const { sent } = counts;
  const { unchanged } = counts;
  while (counts.unchanged < unchanged + 10) await sleep(20);
  // The broken document has no state to compare with.
  t.ok(counts.sent - sent <= (counts.unchanged - unchanged) / 2, "documents are sent once");
  isBroken = true;
  while (counts.failed < 20) await sleep(20);
  t.same(await idsOf(url), IDS, "failures are no absences");
});
