import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { type InstanceShare, instanceShare } from "../../src/warm/instance-share.js";
import { PROGRAM, runProgram } from "../support/servers/run-program.js";
import { ALL, countsOf, hitsAt, manyChunks, serve, setUp } from "../support/warm-store.js";

t.jobs = 2;

t.test("a variable is chosen by its path or group, and its coordinates with it", async (t) => {
  const { warm, hits } = await setUp(t);
  t.equal((await warm("--variable", "/deep/", "--share", "0.5")).code, 0);
  const more = await warm("--variable", "t2m", "--isel", "time=0", "--dataset", "air");
  t.strictSame(countsOf(more.stdout), { made: 4, cached: 3, absent: 0, stored: 0, failed: 0 });
  t.strictSame(await hits(), [
    ...["lat/0", "lat/1", "time/0", "deep/mask/0.0"],
    ...["t2m/0.0.0", "t2m/0.0.1", "t2m/0.1.0", "t2m/0.1.1"],
  ]);
});

t.test(
  "coarser levels are warmed with what they are made of, in the same part of the dimensions",
  async (t) => {
    const { args, warm } = await setUp(t);
    const { run, url } = await serve([...args, "--overviews"]);
    const part = await warm("--overviews", "--variable", "t2m", "--isel", "time=10:20", "--sel", "lat=60");
    t.equal(part.code, 0);
    const levels = ["1/lat/0", "1/time/0", "1/t2m/0.0.0", "1/t2m/1.0.0"];
    t.strictSame(await hitsAt(url, levels, "datasets/air/overviews/zarr"), [
      "1/lat/0",
      "1/time/0",
      "1/t2m/1.0.0",
    ]);
    const below = ["t2m/0.0.0", "t2m/1.0.0", "t2m/1.0.1"];
    t.strictSame(await hitsAt(url, below), below.slice(1));
    t.equal((await warm("--overviews")).code, 0);
    const all = [...levels, "1/t2m/2.0.0", "1/t2m/3.0.0", "1/deep/mask/0.0", "0/t2m/0.0.0"];
    t.strictSame(await hitsAt(url, all, "datasets/air/overviews/zarr"), all);
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
  },
);

t.test("three instances share the chunks, and none is left", async (t) => {
  const { directory, warm } = await setUp(t);
  const made = await Promise.all(
    ["1", "2", "3"].map(async (instance) => {
      const options = ["--instances", "3", "--instance", instance];
      const { code, stdout } = await warm("--cache-dir", join(directory, instance), ...options);
      t.equal(code, 0);
      return countsOf(stdout).made;
    }),
  );
  t.equal(
    made.reduce((sum, count) => sum + count),
    19,
  );
});

t.test(
  "an instance with one dataset alone warms what a balancer sends there by paths at the root",
  async (t) => {
    const { args, warm } = await setUp(t);
    const { code } = await warm("--single", "--instances", "3", "--instance", "2");
    t.equal(code, 0);
    const { run, url } = await serve([...args, "--single"]);
    const isOwn = instanceShare("3", "2") as InstanceShare;
    t.strictSame(
      await hitsAt(url, ALL, "zarr"),
      ALL.filter((key) => isOwn(`/zarr/${key}`)),
    );
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
  },
);

t.test("chunks that are served as stored are cached only if that is asked for", async (t) => {
  const { location, args, directory } = await setUp(t);
  const cache = ["--cache-dir", join(directory, "stored"), "--workers", "1"];
  const without = await runProgram(["warm", `air=${location}`, ...cache]);
  t.equal(without.code, 0);
  t.strictSame(countsOf(without.stdout), { made: 0, cached: 0, absent: 1, stored: 19, failed: 0 });
  const { stdout } = await runProgram(["warm", `air=${location}`, ...cache, "--stored"]);
  t.strictSame(countsOf(stdout), { made: 19, cached: 0, absent: 1, stored: 0, failed: 0 });
  const { run, url } = await serve([`air=${location}`, ...args.slice(4), ...cache]);
  t.strictSame(await hitsAt(url, ALL), ALL);
  run.child.kill("SIGTERM");
  await run.ended;
});

t.test("more than the cache holds is said before, and it ends when that is full", async (t) => {
  const { count, args } = await manyChunks(t);
  const { code, stdout, stderr } = await runProgram([...args, "--cache-size", "1MiB", "--log-level", "warn"]);
  t.equal(code, 1);
  t.match(
    stderr,
    /^zpublish: what is to be warmed takes about [\d.]+ MiB, and the cache holds 1 MiB: it ends when that is full\.[^\n]*\nzpublish: the cache is full, \d+ chunks are left\n$/,
  );
  t.ok(countsOf(stdout).made < count / 2);
});

t.test(
  "a terminal shows a bar, and Ctrl-C ends it",
  { skip: process.platform !== "linux" || !existsSync("/usr/bin/script") },
  async (t) => {
    const { args } = await manyChunks(t);
    const command = [process.execPath, PROGRAM, ...args].map((each) => `'${each}'`).join(" ");
    const child = spawn("/usr/bin/script", ["-qec", command, "/dev/null"]);
    let output = "";
    const ended = once(child, "close");
    for await (const text of child.stdout.setEncoding("utf8")) {
      const wasShown = output.includes(" left\r");
      output += text;
      if (!wasShown && output.includes(" left\r")) child.stdin.write("\x03");
    }
    t.equal((await ended)[0], 130);
    t.match(output, /[█░]+ \d+ % {2}[\d,]+ of 20,000 chunks {2}[\d.]+ [KM]?i?B\/s {2}.+ left\r/);
    t.match(output, /ended by a signal, \d+ chunks are left/);
  },
);
