import { readFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import type { CollectionConfig } from "../../../src/config/config.js";
import { createServer } from "../../../src/index.js";
import { gridFile } from "../../support/grid-file.js";
import { ALL_PLUGINS, accessOf, startServer } from "../../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../../support/write-store.js";

const OPTIONS = { immutable: false, encoding: {}, variables: {} };
const STORE = { ".zgroup": zgroup, "v/.zarray": zarray, "v/0": "ab" };

/** An element of a catalog. */
interface XmlNode {
  readonly tag: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: XmlNode[];
  text: string;
}

const unescaped = (text: string) =>
  text
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/&(lt|gt|quot);/g, (_, name: string) => ({ lt: "<", gt: ">", quot: '"' })[name] as string)
    .replaceAll("&amp;", "&");

/** Parses a catalog, strictly: of XML it knows what catalogs have. */
function parseCatalog(xml: string): XmlNode {
  const root: XmlNode = { tag: "", attributes: {}, children: [], text: "" };
  const open = [root];
  const token =
    /<\?xml version="1\.0" encoding="UTF-8"\?>|<(\/?)([\w:]+)((?: [\w:]+="[^"<]*")*)(\/?)>|([^<]+)/gy;
  for (let found = token.exec(xml); found !== null; found = token.exec(xml)) {
    const [whole, close, tag, attributes = "", isEmpty, text] = found;
    const parent = open.at(-1) as XmlNode;
    if (text !== undefined) {
      if (/&(?!amp;|lt;|gt;|quot;|#\d+;)/.test(text)) throw new Error(`Wrong entity: ${text}`);
      parent.text += unescaped(text.trim());
    } else if (tag !== undefined && close === "/") {
      if (open.pop()?.tag !== tag) throw new Error(`Wrong end: ${whole}`);
    } else if (tag !== undefined) {
      const pairs = [...attributes.matchAll(/ ([\w:]+)="([^"]*)"/g)];
      const node: XmlNode = {
        ...{ tag, children: [], text: "" },
        attributes: Object.fromEntries(pairs.map(([, name, value]) => [name, unescaped(value as string)])),
      };
      parent.children.push(node);
      if (isEmpty !== "/") open.push(node);
    }
    if (token.lastIndex === xml.length) return root.children[0] as XmlNode;
  }
  throw new Error("No well-formed catalog");
}

const childrenOf = (node: XmlNode | undefined, tag: string) =>
  (node?.children ?? []).filter((child) => child.tag === tag);

/** Attributes that the schema demands, and elements that it has in an element, in their order: InvCatalog.1.0.2.xsd. */
const SCHEMA: Readonly<Record<string, { readonly attributes: string[]; readonly children: string[] }>> = {
  catalog: { attributes: ["version"], children: ["service", "dataset"] },
  service: { attributes: ["name", "serviceType", "base"], children: [] },
  dataset: { attributes: ["name"], children: ["access", "dataset"] },
  access: { attributes: ["serviceName", "urlPath"], children: [] },
  catalogRef: { attributes: ["name", "xlink:href", "xlink:title"], children: [] },
};

/** @throws Error if an element does not obey the schema */
function checkSchema({ tag, attributes, children }: XmlNode, services: ReadonlySet<string>): void {
  const rules = SCHEMA[tag];
  const missing = rules?.attributes.filter((name) => attributes[name] === undefined);
  if (missing?.length !== 0) throw new Error(`<${tag}>: expected ${missing ?? "a known element"}`);
  if (tag === "access" && !services.has(attributes.serviceName as string))
    throw new Error(`<access>: unknown service ${attributes.serviceName}`);
  // Folders are a substitution group of datasets, so that both may be mixed.
  const places = children.map((child) => rules?.children.indexOf(child.tag.replace("catalogRef", "dataset")));
  if (places.some((place, at) => place === undefined || place < (places[at - 1] ?? 0)))
    throw new Error(`<${tag}>: wrong order of ${children.map((child) => child.tag)}`);
  for (const child of children) checkSchema(child, services);
}

async function readCatalog(url: string, headers: Record<string, string> = {}) {
  const answer = await fetch(url, { headers });
  if (answer.status !== 200) throw new Error(`${url}: ${answer.status}`);
  const catalog = parseCatalog(await answer.text());
  const [top] = childrenOf(catalog, "dataset");
  checkSchema(
    catalog,
    new Set(childrenOf(catalog, "service").map(({ attributes }) => attributes.name as string)),
  );
  return {
    catalog,
    answer,
    services: Object.fromEntries(
      childrenOf(catalog, "service").map(({ attributes }) => [attributes.name, attributes.base]),
    ),
    datasets: childrenOf(top, "dataset"),
    folders: childrenOf(top, "catalogRef").map(({ attributes }) => ({
      title: attributes["xlink:title"],
      url: new URL(attributes["xlink:href"] as string, url).href,
    })),
  };
}

const collection = (root: string, more: Partial<CollectionConfig> = {}): CollectionConfig => ({
  ...{ name: "days", root, ...OPTIONS },
  ...more,
});

async function makeFolders(t: Test): Promise<string> {
  const root = await makeDirectory(t);
  await writeFiles(root, {
    "a b/1.nc": gridFile({ days: [1, 2], title: 'One & "two" <three>\u0001' }),
    "a b/deep/2.nc": gridFile({ days: [3], latitudes: [-10, 10], longitudes: [170, 180, 190] }),
    "top.nc": gridFile({}),
  });
  await writeFiles(join(root, "a b/s.zarr"), STORE);
  return root;
}

t.test("every dataset is found by the catalogs of its folders, and every access leads to it", async (t) => {
  const root = await makeFolders(t);

  const { url, get, server } = await startServer(t, {
    collections: [collection(root, { file: true })],
    datasets: [{ id: "ü&b", location: join(root, "top.nc"), ...OPTIONS }],
    title: "A <b>",
  });
  const found = new Map<string, Record<string, string>>();
  const waiting = [`${url}/catalog.xml`];
  for (let at = waiting.pop(); at !== undefined; at = waiting.pop()) {
    const { datasets, folders, services } = await readCatalog(at);
    waiting.push(...folders.map((folder) => folder.url));
    for (const dataset of datasets) {
      const accesses = childrenOf(dataset, "access").map(({ attributes }) => [
        attributes.serviceName as string,
        new URL(services[attributes.serviceName as string] + (attributes.urlPath as string), url).href,
      ]);
      found.set(dataset.attributes.ID as string, Object.fromEntries(accesses));
    }
  }
  t.same([...found.keys()].sort(), [
    "days~a b~1.nc",
    "days~a b~deep~2.nc",
    "days~a b~s.zarr",
    "days~top.nc",
    "ü&b",
  ]);
  for (const [id, { opendap, zarr }] of found) {
    t.equal((await fetch(`${zarr}/.zmetadata`)).status, 200, id);
    t.equal(zarr, `${url}/datasets/${encodeURIComponent(id)}/zarr`);
    t.equal((await fetch(`${opendap}.dds`)).status, 200, id);
  }
  t.same(Object.keys(found.get("ü&b") ?? {}), ["opendap", "zarr"], "it offers no file");
  const file = await fetch(found.get("days~a b~1.nc")?.file as string);
  t.same(Buffer.from(await file.arrayBuffer()), await readFile(join(root, "a b/1.nc")));
  t.equal(
    await get("/catalog/catalog.xml").then((answer) => answer.text()),
    await get("/catalog.xml").then((answer) => answer.text()),
  );
  const root1 = await readCatalog(`${url}/catalog.xml`);
  t.equal(root1.catalog.attributes.name, "A <b>");
  t.same(root1.folders, [{ title: "days", url: `${url}/catalog/days/catalog.xml` }]);
  for (const path of ["/catalog/none/catalog.xml", "/catalog/day/catalog.xml"])
    t.equal((await fetch(url + path)).status, 404, path);
  t.equal((await fetch(`${url}/catalog.xml?before=x`)).status, 422);
  await server.close();
});

t.test("a catalog opens no dataset, and is the same once they are open", async (t) => {
  const root = await makeFolders(t);
  await writeFiles(root, { "a b/r.json": JSON.stringify({ version: 1, refs: { ".zgroup": zgroup } }) });
  const include = ["**/*.nc", "**/*.json", "**/*.zarr"];
  const { url, get, server } = await startServer(t, {
    collections: [collection(root, { file: true, include })],
  });
  const at = `${url}/catalog/days/a%20b/catalog.xml`;
  const { datasets, answer } = await readCatalog(at);
  t.equal(
    (await get("/metrics").then((metrics) => metrics.text())).match(/zpublish_open_datasets (\d+)/)?.[1],
    "0",
  );
  const offering: string[] = [];
  for (const { attributes, children } of datasets) {
    const id = attributes.ID as string;
    const isOffered = children.some((access) => access.attributes.serviceName === "file");
    if (isOffered) offering.push(id);
    t.equal((await get(`/datasets/${encodeURIComponent(id)}/zarr/.zmetadata`)).status, 200, id);
    t.equal((await get(`/datasets/${encodeURIComponent(id)}/file`)).status, isOffered ? 200 : 404, id);
  }
  t.same(offering, ["days~a b~1.nc"], "neither stores nor references are one file");
  t.equal((await readCatalog(at)).answer.headers.get("etag"), answer.headers.get("etag"));
  await server.close();
});

t.test("a long list is in several catalogs, and one that is the same has its ETag", async (t) => {
  const providers = {
    many: {
      list: async () => Array.from({ length: 2_250 }, (_, n) => `x${1000 + n}`),
      open: async () => undefined,
    },
  };
  const server = await createServer({ datasets: {}, providers, plugins: ["thredds", "zarr"], port: 0 });
  t.teardown(() => server.close());
  const { url } = await server.listen();
  const pages: string[][] = [];
  for (let at: string | undefined = `${url}/catalog.xml`; at !== undefined; ) {
    const { datasets, folders } = await readCatalog(at);
    if (datasets.length > 0) pages.push(datasets.map(({ attributes }) => attributes.ID as string));
    at = folders.at(-1)?.url;
  }
  t.same(
    pages.map((ids) => ids.length),
    [1_000, 1_000, 250],
  );
  t.same(pages.flat(), [...new Set(pages.flat())]);
  const etag = async () => (await fetch(`${url}/catalog.xml`)).headers.get("etag") ?? "";
  t.equal(await etag(), await etag());
  const headers = { "if-none-match": await etag() };
  t.equal((await fetch(`${url}/catalog.xml`, { headers })).status, 304);
});

t.test(
  "paths are those that clients see: behind a proxy, below a root path, of one dataset alone",
  async (t) => {
    const root = await makeFolders(t);
    const datasets = [{ id: "top", location: join(root, "top.nc"), file: true, ...OPTIONS }];
    const access = accessOf({ trustedProxies: ["127.0.0.1"] });
    const proxied = await startServer(t, { datasets, access });
    const headers = { "x-forwarded-host": "data.example", "x-forwarded-prefix": "/air" };
    const { services } = await readCatalog(`${proxied.url}/catalog.xml`, headers);
    t.same(services, { opendap: "/air/datasets/", file: "/air/datasets/", zarr: "/air/datasets/" });
    const below = await startServer(t, { datasets, rootPath: "/prefix" });
    t.equal((await readCatalog(`${below.url}/catalog.xml`)).services.zarr, "/prefix/datasets/");
    const alone = await startServer(t, { datasets, single: true });
    const single = await readCatalog(`${alone.url}/catalog.xml`);
    t.same(single.services, { opendap: "/", file: "/", zarr: "/" });
    t.same(
      childrenOf(single.datasets[0], "access").map(({ attributes }) => attributes.urlPath),
      ["opendap/top.nc", "file", "zarr"],
    );
    const plugins = ALL_PLUGINS.filter(({ name }) => name === "thredds");
    const without = await readCatalog(`${(await startServer(t, { datasets, plugins })).url}/catalog.xml`);
    t.same([without.services, childrenOf(without.datasets[0], "access")], [{}, []]);
  },
);
