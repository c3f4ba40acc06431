import t from "tap";
import { CACHE_KEY_BYTES, cacheKeyOf } from "../../src/cache/chunk-cache.js";
import {
  isIntact,
  packStoredValue,
  payloadOf,
  putNumberOf,
  STORED_HEADER_BYTES,
} from "../../src/cache/stored-value.js";

const { bytes: key } = cacheKeyOf("revision\0encoding\0path\x000.0");
const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 251);

t.test("keys have one length and differ with their parts", async (t) => {
  t.equal(key.length, CACHE_KEY_BYTES);
  t.same(cacheKeyOf("a"), cacheKeyOf("a"));
  t.not(Buffer.compare(cacheKeyOf("a").bytes, cacheKeyOf("b").bytes), 0);
  t.equal(cacheKeyOf("é\0".repeat(10_000)).bytes.length, CACHE_KEY_BYTES);
});

t.test("a packed chunk is unpacked the same, also if it is empty", async (t) => {
  for (const payload of [bytes, new Uint8Array(0)]) {
    const stored = packStoredValue(key, payload);
    t.same(payloadOf(stored), payload);
    t.ok(isIntact(key, stored));
  }
});

t.test("a payload is a view as long as the chunk, also in byteLength", async (t) => {
  const inLarger = new Uint8Array(10_000);
  inLarger.set(packStoredValue(key, bytes), 64);
  const found = payloadOf(inLarger.subarray(64, 64 + STORED_HEADER_BYTES + bytes.length));
  t.equal(found.byteLength, bytes.length);
  t.equal(found.buffer, inLarger.buffer);
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

t.test("two puts of one chunk have different numbers", async (t) => {
  const stored = packStoredValue(key, bytes);
  const again = packStoredValue(key, bytes);
  t.not(putNumberOf(again), putNumberOf(stored));
});
