import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../../src/config/options.js";
import { openSource } from "../../../src/open/open-source.js";
import { datasetOf } from "../../support/datasets/sample-tree.js";
import { choose, effort } from "../../support/effort.js";
import { type FaultyOrigin, startFaultyOrigin } from "../../support/origins/faulty-origin.js";
import { startServer } from "../../support/servers/start-server.js";
import { zarray, zgroup } from "../../support/write-store.js";

t.setTimeout(600_000);

const COUNT = 50;
const CHUNK_BYTES = 4 * 2 ** 20;
const STALLED = 25;
/** What serves HTTP: with an effort of 1, `node:http` as well. Its own tests are in `http/` and `nodes/`. */
const LAYERS = ["", "node"].slice(0, effort(2));
const CHUNK = { key: /^v\/\d+$/ };

/** Chunks of 4 MiB, each of numbers that differ from those of the others; compressed, so that 200 MB are read soon. */
function storeFiles() {
  const floats = CHUNK_BYTES / 4;
  const dims = { _ARRAY_DIMENSIONS: ["x"] };
  const array = {
    ...zarray,
    shape: [COUNT * floats],
    chunks: [floats],
    dtype: "<f4",
    compressor: { id: "gzip", level: 1 },
  };
  const chunks = Array.from({ length: COUNT }, (_, i): [string, Uint8Array] => [
    `v/${i}`,
    gzipSync(new Uint8Array(new Float32Array(floats).fill(i).buffer), { level: 1 }),
  ]);
  const metadata = { ".zgroup": zgroup, "v/.zarray": array, "v/.zattrs": dims };
  return { chunks, metadata };
}

const STORE = storeFiles();

/** Serves an origin with one array. */
async function setup(t: Test, layer: string, more: Parameters<typeof startServer>[1] = {}) {
  const origin: FaultyOrigin = await startFaultyOrigin(t);
  const { chunks, metadata } = STORE;
  origin.put(".zmetadata", JSON.stringify({ zarr_consolidated_format: 1, metadata }));
  for (const [key, bytes] of chunks) origin.put(key, bytes);
  const source = await openSource(`${origin.url}/`, { freshness: "immutable" });
  const { ZPUBLISH_HTTP = "" } = process.env;
  process.env.ZPUBLISH_HTTP = layer;
  const { limits } = optionConfig(defaultValues({}));
  const server = await startServer(t, {
    datasets: [datasetOf("d", source)],
    limits: { ...limits, sourceTimeoutMs: 2_000, ...more.limits },
  });
  process.env.ZPUBLISH_HTTP = ZPUBLISH_HTTP;
  return { origin, ...server };
}

/** Asks over a connection of its own, and takes only what it is told to. */
async function ask(t: Test, url: string, path: string, headers = ""): Promise<Socket> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  t.teardown(() => socket.destroy());
  await once(socket, "connect");
  socket.on("error", () => undefined).pause();
  socket.write(`GET ${path} HTTP/1.1\r\nHost: test\r\n${headers}\r\n`);
  return socket;
}

// First, since memory that other tests used would be used again.
for (const layer of ["", "node"])
  t.test(`clients that stop reading hold bounded memory, which is counted (${layer})`, async (t) => {
    const { url, get, server } = await setup(t, layer);
    const path = "/datasets/d/select?var=v&f=nc";
    await (await get(`${path}&isel.x=0:9`)).arrayBuffer();
    const inFlight = async () => {
      const text = JSON.stringify(await server.metrics(), (_, each) =>
        typeof each === "bigint" ? `${each}` : each,
      );
      return Number(/"zpublish_http_response_bytes_in_flight".*?"value":(\d+)/.exec(text)?.[1]);
    };
    const before = process.memoryUsage().rss;
    const sockets: Socket[] = [];
    for (let i = 0; i < STALLED; i += 1) sockets.push(await ask(t, url, path));
    // Until all of them are answered, and nothing more is made.
    while ((await inFlight()) < STALLED * 2 * CHUNK_BYTES)
      await new Promise((resolve) => setTimeout(resolve, 100));
    await new Promise((resolve) => setTimeout(resolve, 2_000));
    const counted = await inFlight();
    const grown = process.memoryUsage().rss - before;
    t.ok(grown < STALLED * 3 * CHUNK_BYTES, `${Math.round(grown / 1e6)} MB more`);
    t.ok(counted > STALLED * 2 * CHUNK_BYTES && counted < STALLED * 3 * CHUNK_BYTES, `${counted} counted`);
    for (const socket of sockets) socket.destroy();
    while ((await inFlight()) > 2 ** 20) await new Promise((resolve) => setTimeout(resolve, 100));
  });

for (const layer of LAYERS)
  t.test(`an origin that fails in mid-answer breaks the connection (${layer})`, async (t) => {
    const { origin, url } = await setup(t, layer);
    const faults = [{ status: 500 }, { cutAfter: 9 }, { object: { bytes: Buffer.from("no gzip") } }] as const;
    for (const format of choose(t, ["nc", "npy", "csv", "json", "arrow"], 2))
      for (const fault of faults) {
        origin.setFault(({ key }) => (key === `v/${COUNT - 1}` ? fault : undefined));
        // The cache has the other chunk, and never this one.
        const path = `/datasets/d/select?var=v&f=${format}&isel.x=${-CHUNK_BYTES / 2}:`;
        const socket = await ask(t, url, path, "Connection: close\r\nAccept-Encoding: identity\r\n");
        let head = "";
        let tail = Buffer.alloc(0);
        let received = 0;
        socket.on("data", (bytes: Buffer) => {
          if (head.length < 2_000) head += bytes.toString("latin1", 0, 2_000);
          received += bytes.length;
          tail = Buffer.concat([tail, bytes]).subarray(-5);
        });
        socket.resume();
        await once(socket, "close");
        const what = `${format} ${JSON.stringify(fault).slice(0, 40)}`;
        t.match(head, /^HTTP\/1\.1 200/, what);
        const length = /content-length: (\d+)/i.exec(head.split("\r\n\r\n")[0]!)?.[1];
        if (length === undefined) t.not(tail.toString(), "0\r\n\r\n", `${what}: no last chunk`);
        else t.ok(received < Number(length), `${what}: ${received} of ${length}`);
      }
  });

t.test("a selection over the limit reads nothing of the values", async (t) => {
  const { limits } = optionConfig(defaultValues({}));
  const { origin, get } = await setup(t, "", { limits: { ...limits, maxSelectionBytes: 2 ** 20 } });
  origin.resetCounts();
  for (const format of ["nc", "npy", "csv", "json", "arrow"]) {
    const answer = await get(`/datasets/d/select?var=v&f=${format}`);
    t.equal(answer.status, 413, format);
    t.match(await answer.json(), { detail: /at most 1048576 bytes .+ received one of 209715200 bytes/ });
  }
  t.equal(origin.requests.length, 0);
});

for (const layer of ["", "node"])
  t.test(`work stops soon after a client has gone (${layer})`, async (t) => {
    const { origin, url, get } = await setup(t, layer);
    for (const format of choose(t, ["nc", "csv", "json", "arrow"], 2)) {
      origin.resetCounts();
      origin.setFault(({ key }) => (key.startsWith("v/") ? { delay: 20 } : undefined));
      const socket = await ask(t, url, `/datasets/d/select?var=v&f=${format}`);
      socket.resume();
      await origin.requested(CHUNK, 3);
      socket.destroy();
      await once(socket, "close");
      const before = origin.count(CHUNK);
      // Requests that come later have been answered: the server has noticed.
      for (let i = 0; i < 30; i += 1) await get("/healthz");
      await new Promise((resolve) => setTimeout(resolve, 500));
      const after = origin.count(CHUNK);
      t.ok(after - before <= 8 && after < COUNT / 2, `${format}: ${before} chunks, then ${after}`);
    }
  });

for (const layer of LAYERS)
  t.test(`random ranges equal the slice, and 304 reads nothing (${layer})`, async (t) => {
    const { origin, get } = await setup(t, layer);
    for (const format of ["nc", "npy"]) {
      const path = `/datasets/d/select?var=v&f=${format}&isel.x=5:-7:3`;
      const whole = await get(path);
      const bytes = Buffer.from(await whole.arrayBuffer());
      t.equal(bytes.length, Number(whole.headers.get("content-length")));
      const etag = whole.headers.get("etag")!;
      origin.resetCounts();
      t.equal((await get(path, { "if-none-match": etag })).status, 304);
      t.equal(origin.requests.length, 0, "304 reads nothing");
      for (let i = 0; i < 24; i += 1) {
        const begin = Math.floor(Math.random() * bytes.length * (i % 2 === 0 ? 1 : 1e-5));
        const end = begin + Math.floor(Math.random() * (i % 3 === 0 ? 5_000_000 : 20));
        const part = await get(path, { range: `bytes=${begin}-${end}`, "if-range": etag });
        t.equal(part.status, 206);
        const received = Buffer.from(await part.arrayBuffer());
        if (!received.equals(bytes.subarray(begin, end + 1))) t.fail(`${format} ${begin}-${end}`);
      }
      const old = await get(path, { range: "bytes=5-9", "if-range": '"old"' });
      t.equal(old.status, 200);
      await old.body?.cancel();
    }
  });
