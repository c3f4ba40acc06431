import { join } from "node:path";
import t, { type Test } from "tap";
import * as zpublish from "../../src/index.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const ARRAY = { ...zarray, shape: [4, 4], chunks: [2, 2], dtype: "|u1", fill_value: null };
const NAMES = { _ARRAY_DIMENSIONS: ["y", "x"] };
const OVERVIEWS = { levels: 2, method: "max" } as const;

async function writeSmallStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "store");
  await writeFiles(location, {
    ".zgroup": zgroup,
    "v/.zarray": ARRAY,
    "v/.zattrs": NAMES,
    "v/0.0": "abcd",
    "v/0.1": "efgh",
    "v/1.0": "ijkl",
    "v/1.1": "mnop",
  });
  return location;
}

async function serve(t: Test, location: string) {
  return startServer(t, {
    refreshSeconds: 3_600,
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {}, overviews: OVERVIEWS }],
  });
}

const STORE = "/datasets/d/overviews/zarr";
const answer = async (response: Response) => [response.status, await response.text()];

t.test("levels grow with the dataset, also before a 404", async (t) => {
  const location = await writeSmallStore(t);
  const [one, other] = [await serve(t, location), await serve(t, location)];
  for (const { get } of [one, other]) t.same(await answer(await get(`${STORE}/1/v/0.0`)), [200, "dhlp"]);
  t.same(await answer(await one.get(`${STORE}/2/v/0.0`)), [200, "p"]);
  await writeFiles(location, { "v/.zarray": { ...ARRAY, shape: [4, 6] }, "v/0.2": "qrst", "v/1.2": "uvwx" });
  await one.server.refresh();
  t.match(await one.json(`${STORE}/1/v/.zarray`), { shape: [2, 3], chunks: [2, 2] });
  t.match(await one.json(`${STORE}/2/v/.zarray`), { shape: [1, 2] });
  t.same(
    await answer(await other.get(`${STORE}/1/v/0.1`)),
    [200, "t\0x\0"],
    "a chunk that another instance has told of",
  );
  t.same(await answer(await other.get(`${STORE}/2/v/0.0`)), [200, "px"]);
});

t.test("chunks of an array that is refused now are failures in every level, not absent", async (t) => {
  const location = await writeSmallStore(t);
  const { get, server, lines } = await serve(t, location);
  t.equal((await get(`${STORE}/1/v/0.0`)).status, 200);
  await writeFiles(location, { "v/.zarray": { ...ARRAY, dtype: "<q9" } });
  for (let refreshes = 0; refreshes < 3; refreshes++) await server.refresh();
  for (const path of ["0/v/0.0", "1/v/0.0", "2/v/0.0"]) {
    const response = await get(`${STORE}/${path}`);
    t.equal(response.status, 500, path);
    t.match(await response.json(), { detail: "The source of this data cannot be read" });
  }
  t.equal((await get("/datasets/d/overviews/zarr3/1/v/c/0/0")).status, 500);
  t.equal((await get(`${STORE}/1/v/.zarray`)).status, 404);
  t.ok(lines.length > 0);
});

t.test("a reload adds overviews, makes others and removes them", async (t) => {
  const location = await writeSmallStore(t);
  const options = (overviews?: zpublish.DatasetOptions["overviews"]): zpublish.ServerOptions => ({
    workers: 1,
    datasets: { d: { source: location, ...(overviews !== undefined && { overviews }) } },
  });
  const server = await zpublish.createServer(options());
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const get = (path: string) => fetch(`${url}${STORE}/${path}`);
  t.equal((await get(".zgroup")).status, 404);
  await server.reload(options({ method: "max", levels: 1 }));
  t.same(await answer(await get("1/v/0.0")), [200, "dhlp"]);
  t.equal((await get("2/.zgroup")).status, 404);
  const before = (await get("1/v/0.0")).headers.get("etag");
  await server.reload(options({ method: "nearest", levels: 2 }));
  t.same(await answer(await get("1/v/0.0")), [200, "aeim"]);
  t.not((await get("1/v/0.0")).headers.get("etag"), before);
  t.same(await answer(await get("2/v/0.0")), [200, "a"]);
  await server.reload(options(true));
  t.match(await (await get("1/v/.zarray")).json(), { shape: [2, 2] }, "until a plane is one chunk");
  t.equal((await get("2/.zgroup")).status, 404);
  await server.reload(options(false));
  t.match(await (await get(".zgroup")).json(), { detail: /has no overviews/ });
});
