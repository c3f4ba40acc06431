import t, { type Test } from "tap";
import type { ZpublishError } from "../../src/errors.js";
import { createFileSource } from "../../src/formats/file-source.js";
import { createKeptIndexes } from "../../src/formats/kept-indexes.js";
import { createRemoteSource } from "../../src/open/remote-source.js";
import { setSourceTimeout, sourceTimeoutMs } from "../../src/stores/file-calls.js";
import type { Freshness } from "../../src/stores/object-versions.js";
import { openByteStore } from "../../src/stores/open-byte-store.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";
import { openReader } from "../support/async-reader.js";
import type { Fault } from "../support/origins/fault.js";
import { type FaultyOrigin, startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { DATA_OFFSET, plainArray, plainFile, plainFormat } from "../support/plain-format.js";
import { makeDirectory } from "../support/write-store.js";

t.setTimeout(120_000);

const KEY = "below/a file+1.plain";
/** Longer than a block. */
const DATA_BYTES = 3 * 2 ** 20;
const CHUNK_BYTES = 100_000;

/** A file whose items are all `value`, but for the last chunk, which is absent. */
function fileOf(value: number): Buffer {
  const offsets = Float64Array.of(DATA_OFFSET, DATA_OFFSET + DATA_BYTES - CHUNK_BYTES, -1);
  const chunks = { kind: "listed", offsets, byteLengths: new Uint32Array(3).fill(CHUNK_BYTES) } as const;
  const array = plainArray({ name: "v", shape: [3 * CHUNK_BYTES], chunkShape: [CHUNK_BYTES], chunks });
  return plainFile({ arrays: [array], data: Buffer.alloc(DATA_BYTES, value) });
}

interface Setup {
  readonly freshness?: Freshness;
  readonly isBucket?: boolean;
  readonly cache?: string;
}

async function setUp(t: Test, { isBucket = false, ...options }: Setup = {}) {
  const origin = await startFaultyOrigin(t, {
    objects: { [KEY]: fileOf(1) },
    ...(isBucket ? { s3: { bucket: "data" } } : {}),
  });
  const url = isBucket ? "s3://data/below/" : `${origin.url}/below/`;
  const settings = [{ name: "s", url, anonymous: true, ...(isBucket ? { endpoint: origin.url } : {}) }];
  return { origin, open: () => openRemote(url, settings, options) };
}

function openRemote(
  url: string,
  settings: Parameters<typeof openByteStore>[1],
  { freshness = { seconds: 60 }, cache }: Setup,
) {
  const kept = cache === undefined ? undefined : createKeptIndexes(cache);
  const file = { store: openByteStore(url, settings), key: KEY.slice("below/".length) };
  return createRemoteSource({
    ...{ location: "remote", rootArrayName: "x", names: [], freshness, file },
    store: openByteStore(`${url}${file.key}/`, settings),
    openFile: (store, key, head) =>
      plainFormat.recognizes(head.bytes)
        ? createFileSource({ location: "remote", store, key, formats: [plainFormat], freshness, head, kept })
        : undefined,
    openReferences: () => undefined,
    isKept: async () => kept?.has(`${file.store.identity}\n${file.key}`) ?? false,
  });
}

function readerOf({ groups }: StoredTree) {
  const chunks = groups[0]?.arrays[0]?.chunks;
  if (chunks === undefined) throw new Error("expected an array");
  return openReader(chunks);
}

const sent = (origin: FaultyOrigin) =>
  origin.requests.map(({ method, headers }) => [method, headers.range, headers["if-match"] !== undefined]);

const LAST = DATA_OFFSET + DATA_BYTES - CHUNK_BYTES;
const valuesOf = (bytes: Uint8Array | undefined) => [bytes?.length, ...new Set(bytes)];

for (const isBucket of [false, true])
  t.test(`a file ${isBucket ? "in a bucket" : "of a web server"} is opened and read by range`, async (t) => {
    const { origin, open } = await setUp(t, { isBucket });
    const source = open();
    const tree = await source.readTree();
    t.same(sent(origin), [["GET", "bytes=0-1048575", false]], "its index is in the first block");
    origin.resetCounts();
    const reader = readerOf(tree);
    const version = await reader.version([1]);
    t.ok(version);
    t.equal(reader.versionNow([1]), version);
    t.equal(await reader.version([2]), undefined, "absent");
    t.equal(await reader.read([2]), undefined);
    t.same(sent(origin), [], "the version was learned with the index");
    const found = await reader.read([1]);
    t.same(valuesOf(found?.bytes), [CHUNK_BYTES, 1]);
    t.equal(found?.version, version);
    t.same(sent(origin), [["GET", `bytes=${LAST}-${LAST + CHUNK_BYTES - 1}`, true]]);
    t.equal(await source.fingerprint(), tree.fingerprint);
    t.equal(await source.readTree(), tree);
  });

t.test("a store is asked for a file's version as often as it is configured", async (t) => {
  for (const [freshness, heads] of [
    ["always", 4],
    [{ seconds: 60 }, 0],
    ["immutable", 0],
  ] as const) {
    const { origin, open } = await setUp(t, { freshness });
    const reader = readerOf(await open().readTree());
    origin.resetCounts();
    for (const key of [0, 1, 0, 2]) await reader.version([key]);
    t.equal(origin.count({ method: "HEAD" }), heads);
    t.equal(reader.versionNow([0]) === undefined, freshness === "always");
  }
});

t.test("bytes of a file that was replaced are never taken for those of the one before", async (t) => {
  for (const validators of [undefined, { lastModified: new Date(0).toUTCString() }]) {
    for (const freshness of ["always", { seconds: 60 }, "immutable"] as const) {
      const { origin, open } = await setUp(t, { freshness });
      const source = open();
      if (validators !== undefined) origin.put(KEY, fileOf(1), validators);
      const before = await source.readTree();
      const reader = readerOf(before);
      t.same(valuesOf((await reader.read([0]))?.bytes), [CHUNK_BYTES, 1]);
      origin.put(KEY, fileOf(2), validators && { lastModified: new Date(5_000).toUTCString() });
      const changed = { code: "source-changed", details: { staleIdentity: before.identity } };
      if (freshness === "always") {
        await t.rejects(reader.version([0]), changed);
        await t.rejects(reader.read([2]), changed, "what is absent was so before");
      }
      await t.rejects(reader.read([0]), changed);
      t.not(await source.fingerprint(), before.fingerprint);
      const after = await source.readTree();
      t.same(valuesOf((await readerOf(after).read([1]))?.bytes), [CHUNK_BYTES, 2]);
      origin.remove(KEY);
      await t.rejects(readerOf(after).read([1]), { code: "source-unreadable" });
      await t.rejects(source.readTree(), { code: "source-unreadable" });
      await t.rejects(source.fingerprint(), { code: "source-unreadable" });
    }
  }
});

t.test("a file that is replaced while its index is read is read again", async (t) => {
  const { origin, open } = await setUp(t);
  origin.put(KEY, Buffer.concat([fileOf(1).subarray(0, 2 ** 21), Buffer.alloc(2 ** 20)]));
  let isReplaced = false;
  const inBlocks = {
    ...plainFormat,
    async readIndex(file: Parameters<typeof plainFormat.readIndex>[0]) {
      if (!isReplaced) origin.put(KEY, fileOf(3));
      isReplaced = true;
      await file.read(file.byteLength - 5, 5);
      return plainFormat.readIndex(file);
    },
  };
  const store = openByteStore(`${origin.url}/below/`, []);
  const key = KEY.slice("below/".length);
  const source = createFileSource({ location: "x", store, key, formats: [inBlocks], freshness: "always" });
  t.same(valuesOf((await readerOf(await source.readTree()).read([0]))?.bytes), [CHUNK_BYTES, 3]);
  await open().close();
});

t.test("faults of a store yield the right bytes or an error, never others and never absence", async (t) => {
  const faults: readonly Fault[] = [
    { status: 503 },
    { status: 403 },
    { status: 404 },
    { html: true },
    { cutAfter: 2_000 },
    { lengthError: -5 },
    { ignoreRange: true },
    { contentRange: "bytes 0-99999/4000000" },
    { gzip: true },
    { object: { bytes: fileOf(9), etag: '"another"' } },
    { object: { bytes: fileOf(9).subarray(0, 1_000), etag: '"short"' } },
    { etag: null, lastModified: null },
    { trickle: { bytes: 50_000, ms: 1 } },
  ];
  const files = await Promise.all(
    faults.map(async (fault) => {
      const { origin, open } = await setUp(t);
      const reader = readerOf(await open().readTree());
      return { fault, origin, read: async () => valuesOf((await reader.read([1]))?.bytes) };
    }),
  );
  // Some faults are tried again for as long as there is time. Good answers have all of it, on a busy machine, too.
  const limit = sourceTimeoutMs();
  setSourceTimeout(1_000);
  await Promise.all(
    files.map(async ({ fault, origin, read }) => {
      origin.setFault(() => fault);
      const outcome = await read().catch((error: ZpublishError) => error.code);
      const isRight = JSON.stringify(outcome) === JSON.stringify([CHUNK_BYTES, 1]);
      t.ok(
        isRight || outcome === "source-unreadable" || outcome === "source-changed",
        `${JSON.stringify(fault).slice(0, 80)}: ${outcome}`,
      );
      origin.setFault(() => undefined);
    }),
  );
  setSourceTimeout(limit);
  await Promise.all(
    files.map(async ({ read }) => t.same(await read(), [CHUNK_BYTES, 1], "again when it is over")),
  );
});

t.test("a file whose index is kept takes one short request to open", async (t) => {
  const cache = await makeDirectory(t);
  const { origin, open } = await setUp(t, { cache });
  const before = await open().readTree();
  const kept = createKeptIndexes(cache);
  const name = `${openByteStore(`${origin.url}/below/`, []).identity}\n${KEY.slice("below/".length)}`;
  while (!(await kept.has(name))) await new Promise((resolve) => setTimeout(resolve, 1));
  origin.resetCounts();
  const { reads } = plainFormat;
  const tree = await open().readTree();
  t.same(
    tree.groups.map(({ path }) => path),
    before.groups.map(({ path }) => path),
  );
  t.equal(plainFormat.reads, reads);
  t.same(sent(origin), [["GET", "bytes=0-4095", false]]);
});

t.test("an index is not kept if nothing but the file's length tells its version", async (t) => {
  const { origin } = await setUp(t);
  origin.put(KEY, fileOf(1), {});
  const unused = async () => void t.fail("expected no use of kept indexes");
  const source = createFileSource({
    ...{ location: "remote", store: openByteStore(`${origin.url}/`, []), key: KEY },
    ...{ formats: [plainFormat], freshness: "always" },
    kept: { has: async () => false, get: unused, set: unused, getItems: unused, setItems: unused },
  });
  t.match((await source.readTree()).warnings, [/neither ETag nor Last-Modified/]);
});

t.test("a file is only looked at, until it is opened", async (t) => {
  const { origin, open } = await setUp(t);
  const source = open();
  const { reads } = plainFormat;
  await source.check?.();
  t.same(sent(origin), [["GET", "bytes=0-4095", false]]);
  t.equal(plainFormat.reads, reads);
  origin.put(KEY, fileOf(2));
  t.same(valuesOf((await readerOf(await source.readTree()).read([0]))?.bytes), [CHUNK_BYTES, 2]);
});
