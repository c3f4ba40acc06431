import t from "tap";
import { createWarmReporter, describeResult } from "../../src/cli/progress.js";
import { createWarmCommand, warmRequestOf } from "../../src/cli/warm.js";
import { argumentsOf } from "../../src/config/serve-command.js";
import type { WarmCounts } from "../../src/warm/warm-chunks.js";
import { runHere, runProgram } from "../support/servers/run-program.js";
import { startProgram } from "../support/servers/start-program.js";
import { ALL, countsOf, hitsAt, setUp } from "../support/warm-store.js";

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
    const { run, url } = await startProgram(t, { args: [...args, "--share", "1"].slice(0, -2) });
    // Without a leap day, 2012-03-01 is the tenth day from the first, and the last of its chunk.
    const result = await warm(
      ..."--sel time=2012-03-01:2012-03-02 --sel lat=20:35 --isel lon=-2:".split(" "),
    );
    t.match(result, { code: 0, stderr: "" });
    t.strictSame(countsOf(result.stdout), { made: 6, cached: 0, absent: 0, stored: 0, failed: 0 });
    const expected = ["lat/0", "lat/1", "time/0", "deep/mask/0.0", "t2m/0.1.1", "t2m/1.1.1"];
    t.strictSame(await hitsAt(url, ALL), expected);
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
  },
);

const MISTAKES: readonly (readonly [readonly string[], string])[] = [
  [
    ["--sel", "time=3:5"],
    "dataset 'air': Axis 'time': expected a date of the calendar noleap as ISO 8601 has it (2012-02-20T00:00:00 to 2012-03-31T00:00:00), received '3'",
  ],
  [
    ["--sel", "lon=3:5"],
    "dataset 'air', dimension 'lon': expected a coordinate of that name, received none; choose indices by --isel",
  ],
  [
    ["--isel", "depth=0:5", "--variable", "t2"],
    "--variable: expected a variable or group of the datasets, received t2\nzpublish: --isel: expected a dimension of the datasets, received depth",
  ],
  [
    ["--sel", "time=1999:2000", "--sel", "lat=70", "--isel", "lon=9:"],
    [
      "--isel: expected a range that has indices of 'lon', received 9:; dataset 'air' has 0 to 5",
      "--sel: expected a range that has values of 'time', received 1999:2000; dataset 'air' has 2012-02-20T00:00:00 to 2012-03-31T00:00:00",
      "--sel: expected a range that has values of 'lat', received 70; dataset 'air' has 60 to 15",
    ].join("\nzpublish: "),
  ],
  [["--dataset", "x"], "--dataset: expected one of air, received x"],
  [["--no-cache", "--share", "0.5"], "--no-cache: expected a cache to warm, received none"],
];

t.test("what is not there is one line and exit code 2", async (t) => {
  const { location, args } = await setUp(t);
  for (const [more, line] of MISTAKES)
    t.strictSame(await runHere(["warm", `air=${location}`, ...args.slice(2), ...more]), {
      code: 2,
      stdout: "",
      stderr: `zpublish: ${line}\n`,
    });
  t.match(await runProgram(["warm"]), { code: 2, stderr: /^zpublish: nothing to warm: / });
});

function parse(...argv: readonly string[]) {
  const command = createWarmCommand().exitOverride();
  return command.parse(argv, { from: "user" });
}

t.test("without options everything is asked for, with all workers", async (t) => {
  t.strictSame(warmRequestOf(parse("a.zarr")), {
    ...{ datasets: [], encodings: [], variables: [], ranges: [], stored: false, share: 1, isOwn: undefined },
  });
});

t.test("options may be repeated, and those of a server are taken, too", async (t) => {
  const command = parse(
    ...["x=a.zarr", "--port", "9001", "--cache-dir", "c", "--dataset", "x", "--dataset", "y", "--stored"],
    ..."--variable t2m --isel time=0:2 --sel lat=30:50 --sel time=2013 --share 0.25".split(" "),
  );
  t.match(warmRequestOf(command), {
    datasets: ["x", "y"],
    variables: ["t2m"],
    ranges: [
      { by: "index", dim: "time", begin: 0, end: 2 },
      { by: "value", dim: "lat", low: "30", high: "50" },
      { by: "value", dim: "time", low: "2013", high: "2013" },
    ],
    stored: true,
    share: 0.25,
  });
  t.strictSame(argumentsOf(command), {
    ...{ locations: ["x=a.zarr"], config: undefined, concat: undefined, stack: undefined, plugins: [] },
    values: { port: "9001", cacheDir: "c" },
  });
});

t.test("an instance is one of the balancer's servers", async (t) => {
  const { isOwn } = warmRequestOf(parse("--instances", "3", "--instance", "2"));
  t.type(isOwn?.("/datasets/air/zarr/t2m/0.0"), "boolean");
});

t.test("each mistake is a line of its own", async (t) => {
  const command = parse(
    ...["--isel", "lat", "--sel", "lat=south:", "--share", "2", "--instance", "2", "--isel", "lat=1:2"],
  );
  t.throws(() => warmRequestOf(command), {
    code: "invalid-config",
    message: [
      '--isel: expected DIM=BEGIN:END such as time=0:100, received "lat"',
      '--sel: expected DIM=LOW:HIGH of numbers or dates such as lat=30:50, received "lat=south:"',
      '--share: expected a number above 0 and up to 1, received "2"',
      "--instance: expected --instances with it, received none",
    ].join("\n"),
  });
  t.throws(() => warmRequestOf(parse("--instances", "3", "--instance", "4")), {
    message: "--instance: expected 1 to 3, received 4",
  });
});

t.test("the help shows ranges and the options of a server that matter", async (t) => {
  const help: string[] = [];
  createWarmCommand()
    .configureOutput({ writeOut: (text) => void help.push(text) })
    .outputHelp();
  t.match(help.join(""), /--isel <dim=range>.*--cache-size.*Examples:/s);
  t.notMatch(help.join(""), "--port");
});

function setUpProgress(isTTY: boolean, columns?: number) {
  const written: string[] = [];
  const logged: unknown[] = [];
  let time = 0;
  const reporter = createWarmReporter(
    { isTTY, ...(columns && { columns }), write: (text) => written.push(text) },
    { info: ((fields: unknown) => logged.push(fields)) as never },
    () => time,
  );
  const update = (at: number, made: number, more: Partial<WarmCounts> = {}): void => {
    time = at;
    const none = { cached: 0, absent: 0, stored: 0, failed: 0 };
    reporter.update({ total: 2_000, made, madeBytes: made * 2 ** 20, ...none, ...more });
  };
  return { written, logged, reporter, update };
}

t.test("a terminal gets a line with chunks, speed and time left, which is removed at the end", async (t) => {
  const { written, logged, reporter, update } = setUpProgress(true);
  update(100, 1);
  t.strictSame(written, [], "not at once");
  update(1_000, 10);
  update(1_050, 11);
  update(10_000, 1_000, { failed: 2 });
  update(10_001, 2_000);
  reporter.clear();
  reporter.clear();
  t.strictSame(written, [
    "\x1b[K0 %  10 of 2,000 chunks  10 MiB/s  3 min left\r",
    "\x1b[K50 %  1,002 of 2,000 chunks  2 failed  100 MiB/s  10 s left\r",
    "\x1b[K100 %  2,000 of 2,000 chunks  200.0 MiB/s  0 s left\r",
    "\x1b[K",
  ]);
  t.strictSame(logged, []);
});

t.test("elsewhere the log gets a line every few seconds", async (t) => {
  const { written, logged, reporter, update } = setUpProgress(false);
  for (let at = 0; at <= 11_000; at += 500) update(at, at / 10);
  reporter.clear();
  t.strictSame(written, []);
  t.equal(logged.length, 2);
  t.match(logged[0], { total: 2_000, done: 500, made: 500, bytesPerSecond: 100 * 2 ** 20, secondsLeft: 15 });
});

t.test("the result says what became of the chunks", async (t) => {
  const counts = {
    total: 1_500,
    made: 1_000,
    cached: 400,
    absent: 50,
    stored: 7,
    failed: 3,
    madeBytes: 2 ** 30,
  };
  t.equal(
    describeResult({ ...counts, failures: [], stopped: "cache-full" }, 64, 12),
    `1,460 of 1,500 chunks in 1 min:
  made              1,000 (1 GiB, 16 MiB/s)
  already there     400
  absent            50
  served as stored  7 (not cached)
  failed            3
  removed           12 older chunks, to make room
`,
  );
});
