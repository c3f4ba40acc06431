import t from "tap";
import { createReadMemory } from "../../src/chunk/memory.js";

t.test("released memory is acquired again, for about the same size", async (t) => {
  const memory = createReadMemory(2 ** 20);
  const first = memory.acquire(100_000);
  t.equal(first.byteLength, 100_000);
  t.ok(memory.isAcquired(first));
  const second = memory.acquire(100_000);
  t.not(first.buffer, second.buffer);
  memory.release(first);
  t.notOk(memory.isAcquired(first));
  t.not(memory.acquire(1_000).buffer, first.buffer, "not for much less");
  t.not(memory.acquire(200_000).buffer, first.buffer, "not for more");
  t.equal(memory.acquire(99_000).buffer, first.buffer);
});

t.test("memory is not acquired twice, however often it is released", async (t) => {
  const memory = createReadMemory(2 ** 20);
  const first = memory.acquire(1_000);
  memory.release(first);
  memory.release(first);
  const again = memory.acquire(1_000);
  t.equal(again.buffer, first.buffer);
  memory.release(first);
  t.not(memory.acquire(1_000).buffer, again.buffer);
  memory.release(new Uint8Array(1_000));
});

t.test("free memory is bounded, and the sizes requested now stay", async (t) => {
  const memory = createReadMemory(2 ** 20);
  const acquired = Array.from({ length: 40 }, () => memory.acquire(65_000));
  for (const bytes of acquired) memory.release(bytes);
  const buffers = new Set(acquired.map(({ buffer }) => buffer));
  let reused = 0;
  for (let i = 0; i < 40; i++) if (buffers.has(memory.acquire(65_000).buffer)) reused++;
  t.equal(reused, 16);
  const large = memory.acquire(2 ** 21);
  memory.release(large);
  t.not(memory.acquire(2 ** 21).buffer, large.buffer, "larger than the bound");
});
