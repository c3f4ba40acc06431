import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import type { StoreSettings } from "../../../src/stores/byte-store.js";
import { setSourceTimeout } from "../../../src/stores/file-calls.js";
import { openByteStore } from "../../../src/stores/open-byte-store.js";
import { startFaultyOrigin } from "../../origins/faulty-origin.js";

setSourceTimeout(300);

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
    objects: Object.fromEntries(
      KEYS.flatMap((key) => [
        [key, key],
        [`below/${key}`, `below ${key}`],
      ]),
    ),
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
    for (const key of ["..", "../a+b", "x/../a+b", "./a+b"])
      await t.rejects(store.read(key), { code: "unsupported" }, key);
    t.equal(await store.read("none"), undefined);
  }
});

t.test("statuses say that an object is missing as the operator says", async (t) => {
  const origin = await startFaultyOrigin(t);
  const strict = openByteStore(origin.url, []);
  const lax = openByteStore(origin.url, [{ name: "lax", url: origin.url, missing: "404+403" }]);
  for (const status of [404, 410, 403]) {
    origin.setFault(() => ({ status }));
    for (const [name, store] of [
      ["strict", strict],
      ["lax", lax],
    ] as const) {
      const expected = status !== 403 || name === "lax" ? "absent" : "source-unreadable";
      const answers = [
        () => store.read("a"),
        () => store.read("a", { range: { last: 2 } }),
        () => store.stat("a"),
      ];
      for (const ask of answers) {
        const answer = await ask().then(
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
