import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import t from "tap";
import { makeDemoData } from "../../scripts/demo/demo-data.js";
import { flagOf, OPTION_GROUPS, OPTION_KEYS, OTHER_OPTIONS } from "../../src/config/options.js";
import { packageVersion } from "../../src/observe/versions.js";
import { serveFolder, until } from "../support/folder-of-days.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { PROGRAM, runHere, runProgram, runScript } from "../support/servers/run-program.js";
import { startProgram } from "../support/servers/start-program.js";
import { writeNetcdfPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const { air, climate } = await makeDemoData(join(await makeDirectory(t), "demo"));

t.jobs = 2;

const INVENTED = fileURLToPath(new URL("../support/servers/serve-invented.js", import.meta.url));

/** What an invented server says and the signal that it gets then, how it ends, and what its standard error has. */
const LIVES: readonly (readonly [how: string, steps: string, code: number, stderr?: RegExp])[] = [
  ["well", "ready: SIGTERM", 0, /^closed$/m],
  ["well", "ready: SIGINT", 0, /^closed$/m],
  ["well", "ready: SIGHUP, refreshed: SIGHUP, refreshed: SIGTERM", 0],
  ["slow to close", "ready: SIGTERM, closing for long: SIGTERM", 143],
  ["failing to close", "ready: SIGTERM", 1, /closing failed: the disk is gone/],
  ["failing to refresh", "ready: SIGHUP, refresh failed: SIGTERM", 0],
  ["with a mistake of ours", "", 1, /"stack":"TypeError: x is not a function/],
  ["with a mistake of ours", "", 1, /^zpublish: x is not a function$/m],
  ["with an error later", "", 1, /internal error: out of the blue/],
  ["with a rejection later", "", 1, /internal error: out of the blue/],
];

for (const [how, steps, code, stderr = /^/] of LIVES) {
  t.test(`a server ${how} (${steps}) ends with ${code}`, async (t) => {
    const run = runScript(INVENTED, [how]);
    for (const [, says = "", signal] of steps.matchAll(/([a-z ]+): (\w+)/g)) {
      await run.says(says.trim());
      run.child.kill(signal as NodeJS.Signals);
    }
    t.equal(await run.ended, code);
    t.match(run.stderr(), stderr);
    if (how === "well") t.equal(run.stdout(), "zpublish ready on http://invented\n", "one line");
  });
}

t.test("while datasets are opened SIGHUP does nothing and SIGTERM exits with 0", async (t) => {
  const run = runScript(INVENTED, ["opening for ever"]);
  await run.says("opening");
  run.child.kill("SIGHUP");
  await new Promise((resolve) => setTimeout(resolve, 100));
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);
  t.equal(run.stdout(), "");
});

/** Without the lines about progress that a slow machine logs. */
const QUIET = ["--no-cache", "--log-level", "error"];

t.test("locations on the command line are served until a signal comes", async (t) => {
  const { run, url, stop } = await startProgram(t, {
    args: ["--no-cache", air, `ocean=${climate}`, "--root-path", "prefix/"],
  });
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/prefix$/);
  t.equal(
    run.stdout(),
    `zpublish ready on ${url}

Open ${url}/ in a browser, or read from a program:

air
  page    ${url}/datasets/air/
  Zarr    ${url}/datasets/air/zarr
  Python  xr.open_zarr("${url}/datasets/air/zarr")

ocean
  page    ${url}/datasets/ocean/
  Zarr    ${url}/datasets/ocean/zarr/profiles
  Python  xr.open_zarr("${url}/datasets/ocean/zarr/profiles")
`,
  );
  t.strictSame(await (await fetch(`${url}/datasets`)).json(), ["air", "ocean"]);
  t.equal((await fetch(`${url}/datasets/air/zarr/.zmetadata`)).status, 200);
  t.equal((await fetch(`${url}/datasets/air/zarr/air/0.0.0`)).status, 200);
  await stop();
});

t.test("a location alone is served, and the first ten of more datasets are shown", async (t) => {
  const directory = await makeDirectory(t);
  const names = Array.from({ length: 12 }, (_, index) => `a b ${String(index).padStart(2, "0")}.nc`);
  for (const name of names) await writeNetcdfPart(directory, name, { first: 0, count: 1 });
  await writeFiles(directory, { "tokens.txt": "0123456789abcdef" });
  for (const processes of ["1", "2"]) {
    const options = ["--port", "0", "--no-cache", "--token-file", join(directory, "tokens.txt")];
    const run = runScript(PROGRAM, [directory, ...options, "--processes", processes]);
    await run.says("and 2 more: ");
    const [, url = ""] = /ready on (\S+)/.exec(run.stdout()) ?? [];
    const shown = [...run.stdout().matchAll(/^ {2}page {4}(\S+)$/gm)].map(([, page]) => page);
    const pages = names.map((name) => `${url}/datasets/${name.replaceAll(" ", "%20")}/`);
    t.strictSame(shown, pages.slice(0, 10));
    const store = `"${pages[0]}zarr", storage_options={"headers": {"Authorization": "Bearer TOKEN"}}`;
    t.ok(run.stdout().includes(`\n  Python  xr.open_zarr(${store})\n`), run.stdout());
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
  }
});

t.test("a folder without datasets is a warning that names it", async (t) => {
  const directory = await makeDirectory(t);
  const { said, run, url, stop } = await startProgram(t, { args: ["--no-cache", directory] });
  t.match(said("no datasets were found"), [{ level: 40, place: directory }]);
  t.equal(run.stdout(), `zpublish ready on ${url}\n`);
  await stop();
});

t.test("references that lead elsewhere refuse their dataset, which the log names", async (t) => {
  const directory = await makeDirectory(t);
  const refs = { ".zgroup": { zarr_format: 2 }, "v/0": ["s3://elsewhere/data/x.nc", 0, 1] };
  await writeFiles(directory, { "refs.json": { version: 1, refs } });
  const message = `refs.json: its references lead to "s3://elsewhere/data/", which the configuration does not allow: expected "references": {"allow": ["s3://elsewhere/data/"]}`;
  for (const args of [["inspect"], ["serve", "--port", "0", ...QUIET]]) {
    const { code, stdout, stderr } = await runProgram([...args, join(directory, "refs.json")]);
    t.match({ code, stdout }, { code: 1, stdout: "" });
    t.ok(stderr.endsWith(`${message}\n`), stderr);
  }
});

t.test("variables and a file configure a server, too", async (t) => {
  const { url, stop } = await startProgram(t, {
    args: ["--no-cache"],
    env: { ZPUBLISH_DATASETS: `x=${air}`, ZPUBLISH_NO_PLUGIN: "zarr", ZPUBLISH_HOST: "::1" },
  });
  t.match(url, /^http:\/\/\[::1\]:\d+$/);
  t.strictSame(await (await fetch(`${url}/datasets`)).json(), ["x"]);
  t.equal((await fetch(`${url}/datasets/x/zarr/.zmetadata`)).status, 404, "zarr is switched off");
  await stop();
});

t.test("a dataset that cannot be opened is one line and exit code 1, or a warning", async (t) => {
  const cwd = t.testdir({ "empty.zarr": {} });
  const bad = join(cwd, "empty.zarr");
  const { code, stdout, stderr } = await runProgram(["serve", "--port", "0", ...QUIET, air, bad]);
  t.equal(code, 1);
  t.equal(stdout, "");
  t.match(stderr, /^zpublish: [^\n]*empty[^\n]*\n$/);
  const others = await runProgram(["serve", "--port", "0", ...QUIET, "/none/x.nc", air, bad, "/none/*.nc"]);
  t.match(
    others.stderr,
    /^zpublish: collection \/none: [^\n]*\nzpublish: dataset 'x': [^\n]*\nzpublish: dataset 'empty': [^\n]*\n$/,
    "each has a line",
  );
  const { run, url, stop } = await startProgram(t, { args: ["--no-cache", air, bad, "--skip-invalid"] });
  t.match(run.stderr(), /"level":40[^\n]*empty/);
  t.strictSame(await (await fetch(`${url}/datasets`)).json(), ["air"]);
  await stop();
});

t.test("a port that is taken is one line and exit code 1", async (t) => {
  const { url, stop } = await startProgram(t, { args: ["--no-cache", air] });
  const { code, stdout, stderr } = await runProgram(["serve", "--port", new URL(url).port, ...QUIET, air]);
  t.equal(code, 1);
  t.equal(stdout, "");
  t.match(stderr, /^zpublish: [^\n]*in use[^\n]*\n$/);
  await stop();
});

t.test("a prefix of a bucket, and a pattern of its objects, are served as folders are", async (t) => {
  const origin = await startS3Origin(t);
  const directory = await makeDirectory(t);
  for (const first of [0, 1]) {
    const name = `run-${first}.nc`;
    await writeNetcdfPart(directory, name, { first, count: 1 });
    await origin.put("bucket", `data/${name}`, await readFile(join(directory, name)));
  }
  const env = {
    AWS_ENDPOINT_URL_S3: origin.endpoint,
    AWS_ACCESS_KEY_ID: "key",
    AWS_SECRET_ACCESS_KEY: "secret",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const args = ["runs=s3://bucket/data", "s3://bucket/data/*-1.nc", "--no-cache"];
  const { url, stop } = await startProgram(t, { args, env });
  t.same(await (await fetch(`${url}/datasets`)).json(), ["run-1.nc", "runs~run-0.nc", "runs~run-1.nc"]);
  t.equal((await fetch(`${url}/datasets/runs~run-0.nc/zarr/v/0.0`)).status, 200);
  await stop();

  const joined = await runProgram(["inspect", "s3://bucket/data/run-*.nc", "--concat", "time"], { env });
  t.match(joined, { code: 0, stderr: "" });
  t.match(joined.stdout, "2 files one behind the other along time, 2 steps\n");
  const listed = await runProgram(["inspect", "--json", "s3://bucket/data"], { env });
  t.match(JSON.parse(listed.stdout), {
    datasets: [
      { id: "run-0.nc", location: "s3://bucket/data/run-0.nc" },
      { id: "run-1.nc", location: "s3://bucket/data/run-1.nc" },
    ],
  });
});

t.test("HUP takes collections and joined files along, or leaves all as it is", async (t) => {
  const directory = await makeDirectory(t);
  for (const first of [0, 1]) await writeNetcdfPart(directory, `data/${first}.nc`, { first, count: 1 });
  const write = (config: object) => writeFiles(directory, { "config.json": config });
  await write({ collections: { days: "data" } });
  const { url, run } = await serveFolder(t, ["--config", join(directory, "config.json"), "--no-cache"]);
  const idsOf = async () => (await (await fetch(`${url}/datasets`)).json()) as readonly string[];
  t.same(await idsOf(), ["days~0.nc", "days~1.nc"]);
  const chunk = await fetch(`${url}/datasets/days~1.nc/zarr/v/0.0`);

  await write({
    datasets: { all: { location: "data/*.nc", concat: "time" } },
    collections: { days: "data", others: { root: "data", exclude: ["0.*"] } },
  });
  run.child.kill("SIGHUP");
  const ids = await until(idsOf, ({ length }) => length !== 2);
  t.same(ids, ["all", "days~0.nc", "days~1.nc", "others~1.nc"]);
  t.match(run.stderr(), /"datasets":1,"collections":2,"msg":"configuration reloaded"/);
  const again = await fetch(`${url}/datasets/days~1.nc/zarr/v/0.0`);
  t.equal(again.headers.get("etag"), chunk.headers.get("etag"));

  await write({ collections: { days: "nowhere" } });
  run.child.kill("SIGHUP");
  await run.says("the new configuration cannot be used");
  t.match(run.stderr(), /nowhere/);
  t.same(await idsOf(), ids);
});

t.test("--version and --help answer on standard output", async (t) => {
  t.strictSame(await runProgram(["--version"]), { code: 0, stdout: `${packageVersion}\n`, stderr: "" });
  const help = await runHere(["--help"]);
  t.equal(help.code, 0);
  t.match(help.stdout, /serve \[options\]/);
  t.match(help.stdout, /inspect \[options\]/);
  const serve = await runHere(["serve", "--help"]);
  t.equal(serve.code, 0);
  for (const key of OPTION_KEYS) t.ok(serve.stdout.includes(flagOf(key).slice(2)), `help says ${key}`);
  t.notMatch(serve.stdout, "--no-skip-invalid");
  const [heading = "", ...more] = Object.keys(OPTION_GROUPS);
  const [, first = ""] = serve.stdout.split(/^Used most:$|^Datasets and pages:$/m);
  t.match(heading, "Used most");
  t.equal(first.match(/^ {2}--/gm)?.length, 10);
  for (const group of more) t.match(serve.stdout, `\n\n${group}\n  --`);
  t.strictSame(
    Object.values(OPTION_GROUPS).flat().sort(),
    [...OPTION_KEYS, ...Object.keys(OTHER_OPTIONS)].filter((key) => key !== "datasets").sort(),
    "each option is in one group",
  );
});

t.test(
  "without arguments the program explains itself on standard error in ten lines, exit code 2",
  async (t) => {
    const { code, stdout, stderr } = await runProgram([]);
    t.equal(code, 2);
    t.equal(stdout, "");
    t.ok(stderr.trimEnd().split("\n").length <= 10, stderr);
    for (const [, command] of stderr.matchAll(/^ {2}zpublish ([a-z]+) /gm))
      t.match(await runHere([command as string, "--help"]), { code: 0, stdout: `zpublish ${command}` });
  },
);

t.test("zpublish demo makes its data in the user's cache, serves it, and says what to open", async (t) => {
  const home = await makeDirectory(t);
  const run = runScript(PROGRAM, ["demo", "--port", "0", "--no-cache"], { env: { XDG_CACHE_HOME: home } });
  await run.says("Ctrl-C");
  const [, url = ""] = /^Open (\S+)\/ in a browser/m.exec(run.stdout()) ?? [];
  t.match(await (await fetch(`${url}/`)).text(), "air");
  for (const [, page = ""] of run.stdout().matchAll(/^ {2}(http\S+) {2,}/gm))
    t.equal((await fetch(page)).status, 200, page);
  t.strictSame((await readdir(join(home, "zpublish/demo"))).sort(), [
    "air.zarr",
    "climate.zarr",
    "version.txt",
  ]);
  run.child.kill("SIGINT");
  t.equal(await run.ended, 0);
});

const MISTAKES: readonly (readonly [readonly string[], string])[] = [
  [["publish"], "unknown command 'publish'"],
  [["--prot", "1"], "unknown option '--prot' (Did you mean --port?)"],
  [["a", "x/a.zarr"], "unknown command 'a'"],
  [["x/a.zarr", "a"], 'command line (a): dataset id "a" is used already by command line (x/a.zarr)'],
  [["serve", "--prot", "1"], "unknown option '--prot' (Did you mean --port?)"],
  [["serve", "--port", "x", "a"], '--port: expected an integer from 0 to 65535, received "x"'],
  [["serve", "--port"], "option '--port <port>' argument missing"],
  [["serve"], "nothing to serve: expected [ID=]LOCATION, or datasets or collections in the file of --config"],
  [["serve", "a", "x/a.zarr"], 'command line (x/a.zarr): dataset id "a" is used already by command line (a)'],
  [["inspect"], "missing required argument 'location'"],
  [["inspect", "a", "b"], "too many arguments for 'inspect'. Expected 1 argument but got 2."],
  [["inspect", "a", "--jsn"], "unknown option '--jsn' (Did you mean --json?)"],
];

t.test("a mistake is one line and exit code 2", async (t) => {
  for (const [args, line] of MISTAKES) {
    const expected = { code: 2, stdout: "", stderr: `zpublish: ${line}\n` };
    t.strictSame(await runHere(args), expected, args.join(" "));
  }
  const [args, line] = MISTAKES[0]!;
  t.strictSame(
    await runProgram(args),
    { code: 2, stdout: "", stderr: `zpublish: ${line}\n` },
    "as a process",
  );
});

t.test("each mistake of a file and of the environment is a line of its own", async (t) => {
  const cwd = t.testdir({ "config.json": '{"port": -1, "hots": "x", "datasets": {"a": {"location": 1}}}' });
  const { code, stderr } = await runProgram(["serve", "--config", "config.json"], { cwd });
  t.equal(code, 2);
  t.equal(
    stderr,
    `zpublish: config.json: unknown key "hots"; did you mean host?
zpublish: config.json: datasets.a.location: expected a location, received 1
zpublish: config.json: port: expected an integer from 0 to 65535, received -1
`,
  );
  const ofVariable = await runProgram(["serve", "a"], { env: { ZPUBLISH_PORT: "no", ZPUBLISH_HOTS: "x" } });
  t.equal(ofVariable.code, 2);
  t.match(
    ofVariable.stderr,
    /^zpublish: ZPUBLISH_HOTS: unknown variable; did you mean ZPUBLISH_HOST\?\nzpublish: ZPUBLISH_PORT: expected an integer from 0 to 65535, received "no"\n$/,
  );
});

t.test(
  "without WebAssembly SIMD the program says so in one line and ends with exit code 1",
  { skip: process.arch === "x64" ? false : "only V8 for x64 can be told to do without" },
  async (t) => {
    const store = t.testdir({ ".zgroup": '{"zarr_format":2}' });
    for (const processes of ["1", "2"]) {
      const args = [PROGRAM, "serve", store, "--port", "0", "--no-cache", "--processes", processes];
      const run = runScript("--no-enable-sse4-1", args);
      t.equal(await run.ended, 1);
      t.match(run.stderr(), /^zpublish: expected WebAssembly with SIMD, [^\n]*\n$/);
    }
  },
);
