import { rm, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import t, { type Test } from "tap";
import { createEncodePool } from "../../src/pool/encode-pool.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { PROGRAM, runScript } from "../support/servers/run-program.js";
import { ALL_PLUGINS, startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zgroup } from "../support/write-store.js";

const TOKEN = "a-token-that-nobody-may-read-in-a-log";

/** Writes a store with chunks that are intact, damaged, absent, and unreadable. */
async function writeStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "secret-place.zarr");
  const zarray = {
    zarr_format: 2,
    shape: [4, 4],
    chunks: [1, 4],
    dtype: "<f4",
    compressor: { id: "zlib", level: 1 },
    fill_value: 0,
    order: "C",
    filters: null,
  };
  await writeFiles(location, {
    ".zgroup": zgroup,
    ".zattrs": {},
    "a/.zarray": zarray,
    "a/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
    "a/0.0": Buffer.from("this is no zlib stream"),
    "a/1.0": Buffer.alloc(0),
    "a/2.0/directory": Buffer.from("a chunk that is a directory"),
    "b/.zarray": { ...zarray, compressor: null },
    "b/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
    "b/0.0": Buffer.alloc(16),
    "b/1.0": Buffer.alloc(5),
  });
  return location;
}

const PATHS = [
  ...["/", "/plugins", "/versions", "/datasets", "/openapi.json", "/docs", "/docs/start.js", "/docs/nope"],
  ...["/healthz", "/readyz", "/metrics"],
  ...["d", "raw", "unknown"].flatMap((id) => [
    ...["", "/", "/keys", "/dict", "/info", "/tree", "/groups", "/groups/nope", "/groups//keys", "/nope"].map(
      (rest) => `/datasets/${id}${rest}`,
    ),
    ...["", "/", "/.zmetadata", "/.zgroup", "/.zattrs", "/a", "/a/", "/a/.zarray", "/a/.zattrs"].map(
      (rest) => `/datasets/${id}/zarr${rest}`,
    ),
    ...["a", "b"].flatMap((array) =>
      ["0.0", "1.0", "2.0", "3.0", "9.0", "00.0", "%ff", "..%2f..%2fetc%2fpasswd", "../../../etc/passwd"].map(
        (key) => `/datasets/${id}/zarr/${array}/${key}`,
      ),
    ),
  ]),
  `/datasets/${"x".repeat(2_000)}/`,
];

t.test("no answer to any request reveals a path of the machine", async (t) => {
  const location = await writeStore(t);
  const encoding = { compressor: { id: "zstd", level: 1 } };
  const datasets = [
    { id: "d", location, immutable: false, encoding, variables: {} },
    { id: "raw", location, immutable: false, encoding: {}, variables: {} },
  ];
  const { url, lines } = await startServer(t, { datasets });
  const port = Number(new URL(url).port);
  const secrets = [
    location,
    process.cwd(),
    homedir(),
    tmpdir(),
    "secret-place",
    "node_modules",
    "file://",
    ".js:",
  ];
  const statuses = new Set<number>();
  async function look(when: string): Promise<void> {
    for (const path of PATHS) {
      for (const request of [
        {},
        { method: "HEAD" },
        { method: "PUT" },
        { headers: { Range: "bytes=900-" } },
      ]) {
        const answer = await rawRequest(port, path, request);
        statuses.add(answer.status);
        // Assets of the page are by others, and may contain such texts.
        const text =
          JSON.stringify(answer.headers) + (path.startsWith("/docs/") ? "" : answer.body.toString("latin1"));
        for (const secret of secrets) {
          if (text.includes(secret)) t.fail(`${when}: ${path} reveals ${secret}: ${text.slice(0, 300)}`);
        }
      }
    }
  }
  await look("as it is");
  await rm(location, { recursive: true });
  await writeFile(location, "no directory any more");
  await look("when the source is gone");
  for (const status of [200, 301, 404, 405, 416, 422, 500]) t.ok(statuses.has(status), String(status));
  t.ok(JSON.stringify(lines).includes("secret-place"), "the log does say where");
});

t.test("an instance that is not ready says why without a path of the machine", async (t) => {
  const location = await writeStore(t);
  const datasets = [{ id: "d", location, immutable: false, encoding: {}, variables: {} }];
  const directory = await makeDirectory(t);
  const workerFile = join(directory, "secret-place.mjs");
  await writeFile(workerFile, "throw new Error(import.meta.url);");
  const log = pino({ level: "silent" });
  const pool = createEncodePool({ threads: 1, log, workerFile });
  t.teardown(() => pool.close());
  const { get, lines } = await startServer(t, { datasets, plugins: ALL_PLUGINS }, { createPool: () => pool });
  let answer = await get("/readyz");
  let text = await answer.text();
  // Starting a worker takes its time.
  while (text.includes('"starting"')) {
    answer = await get("/readyz");
    text = await answer.text();
  }
  t.equal(answer.status, 503);
  t.equal((JSON.parse(text) as { reason: string }).reason, "pool: expected a worker to start, none does");
  for (const secret of [directory, "secret-place", "file://", ".js:"]) t.notOk(text.includes(secret), text);
  t.match(
    lines.filter(({ level }) => level === 50),
    [{ msg: "no worker can make chunks: the server is not ready" }],
  );
});

t.test("a token is in no line of the log, wherever it is in a request", async (t) => {
  const location = await writeStore(t);
  const directory = await makeDirectory(t);
  const tokenFile = join(directory, "tokens");
  await writeFile(tokenFile, `${TOKEN}\n`);
  const run = runScript(PROGRAM, [
    ...["serve", `d=${location}`, "--port", "0", "--no-cache", "--token-file", tokenFile],
    ...["--access-log", "1", "--log-level", "trace", "--workers", "1"],
  ]);
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const port = Number(new URL(run.stdout().trim().split(" ").at(-1) as string).port);
  const encoded = TOKEN.replaceAll("-", "%2D");
  const statuses: number[] = [];
  for (const path of [
    "/datasets",
    "/datasets/d/zarr/b/0.0",
    "/datasets/d/zarr/b/1.0",
    "/datasets/d",
    "/nope",
    "/metrics",
  ]) {
    for (const [query, headers] of [
      [`?token=${TOKEN}`, {}],
      [`?token=${encoded}&a=1`, {}],
      [`?a=${TOKEN}`, {}],
      [`?token=${TOKEN}x`, {}],
      ["", { Authorization: `Bearer ${TOKEN}` }],
      ["", { Authorization: `Bearer ${TOKEN}x` }],
      ["", { Authorization: `Basic ${TOKEN}` }],
      [`?token=${TOKEN}`, { Referer: `http://h/?token=${TOKEN}`, "X-Request-Id": "r" }],
    ] as const) {
      for (const method of ["GET", "HEAD", "OPTIONS", "POST"]) {
        statuses.push((await rawRequest(port, path + query, { method, headers })).status);
      }
    }
  }
  const cut = await openConnection(port);
  cut.send(requestText(`/datasets/d/zarr/b/0.0?token=${TOKEN}`).slice(0, -2));
  cut.socket.destroy();
  t.strictSame([...new Set(statuses)].toSorted(), [200, 204, 301, 401, 404, 405, 422, 500]);
  const lines = run.stderr().trim().split("\n");
  t.ok(lines.length > statuses.length / 2, "all of it was logged");
  for (const line of lines) {
    if (line.includes("a-token-that") || line.includes(encoded)) t.fail(line);
  }
  run.child.kill("SIGTERM");
  t.equal(await run.exited, 0);
  t.notMatch(run.stderr() + run.stdout(), "a-token-that");
});
