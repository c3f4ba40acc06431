import {
  appendFileSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import t, { type Test } from "tap";
import { watchDataFile } from "../../src/cache/data-file-watch.js";

const BYTES = Buffer.alloc(10_000, 7);
// The length of a page.
BYTES.writeUInt32LE(512, 48);

function watched(t: Test) {
  const path = join(t.testdir(), "data");
  writeFileSync(path, BYTES);
  const lock = join(t.testdirName, "lock");
  writeFileSync(lock, Buffer.alloc(64, 3));
  const watch = watchDataFile(path, lock);
  t.teardown(() => watch.close());
  return { path, watch };
}

t.test("what is read after a write, and a tick later, is believed until the next", async (t) => {
  const { path, watch } = watched(t);
  const opened = watch.unchangedSince;
  await sleep(30);
  t.equal(watch.look(performance.now()), undefined);
  t.equal(watch.unchangedSince, opened, "nobody wrote");
  t.ok(opened < performance.now());

  writeFileSync(path, BYTES.subarray(0, 1), { flag: "r+" });
  await sleep(2);
  const now = performance.now();
  t.equal(watch.look(now), undefined);
  t.ok(watch.unchangedSince > now, "the clock for files may still show the same time at the next write");

  appendFileSync(path, BYTES);
  await sleep(2);
  t.equal(watch.look(performance.now()), undefined, "a file may grow");
});

t.test("one turn of the event loop asks once, unless it takes long", async (t) => {
  const { path, watch } = watched(t);
  await sleep(2);
  const now = performance.now();
  watch.look(now);
  const { unchangedSince } = watch;
  writeFileSync(path, BYTES.subarray(0, 1), { flag: "r+" });
  watch.look(now + 0.9);
  t.equal(watch.unchangedSince, unchangedSince);
  watch.look(now + 1);
  t.ok(watch.unchangedSince > unchangedSince);

  const seen = watch.unchangedSince;
  await sleep(20);
  utimesSync(path, 2, 2);
  watch.look(now + 1.1);
  t.ok(watch.unchangedSince > seen, "another turn, and a time that was set");
});

t.test("a file that is cut short is filled up, and all who watch it notice", async (t) => {
  const { path, watch } = watched(t);
  const other = watchDataFile(path, path);
  t.teardown(() => other.close());
  truncateSync(path, 4_000);
  await sleep(2);
  t.equal(watch.look(performance.now()), "its file was cut short, from 10000 to 4000 bytes");
  t.match(other.look(performance.now()), "its file was cut short, from 10000 to 9999 bytes");
  t.match(watch.look(performance.now()), "its file was cut short", "said again");
  t.equal(readFileSync(path).length, 9_999);
});

t.test("a file that is gone or replaced is what it was for whoever has mapped it", async (t) => {
  const { path, watch } = watched(t);
  writeFileSync(`${path}-other`, "short");
  renameSync(`${path}-other`, path);
  await sleep(2);
  t.equal(watch.look(performance.now()), undefined);
  rmSync(path);
  await sleep(2);
  t.equal(watch.look(performance.now()), undefined);
  t.throws(() => watchDataFile(path, path), /ENOENT/);
});
