import t from "tap";
import { ZpublishError } from "../../../src/errors.js";
import type { ObjectVersion } from "../../../src/stores/byte-store.js";
import { createFreshObjects, type Freshness } from "../../../src/stores/object-versions.js";
import { createMemoryStore, type MemoryStore } from "../../support/memory-store.js";

const MIB = 2 ** 20;
const FOR_LONG: Freshness = { seconds: 3_600 };
/** Every answer is out of date at once. */
const NEVER: Freshness = { seconds: 0 };

function textOf(found: { readonly bytes: Uint8Array } | undefined): string | undefined {
  return found && Buffer.from(found.bytes).toString();
}

function openStore(
  freshness: Freshness,
  objects: Readonly<Record<string, string | Uint8Array>> = { a: "one" },
) {
  const store = createMemoryStore(objects);
  return { store, objects: createFreshObjects(store, freshness) };
}

/** Makes the store's every object part of one, as in an archive. */
function inOne(store: MemoryStore, versionOf: () => ObjectVersion): MemoryStore {
  return {
    ...store,
    objectOf: (key) => (key === "none" ? undefined : "archive"),
    read: async (key, options) => {
      const { version, ...others } = options ?? {};
      if (version !== undefined && version.token !== versionOf().token)
        throw new ZpublishError("source-changed", "changed");
      const found = await store.read(key, others);
      return found && { ...found, version: versionOf() };
    },
    readIfChanged: async (_key, known) => {
      store.takeRequests();
      return known.token === versionOf().token ? "unchanged" : undefined;
    },
  };
}

t.test("a cold object costs one request, whoever looks and reads", async (t) => {
  const { store, objects } = openStore(FOR_LONG);
  t.equal(objects.known("a"), undefined);
  const [one, two] = await Promise.all([objects.look("a"), objects.look("a")]);
  t.same(one, two);
  t.equal(one.byteLength, 3);
  t.equal(textOf(await objects.read("a")), "one");
  t.same(store.takeRequests(), ["read a"]);
  t.equal(textOf(await objects.read("a")), "one", "the bytes are not kept for ever");
  t.same(store.takeRequests(), ["read a"]);
});

t.test("a warm object is asked for once per period, conditionally", async (t) => {
  const { store, objects } = openStore({ seconds: 0.2 });
  await objects.read("a");
  store.takeRequests();
  const until = performance.now() + 500;
  let looks = 0;
  for (; performance.now() < until; looks++) {
    const many = await Promise.all([
      objects.look("a"),
      objects.look("a", "none"),
      objects.look("a", { last: 1 }),
    ]);
    if (many.some(({ version }) => version === undefined)) t.fail("absent");
    await new Promise(setImmediate);
  }
  const requests = store.takeRequests();
  t.ok(looks > 100 && requests.length <= 3, `${requests.length} requests for ${looks} looks`);
  t.ok(
    requests.every((request) => /^(?:readIfChanged|stat) a/.test(request)),
    requests.join(),
  );
});

t.test("an object comes with the answer that it is unchanged, unless its bytes are at hand", async (t) => {
  for (const isHeld of [false, true]) {
    const { store, objects } = openStore("always");
    const { version } = await objects.look("a");
    await objects.read("a");
    store.takeRequests();
    const asked: string[] = [];
    const options = { isHeld: (token: string) => asked.push(token) > 0 && isHeld };
    t.same((await objects.look("a", undefined, options)).version, version);
    t.equal(textOf(await objects.read("a")), "one");
    t.same(asked, [version?.token]);
    t.same(store.takeRequests(), isHeld ? ["readIfChanged a", "read a"] : ["read a"]);
  }
});

t.test("always asks before each answer, immutable never again", async (t) => {
  for (const [freshness, expected] of [
    ["always", 3],
    ["immutable", 0],
  ] as const) {
    const { store, objects } = openStore(freshness);
    await objects.read("a");
    store.takeRequests();
    for (let i = 0; i < 3; i++) await objects.look("a");
    t.equal(store.takeRequests().length, expected, freshness);
  }
});

t.test("a failure is neither absence nor remembered", async (t) => {
  const { store, objects } = openStore(FOR_LONG);
  const error = new ZpublishError("source-unreadable", "503");
  store.failWith(error);
  await t.rejects(objects.look("a"), error);
  await t.rejects(objects.read("a"), error);
  t.equal(objects.known("a"), undefined);
  store.failWith(undefined);
  t.equal(textOf(await objects.read("a")), "one");
  const { store: other, objects: stale } = openStore(NEVER);
  await stale.look("a");
  other.failWith(error);
  await t.rejects(stale.look("a"), error, "an earlier answer that is out of date is not given");
});

t.test("an object that changes between look and read is read in its new version", async (t) => {
  const { store, objects } = openStore(FOR_LONG, { a: "one", shard: "0123456789" });
  const { version } = await objects.look("a", "none");
  store.put("a", "other");
  const found = await objects.read("a");
  t.equal(textOf(found), "other");
  t.not(found?.version.token, version?.token);
  t.equal(objects.known("a")?.version?.token, found?.version.token);
  await objects.look("shard", { last: 2 });
  store.put("shard", "abcdefghij");
  t.equal(textOf(await objects.read("shard", { range: { offset: 0, byteLength: 2 } })), "ab");
  t.equal(
    textOf(await objects.read("shard", { range: { last: 2 } })),
    "ij",
    "kept bytes were another version's",
  );
});

t.test("an object that goes between look and read is absent", async (t) => {
  const { store, objects } = openStore(FOR_LONG);
  await objects.look("a", "none");
  store.remove("a");
  t.equal(await objects.read("a"), undefined);
  t.equal(objects.known("a")?.version, undefined);
});

t.test("an object that changes with every request is given up, and never mixed", async (t) => {
  const { store, objects } = openStore(FOR_LONG);
  let count = 0;
  store.onRequest = () => store.put("a", String(count++));
  await objects.look("a", "none");
  const found = await objects.read("a").catch((error: ZpublishError) => error.code);
  t.ok(found === "source-changed" || typeof found === "object", String(found));
});

t.test("the version of an object answers for all keys in it", async (t) => {
  const memory = createMemoryStore({ a: "in a", b: "in b" });
  let token = "1";
  let asked = 0;
  const store = inOne(memory, () => ({ token }));
  const objects = createFreshObjects(
    {
      ...store,
      readIfChanged(key, known) {
        asked++;
        return store.readIfChanged(key, known);
      },
    },
    { seconds: 0.05 },
  );
  for (const key of ["a", "b"]) t.equal(textOf(await objects.read(key)), `in ${key}`);
  t.equal(objects.known("none")?.version, undefined);
  await new Promise((resolve) => setTimeout(resolve, 60));
  const looks = await Promise.all(["a", "b", "a", "b"].map((key) => objects.look(key)));
  t.same(new Set(looks.map(({ version }) => version?.token)), new Set(["1"]));
  t.equal(asked, 1, "one conditional request for all");
  token = "2";
  t.equal((await objects.read("a"))?.version.token, "2");
});

t.test("bytes that wait for their read are bounded, of all stores together", async (t) => {
  const names = Array.from({ length: 12 }, (_, i) => `chunk${i}`);
  const contents = Object.fromEntries(names.map((name) => [name, new Uint8Array(4 * MIB)]));
  const [one, other] = [openStore(FOR_LONG, contents), openStore(FOR_LONG, contents)];
  for (const name of names) await one.objects.look(name);
  for (const name of names) await other.objects.look(name);
  for (const { store } of [one, other]) store.takeRequests();
  for (const { objects } of [one, other]) for (const name of names) await objects.read(name);
  const repeated = one.store.takeRequests().length + other.store.takeRequests().length;
  t.equal(repeated, 24 - 32 / 4, "only 32 MiB were kept");
});

t.test("an object that is too long to be kept is looked at without its bytes", async (t) => {
  const { store, objects } = openStore(FOR_LONG, { large: new Uint8Array(33 * MIB), a: "one" });
  const { byteLength } = await objects.look("large");
  t.equal(byteLength, 33 * MIB);
  t.same(store.takeRequests(), ["read large", "stat large"]);
  t.equal((await objects.read("large"))?.bytes.length, 33 * MIB);
  t.same(store.takeRequests(), ["read large"]);
  await t.rejects(objects.read("large", { maxByteLength: MIB }), { code: "corrupt-chunk" });
});
