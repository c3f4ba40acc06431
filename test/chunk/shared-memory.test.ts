import t from "tap";
import { createSharedMemory } from "../../src/chunk/memory.js";

const KIB = 1024;
const isShared = (bytes: Uint8Array) => (bytes.buffer as ArrayBufferLike) instanceof SharedArrayBuffer;

t.test("memory is used again after a task, and never exceeds its bound", async (t) => {
  const memory = createSharedMemory(64 * KIB);
  const one = memory.lease();
  const first = one.allocate(20 * KIB);
  const second = one.allocate(32 * KIB);
  t.same([first.length, isShared(first), isShared(second)], [20 * KIB, true, true]);
  t.equal(memory.byteLength, 64 * KIB);
  const other = memory.lease();
  t.notOk(isShared(other.allocate(10)), "no shared memory is left");
  one.end(true);
  t.equal(other.allocate(30 * KIB).buffer, second.buffer);
  t.equal(other.place(first).buffer, first.buffer, "bytes of another task are copied");
  t.equal(memory.byteLength, 64 * KIB);
});

t.test("bytes are copied unless they are in the memory of their task", async (t) => {
  const lease = createSharedMemory(64 * KIB).lease();
  const own = lease.allocate(3);
  t.equal(lease.place(own), own);
  const copied = lease.place(Uint8Array.of(1, 2, 3));
  t.same([...copied, isShared(copied)], [1, 2, 3, true]);
});

t.test("memory that a worker may still read is not used again", async (t) => {
  const memory = createSharedMemory(64 * KIB);
  const lease = memory.lease();
  const bytes = lease.allocate(40 * KIB);
  lease.end(false);
  t.equal(memory.byteLength, 0);
  t.not(memory.lease().allocate(40 * KIB).buffer, bytes.buffer);
  t.notOk(isShared(lease.allocate(10)), "a read that comes late gets memory of its own");
  t.equal(memory.byteLength, 64 * KIB);
});
