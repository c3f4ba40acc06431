import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Test } from "tap";
import { freePort } from "../../bench/free-port.js";
import { openConnection, rawRequest } from "../support/servers/raw-request.js";
import { PROGRAM, type Run, runScript } from "../support/servers/run-program.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

/** One of several programs that serve the same, each with a cache of its own; its port outlives it. */
export interface Instance {
  readonly port: number;
  /** Of its configuration (`config.json`) and cache (`cache`). */
  readonly directory: string;
  /** Starts it and waits until it is ready. */
  start(): Promise<void>;
  /** Resolves when it accepts no more connections. */
  refuses(): Promise<void>;
  /** Sends a signal; resolves when the program has ended, to its exit code or the signal it died of. */
  end(signal: "SIGTERM" | "SIGKILL"): Promise<number | NodeJS.Signals>;
  /** Has it read another configuration; resolves, when it has come to an end with that, to what it logged. */
  reload(config: object): Promise<string>;
  /** What all its runs logged. */
  log(): string;
}

export interface InstanceOptions {
  /** Of a configuration file. */
  readonly config: object;
  readonly args?: readonly string[];
  /** Further variables of their environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts so many. Ended with the test. */
export async function startInstances(t: Test, count: number, options: InstanceOptions): Promise<Instance[]> {
  const instances = await Promise.all(Array.from({ length: count }, () => createInstance(t, options)));
  await Promise.all(instances.map((instance) => instance.start()));
  return instances;
}

async function createInstance(t: Test, { config, args = [], env = {} }: InstanceOptions): Promise<Instance> {
  const directory = await makeDirectory(t);
  await writeFiles(directory, { "config.json": config });
  const port = await freePort();
  const runs: Run[] = [];
  t.teardown(async () => {
    runs.at(-1)?.child.kill("SIGKILL");
    await runs.at(-1)?.ended;
  });
  return {
    port,
    directory,
    async start() {
      const file = join(directory, "config.json");
      const run = runScript(
        PROGRAM,
        [
          ...["serve", "--config", file, "--port", String(port)],
          ...["--cache-dir", join(directory, "cache"), "--workers", "1", ...args],
        ],
        { env },
      );
      runs.push(run);
      await run.says("zpublish ready on ");
      while ((await rawRequest(port, "/readyz")).status === 503) await delay(20);
    },
    async refuses() {
      for (;;) {
        const connection = await openConnection(port).catch(() => undefined);
        if (connection === undefined) return;
        connection.socket.destroy();
        await delay(50);
      }
    },
    async end(signal) {
      const run = runs.at(-1) as Run;
      run.child.kill(signal);
      return run.ended;
    },
    async reload(next) {
      await writeFiles(directory, { "config.json": next });
      const run = runs.at(-1) as Run;
      const before = run.stderr().length;
      run.child.kill("SIGHUP");
      for (;;) {
        const logged = run.stderr().slice(before);
        if (/configuration reloaded|cannot be used/.test(logged)) return logged;
        await delay(20);
      }
    },
    log: () => runs.map((run) => run.stderr()).join(""),
  };
}
