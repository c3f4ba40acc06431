import { join } from "node:path";
import t from "tap";
import { datasetOf, flatSource, nestedSource } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

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
      access: { tokenFile, trustedProxies: [], tls: null },
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
    t.match(before, /(?:href|src)="[^"]*\?$/);
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
  for (const plugins of [
    ["dataset_info", "explore", "zarr"],
    ["dataset_info", "zarr"],
  ]) {
    const other = await startServer(t, {
      datasets: DATASETS,
      plugins: plugins.map((name) => ({ name })),
    });
    const page = await (await fetch(`${other.url}/`)).text();
    t.notMatch(page, /<img|og:image/);
    t.equal(/href="[^"]*explore/.test(page), plugins.includes("explore"));
  }
});

t.test("the explorer's page has a summary for those who get a link to it", async (t) => {
  const { url } = await startServer(t, { datasets: DATASETS });
  const html = await (await fetch(`${url}/datasets/flat/explore`)).text();
  t.match(html, '<meta property="og:title" content="flat · Explore">');
  t.match(html, `<meta property="og:image" content="${url}/datasets/flat/thumbnail/t.png">`);
  t.match(html, '<meta property="og:description" content="flat">');
});
