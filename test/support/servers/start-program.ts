import { createInterface } from "node:readline";
import type { Test } from "tap";
import { makeDirectory, type Teardown, writeFiles } from "../write-store.js";
import { childrenOf, processOfConnection, until } from "./process-table.js";
import { openConnection, type RawConnection } from "./raw-request.js";
import { PROGRAM, runScript } from "./run-program.js";

/** A line of the program's log. */
export interface ProgramLogLine {
  readonly level: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** `zpublish serve`, ready, on a port of its own. */
export type Program = Awaited<ReturnType<typeof startProgram>>;

export interface ProgramOptions {
  /** The configuration file's content, or what makes it of the directory. Default: there is no file. */
  readonly config?: object | ((directory: string) => object | Promise<object>);
  readonly args?: readonly string[];
  readonly processes?: number;
  /** Further variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Default: a new one, removed after the test. */
  readonly directory?: string;
}

const OUTCOMES = {
  reloaded: "configuration reloaded",
  refused: "cannot be used; the present one stays",
} as const;

/** Starts the program with a cache below its directory, unless the arguments name another, and waits until it is ready. */
export async function startProgram(
  t: Teardown,
  { config, args = [], processes = 1, env = {}, directory: given }: ProgramOptions,
) {
  const directory = given ?? (await makeDirectory(t));
  const write = (content: string | object) => writeFiles(directory, { "config.json": content });
  if (config !== undefined) await write(typeof config === "function" ? await config(directory) : config);
  const run = runScript(
    PROGRAM,
    [
      ...["serve", "--port", "0", ...args],
      ...(config === undefined ? [] : ["--config", `${directory}/config.json`]),
      ...(args.some((arg) => /^--(no-cache|cache-dir)$/.test(arg))
        ? []
        : ["--cache-dir", `${directory}/cache`]),
      ...(processes === 1 ? [] : ["--processes", String(processes)]),
    ],
    { env },
  );
  const lines: ProgramLogLine[] = [];
  createInterface({ input: run.child.stderr! }).on("line", (line) => lines.push(parseLogLine(line)));
  t.teardown(async () => {
    run.child.kill("SIGKILL");
    await run.ended;
  });
  await run.says("zpublish ready on ");
  const [, ready = ""] = /ready on (\S+)/.exec(run.stdout()) ?? [];
  const url = ready.replace(/\/$/, "");
  const pid = run.child.pid as number;
  const root = (dataset: string) => (args.includes("--single") ? "" : `/datasets/${dataset}`);
  /** Lines of the log with that text in their message. */
  const said = (message: string): readonly ProgramLogLine[] =>
    lines.filter(({ msg }) => msg.includes(message));
  return {
    run,
    url,
    port: Number(new URL(url).port),
    pid,
    directory,
    /** Ids of the processes that answer requests. */
    pids: () => (processes === 1 ? [pid] : childrenOf(pid)),
    storeUrl: (dataset: string, prefix = "zarr") => `${url}${root(dataset)}/${prefix}`,
    /** Lines logged so far; one that is no JSON has level 60. */
    log: (): readonly ProgramLogLine[] => lines,
    said,
    write,
    /** Sends HUP, and waits until the log says what came of it. */
    async reload(): Promise<"reloaded" | "refused"> {
      const reloaded = said(OUTCOMES.reloaded).length;
      const refused = said(OUTCOMES.refused).length;
      run.child.kill("SIGHUP");
      await until(() => said(OUTCOMES.reloaded).length > reloaded || said(OUTCOMES.refused).length > refused);
      return said(OUTCOMES.reloaded).length > reloaded ? "reloaded" : "refused";
    },
    /** Ends it as an operator would. @throws Error if it does not end with 0. */
    async stop(): Promise<void> {
      run.child.kill("SIGTERM");
      const end = await run.ended;
      if (end !== 0)
        throw new Error(
          `expected the program to end with 0, received ${end}:\n${run.stderr().slice(-4_000)}`,
        );
    },
  };
}

/** Starts it with one worker, and refreshes only when it is told to. */
export function startSmall(t: Teardown, { args = [], ...options }: ProgramOptions): Promise<Program> {
  return startProgram(t, { args: ["--workers", "1", "--refresh", "0", ...args], ...options });
}

/** Opens a connection, closed with the test, and returns it with the process that has its other end. */
export async function connect(
  t: Test,
  program: Program,
): Promise<{ readonly connection: RawConnection; readonly pid: number }> {
  const connection = await openConnection(program.port);
  t.teardown(() => connection.socket.destroy());
  return { connection, pid: await processOfConnection(program.pids(), program.port, connection) };
}

/** Opens connections until one is with that process. */
export async function connectTo(t: Test, program: Program, wanted: number): Promise<RawConnection> {
  for (;;) {
    const found = await connect(t, program);
    if (found.pid === wanted) return found.connection;
    found.connection.socket.destroy();
  }
}

function parseLogLine(line: string): ProgramLogLine {
  try {
    return JSON.parse(line) as ProgramLogLine;
  } catch {
    return { level: 60, msg: line };
  }
}
