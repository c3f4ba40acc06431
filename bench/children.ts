import { type ChildProcess, type SpawnOptions, spawn } from "node:child_process";
import { pathToFileURL } from "node:url";

/** Debian's: another `python3` that knows none of the packages may come first on PATH. */
export const PYTHON = "/usr/bin/python3";

const STOP_TIMEOUT_MS = 10_000;
const ERROR_TEXT_MAX = 4_000;

/** Every process that runs now, so that none outlives the benchmark. */
const running = new Set<ChildProcess>();

/** A process of the benchmark. */
export interface Child {
  readonly process: ChildProcess;
  readonly pid: number;
  /** The end of what it wrote to standard error. */
  errorText(): string;
  /** Resolves to its exit code, or the name of the signal it died of. */
  readonly ended: Promise<number | string>;
}

/**
 * Starts a program, in a process group of its own with whatever it starts (a worker of nginx would outlive its killed
 * master). The caller reads its standard output.
 * @param hasInput Whether the caller writes to its standard input, which is empty otherwise.
 * @throws Error where it cannot be started.
 */
export async function startChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
  hasInput = false,
): Promise<Child> {
  const stdio = [hasInput ? "pipe" : "ignore", "pipe", "pipe"] as const;
  const child = spawn(program, args, { ...options, detached: true, stdio: [...stdio] });
  running.add(child);
  let errorText = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    errorText = (errorText + text).slice(-ERROR_TEXT_MAX);
  });
  const ended = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => {
      running.delete(child);
      resolve(code ?? signal ?? "nothing");
    });
  });
  await new Promise<void>((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => {
      running.delete(child);
      reject(new Error(`${program} cannot be started: ${error.message}`));
    });
  });
  return { process: child, pid: child.pid!, errorText: () => errorText, ended };
}

/** Runs a program to its end and returns its standard output. @throws Error unless it ends with 0. */
export async function runChild(
  program: string,
  args: readonly string[],
  options: SpawnOptions = {},
): Promise<string> {
  const child = await startChild(program, args, options);
  let output = "";
  child.process.stdout!.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const status = await child.ended;
  if (status !== 0) throw new Error(`${program} ended with ${status}: ${child.errorText().trim()}`);
  return output;
}

/** The first line a program writes that `pattern` matches. @throws Error where it ends before, or says nothing in time. */
export function waitForLine(child: Child, pattern: RegExp, timeoutMs = 120_000): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let output = "";
    const timer = setTimeout(
      () => reject(new Error(`not ready in ${timeoutMs} ms: ${child.errorText()}`)),
      timeoutMs,
    );
    child.process.stdout!.setEncoding("utf8").on("data", (text: string) => {
      if (output.length < ERROR_TEXT_MAX) output += text;
      const match = pattern.exec(output);
      if (match === null) return;
      clearTimeout(timer);
      resolve(match);
    });
    void child.ended.then((status) => {
      clearTimeout(timer);
      reject(new Error(`ended with ${status} before it was ready: ${child.errorText().trim()}`));
    });
  });
}

/** Asks a process to end, and kills it where it does not. */
export async function stopChild(child: Child): Promise<void> {
  child.process.kill("SIGTERM");
  const timer = setTimeout(() => killGroup(child.process), STOP_TIMEOUT_MS);
  await child.ended;
  clearTimeout(timer);
}

/** Kills whatever runs, at once: for the end of the benchmark itself. */
export function killChildren(): void {
  for (const child of running) killGroup(child);
}

function killGroup({ pid }: ChildProcess): void {
  try {
    if (pid !== undefined) process.kill(-pid, "SIGKILL");
  } catch (error) {
    // It has ended meanwhile.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** What `kill` and Ctrl-C give as exit codes. */
export const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Runs a module's main function where the module is the program, and not imported by a test. Nothing that was started is left
 * behind, however it ends.
 * @param moduleUrl `import.meta.url`.
 */
export async function runProgram(moduleUrl: string, main: () => Promise<void>): Promise<void> {
  const [, program] = process.argv;
  if (program === undefined || moduleUrl !== pathToFileURL(program).href) return;
  for (const [signal, code] of Object.entries(EXIT_CODES)) {
    process.once(signal, () => {
      killChildren();
      process.exit(code);
    });
  }
  try {
    await main();
  } finally {
    killChildren();
  }
}
