import t from "tap";
import { PROGRAM, runProgram, runScript } from "../support/servers/run-program.js";
import { ALL, countsOf, hitsAt, manyChunks, serve, setUp } from "../support/warm-store.js";
import { writeFiles } from "../support/write-store.js";

t.jobs = 2;

t.test("everything is warmed once, and a server answers all of it from the cache", async (t) => {
  const { warm, hits } = await setUp(t);
  const first = await warm();
  t.match(first, { code: 0, stderr: "" });
  t.match(first.stdout, /^20 of 20 chunks in /);
  t.strictSame(countsOf(first.stdout), { made: 19, cached: 0, absent: 1, stored: 0, failed: 0 });
  const again = await warm();
  t.equal(again.code, 0);
  t.strictSame(countsOf(again.stdout), { made: 0, cached: 19, absent: 1, stored: 0, failed: 0 });
  t.strictSame(await hits(), ALL);
});

t.test(
  "a part of it is chosen by dates of the calendar and values, with the coordinates, beside a server",
  async (t) => {
    const { warm, args } = await setUp(t);
    const { run, url } = await serve([...args, "--share", "1"].slice(0, -2));
    // Without a leap day, 2012-03-01 is the tenth day from the first, and the last of its chunk.
    const result = await warm(
      "--sel",
      "time=2012-03-01:2012-03-02",
      "--sel",
      "lat=20:35",
      "--isel",
      "lon=-2:",
    );
    t.match(result, { code: 0, stderr: "" });
    t.strictSame(countsOf(result.stdout), { made: 6, cached: 0, absent: 0, stored: 0, failed: 0 });
    const expected = ["lat/0", "lat/1", "time/0", "deep/mask/0.0", "t2m/0.1.1", "t2m/1.1.1"];
    t.strictSame(await hitsAt(url, ALL), expected);
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
  },
);

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

const MISTAKES: readonly (readonly [readonly string[], string])[] = [
  [["--sel", "time=3:5"], "dataset 'air', dimension 'time': expected dates such as 2013-01-31, received 3"],
  [
    ["--sel", "lon=3:5"],
    "dataset 'air', dimension 'lon': expected a coordinate of that name, received none; choose indices by --isel",
  ],
  [
    ["--isel", "depth=0:5", "--variable", "t2"],
    "--variable: expected a variable or group of the datasets, received t2\nzpublish: --isel: expected a dimension of the datasets, received depth",
  ],
  [["--dataset", "x"], "--dataset: expected one of air, received x"],
  [["--no-cache", "--share", "0.5"], "--no-cache: expected a cache to warm, received none"],
];

t.test("what is not there is one line and exit code 2", async (t) => {
  const { location, args } = await setUp(t);
  for (const [more, line] of MISTAKES)
    t.strictSame(await runProgram(["warm", `air=${location}`, ...args.slice(2), ...more]), {
      code: 2,
      stdout: "",
      stderr: `zpublish: ${line}\n`,
    });
  t.match(await runProgram(["warm"]), { code: 2, stderr: /^zpublish: nothing to warm: / });
});
