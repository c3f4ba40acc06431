import { mkdirSync } from "node:fs";
import { join } from "node:path";
import * as lmdb from "lmdb";
import t, { type Test } from "tap";
import { CACHE_KEY_BYTES, type CacheKey, cacheKeyOf } from "../../src/cache/chunk-cache.js";
import { type LmdbStore, openLmdbStore } from "../../src/cache/lmdb-store.js";
import { isIntact, packStoredValue, payloadOf, STORED_HEADER_BYTES } from "../../src/cache/stored-value.js";
import type { Log } from "../../src/observe/log.js";
import { createTestLog } from "./cache-process.js";

const { bytes: key } = cacheKeyOf("revision\0encoding\0path\x000.0");
const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);

t.test("keys have one length and differ with their parts", async (t) => {
  t.equal(key.length, CACHE_KEY_BYTES);
  t.same(cacheKeyOf("a"), cacheKeyOf("a"));
  t.not(Buffer.compare(cacheKeyOf("a").bytes, cacheKeyOf("b").bytes), 0);
  t.equal(cacheKeyOf("é\0".repeat(10_000)).bytes.length, CACHE_KEY_BYTES);
});

t.test("another key, length or format, or a changed byte, is detected", async (t) => {
  const stored = packStoredValue(key, bytes);
  t.notOk(isIntact(cacheKeyOf("other").bytes, stored));
  t.notOk(isIntact(key, stored.subarray(0, stored.length - 1)));
  t.notOk(isIntact(key, stored.subarray(0, 10)));
  // The put number, which follows, does not depend on the content.
  for (let i = 0; i < 32; i++) {
    const changed = Uint8Array.from(stored);
    changed[i]! ^= 1;
    t.notOk(isIntact(key, changed), `header byte ${i}`);
  }
  const changed = Uint8Array.from(stored);
  changed[STORED_HEADER_BYTES + 500]! ^= 1;
  t.notOk(isIntact(key, changed));
});

const LARGE = 100_000;

function chunkOf(number: number, byteLength = LARGE): Uint8Array {
  return new Uint8Array(byteLength).fill(number % 251);
}

function openStore(t: Test, log?: Log): LmdbStore {
  const directory = join(t.testdir({}), "store");
  mkdirSync(directory, { recursive: true });
  const store = openLmdbStore(directory, { maxBytes: 2 ** 28, stamp: "test", ...(log && { log }) });
  t.teardown(() => store.close());
  return store;
}

const keys: CacheKey[] = [];
/** Returns the same object again: what was found of a value is remembered with it. */
function keyOf(number: number): CacheKey {
  keys[number] ??= cacheKeyOf(`mapped\0${number}`);
  return keys[number];
}

async function put(store: LmdbStore, number: number, payload = chunkOf(number)): Promise<void> {
  const key = keyOf(number).bytes;
  const stored = packStoredValue(key, payload);
  await store.write({ puts: [{ key, stored, score: 0 }], removes: [], scores: [], clock: undefined });
}

const remove = (store: LmdbStore, number: number) =>
  store.write({ puts: [], removes: [keyOf(number).bytes], scores: [], clock: undefined });

/** Copies what the store reads; undefined if there is nothing. */
function read(store: LmdbStore, number: number): Buffer | undefined {
  const key = keyOf(number);
  const stored = store.read(key);
  if (stored === undefined) return undefined;
  if (!isIntact(key.bytes, stored)) throw new Error(`${number} is not what was put`);
  return Buffer.from(payloadOf(stored));
}

/** Reads a value so often that it is read in place. */
function readOften(store: LmdbStore, number: number): void {
  for (let i = 0; i < 6; i++) read(store, number);
}

/** Lets the read transaction of this iteration of the event loop end. */
const endRead = () => new Promise((resolve) => setTimeout(resolve, 5));

t.test("an often read value is read in place until its page changes", async (t) => {
  const store = openStore(t);
  await put(store, 1);
  t.not(store.read(keyOf(1)), store.read(keyOf(1)), "copied at first");
  readOften(store, 1);
  const view = store.read(keyOf(1));
  t.equal(store.read(keyOf(1)), view, "the same view again");
  t.ok(read(store, 1)?.equals(chunkOf(1)));
  await endRead();
  t.equal(store.read(keyOf(1)), view, "also in another transaction");
  await put(store, 2);
  t.not(store.read(keyOf(1)), view, "another value was put into the page that leads to it");
  t.ok(read(store, 1)?.equals(chunkOf(1)));
});

interface Private {
  getSharedByBinary(...args: unknown[]): unknown;
}

t.test("if reading in place gives something else, values are copied, and one line says so", async (t) => {
  const { nativeAddon } = lmdb as unknown as { readonly nativeAddon: Private };
  const { getSharedByBinary } = nativeAddon;
  t.teardown(() => Object.assign(nativeAddon, { getSharedByBinary }));
  const elsewhere: Private["getSharedByBinary"][] = [
    () => Buffer.alloc(16 * 1024),
    () => {
      throw new TypeError("getSharedByBinary is not a function");
    },
  ];
  for (const [i, other] of elsewhere.entries()) {
    nativeAddon.getSharedByBinary = other;
    await t.test(`way ${i}`, async (t) => {
      const { log, lines } = createTestLog();
      const store = openStore(t, log);
      await put(store, 1);
      for (let reads = 0; reads < 8; reads++) t.ok(read(store, 1)?.equals(chunkOf(1)));
      t.not(store.read(keyOf(1)), store.read(keyOf(1)));
      await put(store, 1, chunkOf(2));
      t.ok(read(store, 1)?.equals(chunkOf(2)));
      t.equal(lines.length, 1);
      t.match(lines[0], /^chunk cache: chunks are copied, since they cannot be read in place: /);
    });
  }
});

t.test(
  "a value that was removed, or removed and put again elsewhere, is never read from its old place",
  async (t) => {
    const store = openStore(t);
    for (let number = 0; number < 20; number++) await put(store, number);
    for (let number = 0; number < 20; number++) readOften(store, number);
    for (let round = 0; round < 30; round++) {
      const number = round % 20;
      await remove(store, number);
      t.equal(read(store, number), undefined);
      await endRead();
      // Other values take some of its pages.
      for (let other = 0; other < 3; other++) {
        const payload = chunkOf(100 + round * 3 + other, LARGE - 30_000 * other);
        await put(store, 100 + round * 3 + other, payload);
        await endRead();
      }
      const again = chunkOf(number + round + 1, LARGE + round);
      await put(store, number, again);
      await endRead();
      for (let reads = 0; reads < 6; reads++) {
        if (!read(store, number)?.equals(again)) t.fail(`round ${round}: wrong bytes`);
      }
      await remove(store, 100 + round * 3);
      await endRead();
    }
    t.pass("all reads were right");
  },
);
