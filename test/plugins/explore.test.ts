import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { brotliDecompressSync, gunzipSync } from "node:zlib";
import t from "tap";
import { createDocument } from "../../src/http/create-document.js";
import { openExploreAssets } from "../../src/plugins/explore-plugin.js";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { rawRequest } from "../support/servers/raw-request.js";
import { accessOf, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const ASSETS = new URL("../../src/explore/assets/", import.meta.url);

t.test("the explorer is sent in less than 300 kB", async (t) => {
  const files = (await readdir(ASSETS)).filter((file) => file.endsWith(".br"));
  const sizes = await Promise.all(
    files.map(async (file) => (await readFile(new URL(file, ASSETS))).byteLength),
  );
  const sum = sizes.reduce((all, size) => all + size, 0);
  t.ok(sum > 10_000 && sum <= 300_000, `${sum} bytes`);
});

t.test("each file has a hash in its name, a type, and compressed forms that pay", async (t) => {
  const assets = await openExploreAssets(createDocument);
  const types: Record<string, string> = {
    js: "text/javascript; charset=utf-8",
    css: "text/css; charset=utf-8",
    bin: "application/octet-stream",
    txt: "text/plain; charset=utf-8",
  };
  for (const [name, file] of Object.entries(assets.names)) {
    const [, stem, ending = ""] = /^(.*)\.(\w+)$/.exec(name) ?? [];
    t.match(file, new RegExp(`^${stem}-[0-9a-f]{12}\\.${ending}$`));
    const document = await assets.read(file);
    t.equal(document?.contentType, types[ending], name);
    for (const coding of ["br", "gzip"] as const) {
      const encoded = await document?.encoded(coding);
      t.ok((encoded?.byteLength ?? 0) < (document?.bytes.byteLength ?? 0), `${name} as ${coding}`);
    }
  }
  t.equal(assets.read("page.js"), undefined);
  t.equal(assets.read("assets.json"), undefined);
});

t.test("the licences of what the browser gets are among the files", async (t) => {
  const assets = await openExploreAssets(createDocument);
  const document = await assets.read(assets.names["licences.txt"] as string);
  const text = Buffer.from(document?.bytes ?? []).toString();
  for (const name of ["preact", "zarrita", "fzstd", "d3-scale-chromatic", "world-atlas"]) {
    t.match(text, new RegExp(`\n-+\n${name} \\d+\\.\\d+\\.\\d+\n\n.*(?:Copyright|MIT)`), name);
  }
  t.notMatch(text, /numcodecs|axe-core/);
});

t.test("a build without the files is a clear error", async (t) => {
  const folder = await mkdtemp(join(tmpdir(), "zpublish-"));
  t.teardown(() => rm(folder, { recursive: true }));
  await t.rejects(openExploreAssets(createDocument, pathToFileURL(`${folder}/`)), {
    message: /expected the explorer's files in this build, received none; .*npm run build:explore/,
  });
});

const DATASETS = [datasetOf("flat", flatSource()), datasetOf("nested", nestedSource())];
const published = await startServer(t, { datasets: DATASETS });

const PAGES = [
  "/datasets/flat/explore",
  "/datasets/nested/explore",
  "/datasets/nested/groups/a/explore",
  "/datasets/nested/groups//a/b/explore",
];

/** Absolute URLs that a page names in `href`, `src` and `data-*`, by the attribute and its element. */
function linksOf(html: string, base: string): string[] {
  return [...html.matchAll(/ (?:href|src|data-(?:store|page|home|worker))="([^"]*)"/g)]
    .map((match) => new URL((match[1] as string).replaceAll("&amp;", "&"), base).href)
    .filter((link) => !link.startsWith("data:"));
}

t.test("the page and everything that it names is there, below any root path", async (t) => {
  for (const rootPath of ["", "/some/prefix"]) {
    const { url, get } = await startServer(t, { datasets: DATASETS, rootPath });
    for (const path of PAGES) {
      const answer = await get(path);
      t.equal(answer.status, 200, path);
      t.equal(answer.headers.get("content-type"), "text/html; charset=utf-8");
      const html = await answer.text();
      const links = new Set(linksOf(html, url + path));
      t.ok([...links].filter((link) => link.includes("/assets/explore/")).length >= 2);
      for (const link of links) {
        const linked = await fetch(link);
        await linked.arrayBuffer();
        t.equal(linked.status, 200, link);
        t.ok(link.startsWith(url), link);
      }
    }
  }
});

t.test("a proxy may publish the service below another path", async (t) => {
  const { get } = published;
  const html = await (await get("/datasets/nested/groups/a/b/explore")).text();
  const base = "https://data.example/public/datasets/nested/groups/a/b/explore";
  for (const link of linksOf(html, base)) t.ok(link.startsWith("https://data.example/public/"), link);
  t.match(html, 'data-store="../../../zarr/a/b/"');
  t.match(html, 'data-group="a/b"');
  t.match(html, 'data-select="../../../select" data-max-selection="1073741824"');
  t.notMatch(html, "data-overviews");
});

t.test("the explorer of a group wins over a group of that name, which has a slash", async (t) => {
  const { get } = published;
  const missing = await get("/datasets/nested/groups/x/explore");
  t.equal(missing.status, 404);
  t.same(await missing.json(), { detail: "Group 'x' not found in dataset 'nested'" });
  t.same(await (await get("/datasets/nested/groups/a/explore/")).json(), {
    detail: "Group 'a/explore' not found in dataset 'nested'",
  });
  t.same(await (await get("/datasets/nope/explore")).json(), { detail: "Dataset 'nope' not found" });
});

t.test("page and files come with a policy that lets nothing in from elsewhere", async (t) => {
  const { url, get } = published;
  const page = await get("/datasets/flat/explore");
  const html = await page.text();
  t.notMatch(html, /<style|<script>|style="| on\w+="/);
  const asset = linksOf(html, `${url}/datasets/flat/explore`).find((link) => link.includes("/assets/"));
  for (const answer of [page, await fetch(asset as string)]) {
    const { headers } = answer;
    t.equal(
      headers.get("content-security-policy"),
      "default-src 'none'; script-src 'self'; worker-src 'self'; connect-src 'self'; style-src 'self'; " +
        "img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'self'",
    );
    t.equal(headers.get("x-content-type-options"), "nosniff");
    t.equal(headers.get("referrer-policy"), "no-referrer");
    t.equal(headers.get("access-control-allow-origin"), "*");
    t.match(headers.get("etag"), /^".+"$/);
  }
  const ofPages = (await get("/datasets/flat/")).headers.get("content-security-policy") ?? "";
  t.match(ofPages, /^default-src 'none'; script-src 'self'; style-src 'sha256-[^']+'; /, "other pages, too");
});

t.test("files never change and are sent in the forms that the build compressed", async (t) => {
  const { url, get } = published;
  const html = await (await get("/datasets/flat/explore")).text();
  const asset = linksOf(html, `${url}/datasets/flat/explore`).find((link) => /\/page-\w+\.js/.test(link));
  const { port, pathname } = new URL(asset as string);
  const plain = await rawRequest(Number(port), pathname);
  t.equal(plain.headers["cache-control"], "public, max-age=31536000, immutable");
  t.equal(plain.headers["content-type"], "text/javascript; charset=utf-8");
  for (const [coding, decode] of [
    ["br", brotliDecompressSync],
    ["gzip", gunzipSync],
  ] as const) {
    const answer = await rawRequest(Number(port), pathname, { headers: { "Accept-Encoding": coding } });
    if (answer.headers["content-encoding"] === coding) t.same(decode(answer.body), plain.body, coding);
    else t.same(answer.body, plain.body, `${coding} does not pay`);
  }
  const head = await rawRequest(Number(port), pathname, { method: "HEAD" });
  t.equal(head.headers["content-length"], String(plain.body.length));
  t.equal(head.body.length, 0);
  const known = await rawRequest(Number(port), pathname, {
    headers: { "If-None-Match": plain.headers.etag as string },
  });
  t.equal(known.status, 304);
  for (const name of ["nope.js", "assets.json", "..%2fassets.json", `${pathname.split("/").at(-1)}.br`]) {
    t.equal((await get(`/assets/explore/${name}`)).status, 404, name);
  }
});

t.test("the page itself is asked for each time, however long the dataset may be kept", async (t) => {
  const cacheControl = "public, max-age=31536000, immutable";
  const { get } = await startServer(t, { datasets: [datasetOf("flat", flatSource(), { cacheControl })] });
  const page = await get("/datasets/flat/explore");
  t.equal(page.headers.get("cache-control"), "public, max-age=0, must-revalidate");
  const etag = page.headers.get("etag") as string;
  t.equal((await get("/datasets/flat/explore", { "If-None-Match": etag })).status, 304);
});

t.test("a token in the page's query is in all that it links to", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { tokens: "a-token+of/a-client==\n" });
  const access = accessOf({ tokenFile: join(directory, "tokens") });
  const { url, get } = await startServer(t, { datasets: DATASETS, access });
  t.equal((await get("/datasets/flat/explore")).status, 401);
  const path = "/datasets/nested/groups/a/explore?x=1&token=a-token%2Bof/a-client%3D%3D";
  const html = await (await get(path)).text();
  const links = linksOf(html, url + path).filter((link) => !link.endsWith("/zarr/a/"));
  t.ok(links.length >= 6);
  for (const link of links) {
    const answer = await fetch(link);
    t.equal(answer.status, 200, link);
    t.notMatch(answer.headers.get("cache-control"), "public");
  }
});

t.test("without the store that it reads, or switched off, there is no explorer", async (t) => {
  for (const plugins of [
    ["dataset_info", "explore"],
    ["dataset_info", "zarr"],
  ]) {
    const { get } = await startServer(t, { datasets: DATASETS, plugins: plugins.map((name) => ({ name })) });
    t.equal((await get("/datasets/flat/explore")).status, 404);
    t.equal((await get("/assets/explore/page.js")).status, 404);
  }
});
