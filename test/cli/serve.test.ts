import { fileURLToPath } from "node:url";
import t from "tap";
import { runScript } from "../support/servers/run-program.js";

const INVENTED = fileURLToPath(new URL("../support/servers/serve-invented.js", import.meta.url));

t.jobs = 2;

for (const signal of ["SIGTERM", "SIGINT"] as const) {
  t.test(`${signal} closes the server and exits with 0`, async (t) => {
    const run = runScript(INVENTED, ["well"]);
    await run.says("ready");
    t.equal(run.stdout(), "zpublish ready on http://invented\n", "one line on standard output");
    run.child.kill(signal);
    t.equal(await run.ended, 0);
    t.match(run.stderr(), /^closed$/m);
  });
}

t.test("a second signal ends the program at once", async (t) => {
  const run = runScript(INVENTED, ["slow to close"]);
  await run.says("ready");
  run.child.kill("SIGTERM");
  await run.says("closing for long");
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 143);
});

t.test("closing that fails is logged and exits with 1", async (t) => {
  const run = runScript(INVENTED, ["failing to close"]);
  await run.says("ready");
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 1);
  t.match(run.stderr(), /closing failed: the disk is gone/);
});

t.test("SIGHUP refreshes, every time", async (t) => {
  const run = runScript(INVENTED, ["well"]);
  await run.says("ready");
  run.child.kill("SIGHUP");
  await run.says("refreshed\n");
  run.child.kill("SIGHUP");
  await run.says("refreshed\n");
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);
});

t.test("a refresh that fails is logged, and the server keeps running", async (t) => {
  const run = runScript(INVENTED, ["failing to refresh"]);
  await run.says("ready");
  run.child.kill("SIGHUP");
  await run.says("refresh failed");
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);
});

t.test("while datasets are opened SIGHUP does nothing and SIGTERM exits with 0", async (t) => {
  const run = runScript(INVENTED, ["opening for ever"]);
  await run.says("opening");
  run.child.kill("SIGHUP");
  await new Promise((resolve) => setTimeout(resolve, 100));
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);
  t.equal(run.stdout(), "");
});

t.test("a port that is taken is one clear line and exit code 1", async (t) => {
  const run = runScript(INVENTED, ["with a port that is taken"]);
  t.equal(await run.ended, 1);
  t.equal(run.stderr(), "zpublish: Cannot listen on 127.0.0.1:9000: the port is in use by another program\n");
});

t.test("a dataset that cannot be opened is one clear line and exit code 1", async (t) => {
  const run = runScript(INVENTED, ["with a dataset that is none"]);
  t.equal(await run.ended, 1);
  t.equal(run.stderr(), "zpublish: dataset 'a': expected a Zarr store, found nothing\n");
});

t.test("a bug is logged with its stack and exits with 1", async (t) => {
  const run = runScript(INVENTED, ["with a mistake of ours"]);
  t.equal(await run.ended, 1);
  t.match(run.stderr(), /"stack":"TypeError: x is not a function/);
  t.match(run.stderr(), /^zpublish: x is not a function$/m);
});

for (const how of ["with an error later", "with a rejection later"]) {
  t.test(`a server ${how} logs it and exits with 1`, async (t) => {
    const run = runScript(INVENTED, [how]);
    t.equal(await run.ended, 1);
    t.match(run.stderr(), /internal error: out of the blue/);
  });
}

t.test("an id that needs escaping in URLs is a warning", async (t) => {
  const run = runScript(INVENTED, ["well", "50%=x"]);
  await run.says(`"dataset":"50%","msg":"clients must percent-encode this dataset's id in URLs"`);
  run.child.kill("SIGTERM");
  t.equal(await run.ended, 0);
});
