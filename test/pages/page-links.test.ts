import { join } from "node:path";
import t from "tap";
import { datasetOf, flatSource, nestedSource } from "../server/sample-tree.js";
import { startServer } from "../server/start-server.js";
import { makeDirectory, writeFiles } from "../source/write-store.js";

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
