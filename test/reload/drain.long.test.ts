import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { childrenOf, isAlive, until } from "../support/servers/process-table.js";
import { chunkOf, writeArray, writeGate } from "../support/servers/program-stores.js";
import { openConnection, rawRequest, requestText } from "../support/servers/raw-request.js";
import { PROGRAM, runScript } from "../support/servers/run-program.js";
import { startSmall } from "../support/servers/start-program.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

t.setTimeout(600_000);

const COUNTS = process.platform === "linux" ? [1, 3] : [1];

for (const processes of COUNTS) {
  /** With a gate behind which requests wait, and a dataset whose chunks are made in workers. */
  const startGated = async (test: Parameters<typeof startSmall>[0], args: readonly string[]) => {
    let gateFile = "";
    const program = await startSmall(test, {
      processes,
      args,
      async config(directory) {
        const { module, file } = await writeGate(directory);
        gateFile = file;
        await writeArray(join(directory, "one"), 1);
        return {
          datasets: {
            one: { location: "one", encoding: { compressor: { id: "zstd", level: 1 } } },
            plain: "one",
          },
          plugins: { gate: { module } },
        };
      },
    });
    return { program, openGate: () => writeFile(gateFile, "") };
  };

  t.test(`TERM: not ready, served on, then finished, with ${processes} processes`, async (t) => {
    const { program, openGate } = await startGated(t, ["--drain-delay", "8", "--drain-timeout", "60"]);
    const { port, run } = program;
    const pids = program.pids();
    t.equal((await rawRequest(port, "/readyz")).status, 200);
    t.equal((await rawRequest(port, "/healthz")).status, 200);
    const waiting = await openConnection(port);
    waiting.send(requestText("/gate"));

    run.child.kill("SIGTERM");
    await until(async () => (await rawRequest(port, "/readyz")).status === 503);
    t.equal((await rawRequest(port, "/healthz")).status, 200, "alive");
    const page = await rawRequest(port, "/datasets/plain/info");
    t.equal(page.status, 200, "pages are served on");
    t.not(page.headers.connection, "close");
    t.same((await rawRequest(port, "/datasets/plain/zarr/v/0")).body, chunkOf(1, 0));
    t.equal((await rawRequest(port, "/datasets/one/zarr/v/1")).status, 200, "chunks are made");
    run.child.kill("SIGHUP");

    await until(() =>
      openConnection(port).then(
        (connection) => {
          connection.socket.destroy();
          return false;
        },
        () => true,
      ),
    );
    t.ok(isAlive(program.pid), "what is in flight goes on");
    await openGate();
    const answer = await waiting.answer();
    t.strictSame([answer.status, answer.body.toString()], [200, "open"]);
    t.equal(await run.ended, 0);
    t.notOk(pids.some(isAlive));
    t.notMatch(run.stderr(), "reloading", "HUP came too late");
    t.notMatch(run.stderr(), /"level":[456]0/, "nothing to warn about");
  });

  t.test(`what is not finished in time is cut off, and counted, with ${processes} processes`, async (t) => {
    const { program } = await startGated(t, ["--drain-timeout", "0.5"]);
    const connections = await Promise.all([1, 2, 3].map(() => openConnection(program.port)));
    for (const { send } of connections) send(requestText("/gate"));
    // They have arrived when a later one of the same clients' machine has been answered by every process.
    for (let index = 0; index < 20; index++) await rawRequest(program.port, "/datasets");
    program.run.child.kill("SIGTERM");
    t.equal(await program.run.ended, 0);
    const lines = program.said("cut off");
    t.equal(
      lines.reduce((sum, line) => sum + Number(line.requests), 0),
      3,
    );
    t.ok(lines.every(({ level }) => level === 40));
  });

  t.test(`a second signal ends it now, with ${processes} processes`, async (t) => {
    const { program } = await startGated(t, ["--drain-delay", "3600"]);
    const pids = program.pids();
    program.run.child.kill("SIGTERM");
    await program.run.says("closing");
    program.run.child.kill("SIGINT");
    t.equal(await program.run.ended, 130);
    await until(() => !pids.some(isAlive));
  });

  t.test(`TERM while it starts ends it with 0, with ${processes} processes`, async (t) => {
    const directory = await makeDirectory(t);
    await writeArray(join(directory, "one"), 1);
    await writeFiles(directory, {
      "never.mjs": `export default { name: "never", version: "1", path: "never",
        routes() { process.stderr.write("waiting for ever\\n"); return new Promise(() => {}); } };`,
    });
    const run = runScript(PROGRAM, [
      ...["serve", join(directory, "one"), "--plugin", join(directory, "never.mjs"), "--port", "0"],
      ...["--processes", String(processes), "--cache-dir", join(directory, "cache")],
    ]);
    t.teardown(() => void run.child.kill("SIGKILL"));
    await run.says("waiting for ever");
    const pids = processes === 1 ? [] : childrenOf(run.child.pid as number);
    run.child.kill("SIGTERM");
    t.equal(await run.ended, 0);
    await until(() => !pids.some(isAlive));
    t.equal(run.stdout(), "");
  });
}
