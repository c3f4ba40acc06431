import { join } from "node:path";
import t, { type Test } from "tap";
import type { Plugin } from "../../src/plugins/plugin.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zgroup } from "../support/write-store.js";

/** A plugin of datasets that are never opened. */
function listingPlugin(ids: readonly string[]): Plugin & { ids: readonly string[] } {
  const plugin = {
    name: "many",
    version: "1",
    path: "test",
    ids,
    datasets: () => ({ list: () => plugin.ids, open: () => undefined }),
  };
  return plugin;
}

async function startWith(t: Test, ids: readonly string[], more = {}) {
  const plugin = listingPlugin(ids);
  return { plugin, ...(await startServer(t, { plugins: [...ALL_PLUGINS, plugin], ...more })) };
}

/** Walks all pages by their links. */
async function walk(
  first: string,
  onPage: (page: number) => Promise<void> | void = () => {},
): Promise<string[]> {
  const found: string[] = [];
  let url: string | undefined = first;
  for (let page = 1; url !== undefined; page++) {
    const response: Response = await fetch(url);
    found.push(...((await response.json()) as string[]));
    url = /^<([^>]*)>; rel="next"$/.exec(response.headers.get("link") ?? "")?.[1];
    await onPage(page);
  }
  return found;
}

const IDS = Array.from({ length: 25 }, (_, index) => `d${String(index).padStart(2, "0")} é&+`);

t.test("without parameters the whole list is one document", async (t) => {
  const { get } = await startWith(t, IDS);
  const response = await get("/datasets");
  t.same(
    await response.json(),
    IDS.map((id) => `many~${id}`),
  );
  t.equal(response.headers.get("link"), null);
  const again = await get("/datasets", { "if-none-match": response.headers.get("etag") as string });
  t.equal(again.status, 304);
});

t.test("an empty id to begin behind is none, also if datasets are configured", async (t) => {
  const location = join(await makeDirectory(t), "z.zarr");
  await writeFiles(location, { ".zgroup": zgroup });
  const configured = { id: "z", location, immutable: false, encoding: {}, variables: {} };
  const { get } = await startWith(t, IDS, { datasets: [configured] });
  const response = await get("/datasets?after=&limit=2");
  t.same(await response.json(), ["z", "many~d00 é&+"]);
});

t.test("pages are walked by their links, with prefix and root path, whatever the ids", async (t) => {
  const { url, get } = await startWith(t, IDS, { rootPath: "/data" });
  const all = IDS.map((id) => `many~${id}`);
  t.same(await walk(`${url}/datasets?limit=7`), all);
  t.same(await walk(`${url}/datasets?limit=1`), all);
  t.same(await walk(`${url}/datasets?limit=4&prefix=many~d1`), all.slice(10, 20));
  t.same(await walk(`${url}/datasets?limit=25`), all);
  t.same(await walk(`${url}/datasets?after=${encodeURIComponent(all[21] as string)}`), all.slice(22));
  t.same(await walk(`${url}/datasets?prefix=many~d2`), all.slice(20));
  t.same(await walk(`${url}/datasets?prefix=nothing&limit=3`), []);
  const first = await get("/datasets?limit=7");
  t.match(
    first.headers.get("link"),
    /^<http:\/\/127\.0\.0\.1:\d+\/data\/datasets\?limit=7&after=many~d06%20%C3%A9%26%2B>/,
  );
  t.match(first.headers.get("access-control-expose-headers"), /\bLink\b/);
});

t.test("every id is on one page while others come and go", async (t) => {
  const { url, plugin, server } = await startWith(t, IDS);
  const stays = IDS.filter((_, index) => index % 2 === 0);
  const found = await walk(`${url}/datasets?limit=3`, async (page) => {
    plugin.ids = page % 2 === 1 ? stays : IDS;
    await server.refresh();
    await server.refresh();
  });
  t.equal(new Set(found).size, found.length);
  t.same(
    stays.filter((id) => !found.includes(`many~${id}`)),
    [],
  );
});

t.test("the last page gets a link and another ETag when further ids come", async (t) => {
  const { plugin, server, get } = await startWith(t, ["a", "b"]);
  const before = await get("/datasets?limit=2");
  t.equal(before.headers.get("link"), null);
  plugin.ids = ["a", "b", "c"];
  await server.refresh();
  const etag = before.headers.get("etag") as string;
  const after = await get("/datasets?limit=2", { "if-none-match": etag });
  t.equal(after.status, 200);
  t.match(after.headers.get("link"), /after=many~b/);
});

t.test("a token in the query is kept in links", async (t) => {
  const tokens = t.testdir({ tokens: "secret-secret+secret\n" });
  const access = { trustedProxies: [], tls: null, tokenFile: `${tokens}/tokens` };
  const { get } = await startWith(t, ["a", "b"], { access });
  t.equal((await get("/datasets?limit=1")).status, 401);
  const byQuery = await get("/datasets?limit=1&token=secret-secret%2Bsecret");
  t.match(byQuery.headers.get("link"), /\?limit=1&after=many~a&token=secret-secret%2Bsecret>/);
  const byHeader = await get("/datasets?limit=1", { authorization: "Bearer secret-secret+secret" });
  t.notMatch(byHeader.headers.get("link"), /token/);
});

t.test("wrong parameters are 422, and say what was expected", async (t) => {
  const { get, json } = await startWith(t, ["a"]);
  for (const [query, parameter, msg] of [
    ["limit=0", "limit", "Expected an integer from 1 to 10000, received '0'"],
    ["limit=10001", "limit", "Expected an integer from 1 to 10000, received '10001'"],
    ["limit=1.5", "limit", "Expected an integer from 1 to 10000, received '1.5'"],
    ["limit=", "limit", "Expected an integer from 1 to 10000, received ''"],
    ["offset=3", "offset", "Expected one of prefix, limit, after, received 'offset'"],
    ["after=a&after=b", "after", "Expected the parameter once, received 'b'"],
  ]) {
    const response = await get(`/datasets?${query}`);
    t.equal(response.status, 422, `${query}`);
    t.match(await response.json(), { detail: [{ loc: ["query", parameter], msg }] });
  }
  const { paths } = (await json("/openapi.json")) as {
    paths: Record<string, { get: { parameters: { name: string }[] } }>;
  };
  const described = paths["/datasets"]?.get.parameters
    .map(({ name }) => name)
    .filter((name) => name !== undefined);
  t.same(described, ["prefix", "limit", "after"]);
});

t.test("100,000 ids are listed whole and in pages", async (t) => {
  const ids = Array.from(
    { length: 100_000 },
    (_, index) => `archive~${2000 + (index % 25)}~file-${index}.nc`,
  );
  const { url, json } = await startWith(t, ids);
  t.equal(((await json("/datasets")) as string[]).length, 100_000);
  const found = await walk(`${url}/datasets?limit=10000`);
  t.equal(new Set(found).size, 100_000);
});
