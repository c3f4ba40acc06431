import t from "tap";
import type { DocumentReply } from "../../../src/http/reply.js";
import type { Route } from "../../../src/http/router.js";
import { coreRoutes } from "../../../src/openapi/core-routes.js";
import datasetInfoPlugin from "../../../src/plugins/dataset-info-plugin.js";
import { fakeContext } from "../../support/datasets/fake-context.js";
import { type FakeService, fakeService } from "../../support/datasets/fake-service.js";
import { airTemperature, climateTree, samplePreviews } from "../../support/datasets/sample-datasets.js";

async function service(): Promise<FakeService> {
  const snapshots = [climateTree(), airTemperature()];
  const routes: Route[] = [];
  const context = fakeContext({ snapshots, previews: samplePreviews, routes });
  routes.push(...coreRoutes(context), ...(await datasetInfoPlugin.routes(context)));
  return fakeService(routes);
}

t.test("/datasets lists ids in the order configured", async (t) => {
  const { text } = await service();
  t.equal(await text("/datasets"), '["climate","air"]');
});

t.test("a dataset without its slash redirects, an unknown one does not", async (t) => {
  const { get } = await service();
  t.strictSame(await get("/datasets/air"), { kind: "redirect", to: "with-slash" });
  await t.rejects(get("/datasets/none"), { code: "not-found", message: "Dataset 'none' not found" });
});

t.test("/groups lists every group with a leading slash, parents first", async (t) => {
  const { text } = await service();
  t.equal(await text("/datasets/air/groups"), '["/"]');
  t.equal(
    await text("/datasets/climate/groups"),
    '["/","/model b","/model b/coarse","/model b/fine","/model-a","/model-a/coarse","/model-a/fine"]',
  );
});

t.test("paths of /groups are usable as they are, and extra slashes do not count", async (t) => {
  const { text, get } = await service();
  const expected = '["time","lat","lon","tas","pr"]';
  for (const path of ["model-a/fine", "/model-a/fine", "model-a/fine/", "//model-a//fine//"]) {
    t.equal(await text(`/datasets/climate/groups/${path}/keys`), expected, path);
  }
  t.equal(await text("/datasets/climate/groups//keys"), '["station"]');
  t.equal(await text("/datasets/climate/groups//dict"), await text("/datasets/climate/dict"));
  t.equal(await text("/datasets/climate/groups//info"), await text("/datasets/climate/info"));
  t.match(await text("/datasets/climate/groups/"), "<h1><bdi>climate</bdi></h1>");
  await t.rejects(get("/datasets/climate/groups//a//b/keys"), {
    code: "not-found",
    message: "Group 'a/b' not found in dataset 'climate'",
  });
});

t.test("the suffixes win over a group of that name, unless a slash follows", async (t) => {
  const { text, get } = await service();
  t.equal(await text("/datasets/climate/groups/model-a/keys"), "[]");
  await t.rejects(get("/datasets/climate/groups/model-a/keys/"), {
    message: "Group 'model-a/keys' not found in dataset 'climate'",
  });
});

t.test("documents are made once per snapshot and carry its cache control", async (t) => {
  const { get } = await service();
  for (const path of ["keys", "dict", "info", "groups"]) {
    const first = (await get(`/datasets/air/${path}`)) as DocumentReply;
    t.equal(((await get(`/datasets/air/${path}`)) as DocumentReply).document, first.document, path);
    t.equal(first.cacheControl, "public, max-age=60");
    t.equal(first.document.contentType, "application/json");
  }
  const ids = (await get("/datasets")) as DocumentReply;
  t.equal(((await get("/datasets")) as DocumentReply).document, ids.document);
});

t.test("links of a page resolve to the same URLs however its path is written", async (t) => {
  const { text } = await service();
  const headers = { host: "data.example" };
  for (const path of ["groups/model-a/fine", "groups//model-a/fine", "groups/model-a/fine/"]) {
    const html = await text(`/datasets/climate/${path}`, headers);
    const links = Array.from(
      html.matchAll(/<a href="([^"]*)"/g),
      ([, link]) => new URL(link as string, `http://data.example/prefix/datasets/climate/${path}`).pathname,
    );
    t.strictSame(
      links.slice(0, 9),
      [
        "/prefix/",
        "/prefix/datasets/climate/",
        "/prefix/datasets/climate/groups/model-a",
        "/prefix/docs",
        "/prefix/datasets/climate/groups/model-a/fine/keys",
        "/prefix/datasets/climate/groups/model-a/fine/dict",
        "/prefix/datasets/climate/groups/model-a/fine/info",
        "/prefix/datasets/climate/groups",
        "/prefix/datasets/climate/tree",
      ],
      path,
    );
    t.match(html, "http://data.example/datasets/climate/zarr/model-a/fine");
    t.notMatch(html, /[\ufdd0\ufdd1]/);
  }
});

t.test("previews are on the page", async (t) => {
  const { text } = await service();
  t.match(await text("/datasets/air/"), '<span class="v">2014-12-31T18:00:00</span>');
});
