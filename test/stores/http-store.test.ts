import { execFile } from "node:child_process";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { type AddressInfo, connect, createServer as createTcpServer } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import t, { type Test } from "tap";
import { ZpublishError } from "../../src/errors.js";
import type { ByteStore, ObjectBytes, ObjectVersion, StoreSettings } from "../../src/stores/byte-store.js";
import { setSourceTimeout } from "../../src/stores/file-calls.js";
import { openByteStore } from "../../src/stores/open-byte-store.js";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";
import type { OriginObject } from "../support/origins/serve-object.js";

const KEYS = [
  "a+b",
  "a b",
  "é",
  "100%",
  "a?b",
  "a#b",
  "a%2Fb",
  "%2e%2e/x",
  "日本/0.0",
  "(a)*!'",
  "a;b=c&d",
  "a\\b",
  "[0]",
  "a//b",
  "a:b/0",
  "http://b/0",
];

t.test("any key is asked for as itself", async (t) => {
  const origin = await startFaultyOrigin(t, {
    objects: Object.assign({}, ...KEYS.map((key) => ({ [key]: key, [`below/${key}`]: `below ${key}` }))),
    s3: { bucket: "data" },
  });
  process.env.AWS_ENDPOINT_URL_S3 = origin.url;
  t.teardown(() => delete process.env.AWS_ENDPOINT_URL_S3);
  const anonymous: StoreSettings = { name: "s3", url: "s3://data/", anonymous: true };
  for (const [below, location] of [
    ["", `${origin.url}/data`],
    ["below ", `${origin.url}/data/below/`],
    ["", "s3://data"],
    ["below ", "s3://data/below"],
  ] as const) {
    const store = openByteStore(location, [anonymous]);
    for (const key of KEYS) {
      const found = await store.read(key);
      t.equal(Buffer.from(found?.bytes ?? []).toString(), below + key, `${location} ${key}`);
      t.equal((await store.stat(key))?.byteLength, Buffer.byteLength(below + key));
    }
    for (const key of ["..", "../a+b", "x/../a+b", "./a+b", "a/.", "a\ud800"])
      await t.rejects(store.read(key), { code: "unsupported" }, key);
    t.equal(await store.read("none"), undefined);
  }
});

t.test("statuses say that an object is missing as the operator says", async (t) => {
  const origin = await startFaultyOrigin(t);
  const lax = openByteStore(origin.url, [{ name: "lax", url: origin.url, missing: "404+403" }]);
  const stores = { strict: openByteStore(origin.url, []), lax };
  for (const status of [404, 410, 403]) {
    origin.setFault(() => ({ status }));
    for (const [name, store] of Object.entries(stores)) {
      const expected = status !== 403 || name === "lax" ? "absent" : "source-unreadable";
      for (const asked of [store.read("a"), store.read("a", { range: { last: 2 } }), store.stat("a")]) {
        const answer = await asked.then(
          (found) => (found === undefined ? "absent" : "found"),
          (error: ZpublishError) => error.code,
        );
        t.equal(answer, expected, `${name} ${status}`);
      }
    }
  }
  origin.setFault(() => ({ status: 401 }));
  await t.rejects(lax.read("a"), { code: "source-unreadable" }, "nothing else says so");
});

t.test("headers come from the configuration and from variables", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { "private/a": "bytes", a: "bytes" } });
  process.env.ZP_TEST_TOKEN = "Bearer s3cr3t";
  t.teardown(() => delete process.env.ZP_TEST_TOKEN);
  const settings: StoreSettings = {
    name: "private",
    url: `${origin.url}/private`,
    headers: { Authorization: { env: "ZP_TEST_TOKEN" }, "X-Plain": "é".normalize("NFC") },
  };
  await openByteStore(`${origin.url}/private`, [settings]).read("a");
  t.match(origin.requests[0]?.headers, { authorization: "Bearer s3cr3t", "accept-encoding": "identity" });
  await openByteStore(`${origin.url}/`, [settings]).read("a");
  t.notOk(origin.requests[1]?.headers.authorization, "another place does not get them");
  delete process.env.ZP_TEST_TOKEN;
  t.throws(() => openByteStore(`${origin.url}/private`, [settings]), {
    code: "invalid-config",
    message:
      "stores.private.headers.Authorization: expected the variable ZP_TEST_TOKEN to have a text, found it unset or empty",
  });
});

t.test("a header that cannot be sent is refused without its value", async (t) => {
  process.env.ZP_TEST_TOKEN = "s3cr3t\n";
  t.teardown(() => delete process.env.ZP_TEST_TOKEN);
  const settings = { name: "x", url: "https://host/", headers: { Authorization: { env: "ZP_TEST_TOKEN" } } };
  try {
    openByteStore("https://host/", [settings]);
    t.fail("expected an error");
  } catch (error) {
    t.match(error, { code: "invalid-config", message: /^stores\.x\.headers\.Authorization: expected / });
    t.notMatch((error as Error).message, "s3cr3t");
  }
});

t.test("credentials never get into messages and locations", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: "bytes" } });
  const { port } = origin;
  const locations = [
    `http://user:s3cr3t@127.0.0.1:${port}/`,
    `http://s3cr3t@127.0.0.1:${port}/`,
    `http://127.0.0.1:${port}/x?sig=s3cr3t`,
    `http://127.0.0.1:${port}/x#s3cr3t`,
    "s3://user:s3cr3t@bucket/x",
    "s3://bucket/x?sig=s3cr3t",
    `ftp://user:s3cr3t@127.0.0.1/x`,
    `https://user:s3cr3t@:99999/x`,
  ];
  for (const location of locations) {
    try {
      openByteStore(location, []);
      t.fail(`expected an error for ${location}`);
    } catch (error) {
      t.equal((error as ZpublishError).code, "invalid-config", location);
      t.notMatch((error as Error).message, "s3cr3t", location);
    }
  }
  const settings: StoreSettings = { name: "x", url: origin.url, headers: { "x-token": "s3cr3t" } };
  const store = openByteStore(origin.url, [settings]);
  t.notMatch(`${store.location} ${store.identity}`, "s3cr3t");
  const faults = [
    { status: 403 },
    { status: 503 },
    { redirect: "https://user:s3cr3t@host/a?sig=s3cr3t#s3cr3t" },
    { redirect: "/a?sig=s3cr3t" },
    { hang: "before-headers" },
    { disconnect: true },
  ] as const;
  for (const fault of faults) {
    origin.setFault(() => fault);
    const error = (await store.read("a").catch((error: unknown) => error)) as ZpublishError;
    t.ok(error instanceof ZpublishError, JSON.stringify(fault));
    t.notMatch(error.message + JSON.stringify(error.details), "s3cr3t");
  }
});

t.test("a redirect is not followed", async (t) => {
  const [origin, elsewhere] = [
    await startFaultyOrigin(t),
    await startFaultyOrigin(t, { objects: { a: "bytes" } }),
  ];
  origin.setFault(() => ({ redirect: `${elsewhere.url}/a` }));
  await t.rejects(openByteStore(origin.url, []).read("a"), {
    code: "source-unreadable",
    message: `'a': ${origin.url}/ redirects to ${elsewhere.url}/a: expected a location that does not`,
  });
  t.equal(elsewhere.count(), 0);
});

t.test("connections are used again", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: "bytes" } });
  const store = openByteStore(origin.url, []);
  for (let i = 0; i < 20; i++) await store.read("a");
  for (let i = 0; i < 20; i++) await store.read("none");
  t.ok(origin.sockets() <= 2, `${origin.sockets()} connections`);
});

type Validators = Omit<OriginObject, "bytes">;

const ONE = "0123456789";
/** Of the same length. */
const OTHER = "abcdefghij";
const [EARLY, LATE] = [new Date(10_000).toUTCString(), new Date(20_000).toUTCString()];
/** How origins tell two versions apart. */
const KINDS: Readonly<Record<string, readonly [Validators, Validators]>> = {
  "strong ETags": [
    { etag: '"1"', lastModified: EARLY },
    { etag: '"2"', lastModified: EARLY },
  ],
  "weak ETags": [
    { etag: 'W/"1"', lastModified: EARLY },
    { etag: 'W/"2"', lastModified: EARLY },
  ],
  "ETags alone": [{ etag: '"1"' }, { etag: '"2"' }],
  "Last-Modified alone": [{ lastModified: EARLY }, { lastModified: LATE }],
};

setSourceTimeout(1_000);

async function open(t: Test, validators: Validators): Promise<[FaultyOrigin, ByteStore]> {
  const origin = await startFaultyOrigin(t);
  origin.put("a", Buffer.from(ONE), validators);
  return [origin, openByteStore(origin.url, [])];
}

async function versionOf(store: ByteStore): Promise<ObjectVersion> {
  return ((await store.read("a")) as ObjectBytes).version;
}

t.test("stat, whole reads, ranges and suffixes tell one version", async (t) => {
  for (const [kind, [validators]] of [...Object.entries(KINDS), ["none", [{}]] as const]) {
    const [, store] = await open(t, validators);
    const found = await Promise.all([
      store.stat("a"),
      store.read("a"),
      store.read("a", { range: { offset: 2, byteLength: 3 } }),
      store.read("a", { range: { last: 3 } }),
      store.read("a", { range: { offset: 4, byteLength: 0 } }),
    ]);
    t.equal(new Set(found.map((each) => each?.version.token)).size, 1, kind);
    t.match(found[0]?.version.token, /^[0-9a-z.]{1,40}$/);
    t.equal(found[0]?.byteLength, 10);
    t.match(found.slice(1), Array(4).fill({ objectByteLength: 10 }));
  }
});

t.test("an object that changed is never read under its earlier version", async (t) => {
  for (const [kind, [first, second]] of Object.entries(KINDS)) {
    const [origin, store] = await open(t, first);
    const version = await versionOf(store);
    origin.put("a", Buffer.from(OTHER), second);
    const parts = [{ offset: 2, byteLength: 3 }, { last: 3 }, { offset: 2, byteLength: 0 }];
    for (const range of [undefined, ...parts]) {
      const error = { code: "source-changed", message: "'a' changed while it was being read" };
      await t.rejects(store.read("a", { version, range }), error, `${kind} ${JSON.stringify(range)}`);
    }
    t.equal(Buffer.from((await store.read("a"))?.bytes ?? []).toString(), OTHER, kind);
    t.not((await versionOf(store)).token, version.token, kind);
  }
});

t.test("requests are made conditional on strong ETags alone", async (t) => {
  for (const [kind, [validators]] of Object.entries(KINDS)) {
    const [origin, store] = await open(t, validators);
    const version = await versionOf(store);
    origin.resetCounts();
    const found = await store.read("a", { version, range: { offset: 0, byteLength: 1 } });
    t.equal(Buffer.from(found?.bytes ?? []).toString(), "0", kind);
    t.equal(
      origin.requests[0]?.headers["if-match"],
      kind.includes("ETags") && validators.etag === '"1"' ? '"1"' : undefined,
    );
  }
});

t.test("an object of another length has changed, even if a server has no validators", async (t) => {
  const [origin, store] = await open(t, {});
  const version = await versionOf(store);
  origin.put("a", Buffer.from("short"), {});
  await t.rejects(store.read("a", { version, range: { offset: 2, byteLength: 3 } }), {
    code: "source-changed",
  });
  await t.rejects(store.read("a", { version }), { code: "source-changed" });
});

t.test("a weak ETag that becomes strong is the same version", async (t) => {
  const [origin, store] = await open(t, { etag: 'W/"1"' });
  const version = await versionOf(store);
  origin.put("a", Buffer.from(ONE), { etag: '"1"' });
  t.equal((await store.read("a", { version, range: { last: 1 } }))?.version.token, version.token);
});

t.test("a change within a read, with a server that ignores conditions, is noticed", async (t) => {
  const [origin, store] = await open(t, { etag: '"1"' });
  const version = await versionOf(store);
  for (const [fault, range] of [
    [{ etag: '"2"' }, { last: 1 }],
    [{ etag: null }, { last: 1 }],
    [{ etag: '"2"', chunked: true }, undefined],
  ] as const) {
    origin.setFault(() => fault);
    await t.rejects(store.read("a", { version, range }), { code: "source-changed" });
  }
});

t.test("an unchanged object is not sent again", async (t) => {
  for (const [kind, [first, second]] of Object.entries(KINDS)) {
    const [origin, store] = await open(t, first);
    const version = await versionOf(store);
    t.equal(await store.readIfChanged("a", version), "unchanged", kind);
    t.equal(await store.readIfChanged("a", version, { range: { last: 2 } }), "unchanged", kind);
    t.equal(origin.count({ status: 304 }), 2, kind);
    origin.put("a", Buffer.from(OTHER), second);
    const found = (await store.readIfChanged("a", version, { range: { last: 2 } })) as ObjectBytes;
    t.equal(Buffer.from(found.bytes).toString(), "ij", kind);
    t.not(found.version.token, version.token);
    origin.remove("a");
    t.equal(await store.readIfChanged("a", version), undefined, kind);
    origin.setFault(() => ({ status: 403 }));
    await t.rejects(store.readIfChanged("a", version), { code: "source-unreadable" }, kind);
  }
  const [, store] = await open(t, {});
  const found = await store.readIfChanged("a", await versionOf(store));
  t.type(found, "object", "without validators it is sent");
});

t.test("fewer bytes than a range has are a failure", async (t) => {
  const [origin, store] = await open(t, { etag: '"1"' });
  origin.put("empty", "");
  const tooLong = [
    ["a", { range: { offset: 8, byteLength: 3 } }, 11, 10],
    ["a", { range: { offset: 10, byteLength: 1 } }, 11, 10],
    ["a", { range: { offset: 50, byteLength: 1 } }, 51, 10],
    ["a", { range: { last: 11 } }, 11, 10],
    ["empty", { range: { last: 1 } }, 1, 0],
    ["empty", { range: { offset: 0, byteLength: 1 } }, 1, 0],
  ] as const;
  for (const [key, options, expected, received] of tooLong) {
    const details = { key, expected, received };
    await t.rejects(store.read(key, options), { code: "corrupt-chunk", details }, JSON.stringify(options));
  }
  t.equal((await store.read("empty"))?.bytes.length, 0);
  t.equal((await store.stat("empty"))?.byteLength, 0);
  origin.setFault(({ method }) => (method === "HEAD" ? { status: 405 } : undefined));
  t.equal((await store.stat("empty"))?.byteLength, 0, "a server that does not know HEAD");
  t.equal((await store.stat("a"))?.byteLength, 10);
});

t.test("an object that is too long is refused before its bytes are received", async (t) => {
  const [origin, store] = await open(t, { etag: '"1"' });
  const allocate = () => {
    throw new Error("allocated");
  };
  const details = { expected: 9, received: 10 };
  await t.rejects(store.read("a", { maxByteLength: 9, allocate }), { code: "corrupt-chunk", details });
  origin.setFault(() => ({ chunked: true, trickle: { bytes: 5, ms: 1 } }));
  await t.rejects(store.read("a", { maxByteLength: 9, allocate }), { code: "corrupt-chunk", details });
  t.equal(origin.count(), 2, "and is not asked for again");
});

t.test("bytes come into the memory that the caller gives", async (t) => {
  const [origin, store] = await open(t, { etag: '"1"' });
  for (const fault of [undefined, { chunked: true } as const]) {
    origin.setFault(() => fault);
    const memory = new Uint8Array(new ArrayBuffer(16));
    const given: Uint8Array[] = [];
    const allocate = (byteLength: number) => {
      given.push(memory.subarray(0, byteLength));
      return given[0] as typeof memory;
    };
    const found = await store.read("a", { allocate });
    t.equal(found?.bytes, given[0], "the very object, by which the memory is known when it is free again");
    t.equal(Buffer.from(memory).toString("latin1", 0, 12), `${ONE}\0\0`);
  }
});

t.test("a body is not written into memory after its read has failed", async (t) => {
  const [origin, store] = await open(t, { etag: '"1"' });
  const memory = new Uint8Array(new ArrayBuffer(10));
  const controller = new AbortController();
  origin.setFault(() => ({ trickle: { bytes: 5, ms: 50 } }));
  const reading = store.read("a", { signal: controller.signal, allocate: () => memory });
  await origin.requested({ status: 200 });
  controller.abort();
  await t.rejects(reading, { code: "cancelled" });
  memory.fill(0);
  await origin.requests[0]?.closed;
  t.same(memory, new Uint8Array(10));
});

t.test("heads that come in pieces are read as they are, beside others", async (t) => {
  const server = createTcpServer((socket) => {
    socket.setNoDelay();
    socket.on("data", async (asked) => {
      const [, key = ""] = /^GET \/(\w)/.exec(asked.toString()) ?? [];
      const head = [
        "HTTP/1.1 200 OK",
        `ETag: "${key.repeat(9)}"`,
        "Content-Length: 1",
        "Connection: close",
        "",
      ];
      for (const line of head) {
        socket.write(`${line}\r\n`);
        // The store reads this line before the next one comes.
        await nextTurn();
      }
      socket.end(key);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => server.close());
  const store = openByteStore(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, []);
  const keys = ["a", "b", "c"];
  const found = await Promise.all(keys.map((key) => store.read(key)));
  t.same(
    found.map((each) => [each?.version.etag, Buffer.from(each?.bytes ?? []).toString()]),
    keys.map((key) => [`"${key.repeat(9)}"`, key]),
  );
});

const READER = fileURLToPath(new URL("proxied-reads.js", import.meta.url));

interface Proxy {
  readonly url: string;
  /** First lines of the requests that came: `GET http://…`, `CONNECT …`. */
  readonly received: string[];
  /** Headers that were for the proxy. */
  readonly authorizations: (string | undefined)[];
}

/** Starts a proxy that forwards requests, and makes tunnels to one origin whatever they are asked for. */
async function startProxy(t: Test, originPort: number): Promise<Proxy> {
  const received: string[] = [];
  const authorizations: (string | undefined)[] = [];
  const server = createServer((message, response) => {
    received.push(`${message.method} ${message.url}`);
    authorizations.push(message.headers["proxy-authorization"]);
    const { pathname } = new URL(message.url ?? "");
    const forwarded = request({
      port: originPort,
      host: "127.0.0.1",
      path: pathname,
      method: message.method,
    });
    forwarded.on("response", (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      answer.pipe(response);
    });
    forwarded.end();
  });
  server.on("connect", (message, socket) => {
    received.push(`CONNECT ${message.url}`);
    authorizations.push(message.headers["proxy-authorization"]);
    const tunnel = connect(originPort, "127.0.0.1", () => {
      socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
      tunnel.pipe(socket).pipe(tunnel);
    });
    for (const end of [tunnel, socket]) end.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `127.0.0.1:${port}`, received, authorizations };
}

/** Reads objects in a process with other variables. @returns One line each. */
async function readWith(variables: NodeJS.ProcessEnv, ...urls: readonly string[]): Promise<string[]> {
  const own = Object.entries(process.env).filter(([name]) => !/^(https?|no)_proxy$/i.test(name));
  const env = { ...Object.fromEntries(own), NODE_OPTIONS: "", ...variables };
  const { stdout } = await promisify(execFile)(process.execPath, [READER, ...urls], { env });
  return stdout.trimEnd().split("\n");
}

t.test("http:// goes through HTTP_PROXY, which gets its own credentials", async (t) => {
  const origin = await startFaultyOrigin(t, { objects: { a: "bytes" } });
  const proxy = await startProxy(t, origin.port);
  const url = `http://data.example:8080/a`;
  for (const name of ["HTTP_PROXY", "http_proxy"]) {
    proxy.received.length = 0;
    t.same(await readWith({ [name]: `http://user:s3cr3t@${proxy.url}` }, url), ["bytes"]);
    t.same(proxy.received, [`GET ${url}`], "no tunnel, which many proxies grant for port 443 alone");
    t.equal(proxy.authorizations.at(-1), `Basic ${Buffer.from("user:s3cr3t").toString("base64")}`);
  }
  t.ok(origin.requests.every(({ headers }) => headers["proxy-authorization"] === undefined));
});

t.test("https:// goes through a tunnel of HTTPS_PROXY", async (t) => {
  const origin = await startFaultyOrigin(t);
  const proxy = await startProxy(t, origin.port);
  // The origin speaks no TLS: it is enough that the tunnel was asked for.
  const [line = ""] = await readWith(
    { HTTPS_PROXY: `http://user:s3cr3t@${proxy.url}` },
    "https://data.example/a",
  );
  t.match(line, "cannot be read");
  t.notMatch(line, "s3cr3t");
  t.equal(proxy.received[0], "CONNECT data.example:443");
  t.equal(origin.count(), 0);
});
