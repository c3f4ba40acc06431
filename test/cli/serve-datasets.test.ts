import { join } from "node:path";
import t from "tap";
import { makeDemoData } from "../../scripts/demo-data.js";
import { PROGRAM, type Run, runProgram, runScript } from "../support/servers/run-program.js";

/** Starts the program on a free port and waits until it prints its URL. */
async function serve(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<{ run: Run; url: string }> {
  const run = runScript(PROGRAM, ["serve", "--port", "0", "--no-cache", ...args], { env });
  await run.says("zpublish ready on ");
  const url = /^zpublish ready on (http:\/\/\S+)\n$/.exec(run.stdout())?.[1];
  if (url === undefined) throw new Error(`expected one line with a URL, received ${run.stdout()}`);
  return { run, url };
}

async function stop(run: Run): Promise<number | NodeJS.Signals> {
  run.child.kill("SIGTERM");
  return run.ended;
}

t.test("locations on the command line are served until a signal comes", async (t) => {
  const { air, climate } = await makeDemoData(join(t.testdir(), "demo"));
  const { run, url } = await serve([air, `ocean=${climate}`, "--root-path", "prefix/"]);
  t.match(url, /^http:\/\/127\.0\.0\.1:\d+\/prefix$/);
  t.strictSame(await (await fetch(`${url}/datasets`)).json(), ["air", "ocean"]);
  t.equal((await fetch(`${url}/datasets/air/zarr/.zmetadata`)).status, 200);
  t.equal((await fetch(`${url}/datasets/air/zarr/air/0.0.0`)).status, 200);
  t.equal(await stop(run), 0);
});

t.test("variables and a file configure a server, too", async (t) => {
  const cwd = t.testdir();
  const { air } = await makeDemoData(join(cwd, "demo"));
  const { run, url } = await serve([], {
    ZPUBLISH_DATASETS: `x=${air}`,
    ZPUBLISH_NO_PLUGIN: "zarr",
    ZPUBLISH_HOST: "::1",
  });
  t.match(url, /^http:\/\/\[::1\]:\d+$/);
  t.strictSame(await (await fetch(`${url}/datasets`)).json(), ["x"]);
  t.equal((await fetch(`${url}/datasets/x/zarr/.zmetadata`)).status, 404, "zarr is switched off");
  t.equal(await stop(run), 0);
});

t.test("a dataset that cannot be opened is one line and exit code 1, or a warning", async (t) => {
  const cwd = t.testdir({ "empty.zarr": {} });
  const { air } = await makeDemoData(join(cwd, "demo"));
  const bad = join(cwd, "empty.zarr");
  const { code, stdout, stderr } = await runProgram(["serve", "--port", "0", "--no-cache", air, bad]);
  t.equal(code, 1);
  t.equal(stdout, "");
  t.match(stderr, /^zpublish: [^\n]*empty[^\n]*\n$/);
  const { run, url } = await serve([air, bad, "--skip-invalid"]);
  t.match(run.stderr(), /"level":40[^\n]*empty/);
  t.strictSame(await (await fetch(`${url}/datasets`)).json(), ["air"]);
  t.equal(await stop(run), 0);
});

t.test("a port that is taken is one line and exit code 1", async (t) => {
  const { air } = await makeDemoData(join(t.testdir(), "demo"));
  const { run, url } = await serve([air]);
  const { code, stdout, stderr } = await runProgram([
    "serve",
    "--port",
    new URL(url).port,
    "--no-cache",
    air,
  ]);
  t.equal(code, 1);
  t.equal(stdout, "");
  t.match(stderr, /^zpublish: [^\n]*in use[^\n]*\n$/);
  t.equal(await stop(run), 0);
});
