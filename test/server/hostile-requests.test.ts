import { symlinkSync, writeFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import t, { type Test } from "tap";
import { defaultValues, optionConfig } from "../../src/config/options.js";
import { effort } from "../support/effort.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../support/write-store.js";

const SECRET = "what lies beside the store";

/** Serves a store beside a secret file. Paths are sent as they are: no client normalizes them. */
async function setup(test: Test) {
  const root = test.testdir({
    "secret.txt": SECRET,
    "store.zarr": {
      ".zgroup": '{"zarr_format": 2}',
      a: {
        ".zarray": JSON.stringify({
          ...zarray,
          shape: [4, 4],
          chunks: [2, 2],
        }),
      },
    },
  });
  const array = join(root, "store.zarr", "a");
  writeFileSync(join(array, "0.0"), Uint8Array.of(1, 2, 3, 4));
  symlinkSync(join(root, "secret.txt"), join(array, "1.1"));
  const dataset = {
    id: "d",
    location: join(root, "store.zarr"),
    immutable: false,
    encoding: {},
    variables: {},
  };
  const running = await startServer(test, { datasets: [dataset] });
  const { port } = new URL(running.url);
  const send = (path: string, headers: Record<string, string>, method = "GET") =>
    new Promise<{ status: number; body: string }>((resolve, reject) => {
      const sent = request({ host: "127.0.0.1", port, path, headers, method, agent: false }, (answer) => {
        let body = "";
        answer.setEncoding("latin1").on("data", (text: string) => {
          body += text;
        });
        answer.on("end", () => resolve({ status: answer.statusCode ?? 0, body }));
      });
      sent.on("error", reject).end();
    });
  return { ...running, send };
}

const dots = fc.constantFrom(...". .. %2e %2E%2e ..%2f %2e%2e%2f%2e%2e ..%5c ....// %252e%252e".split(" "));
const name = fc.constantFrom(..."datasets d zarr a groups keys info tree .zarray .zattrs".split(" "));
const chunkLike = fc.constantFrom(..."0.0 00.0 -1.0 0.0.0 1e0.0 0x0.0 9007199254740993.0 ٠.0".split(" "));
const odd = fc.constantFrom(..."% %zz %c3%28 %00 %0d%0a secret.txt a%2f0.0 %ff  ~ * {x}".split(" "));
const anything = fc.string({ unit: "binary", maxLength: 12 }).map((text) => {
  try {
    return encodeURIComponent(text);
  } catch {
    return "%ed%a0%80";
  }
});
const segment = fc.oneof(name, name, dots, chunkLike, odd, anything);
const tail = fc.array(segment, { maxLength: 6 }).map((segments) => segments.join("/"));
const path = fc.oneof(
  tail.map((text) => `/${text}`),
  tail.map((text) => `/datasets/d/zarr/${text}`),
  tail.map((text) => `/datasets/d/groups/${text}`),
);
const header = fc.oneof(
  fc.constantFrom(
    "bytes=0-",
    "bytes=-0",
    "bytes=5-1",
    "bytes=a-b",
    "bytes=0-1,3-4",
    "bytes=99999999999999999999-",
    "*",
  ),
  fc.constantFrom('"', 'W/"x"', '"a","b"', ",,,", "br;q=2", "identity;q=0", "gzip;q=0.5, *;q=0"),
  fc.string({
    unit: fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code)),
    maxLength: 30,
  }),
);
const headers = fc.dictionary(
  fc.constantFrom(
    "range",
    "if-none-match",
    "if-match",
    "if-range",
    "accept-encoding",
    "origin",
    "x-forwarded-host",
  ),
  header,
  { maxKeys: 3 },
);

t.test("no request reads outside of the store, fails, or stops the server", async (t) => {
  const { send, lines } = await setup(t);
  const method = fc.constantFrom("GET", "GET", "GET", "HEAD", "OPTIONS", "POST", "DELETE");
  await fc.assert(
    fc.asyncProperty(path, headers, method, async (path, headers, method) => {
      const encoded = path.replace(/[^!-~]/g, (text) => encodeURIComponent(text));
      const { status, body } = await send(encoded, headers, method);
      if (body.includes(SECRET)) throw new Error(`read a file beside the store: ${encoded}`);
      if (![200, 204, 206, 301, 304, 404, 405, 412, 416, 422].includes(status)) {
        throw new Error(`${method} ${encoded}: ${status} ${body}`);
      }
    }),
    { numRuns: effort(5_000) },
  );
  t.same(
    lines.filter(({ level }) => level >= 50),
    [],
  );
  t.equal((await send("/datasets/d/zarr/a/0.0", {})).body, "\u0001\u0002\u0003\u0004");
});

t.test("a chunk that is a link out of the store is a failure without its bytes", async (t) => {
  const { send } = await setup(t);
  const { status, body } = await send("/datasets/d/zarr/a/1.1", {});
  t.equal(status, 500);
  t.notMatch(body, SECRET);
  t.notMatch(body, "/", "no path of the machine");
});

const TOKEN = "a-token-that-nobody-may-read-in-a-log";

/** Writes a store with chunks that are intact, damaged, absent, and unreadable. */
async function writeStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "secret-place.zarr");
  const array = { ...zarray, shape: [4, 4], chunks: [1, 4], dtype: "<f4" };
  await writeFiles(location, {
    ".zgroup": zgroup,
    ".zattrs": {},
    "a/.zarray": { ...array, compressor: { id: "zlib", level: 1 } },
    "a/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
    "a/0.0": Buffer.from("this is no zlib stream"),
    "a/1.0": Buffer.alloc(0),
    "a/2.0/directory": Buffer.from("a chunk that is a directory"),
    "b/.zarray": array,
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

t.test("a token is in no line of the log, wherever it is in a request", async (t) => {
  const directory = await makeDirectory(t);
  const tokenFile = join(directory, "tokens");
  await writeFile(tokenFile, `${TOKEN}\n`);
  const defaults = optionConfig(defaultValues({}));
  const { url, lines } = await startServer(t, {
    datasets: [{ id: "d", location: await writeStore(t), immutable: false, encoding: {}, variables: {} }],
    access: { ...defaults.access, tokenFile },
    observe: { ...defaults.observe, accessLogShare: 1 },
  });
  const port = Number(new URL(url).port);
  const encoded = TOKEN.replaceAll("-", "%2D");
  const statuses: number[] = [];
  for (const path of ["datasets", "datasets/d/zarr/b/0.0", "datasets/d/zarr/b/1.0", "datasets/d", "nope"]) {
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
      for (const method of ["GET", "HEAD", "OPTIONS", "POST"])
        statuses.push((await rawRequest(port, `/${path}${query}`, { method, headers })).status);
    }
  }
  const cut = await openConnection(port);
  cut.send(requestText(`/datasets/d/zarr/b/0.0?token=${TOKEN}`).slice(0, -2));
  cut.socket.destroy();
  t.strictSame([...new Set(statuses)].toSorted(), [200, 204, 301, 401, 404, 405, 422, 500]);
  t.ok(lines.length > statuses.length / 2, "all of it was logged");
  const text = JSON.stringify(lines);
  t.notOk(text.includes("a-token-that") || text.includes(encoded));
});
