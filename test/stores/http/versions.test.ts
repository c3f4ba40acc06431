import t, { type Test } from "tap";
import type { ByteStore, ObjectBytes, ObjectVersion } from "../../../src/stores/byte-store.js";
import { setSourceTimeout } from "../../../src/stores/file-calls.js";
import { openByteStore } from "../../../src/stores/open-byte-store.js";
import { type FaultyOrigin, startFaultyOrigin } from "../../origins/faulty-origin.js";
import type { OriginObject } from "../../origins/serve-object.js";

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
    t.same(
      [found[0]?.byteLength, ...found.slice(1).map((each) => (each as ObjectBytes).objectByteLength)],
      [...[10, 10, 10, 10, 10]],
    );
  }
});

t.test("an object that changed is never read under its earlier version", async (t) => {
  for (const [kind, [first, second]] of Object.entries(KINDS)) {
    const [origin, store] = await open(t, first);
    const version = await versionOf(store);
    origin.put("a", Buffer.from(OTHER), second);
    for (const range of [
      undefined,
      { offset: 2, byteLength: 3 },
      { last: 3 },
      { offset: 2, byteLength: 0 },
    ]) {
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
  origin.setFault(() => ({ etag: '"2"' }));
  await t.rejects(store.read("a", { version, range: { last: 1 } }), { code: "source-changed" });
  origin.setFault(() => ({ etag: null }));
  await t.rejects(store.read("a", { version, range: { last: 1 } }), { code: "source-changed" });
  origin.setFault(() => ({ etag: '"2"', chunked: true }));
  await t.rejects(store.read("a", { version }), { code: "source-changed" });
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
    const found = await store.read("a", { allocate: (byteLength) => memory.subarray(0, byteLength) });
    t.equal(found?.bytes.buffer, memory.buffer);
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
