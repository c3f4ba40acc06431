import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import t from "tap";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { startProcesses } from "../../src/processes/start-processes.js";
import { childrenOf, until } from "../support/servers/process-table.js";
import { writeArray } from "../support/servers/program-stores.js";
import { startSmall } from "../support/servers/start-program.js";
import { makeDirectory } from "../support/write-store.js";

const skip = process.platform === "linux" ? false : "only Linux spreads connections";
t.setTimeout(600_000);

/** A plugin that says which process it is in, and fails or waits in one of them while there is a file. */
async function writePlugin(directory: string): Promise<void> {
  await writeFile(
    join(directory, "picky.mjs"),
    `import { existsSync } from "node:fs";
     import { setTimeout as delay } from "node:timers/promises";
     const at = (name) => new URL(name, import.meta.url);
     const number = process.argv[2];
     export default (options) => ({
       name: "picky", version: "1.0.0", path: "example/picky",
       async routes({ createDocument }) {
         if (existsSync(at("fail-in-" + number))) throw new Error("process " + number + " does not like it");
         while (existsSync(at("wait"))) await delay(10);
         const document = createDocument(number + " " + options, "text/plain");
         return [{ path: "/picky", priority: "page", operation: { summary: "", contentType: "text/plain" },
           handler: () => ({ kind: "document", document }) }];
       },
     });`,
  );
}

async function startPicky(test: Parameters<typeof startSmall>[0]) {
  const configOf = (options: string) => ({
    datasets: { one: "one" },
    plugins: { picky: { module: "./picky.mjs", options } },
  });
  const program = await startSmall(test, {
    processes: 3,
    async config(directory) {
      await writeArray(join(directory, "one"), 1);
      await writePlugin(directory);
      return configOf("first");
    },
  });
  /** What is answered, over connections enough to meet every process. */
  const answers = async () => {
    const texts = new Set<string>();
    for (let count = 0; count < 60; count++) {
      const answer = await fetch(`${program.url}/picky`, { headers: { connection: "close" } });
      texts.add(await answer.text());
    }
    return [...texts].sort();
  };
  return { program, configOf, answers };
}

t.test("what one process refuses no process takes", { skip }, async (t) => {
  const { program, configOf, answers } = await startPicky(t);
  t.same(await answers(), ["1 first", "2 first", "3 first"]);
  await writeFile(join(program.directory, "fail-in-3"), "");
  await program.write(configOf("second"));
  t.equal(await program.reload(), "refused");
  t.match(program.said("cannot be used")[0]?.reason, "process 3 does not like it");
  t.same(await answers(), ["1 first", "2 first", "3 first"]);
  await program.write(configOf("third"));
  await rm(join(program.directory, "fail-in-3"));
  t.equal(await program.reload(), "reloaded");
  t.same(await answers(), ["1 third", "2 third", "3 third"]);
});

t.test(
  "a process that dies during a reload comes back with the newest configuration",
  { skip },
  async (t) => {
    const { program, configOf, answers } = await startPicky(t);
    const [, second] = program.pids() as [number, number];
    const waits = join(program.directory, "wait");
    await writeFile(waits, "");
    await program.write(configOf("second"));
    const reloaded = program.reload();
    await program.run.says("reloading the configuration");
    process.kill(second, "SIGKILL");
    await program.run.says("another takes its place");
    await rm(waits);
    t.equal(await reloaded, "reloaded");
    await program.run.says("the server process is replaced");
    t.same(await answers(), ["1 second", "2 second", "3 second"]);
  },
);

t.test("a process whose event loop hangs is ended and replaced", { skip }, async (t) => {
  const directory = await makeDirectory(t);
  await writeArray(join(directory, "one"), 1);
  const config = resolveConfig({
    argv: [join(directory, "one"), "--no-cache", "--port", "0", "--processes", "2", "--drain-timeout", "1"],
    env: {},
    cwd: directory,
  });
  const lines: string[] = [];
  const log = pino({}, { write: (line: string) => lines.push(line) });
  const before = new Set(childrenOf(process.pid));
  const server = await startProcesses(config, { log, watch: { everyMs: 100, maxMissed: 80 } });
  t.teardown(() => server.close());
  const started = childrenOf(process.pid).filter((pid) => !before.has(pid));
  t.equal(started.length, 2);
  process.kill(started[1] as number, "SIGSTOP");
  await until(() => lines.some((line) => line.includes("a server process hangs")));
  await until(() => lines.some((line) => line.includes("the server process is replaced")));
  t.ok(childrenOf(process.pid).includes(started[0] as number), "the other is as it was");
  t.notOk(childrenOf(process.pid).includes(started[1] as number));
  for (let count = 0; count < 20; count++) {
    const answer = await fetch(`${server.url}/datasets`, { headers: { connection: "close" } });
    t.equal(answer.status, 200);
  }
});
