import { symlinkSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import fc from "fast-check";
import t, { type Test } from "tap";
import { effort } from "../support/effort.js";
import { startServer } from "../support/servers/start-server.js";

const SECRET = "what lies beside the store";

/** Serves a store beside a secret file. Paths are sent as they are: no client normalizes them. */
async function setup(test: Test) {
  const root = test.testdir({
    "secret.txt": SECRET,
    "store.zarr": {
      ".zgroup": '{"zarr_format": 2}',
      a: {
        ".zarray": JSON.stringify({
          zarr_format: 2,
          shape: [4, 4],
          chunks: [2, 2],
          dtype: "|u1",
          fill_value: 0,
          order: "C",
          filters: null,
          compressor: null,
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

const dots = fc.constantFrom(
  ".",
  "..",
  "%2e",
  "%2E%2e",
  "..%2f",
  "%2e%2e%2f%2e%2e",
  "..%5c",
  "....//",
  "%252e%252e",
);
const name = fc.constantFrom(
  "datasets",
  "d",
  "zarr",
  "a",
  "groups",
  "keys",
  "info",
  "tree",
  ".zarray",
  ".zattrs",
);
const chunkLike = fc.constantFrom(
  "0.0",
  "00.0",
  "-1.0",
  "0.0.0",
  "1e0.0",
  "0x0.0",
  "9007199254740993.0",
  "٠.0",
);
const odd = fc.constantFrom(
  "%",
  "%zz",
  "%c3%28",
  "%00",
  "%0d%0a",
  "secret.txt",
  "a%2f0.0",
  "%ff",
  "",
  "~",
  "*",
  "{x}",
);
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
