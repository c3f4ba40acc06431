import { join } from "node:path";
import t from "tap";
import { type InstanceShare, instanceShare } from "../../src/warm/instance-share.js";
import { PROGRAM, runProgram, runScript } from "../support/servers/run-program.js";
import { startProgram } from "../support/servers/start-program.js";
import { ALL, countsOf, hitsAt, manyChunks, setUp } from "../support/warm-store.js";
import { writeZarrPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

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
    const { run, url } = await startProgram(t, { args: [...args, "--overviews"] });
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
    const { run, url } = await startProgram(t, { args: [...args, "--single"] });
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
  const { run, url } = await startProgram(t, { args: [`air=${location}`, ...args.slice(4), ...cache] });
  t.strictSame(await hitsAt(url, ALL), ALL);
  run.child.kill("SIGTERM");
  await run.ended;
});

t.test("it ends when the cache is full", async (t) => {
  const { count, args } = await manyChunks(t);
  const { code, stdout, stderr } = await runProgram([...args, "--cache-size", "1MiB", "--log-level", "warn"]);
  t.equal(code, 1);
  t.match(stderr, /^zpublish: the cache is full, \d+ chunks are left\n$/);
  t.ok(countsOf(stdout).made < count / 2);
});

t.test("chunks that fail are named, and the others are made", async (t) => {
  const { location, warm, hits } = await setUp(t);
  await writeFiles(location, { "t2m/2.0.1": "no deflated bytes" });
  const { code, stdout, stderr } = await warm();
  t.equal(code, 1);
  t.strictSame(countsOf(stdout), { made: 18, cached: 0, absent: 1, stored: 0, failed: 1 });
  t.match(stderr, /^zpublish: \/datasets\/air\/zarr\/t2m\/2\.0\.1: .+\n$/);
  const intact = ALL.filter((key) => key !== "t2m/2.0.1");
  t.strictSame(await hits(intact), intact);
});

t.test("TERM ends it soon, what was made stays, and the same command continues", async (t) => {
  const { count, args } = await manyChunks(t);
  const run = runScript(PROGRAM, [...args, "--log-level", "debug"]);
  await run.says('"chunkCoords":[100]');
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 143);
  const { made } = countsOf(run.stdout());
  t.ok(made > 0 && made < count, `${made} made`);
  const left = `${count - made} chunks are left: the same command continues`;
  t.match(run.stderr(), `zpublish: ended by a signal, ${left}\n`);
  const then = runScript(PROGRAM, [...args, "--isel", `x=0:${made + 100}`]);
  t.equal(await then.ended, 0);
  t.strictSame(countsOf(then.stdout()), { made: 100, cached: made, absent: 0, stored: 0, failed: 0 });
});

/** Arrays of a part: `area`, `time`, `v` with two chunks, and `y`. */
const CHUNKS = ["area/0.0", "time/0", "v/0.0", "v/1.0", "y/0"];

t.test("joined files and datasets of a collection are warmed, and served from the cache", async (t) => {
  const directory = await makeDirectory(t);
  const root = join(directory, "data");
  for (const [index, name] of ["a.zarr", "2024/b.zarr"].entries())
    await writeZarrPart(root, name, { first: 3 * index, count: 3 });
  await writeFiles(root, { "broken.zarr/.zgroup": "{" });
  const encoding = { compressor: { id: "gzip", level: 1 } };
  await writeFiles(directory, {
    "config.json": {
      datasets: { all: { location: "data/**/{a,b}.zarr", concat: "time", encoding } },
      collections: { each: { root: "data", encoding } },
    },
  });
  const args = ["--config", join(directory, "config.json"), "--cache-dir", join(directory, "cache")];
  const warm = (...more: readonly string[]) => runProgram(["warm", ...args, ...more]);

  const one = await warm("--dataset", "each~2024~b.zarr");
  t.match(one, { code: 0 });
  t.match(countsOf(one.stdout), { made: CHUNKS.length, cached: 0, failed: 0 });
  const all = await warm();
  t.equal(all.code, 0, all.stderr);
  // Of six steps in chunks of two, three chunks are made of both files or of parts of one.
  t.match(countsOf(all.stdout), { made: CHUNKS.length + 6, cached: CHUNKS.length, failed: 0 });
  t.match(all.stderr, /each~broken\.zarr/, "one that cannot be opened is left out, and named");

  const { run, url } = await startProgram(t, { args: args });
  for (const id of ["each~a.zarr", "each~2024~b.zarr"])
    t.same(await hitsAt(url, CHUNKS, `datasets/${id}/zarr`), CHUNKS);
  const ofAll = ["area/0.0", "time/0", "v/0.0", "v/1.0", "v/2.0", "y/0"];
  t.same(await hitsAt(url, ofAll, "datasets/all/zarr"), ofAll);
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);

  const wrong = await warm("--dataset", "each~absent");
  t.equal(wrong.code, 2);
  t.match(wrong.stderr, /--dataset: expected one of all, each~2024~b\.zarr, .*, received each~absent\n/);
  const tooMany = await warm("--max-open-datasets", "2");
  t.equal(tooMany.code, 2);
  t.match(tooMany.stderr, /expected ids of at most 2 datasets of collections .*, received 3\n/);
});
