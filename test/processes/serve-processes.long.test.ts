import { once } from "node:events";
import { cp, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { choose } from "../support/effort.js";
import { isAlive, until } from "../support/servers/process-table.js";
import { madeChunks, NOISE_CHUNKS, serveNoise, writeNoise } from "../support/servers/program-stores.js";
import { openConnection, type RawConnection, requestText } from "../support/servers/raw-request.js";
import { runProgram } from "../support/servers/run-program.js";
import { connect, connectTo } from "../support/servers/start-program.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const skip = process.platform === "linux" ? false : "only Linux spreads connections";
t.setTimeout(600_000);

/** Without the lines about progress that a slow machine logs. */
const QUIET = { env: { ZPUBLISH_LOG_LEVEL: "error" } };

async function ask(connection: RawConnection, path: string, headers: Record<string, string> = {}) {
  connection.send(requestText(path, { headers }));
  return connection.answer();
}

t.test("every process answers the same, and connections are spread over all", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t), { processes: 3 });
  const pids = program.pids();
  t.equal(pids.length, 3);
  const connections = await Promise.all(pids.map((pid) => connectTo(t, program, pid)));
  const paths = [
    ...["/", "/plugins", "/versions", "/datasets", "/openapi.json", "/docs", "/nothing"],
    ...["/", "/keys", "/dict", "/info", "/tree", "/groups"].map((path) => `/datasets/noise${path}`),
    ...["/datasets/noise", "/datasets/noise/zarr/", "/datasets/none/info", "/datasets/plain/zarr/noise/99.0"],
    ...[".zmetadata", ".zgroup", ".zattrs", "noise/.zarray", "noise/.zattrs", "noise/3.0"].flatMap((key) => [
      `/datasets/noise/zarr/${key}`,
      `/datasets/plain/zarr/${key}`,
    ]),
  ];
  for (const path of paths) {
    const answers = [];
    for (const connection of connections) answers.push(await ask(connection, path));
    const [first, ...others] = answers.map(({ status, headers, body }) => {
      const { date: _date, "server-timing": _timing, "x-cache": _cache, ...same } = headers;
      return { status, headers: same, body: body.toString("base64") };
    });
    for (const other of others) t.strictSame(other, first, path);
    const etag = answers[0]!.headers.etag;
    if (etag === undefined) continue;
    for (const connection of connections) {
      t.equal((await ask(connection, path, { "If-None-Match": etag })).status, 304, `${path} again`);
    }
  }
  t.notMatch(program.run.stderr(), /"level":[456]0/, "nothing to warn about");

  const counts = new Map<number, number>();
  for (let index = 0; index < 96; index++) {
    const { pid } = await connect(t, program);
    counts.set(pid, (counts.get(pid) ?? 0) + 1);
  }
  t.strictSame([...counts.keys()].sort(), program.pids().sort());
  t.ok(
    [...counts.values()].every((count) => count >= 8),
    String([...counts.values()]),
  );
});

t.test("a problem with a dataset at start is logged once", { skip }, async (t) => {
  const location = await writeNoise(t);
  await writeFiles(location, { "broken/.zarray": { zarr_format: 2 } });
  const program = await serveNoise(t, location, { processes: 3 });
  t.equal(program.run.stderr().match(/"dataset":"plain"[^\n]*"msg":"refused"/g)?.length, 1);
  t.match(program.run.stderr(), /"process":1,"dataset":"plain"/);
});

t.test("SIGHUP reaches all processes, and so do periodic refreshes", { skip }, async (t) => {
  const location = await writeNoise(t);
  for (const args of [[], ["--refresh", "0.1"]]) {
    const program = await serveNoise(t, location, { args });
    const connections = await Promise.all(program.pids().map((pid) => connectTo(t, program, pid)));
    const titles = () =>
      Promise.all(
        connections.map(async (connection) => {
          const { body } = await ask(connection, "/datasets/plain/zarr/.zattrs");
          return (JSON.parse(body.toString()) as { title: string }).title;
        }),
      );
    const title = `changed with ${args.length} arguments`;
    t.notOk((await titles()).includes(title));
    await writeFile(join(location, ".zattrs"), JSON.stringify({ title }));
    if (args.length === 0) program.run.child.kill("SIGHUP");
    await until(async () => (await titles()).every((found) => found === title));
    // Each logs it; the line of the second may not have arrived yet.
    await until(() => program.run.stderr().match(/"dataset":"plain"[^\n]*dataset refreshed/g)?.length === 2);
    program.run.child.kill("SIGTERM");
    t.equal(await program.run.ended, 0);
  }
});

t.test("SIGTERM lets all processes finish, and leaves none alive", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t), { args: ["--workers", "1"] });
  const pids = program.pids();
  const connections = await Promise.all(
    Array.from({ length: NOISE_CHUNKS }, async (_, index) => {
      const connection = await openConnection(program.port);
      connection.send(requestText(`/datasets/noise/zarr/noise/${index}.0`));
      return connection;
    }),
  );
  await until(() => madeChunks(program).length > 0);
  program.run.child.kill("SIGTERM");
  const answers = await Promise.all(connections.map((connection) => connection.answer()));
  t.ok(answers.every(({ status }) => status === 200));
  t.equal(await program.run.ended, 0);
  t.notOk(pids.some(isAlive));
  await t.rejects(openConnection(program.port), /ECONNREFUSED/);
});

for (const signal of ["SIGKILL", "SIGTERM"] as const) {
  t.test(`a process ended by ${signal} is replaced, and the others serve meanwhile`, { skip }, async (t) => {
    const program = await serveNoise(t, await writeNoise(t));
    const [one, other] = program.pids() as [number, number];
    const kept = await connectTo(t, program, other);
    process.kill(one, signal);
    await program.run.says("another takes its place");
    t.equal((await ask(kept, "/datasets/noise/zarr/noise/1.0")).status, 200);
    await program.run.says("the server process is replaced");
    t.equal((await ask(kept, "/datasets")).status, 200, "on the existing connection");
    const next = program.pids().find((pid) => pid !== other) as number;
    t.not(next, one);
    const connection = await connectTo(t, program, next);
    t.equal((await ask(connection, "/datasets/noise/zarr/noise/2.0")).status, 200);
    program.run.child.kill("SIGTERM");
    t.equal(await program.run.ended, 0);
  });
}

t.test("a process that cannot be replaced does not end the others", { skip }, async (t) => {
  const location = await writeNoise(t);
  const gone = join(await makeDirectory(t), "gone.zarr");
  await cp(location, gone, { recursive: true });
  const program = await serveNoise(t, location, { args: [gone] });
  const [one, other] = program.pids() as [number, number];
  const kept = await connectTo(t, program, other);
  await rename(gone, `${gone}.away`);
  process.kill(one, "SIGKILL");
  await until(() => program.run.stderr().split("could not be replaced").length > 3);
  t.equal((await ask(kept, "/datasets/noise/zarr/noise/1.0")).status, 200);
  t.match((await ask(kept, "/metrics")).body.toString(), /^zpublish_process_restarts_total\S* 1$/m);
  await rename(`${gone}.away`, gone);
  await program.run.says("the server process is replaced");
  program.run.child.kill("SIGTERM");
  t.equal(await program.run.ended, 0);
});

t.test("a process answers chunks while another dies that makes chunks", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t), { args: ["--workers", "1"] });
  const [one, other] = program.pids() as [number, number];
  const dying = await connectTo(t, program, one);
  const waiting = await connectTo(t, program, other);
  for (let index = 0; index < NOISE_CHUNKS; index++) {
    (await connectTo(t, program, one)).send(requestText(`/datasets/noise/zarr/noise/${index}.0`));
  }
  dying.send(requestText("/datasets/noise/zarr/noise/0.0"));
  waiting.send(requestText(`/datasets/noise/zarr/noise/${NOISE_CHUNKS - 1}.0`));
  process.kill(one, "SIGKILL");
  t.equal((await waiting.answer()).status, 200);
});

t.test("without the supervisor no process stays alive", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t));
  const pids = program.pids();
  program.run.child.kill("SIGKILL");
  await program.run.ended;
  await until(() => !pids.some(isAlive));
  t.pass();
});

t.test("a second signal ends all processes at once", { skip }, async (t) => {
  const program = await serveNoise(t, await writeNoise(t));
  const pids = program.pids();
  for (const pid of pids) process.kill(pid, "SIGSTOP");
  program.run.child.kill("SIGTERM");
  await program.run.says("closing");
  const exit = once(program.run.child, "exit");
  program.run.child.kill("SIGTERM");
  t.equal((await exit)[0], 143);
  for (const pid of pids) process.kill(pid, "SIGCONT");
  await until(() => !pids.some(isAlive));
});

t.test(
  "a port that is taken is one line and exit code 1, with processes and without",
  { skip },
  async (t) => {
    const location = await writeNoise(t);
    const many = await serveNoise(t, location);
    const one = await serveNoise(t, location, { processes: 1 });
    const cases = [many, one].flatMap(({ port }) =>
      ["1", "2"].map((processes) => ["--port", String(port), "--processes", processes]),
    );
    for (const args of choose(t, cases, 2)) {
      const run = await runProgram(["serve", location, "--no-cache", ...args], QUIET);
      const line = `zpublish: Cannot listen on 127.0.0.1:${args[1]}: the port is in use by another program\n`;
      t.strictSame(run, { code: 1, stdout: "", stderr: line });
    }
  },
);

t.test("of two that start at once on one port, one is refused", { skip }, async (t) => {
  const location = await writeNoise(t);
  const { port, run } = await serveNoise(t, location);
  run.child.kill("SIGTERM");
  await run.ended;
  const args = ["--port", String(port)];
  const started = await Promise.allSettled([
    serveNoise(t, location, { args }),
    serveNoise(t, location, { args }),
  ]);
  const refused = started.filter((result) => result.status === "rejected");
  t.equal(refused.length, 1);
  t.match(String(refused[0]?.reason), /the port is in use by another program/);
});

t.test("a process that cannot start fails with the message of a single one", { skip }, async (t) => {
  const location = await writeNoise(t);
  const missing = join(await makeDirectory(t), "missing.zarr");
  const cases = [[missing], [location, "--plugin", "x=./none.mjs"], [location, "--host", "203.0.113.1"]];
  for (const args of choose(t, cases, 2)) {
    const said = [];
    for (const processes of ["1", "2"]) {
      said.push(
        await runProgram(["serve", "--no-cache", "--port", "0", "--processes", processes, ...args], QUIET),
      );
    }
    t.strictSame(said[1], said[0]);
    t.not(said[0]!.code, 0);
    t.match(said[0]!.stderr, /^zpublish: [^\n]+\n$/);
  }
});
