import { join } from "node:path";
import t from "tap";
import { until } from "../support/servers/process-table.js";
import { newToken, serveOne, writeArray } from "../support/servers/program-stores.js";
import { startSmall } from "../support/servers/start-program.js";
import { writeFiles } from "../support/write-store.js";

t.setTimeout(600_000);

const COUNTS = process.platform === "linux" ? [1, 3] : [1];
const GOOD = { datasets: { one: "one" } };

/** What is wrong with a configuration, and what the log says of it. */
const BAD: readonly (readonly [config: string | object, reason: RegExp])[] = [
  ["{", /config\.json: invalid JSON: expected a key in double quotes at line 1, column 2/],
  [{ ...GOOD, prot: 1 }, /unknown key "prot"/],
  [{ ...GOOD, maxRequests: 0 }, /maxRequests: expected an integer from 1/],
  [{ datasets: {} }, /nothing to serve/],
  [{ datasets: { one: "one", none: "none" } }, /dataset 'none': .*does not exist|dataset 'none': /],
  [{ datasets: { one: { location: "one", variables: { w: {} } } } }, /dataset 'one': .*w/],
  [{ ...GOOD, plugins: { bad: { module: "./missing.mjs" } } }, /missing\.mjs/],
  [{ ...GOOD, plugins: { bad: { module: "./bad.mjs" } } }, /routes of bad/],
  [{ ...GOOD, plugins: { twice: { module: "./twice.mjs" } } }, /\/datasets/],
  [{ ...GOOD, tokenFile: "no-tokens" }, /[Tt]oken file .*no-tokens/],
  [{ ...GOOD, tokenFile: "short-tokens" }, /[Tt]oken file .*line 2: expected a token of 16/],
];

for (const processes of COUNTS) {
  t.test(
    `a bad configuration is refused, and the old one goes on, with ${processes} processes`,
    async (t) => {
      const program = await startSmall(t, {
        processes,
        async config(directory) {
          await writeArray(join(directory, "one"), 1);
          await writeArray(join(directory, "two"), 2);
          await writeFiles(directory, {
            "short-tokens": `${newToken()}\nsecret\n`,
            "bad.mjs": `export default { name: "bad", version: "1", path: "bad",
            routes() { throw new Error("routes of bad"); } };`,
            "twice.mjs": `export default { name: "twice", version: "1", path: "twice",
            routes: () => [{ path: "/datasets", priority: "page",
              operation: { summary: "", contentType: "text/plain" }, handler: () => undefined }] };`,
          });
          return GOOD;
        },
      });
      const ids = async () => (await fetch(`${program.url}/datasets`)).json();
      const pids = program.pids();
      for (const [config, reason] of BAD) {
        await program.write(config);
        const before = program.said("cannot be used; the present one stays").length;
        t.equal(await program.reload(), "refused", reason.source);
        const lines = program.said("cannot be used; the present one stays").slice(before);
        t.ok(
          lines.some((line) => line.level === 50 && reason.test(String(line.reason))),
          JSON.stringify(lines.map((line) => line.reason)),
        );
        t.same(await ids(), ["one"]);
      }
      t.notMatch(program.run.stderr(), "secret");
      await program.write({ datasets: { two: "two", none: "none" }, skipInvalid: true });
      t.equal(await program.reload(), "reloaded");
      t.same(await ids(), ["two"]);
      t.equal(program.said("dataset skipped").length, 1, "said by one of all processes");
      t.same(program.pids(), pids, "no process was replaced");
    },
  );

  t.test(`a refused reload looks for new metadata all the same, with ${processes} processes`, async (t) => {
    const program = await serveOne(t, {}, { processes });
    await program.write("{");
    await writeFiles(join(program.directory, "one"), { ".zattrs": { seed: 7 } });
    t.equal(await program.reload(), "refused");
    await until(async () => {
      const answers = await Promise.all(
        Array.from({ length: 8 }, () => fetch(`${program.url}/datasets/one/zarr/.zattrs`)),
      );
      const texts = await Promise.all(answers.map((answer) => answer.text()));
      return texts.every((text) => text.includes("7"));
    });
    t.pass();
  });

  t.test(`what cannot change is named, and the rest does, with ${processes} processes`, async (t) => {
    const program = await serveOne(t, {}, { processes });
    // Those of the command line win over the file: there they are what they were.
    await program.write({
      ...GOOD,
      title: "changed",
      host: "127.0.0.2",
      cacheSize: "2GiB",
      chunkTimeout: 100,
      workers: 5,
    });
    t.equal(await program.reload(), "reloaded");
    const [line, ...more] = program.said("cannot change without a restart");
    t.same(more, []);
    t.same(line?.options, ["--host", "--cache-size", "--chunk-timeout"]);
    t.match(await (await fetch(`${program.url}/`)).text(), "changed");
  });
}

t.test("bounds of requests change", async (t) => {
  const program = await serveOne(t);
  const long = `${program.url}/${"x".repeat(400)}`;
  t.equal((await fetch(long)).status, 404);
  await program.write({ ...GOOD, maxUrlLength: 256 });
  t.equal(await program.reload(), "reloaded");
  t.equal((await fetch(long)).status, 414);
  await program.write({ ...GOOD, maxRequests: 77 });
  t.equal(await program.reload(), "reloaded");
  t.equal((await fetch(long)).status, 404);
  const metrics = await (await fetch(`${program.url}/metrics`)).text();
  t.match(metrics, /^zpublish_http_max_requests_in_flight\{priority="chunk"\} 77$/m);
});

t.test("the level of the log changes, too", async (t) => {
  const program = await serveOne(t);
  await program.write({ ...GOOD, logLevel: "warn" });
  program.run.child.kill("SIGHUP");
  await program.run.says("reloading the configuration");
  await program.write({ ...GOOD, logLevel: "warn", host: "127.0.0.3" });
  program.run.child.kill("SIGHUP");
  await program.run.says("cannot change without a restart");
  t.equal(program.said("reloading the configuration").length, 1, "of information nothing is said any more");
});
