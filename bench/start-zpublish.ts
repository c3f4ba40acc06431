import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runChild, startChild, stopChild, waitForLine } from "./children.js";
import { type Build, THIS_BUILD } from "./harness/harness.js";
import type { RunningSubject } from "./subjects/subject.js";

/** Returns the options of Node.js that the program's first line gives it if it is started by its name. */
export function optionsOf(program: string): readonly string[] {
  const [first = ""] = readFileSync(program, "utf8").split("\n", 1);
  return first.split(/\s+/).filter((word) => word.startsWith("--"));
}

export interface ZpublishSettings {
  /** Default: this build. */
  readonly build?: Build | undefined;
  /** As in the configuration file, by id. */
  readonly datasets: Readonly<Record<string, unknown>>;
  /** Collections as in the configuration file, by name. */
  readonly collections?: Readonly<Record<string, unknown>>;
  /** Stores as in the configuration file, by name. */
  readonly stores?: Readonly<Record<string, unknown>>;
  /** A folder for the configuration and, below it, the cache: a fresh one makes an empty cache. */
  readonly scratch: string;
  /** More of the command line. */
  readonly args?: readonly string[];
  /** Options of Node.js. */
  readonly nodeArgs?: readonly string[];
  /** Another Node.js. */
  readonly node?: string | undefined;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts a server, uses it, and stops it. @throws Error as {@link startZpublish} and `use`. */
export async function withZpublish<Result>(
  settings: ZpublishSettings,
  use: (server: RunningZpublish) => Promise<Result>,
): Promise<Result> {
  const server = await startZpublish(settings);
  try {
    return await use(server);
  } finally {
    await server.stop();
  }
}

/** Runs `zpublish warm` to its end. @returns The seconds that it took. */
export async function runWarm(settings: ZpublishSettings): Promise<number> {
  const { datasets, scratch, args = [], build = THIS_BUILD } = settings;
  const config = join(scratch, "zpublish.json");
  writeFileSync(config, JSON.stringify({ datasets }));
  const warm = ["warm", "--config", config, "--cache-dir", join(scratch, "cache"), "--log-level", "warn"];
  const began = performance.now();
  await runChild(process.execPath, [build.program, ...warm, ...args], { env: withoutSettings() });
  return (performance.now() - began) / 1_000;
}

export interface RunningZpublish extends RunningSubject {
  readonly pid: number;
  /** From the start of the process to its line that it is ready. */
  readonly readySeconds: number;
  /** The end of what it wrote to standard error. */
  errorText(): string;
}

/** `zpublish serve` with its defaults on a free port, a cache of its own, and none of the user's own settings. @throws Error where it is not ready. */
export async function startZpublish(settings: ZpublishSettings): Promise<RunningZpublish> {
  const { datasets, collections, stores, scratch } = settings;
  const { args = [], nodeArgs = [], node = process.execPath, env = {}, build = THIS_BUILD } = settings;
  const config = join(scratch, "zpublish.json");
  writeFileSync(config, JSON.stringify({ datasets, collections, stores }));
  const serve = ["serve", "--config", config, "--port", "0", "--log-level", "warn"];
  const cache = ["--cache-dir", join(scratch, "cache")];
  const began = performance.now();
  const child = await startChild(
    node,
    [...optionsOf(build.program), ...nodeArgs, build.program, ...serve, ...cache, ...args],
    {
      env: { ...withoutSettings(), ...env },
    },
  );
  const [, baseUrl] = await waitForLine(child, /ready on (http:\/\/\S+)/);
  const readySeconds = (performance.now() - began) / 1_000;
  return {
    baseUrl: baseUrl!,
    pid: child.pid,
    readySeconds,
    errorText: child.errorText,
    stop: () => stopChild(child),
  };
}

/** The user's own `ZPUBLISH_…` settings are not what is measured. */
function withoutSettings(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ZPUBLISH_")));
}
