import { join } from "node:path";
import t, { type Test } from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import type { StoreSettings } from "../../src/stores/byte-store.js";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { accessOf, type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, v3Array, v3Group, writeFiles, zarray, zgroup } from "../support/write-store.js";

const ACCESS_KEY = "AKIDREDIRECT";
const SECRET = "a-secret-that-no-answer-contains";
const CHUNK = Buffer.from("ab");
const INNER = Buffer.from([1, 2]);

/** A shard of one inner chunk of two bytes, and its index without a checksum. */
function shard(): Buffer {
  const index = Buffer.alloc(16);
  index.writeBigUInt64LE(2n, 8);
  return Buffer.concat([INNER, index]);
}

const array = { ...zarray, shape: [6] };
const documents = {
  ".zgroup": zgroup,
  "v/.zarray": array,
  "v/.zattrs": { _ARRAY_DIMENSIONS: ["x"] },
};
const metadata = { zarr_consolidated_format: 1, metadata: documents };
const shards = {
  ...v3Array,
  dimension_names: ["x"],
  codecs: [
    {
      name: "sharding_indexed",
      configuration: {
        chunk_shape: [2],
        codecs: [{ name: "bytes" }],
        index_codecs: [{ name: "bytes", configuration: { endian: "little" } }],
      },
    },
  ],
};
const whole = { ...v3Array, shape: [4], fill_value: 7, dimension_names: ["x"] };
const v3Metadata = {
  ...v3Group,
  consolidated_metadata: { kind: "inline", must_understand: false, metadata: { s: shards, w: whole } },
};

/** Two stores: v2 with a chunk and an absent one, v3 with a shard, and with a chunk and an absent one whose values are no fill values. */
const OBJECTS: Readonly<Record<string, Uint8Array | string>> = {
  ...asJson("v2", { ".zmetadata": metadata, ...documents }),
  "v2/v/0": CHUNK,
  // Another chunk than the first, with a version of its own.
  "v2/v/1": "cd",
  ...asJson("v3", { "zarr.json": v3Metadata, "s/zarr.json": shards, "w/zarr.json": whole }),
  "v3/s/c/0": shard(),
  "v3/w/c/0": CHUNK,
};

function asJson(directory: string, values: Readonly<Record<string, object>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [`${directory}/${name}`, JSON.stringify(value)]),
  );
}

/** A store whose clients may be redirected, and how its objects are found again. */
interface Place {
  readonly origin: FaultyOrigin;
  readonly url: string;
  readonly settings: StoreSettings;
}

async function httpPlace(t: Test, more: Partial<StoreSettings> = {}): Promise<Place> {
  const origin = await startFaultyOrigin(t, { objects: OBJECTS });
  const url = `${origin.url}/`;
  return { origin, url, settings: { name: "web", url, redirect: true, ...more } };
}

async function bucketPlace(t: Test, more: Partial<StoreSettings> = {}): Promise<Place> {
  const s3 = {
    bucket: "data",
    authorize: ({ accessKeyId }: { accessKeyId: string | undefined }) =>
      accessKeyId === ACCESS_KEY ? undefined : "AccessDenied",
  };
  const origin = await startFaultyOrigin(t, { objects: OBJECTS, s3 });
  process.env.REDIRECT_TEST_KEY = ACCESS_KEY;
  process.env.REDIRECT_TEST_SECRET = SECRET;
  const url = "s3://data/";
  return {
    origin,
    url,
    settings: {
      ...{ name: "bucket", url, endpoint: origin.url, redirect: true },
      credentials: {
        accessKeyId: { env: "REDIRECT_TEST_KEY" },
        secretAccessKey: { env: "REDIRECT_TEST_SECRET" },
      },
      ...more,
    },
  };
}

function datasetsOf({ url, settings }: Place, more: Partial<DatasetConfig> = {}): DatasetConfig[] {
  const common = { immutable: false, encoding: {}, variables: {}, stores: [settings], ...more };
  return [
    { id: "v2", location: `${url}v2`, ...common },
    { id: "v3", location: `${url}v3`, ...common },
    { id: "packed", location: `${url}v2`, ...common, encoding: { compressor: { id: "zlib", level: 1 } } },
  ];
}

const V = "/datasets/v2/zarr/v";
const SHARD = "/datasets/v3/zarr3/s/c/0";

/** Asserts that an answer sends its client to the store, and that the client gets exactly the bytes there. */
async function leadsTo(t: Test, answer: Response, bytes: Uint8Array): Promise<URL> {
  t.equal(answer.status, 302);
  t.same(Buffer.from(await answer.arrayBuffer()), Buffer.from(""));
  const location = answer.headers.get("location") ?? "";
  const there = await fetch(location);
  t.equal(there.status, 200, location);
  t.same(Buffer.from(await there.arrayBuffer()), Buffer.from(bytes));
  return new URL(location);
}

const sentBytes = ({ origin }: Place, key: string) => origin.count({ method: "GET", key });

for (const [kind, start] of Object.entries({ "web server": httpPlace, bucket: bucketPlace })) {
  t.test(`whole chunks as stored are answered with their URL in a ${kind}`, async (t) => {
    const place = await start(t);
    const { get } = await startServer(t, { datasets: datasetsOf(place) });
    const answer = await get(`${V}/0`);
    t.equal(sentBytes(place, "v2/v/0"), 0, "no byte of the chunk passes through the server");
    const url = await leadsTo(t, answer, CHUNK);
    t.equal(url.origin, place.origin.url);
    t.match(answer.headers.get("vary"), /\bPrefer\b.*\bRange\b/);
    t.equal(answer.headers.get("content-length"), "0");
    t.equal(answer.headers.get("access-control-allow-origin"), "*");
    const [, seconds] = /^public, max-age=(\d+)$/.exec(answer.headers.get("cache-control") ?? "") ?? [];
    t.ok(Number(seconds) > 0);
    if (kind === "bucket") {
      t.ok(Number(seconds) < Number(url.searchParams.get("X-Amz-Expires")), "the URL lives longer");
      t.match(url.searchParams.get("X-Amz-Credential"), new RegExp(`^${ACCESS_KEY}/`));
      t.match(url.searchParams.get("X-Amz-Signature"), /^[0-9a-f]{64}$/);
    } else t.equal(url.search, "");
    t.notMatch(JSON.stringify([...answer.headers]), SECRET);
    // Inner chunks are parts of objects, but shards are whole ones.
    await leadsTo(t, await get(SHARD), shard());
    await leadsTo(t, await get("/datasets/v3/zarr3/w/c/0"), CHUNK);
    await leadsTo(t, await get("/datasets/v3/zarr/w/0"), CHUNK);
  });

  t.test(`everything else that lies in a ${kind} is answered with bytes`, async (t) => {
    const { get, url } = await startServer(t, { datasets: datasetsOf(await start(t)) });
    const part = await get(`${V}/0`, { range: "bytes=1-1" });
    t.same([part.status, await part.text()], [206, "b"]);
    for (const prefer of ["respond-direct", "wait=10, Respond-Direct", "respond-direct; x=1"]) {
      const direct = await get(`${V}/0`, { prefer });
      t.same([direct.status, await direct.text()], [200, "ab"], prefer);
      t.match(direct.headers.get("vary"), /\bPrefer\b/);
      const etag = direct.headers.get("etag") as string;
      t.equal((await get(`${V}/0`, { "if-none-match": etag })).status, 304);
      t.equal((await get(`${V}/0`, { "if-none-match": '"other"' })).status, 302);
      // The store would compare the ETag with its own.
      t.equal((await get(`${V}/0`, { "if-match": etag })).status, 200);
      t.equal((await get(`${V}/0`, { "if-match": '"other"' })).status, 412);
    }
    const head = await fetch(`${url}${V}/0`, { method: "HEAD", redirect: "manual" });
    t.same([head.status, head.headers.get("content-length")], [200, "2"]);
    const packed = await get("/datasets/packed/zarr/v/0");
    t.same([packed.status, packed.headers.get("x-cache")], [200, "MISS"]);
    const inner = await get("/datasets/v3/zarr/s/0");
    t.same([inner.status, Buffer.from(await inner.arrayBuffer())], [200, INNER]);
    for (const path of ["v2/zarr/.zmetadata", "v2/zarr/v/.zarray", "v3/zarr3/zarr.json"])
      t.equal((await get(`/datasets/${path}`)).status, 200, path);
  });

  t.test(`chunks that a ${kind} does not have are absent, or filled`, async (t) => {
    const place = await start(t);
    for (const more of [{ freshness: 60 }, { immutable: true }, { freshness: "always" as const }]) {
      const { get } = await startServer(t, { datasets: datasetsOf(place, more) });
      const absent = await get(`${V}/2`);
      // Where answers are believed for a time, the store itself says that it is absent.
      if (more.freshness !== "always") {
        t.equal(absent.status, 302);
        t.equal((await fetch(absent.headers.get("location") ?? "")).status, 404);
      } else t.equal(absent.status, 404);
      // Zarr v3 does not say that 7 is a missing value, so it is served as a value like others.
      for (const path of ["zarr/w/1", "zarr3/w/c/1"]) {
        const filled = await get(`/datasets/v3/${path}`);
        t.same([filled.status, Buffer.from(await filled.arrayBuffer())], [200, Buffer.from([7, 7])], path);
      }
      await leadsTo(t, await get(`${V}/0`), CHUNK);
    }
  });
}

t.test("a client is sent away without a question about its chunk, where answers are believed", async (t) => {
  for (const start of [httpPlace, bucketPlace]) {
    for (const [place, more, asked] of [
      [await start(t), { freshness: 60 }, 0],
      [await start(t), { immutable: true }, 0],
      [await start(t), { freshness: "always" }, 1],
      // Clients would get 403 for what is absent.
      [await start(t, { missing: "404+403" }), { freshness: 60 }, 1],
    ] as const) {
      const { get } = await startServer(t, { datasets: datasetsOf(place, more) });
      await leadsTo(t, await get(`${V}/0`), CHUNK);
      t.equal(place.origin.count({ method: "HEAD", key: "v2/v/0" }), asked);
      await leadsTo(t, await get(`${V}/1`), Buffer.from("cd"));
      t.ok(place.origin.count({ method: "HEAD", key: "v2/.zmetadata" }) <= 1, "the array is asked for once");
    }
  }
});

t.test("no client is sent to a store that is no longer there", async (t) => {
  const place = await httpPlace(t);
  const { get } = await startServer(t, { datasets: datasetsOf(place, { freshness: 60 }) });
  place.origin.remove("v2/.zmetadata");
  place.origin.remove("v2/v/0");
  t.equal((await get(`${V}/0`)).status, 500);
});

t.test("a chunk comes with the answer that it is unchanged, unless someone has it", async (t) => {
  const place = await httpPlace(t, { redirect: false });
  const { get } = await startServer(t, { datasets: datasetsOf(place, { freshness: "always" }) });
  const asked = () => place.origin.count({ key: "v2/v/0" });
  const etag = (await get(`${V}/0`)).headers.get("etag") as string;
  t.equal(asked(), 1);
  t.equal(await (await get(`${V}/0`)).text(), "ab");
  t.equal(asked(), 2);
  t.equal((await get(`${V}/0`, { "if-none-match": etag })).status, 304);
  t.equal(asked(), 3);
  t.equal(place.origin.count({ key: "v2/v/0", status: 304 }), 1, "bytes that the client has are not sent");
  place.origin.put("v2/v/0", "ef");
  t.equal(await (await get(`${V}/0`)).text(), "ef");
  t.equal(asked(), 4);
});

t.test(
  "a shard does not come with the answer that it is unchanged, since parts of it are read",
  async (t) => {
    const place = await httpPlace(t, { redirect: false });
    const { get } = await startServer(t, { datasets: datasetsOf(place, { freshness: "always" }) });
    const wholes = () => place.origin.count({ method: "GET", key: "v3/s/c/0", status: 200 });
    const read = async () => Buffer.from(await (await get(SHARD, { range: "bytes=0-1" })).arrayBuffer());
    t.same(await read(), INNER);
    const before = wholes();
    t.same(await read(), INNER);
    t.equal(wholes(), before);
  },
);

t.test("nobody is redirected unless a store says so", async (t) => {
  for (const start of [httpPlace, bucketPlace]) {
    const { get } = await startServer(t, { datasets: datasetsOf(await start(t, { redirect: false })) });
    const answer = await get(`${V}/0`);
    t.same([answer.status, await answer.text()], [200, "ab"]);
    t.notMatch(answer.headers.get("vary") ?? "", "Prefer");
  }
});

t.test("nobody is redirected to a store that wants headers, which no URL has", async (t) => {
  const headers = { Authorization: "Bearer of the operator" };
  for (const start of [httpPlace, bucketPlace]) {
    const { get } = await startServer(t, { datasets: datasetsOf(await start(t, { headers })) });
    t.equal((await get(`${V}/0`)).status, 200);
  }
});

t.test("shared caches keep no URL that needs a token, or of a dataset that they may not keep", async (t) => {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { tokens: "a-token-of-a-client\n" });
  const place = await bucketPlace(t);
  const datasets = datasetsOf(place);
  const cacheControlOf = async ({ get }: RunningServer, headers: Record<string, string> = {}) => {
    const answer = await get(`${V}/0`, headers);
    t.equal(answer.status, 302);
    return answer.headers.get("cache-control");
  };
  const plain = await startServer(t, { datasets });
  t.equal(await cacheControlOf(plain), "public, max-age=60");
  const guarded = await startServer(t, {
    datasets,
    access: accessOf({ tokenFile: join(directory, "tokens") }),
  });
  t.equal((await guarded.get(`${V}/0`)).status, 401);
  const authorization = "Bearer a-token-of-a-client";
  t.equal(await cacheControlOf(guarded, { authorization }), "private, max-age=60");
  const answer = await guarded.get(`${V}/0`, { authorization });
  t.match(answer.headers.get("vary"), /Authorization/);
  t.notMatch(answer.headers.get("location"), "a-token-of-a-client");
  for (const [cacheControl, expected] of [
    ["private, max-age=9999", "private, max-age=60"],
    ["no-store", "no-store"],
    ["public, max-age=9999", "public, max-age=60"],
  ] as const) {
    const server = await startServer(t, { datasets: datasetsOf(place, { cacheControl }) });
    t.equal(await cacheControlOf(server), expected);
  }
});

t.test("a URL that is fetched for a chunk that has changed meanwhile leads to the new one", async (t) => {
  const place = await httpPlace(t);
  const { get } = await startServer(t, { datasets: datasetsOf(place, { freshness: "always" }) });
  await leadsTo(t, await get(`${V}/1`), Buffer.from("cd"));
  place.origin.put("v2/v/1", "ef");
  await leadsTo(t, await get(`${V}/1`), Buffer.from("ef"));
  place.origin.remove("v2/v/1");
  t.equal((await get(`${V}/1`)).status, 404);
});

t.test("a store that fails sends no client there", async (t) => {
  const place = await bucketPlace(t);
  const { get } = await startServer(t, { datasets: datasetsOf(place, { freshness: "always" }) });
  place.origin.setFault(({ key }) => (key === "v2/v/0" ? { code: "AccessDenied" } : undefined));
  t.equal((await get(`${V}/0`)).status, 500);
});

t.test("a URL says that its client pays, if the one who asks has to", async (t) => {
  const { get } = await startServer(t, {
    datasets: datasetsOf(await bucketPlace(t, { requesterPays: true })),
  });
  const url = await leadsTo(t, await get(`${V}/0`), CHUNK);
  t.equal(url.searchParams.get("x-amz-request-payer"), "requester");
});
