import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t from "tap";
import { type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const MANY = 102;
/** The first dataset that is not read at start, and the next one. */
const [LAZY, BROKEN] = ["d100", "d101"];

async function serveMany(refreshSeconds = 0): Promise<RunningServer & { readonly directory: string }> {
  const directory = await makeDirectory(t);
  const datasets = [];
  for (let index = 0; index < MANY; index++) {
    const id = `d${index}`;
    await writeFiles(join(directory, id), {
      ".zgroup": zgroup,
      ".zattrs": { title: `title of ${id}` },
      "v/.zarray": zarray,
      "v/0": "ab",
    });
    datasets.push({ id, location: join(directory, id), immutable: false, encoding: {}, variables: {} });
  }
  return { ...(await startServer(t, { datasets, refreshSeconds })), directory };
}

t.test("a dataset that was not read at start is served like any other", async (t) => {
  const { get, json } = await serveMany();
  const first = await Promise.all(
    ["zarr/v/0", "zarr/.zmetadata", "keys", "", "groups"].map((path) => get(`/datasets/${LAZY}/${path}`)),
  );
  t.same(
    first.map(({ status }) => status),
    [200, 200, 200, 200, 200],
  );
  t.equal(await first[0]?.text(), "ab");
  t.same(await json(`/datasets/${LAZY}/keys`), ["v"]);
  t.equal((await get(`/datasets/${LAZY}`)).status, 301);
  t.equal((await get(`/datasets/${BROKEN}/zarr/v/0`, { "if-none-match": "*" })).status, 304);
  t.equal((await get("/datasets/d102/keys")).status, 404);
  t.equal(((await json("/datasets")) as string[]).length, MANY);
});

t.test("the home page describes the first datasets, and those on the next page that are open", async (t) => {
  const { get } = await serveMany();
  const html = await (await get("/")).text();
  t.match(html, "title of d0");
  t.match(html, "title of d99");
  t.notMatch(html, "title of d100");
  const next = async () => (await get("/?after=d99")).text();
  t.match(await next(), 'href="datasets/d101/"');
  t.notMatch(await next(), "title of", "no page opens what is not open");
  await get(`/datasets/${LAZY}/keys`);
  t.match(await next(), "title of d100");
  t.notMatch(await next(), "title of d101");
});

t.test("a dataset that disappeared is its own error, no absence, until it is back", async (t) => {
  const { get, directory, lines } = await serveMany();
  await rm(join(directory, BROKEN, ".zgroup"));
  const answers = await Promise.all([get(`/datasets/${BROKEN}/zarr/v/0`), get(`/datasets/${BROKEN}/keys`)]);
  for (const answer of answers) {
    t.equal(answer.status, 500);
    t.match(await answer.json(), { detail: /^The metadata of the source cannot be understood/ });
  }
  t.match(JSON.stringify(lines), /dataset 'd101': .*is no Zarr store/);
  t.equal((await get(`/datasets/${LAZY}/zarr/v/0`)).status, 200);
  await writeFiles(join(directory, BROKEN), { ".zgroup": zgroup });
  let status = 500;
  while (status === 500) {
    await sleep(50);
    ({ status } = await get(`/datasets/${BROKEN}/zarr/v/0`));
  }
  t.equal(status, 200);
});

t.test("a change long after the last request is served to the next one", async (t) => {
  const { get, json, directory } = await serveMany(0.01);
  const path = `/datasets/${LAZY}/zarr/.zattrs`;
  const before = (await get(path)).headers.get("etag");
  t.equal((await get(path)).headers.get("etag"), before);
  // More periods than a dataset is refreshed in after its last request. Server and test share one event loop, so a busy
  // machine delays both.
  for (let periods = 0; periods < 60; periods++) await sleep(10);
  await writeFiles(join(directory, LAZY), { ".zattrs": { title: "new" }, "w/.zarray": zarray });
  t.same(await json(path), { title: "new" });
  t.same(await json(`/datasets/${LAZY}/keys`), ["v", "w"]);
  t.not((await get(path)).headers.get("etag"), before);
});
