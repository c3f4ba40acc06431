import { mkdir, readFile, rename, rm, stat, symlink, unlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import * as zpublish from "../../src/index.js";
import { until } from "../support/servers/process-table.js";
import { openConnection, type RawConnection } from "../support/servers/raw-request.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

t.setTimeout(120_000);

const CHUNK = "/datasets/d/zarr/v/0";

/** Writes one array of bytes in two chunks of 8, uncompressed. */
async function serve(t: Test, served: object = {}, cache = true) {
  const directory = t.testdir({ store: { v: {} }, cache: {} });
  const location = join(directory, "store");
  const document = { ...zarray, chunks: [8], shape: [16] };
  await writeFile(join(location, ".zgroup"), '{"zarr_format":2}');
  await writeFile(join(location, "v/.zarray"), JSON.stringify(document));
  for (const key of ["0", "1"]) await writeFile(join(location, `v/${key}`), "first...");
  await sleep(30);
  const { url } = await startServer(t, {
    cache: cache ? { directory: join(directory, "cache"), maxBytes: 2 ** 22 } : null,
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {}, ...served }],
  });
  const connection = await openConnection(Number(new URL(url).port));
  t.teardown(() => connection.socket.destroy());
  return { directory, location, file: join(location, "v/0"), connection };
}

async function ask(connection: RawConnection, headers = "") {
  connection.send(`GET ${CHUNK} HTTP/1.1\r\nHost: x\r\n${headers}\r\n`);
  return connection.answer();
}

/** Requests it until it takes the shortest way. */
async function askOften(connection: RawConnection) {
  for (let i = 0; i < 8; i++) await ask(connection);
}

for (const [title, served] of [
  ["passed through", {}],
  ["rechunked", { encoding: { chunks: [4], compressor: null } }],
] as const) {
  for (const cache of [true, false]) {
    t.test(
      `${title}, ${cache ? "cached" : "not cached"}: rewritten chunks are never served stale`,
      async (t) => {
        const { file, connection } = await serve(t, served, cache);
        let etag: string | undefined;
        let modified: bigint | undefined;
        for (let round = 0; round < 40; round++) {
          const content = `round ${String(round).padStart(2, "0")}`;
          // In place with the same length, or by another file, as zarr-python does.
          if (round % 2 === 0) await writeFile(file, content);
          else {
            await writeFile(`${file}.new`, content);
            await rename(`${file}.new`, file);
          }
          const answer = await ask(connection);
          t.equal(answer.status, 200);
          t.equal(answer.body.toString(), content.slice(0, answer.body.length));
          // The clock of a virtual machine that was stopped for a moment may give two files one time.
          const { mtimeNs } = await stat(file, { bigint: true });
          if (mtimeNs !== modified) t.not(answer.headers.etag, etag);
          modified = mtimeNs;
          etag = answer.headers.etag;
          const again = await ask(connection, `If-None-Match: ${etag}\r\n`);
          t.equal(again.status, 304);
          if (round % 4 === 0) await askOften(connection);
        }
      },
    );
  }
}

t.test("a warm chunk that is removed is absent, and one that is written is served", async (t) => {
  const { file, connection } = await serve(t);
  await askOften(connection);
  await unlink(file);
  t.equal((await ask(connection)).status, 404);
  await writeFile(file, "again...");
  t.equal((await ask(connection)).body.toString(), "again...");
});

t.test("a warm chunk of a store that disappears is a failure, not absent", async (t) => {
  const { location, connection } = await serve(t);
  await askOften(connection);
  await rm(location, { recursive: true });
  t.equal((await ask(connection)).status, 500);
  await mkdir(location);
});

t.test("a link in place of a warm chunk is followed within the store only", async (t) => {
  const { directory, location, file, connection } = await serve(t);
  await askOften(connection);
  await unlink(file);
  await symlink(join(location, "v/1"), file);
  t.equal((await ask(connection)).body.toString(), "first...");
  await askOften(connection);
  await writeFile(join(location, "v/1"), "changed.");
  t.equal((await ask(connection)).body.toString(), "changed.");
  await unlink(file);
  await writeFile(join(directory, "secret"), "secret..");
  await symlink(join(directory, "secret"), file);
  const answer = await ask(connection);
  t.equal(answer.status, 500);
  t.notMatch(answer.body.toString(), "secret");
  t.ok(await readFile(file));
});

const ARRAY = { ...zarray, shape: [4, 4], chunks: [2, 2], dtype: "|u1", fill_value: null };
const NAMES = { _ARRAY_DIMENSIONS: ["y", "x"] };
const OVERVIEWS = { levels: 2, method: "max" } as const;

async function writeGridStore(t: Test): Promise<string> {
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

async function serveOverviews(t: Test, location: string) {
  return startServer(t, {
    refreshSeconds: 3_600,
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {}, overviews: OVERVIEWS }],
  });
}

const STORE = "/datasets/d/overviews/zarr";
const answer = async (response: Response) => [response.status, await response.text()];

t.test("levels grow with the dataset, also before a 404", async (t) => {
  const location = await writeGridStore(t);
  const [one, other] = [await serveOverviews(t, location), await serveOverviews(t, location)];
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
  const location = await writeGridStore(t);
  const { get, server, lines } = await serveOverviews(t, location);
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
  const location = await writeGridStore(t);
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

const SMALL_ARRAY = { ...zarray, shape: [4], fill_value: 7 };

async function writeSmallStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "store");
  await writeFiles(location, { ".zgroup": zgroup, "v/.zarray": SMALL_ARRAY, "v/0": "ab", "v/1": "cd" });
  return location;
}

/** Starts two instances whose own refreshes are an hour away. */
async function serveTwice(t: Test, location: string, dataset: object = {}, refreshSeconds = 3_600) {
  const config = {
    refreshSeconds,
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {}, ...dataset }],
  };
  const [one, other] = await Promise.all([startServer(t, config), startServer(t, config)]);
  for (const { get } of [one, other]) t.equal((await get("/datasets/d/zarr/v/0")).status, 200);
  return { one, other };
}

const text = async (response: Response) => [response.status, await response.text()];

t.test("a change that another instance has served is not absent", async (t) => {
  const location = await writeSmallStore(t);
  const { one, other } = await serveTwice(t, location);
  t.equal((await other.get("/datasets/d/zarr/v/2")).status, 404);
  await writeFiles(location, {
    "v/.zarray": { ...SMALL_ARRAY, shape: [6] },
    "v/2": "ef",
    "w/.zarray": SMALL_ARRAY,
    "w/0": "gh",
    "g/.zgroup": zgroup,
    "g/x/.zarray": SMALL_ARRAY,
    "g/x/1": "ij",
  });
  await one.server.refresh();
  t.match(await one.json("/datasets/d/zarr/v/.zarray"), { shape: [6] });
  t.same(await text(await other.get("/datasets/d/zarr/v/2")), [200, "ef"], "an array that has grown");
  t.match(await other.json("/datasets/d/zarr/v/.zarray"), { shape: [6] }, "which is served from then on");

  await writeFiles(location, { "new/.zarray": SMALL_ARRAY, "new/0": "kl", "h/.zgroup": zgroup });
  t.same(await text(await other.get("/datasets/d/zarr/new/0")), [200, "kl"], "a new variable");
  await writeFiles(location, { "newer/.zarray": SMALL_ARRAY, "i/.zgroup": zgroup, "i/.zattrs": { a: 1 } });
  t.match(await other.json("/datasets/d/zarr/newer/.zarray"), { shape: [4] });
  await writeFiles(location, { "j/.zgroup": zgroup, "j/y/.zarray": SMALL_ARRAY });
  t.match(await other.json("/datasets/d/zarr/j/.zmetadata"), { metadata: { "y/.zarray": { shape: [4] } } });
  await writeFiles(location, {
    "v/.zarray": { ...SMALL_ARRAY, shape: [4, 2], chunks: [2, 2] },
    "v/1.0": "mnop",
  });
  t.same(await text(await other.get("/datasets/d/zarr/v/1.0")), [200, "mnop"], "other dimensions");
});

t.test("a chunk file that is written later is found", async (t) => {
  const location = await writeSmallStore(t);
  await writeFiles(location, { "s/.zarray": SMALL_ARRAY });
  const { other } = await serveTwice(t, location);
  t.equal((await other.get("/datasets/d/zarr/s/1")).status, 404);
  await writeFiles(location, { "s/1": "xy" });
  t.same(await text(await other.get("/datasets/d/zarr/s/1")), [200, "xy"]);
});

t.test("a dataset that is immutable, or without refreshes, is not refreshed for that either", async (t) => {
  for (const [dataset, seconds] of [
    [{ immutable: true }, 3_600],
    [{}, 0],
  ] as const) {
    const location = await writeSmallStore(t);
    const { other } = await serveTwice(t, location, dataset, seconds);
    await writeFiles(location, { "v/.zarray": { ...SMALL_ARRAY, shape: [6] }, "v/2": "ef" });
    t.equal((await other.get("/datasets/d/zarr/v/2")).status, 404);
  }
});

t.test("a path that never exists is 404 for many requests at once, each time", async (t) => {
  const location = await writeSmallStore(t);
  const { other } = await serveTwice(t, location);
  const keys = ["v/9", "nothing/0", "nothing/.zarray", "no/group/.zgroup", "v/0.0", "v/01", "zarr.json"];
  for (let round = 0; round < 20; round++) {
    const answers = await Promise.all(keys.map((key) => other.get(`/datasets/d/zarr/${key}`)));
    for (const answer of answers) t.equal(answer.status, 404);
  }
});

t.test("a source that cannot be refreshed is a failure, not an absence", async (t) => {
  const location = await writeSmallStore(t);
  const { other } = await serveTwice(t, location);
  const { rename } = await import("node:fs/promises");
  await rename(location, `${location}.gone`);
  const answer = await other.get("/datasets/d/zarr/v/9");
  t.equal(answer.status, 500);
  t.notMatch(await answer.text(), location);
  await rename(`${location}.gone`, location);
  await until(async () => (await other.get("/datasets/d/zarr/v/9")).status === 404);
});
