import t from "tap";
import { createReadMemory } from "../../src/chunk/read-memory.js";

t.test("memory that is given back is taken again, for about the same size", async (t) => {
  const memory = createReadMemory(2 ** 20);
  const first = memory.take(100_000);
  t.equal(first.byteLength, 100_000);
  t.ok(memory.isTaken(first));
  const second = memory.take(100_000);
  t.not(first.buffer, second.buffer);
  memory.giveBack(first);
  t.notOk(memory.isTaken(first));
  t.not(memory.take(1_000).buffer, first.buffer, "not for much less");
  t.not(memory.take(200_000).buffer, first.buffer, "not for more");
  t.equal(memory.take(99_000).buffer, first.buffer);
});

t.test("memory is not given out twice, however often it is given back", async (t) => {
  const memory = createReadMemory(2 ** 20);
  const first = memory.take(1_000);
  memory.giveBack(first);
  memory.giveBack(first);
  const again = memory.take(1_000);
  t.equal(again.buffer, first.buffer);
  memory.giveBack(first);
  t.not(memory.take(1_000).buffer, again.buffer);
  memory.giveBack(new Uint8Array(1_000));
});

t.test("no more is kept than the bound, and what is asked for now stays", async (t) => {
  const memory = createReadMemory(2 ** 20);
  const taken = Array.from({ length: 40 }, () => memory.take(65_000));
  for (const bytes of taken) memory.giveBack(bytes);
  const buffers = new Set(taken.map(({ buffer }) => buffer));
  let reused = 0;
  for (let i = 0; i < 40; i++) if (buffers.has(memory.take(65_000).buffer)) reused++;
  t.equal(reused, 16);
  const large = memory.take(2 ** 21);
  memory.giveBack(large);
  t.not(memory.take(2 ** 21).buffer, large.buffer, "larger than all that is kept");
});
