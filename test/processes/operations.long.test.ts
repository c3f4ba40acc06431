import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import t from "tap";
import { until } from "../support/servers/process-table.js";
import { newToken, serveOne, writeArray } from "../support/servers/program-stores.js";
import { PROGRAM, runScript } from "../support/servers/run-program.js";
import { startSmall } from "../support/servers/start-program.js";
import { makeDirectory } from "../support/write-store.js";

const skip = process.platform === "linux" ? false : "only Linux spreads connections";
t.setTimeout(600_000);

/** Writes a plugin that waits for a file, and the server with it. */
async function writeLateGate(directory: string): Promise<{ readonly module: string; readonly file: string }> {
  const [module, file] = [join(directory, "late.mjs"), join(directory, "gate-is-open")];
  await writeFile(
    module,
    `import { existsSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     export default { name: "late", version: "1", path: "late", async routes() {
       while (!existsSync(${JSON.stringify(file)})) await delay(10);
       return [];
     } };`,
  );
  return { module, file };
}

/** Returns the address of health and metrics in the log. */
function adminUrl(said: readonly Readonly<Record<string, unknown>>[]): string {
  return String(said[0]?.url);
}

t.test("metrics of all processes are answered by any, each with its number", { skip }, async (t) => {
  const program = await serveOne(t, {}, { processes: 3 });
  for (let count = 0; count < 30; count++) {
    await fetch(`${program.url}/datasets`, { headers: { connection: "close" } });
  }
  const text = await (await fetch(`${program.url}/metrics`)).text();
  let requests = 0;
  for (const process of ["1", "2", "3"]) {
    t.match(text, new RegExp(`^zpublish_ready\\{process="${process}"\\} `, "m"));
    t.match(text, new RegExp(`^zpublish_datasets\\{process="${process}"\\} 1$`, "m"));
    const line = new RegExp(
      `^zpublish_http_requests_total\\{route="/datasets",[^}]*process="${process}"\\} (\\d+)$`,
      "m",
    );
    requests += Number(line.exec(text)?.[1] ?? 0);
  }
  t.equal(requests, 30);
  t.match(text, /^zpublish_processes\{process="supervisor"\} 3$/m);
  t.match(text, /^zpublish_process_restarts_total\{process="supervisor"\} 0$/m);

  process.kill(program.pids()[1] as number, "SIGKILL");
  await program.run.says("the server process is replaced");
  await until(async () =>
    /^zpublish_process_restarts_total\{process="supervisor"\} 1$/m.test(
      await (await fetch(`${program.url}/metrics`)).text(),
    ),
  );
});

t.test("a slow process is part of the metrics, and one that hangs is left out", { skip }, async (t) => {
  const program = await serveOne(t, { adminPort: 0 }, { processes: 2 });
  const admin = adminUrl(program.said("are answered here"));
  const [, second] = program.pids() as [number, number];
  t.teardown(() => {
    try {
      process.kill(second, "SIGCONT");
    } catch {}
  });
  const ask = async () => {
    const signal = AbortSignal.timeout(8_000);
    const answer = await fetch(`${admin}/metrics`, { headers: { connection: "close" }, signal });
    const text = await answer.text();
    return ["1", "2"].filter((number) => text.includes(`zpublish_ready{process="${number}"}`)).join();
  };
  process.kill(second, "SIGSTOP");
  // Some of them come to the first process, and the others wait.
  const asked = Promise.all(Array.from({ length: 8 }, ask));
  await delay(3_000);
  process.kill(second, "SIGCONT");
  t.same(new Set(await asked), new Set(["1,2"]));

  process.kill(second, "SIGSTOP");
  // Connections that the stopped process is given are not answered.
  await until(async () => (await ask().catch(() => undefined)) === "1");
  t.pass();
});

for (const processes of process.platform === "linux" ? [1, 2] : [1]) {
  t.test(`health and metrics have their own port if configured, with ${processes} processes`, async (t) => {
    const program = await serveOne(t, { adminPort: 0 }, { processes });
    const said = program.said("are answered here");
    t.equal(said.length, processes);
    const admin = adminUrl(said);
    t.ok(
      said.every(({ url }) => url === admin),
      "the same for all processes",
    );
    for (const path of ["/healthz", "/readyz", "/metrics"]) {
      t.equal((await fetch(admin + path)).status, 200, path);
      const status = path === "/metrics" ? 404 : 200;
      t.equal((await fetch(program.url + path)).status, status, `${path} on the port of all else`);
    }
    t.equal((await fetch(`${admin}/datasets`)).status, 404);
  });

  t.test(`a server that starts is alive and not ready, with ${processes} processes`, async (t) => {
    const directory = await makeDirectory(t);
    await writeArray(join(directory, "one"), 1);
    const { module, file } = await writeLateGate(directory);
    const run = runScript(PROGRAM, [
      ...["serve", join(directory, "one"), "--no-cache", "--port", "0", "--plugin", module],
      ...["--admin-port", "0", "--processes", String(processes)],
    ]);
    t.teardown(async () => {
      run.child.kill("SIGKILL");
      await run.ended;
    });
    await run.says("are answered here");
    const line = run
      .stderr()
      .split("\n")
      .find((text) => text.includes("are answered here")) as string;
    const { url } = JSON.parse(line) as { url: string };
    t.equal((await fetch(`${url}/healthz`)).status, 200);
    const answer = await fetch(`${url}/readyz`);
    t.equal(answer.status, 503);
    t.match(await answer.json(), { ready: false, reason: "starting" });
    await writeFile(file, "");
    await run.says("zpublish ready on ");
    t.equal((await fetch(`${url}/readyz`)).status, 200);
  });

  t.test(`tokens are read again at HUP, with ${processes} processes`, async (t) => {
    const [first, second] = [newToken(), newToken()];
    const program = await startSmall(t, {
      processes,
      async config(directory) {
        await writeArray(join(directory, "one"), 1);
        await writeFile(join(directory, "tokens"), `${first}\n`);
        return { datasets: { one: "one" }, tokenFile: "tokens" };
      },
    });
    const statusesOf = async (url: string, headers: Readonly<Record<string, string>>) => {
      const answers = Array.from({ length: 8 }, () =>
        fetch(url, { headers: { connection: "close", ...headers } }),
      );
      return [...new Set((await Promise.all(answers)).map(({ status }) => status))];
    };
    const statusWith = (token: string) =>
      statusesOf(`${program.url}/datasets`, { authorization: `Bearer ${token}` });
    const linkOf = async (token: string) => {
      const headers = { authorization: `Bearer ${token}` };
      const answer = await fetch(`${program.url}/session`, { method: "POST", headers });
      return `${((await answer.json()) as { readonly prefix: string }).prefix}datasets`;
    };
    t.same([await statusWith(first), await statusWith(second)], [[200], [401]]);
    const link = await linkOf(first);
    t.same(await statusesOf(link, {}), [200], "a link of one process is valid for all");
    await writeFile(join(program.directory, "tokens"), `${first} one\n${second}\n`);
    t.equal(await program.reload(), "reloaded");
    t.same(await statusesOf(link, {}), [200], "and after a reload");
    await writeFile(join(program.directory, "tokens"), `${second}\n`);
    t.equal(await program.reload(), "reloaded");
    t.same([await statusWith(first), await statusWith(second)], [[401], [200]]);
    t.same(await statusesOf(link, {}), [401], "but not without its token");
    t.same(await statusesOf(await linkOf(second), {}), [200]);
    await writeFile(join(program.directory, "tokens"), "short\n");
    t.equal(await program.reload(), "refused");
    t.same(await statusWith(second), [200]);
    t.notMatch(program.run.stderr(), first);
    t.notMatch(program.run.stderr(), second);
  });
}
