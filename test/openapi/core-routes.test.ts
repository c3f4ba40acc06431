import t from "tap";
import type { DocumentReply } from "../../src/http/reply.js";
import type { Route } from "../../src/http/router.js";
import { coreRoutes } from "../../src/openapi/core-routes.js";
import datasetInfo from "../../src/plugins/dataset-info-plugin.js";
import { fakeContext } from "../support/datasets/fake-context.js";
import { fakeService } from "../support/datasets/fake-service.js";
import { fakeSnapshot } from "../support/datasets/fake-snapshot.js";
import { airTemperature } from "../support/datasets/sample-datasets.js";

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
  t.match(html, "None with that text in its id.");
  t.match(html, '<input type="hidden" name="token" value="a&quot;b">');
  t.match(html, '<a href="./?token=a%22b">All</a>');
  t.match(await text("/?q=d%261&after=D%2617"), "D&amp;18");
  t.notMatch(await (await service()).text("/"), "<form");
});

t.test("the home page without datasets or plugins is a page", async (t) => {
  const context = fakeContext({ plugins: [] });
  t.match(await fakeService(coreRoutes(context)).text("/"), "None yet");
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
