import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { runProgram as runArguments } from "../../../src/cli/program.js";

/** The compiled program. */
export const PROGRAM = fileURLToPath(new URL("../../../src/zpublish.cjs", import.meta.url));

/** A program that runs or has run. */
export type Run = ReturnType<typeof runScript>;

/** Runs a script in its own process. Its environment has no variables of the service but those given, and `ZPUBLISH_HTTP`. */
export function runScript(
  script: string,
  args: readonly string[],
  options: {
    readonly env?: Readonly<Record<string, string>>;
    readonly cwd?: string;
    /** Another Node.js. */
    readonly node?: string;
  } = {},
) {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !/^(ZPUBLISH_(?!HTTP$)|TAP|NODE_OPTIONS)/.test(name),
  );
  const child = spawn(options.node ?? process.execPath, [script, ...args], {
    env: { ...Object.fromEntries(inherited), ...options.env },
    cwd: options.cwd,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const exited = once(child, "exit").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  const ended = once(child, "close").then(([code, signal]) => (code ?? signal) as number | NodeJS.Signals);
  return {
    child,
    stdout: () => stdout,
    stderr: () => stderr,
    /** As `ended`, without waiting for its child processes that still hold its output. */
    exited,
    /** Exit code, or the signal that ended it. */
    ended,
    /** Waits until the text is on standard output or error. Rejects if the program ends first. */
    async says(text: string): Promise<void> {
      let hasEnded = false;
      void ended.then(() => {
        hasEnded = true;
      });
      while (!`${stdout}${stderr}`.includes(text)) {
        if (hasEnded) throw new Error(`the program ended without saying ${text}:\n${stdout}${stderr}`);
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
    },
  };
}

/** Runs the program to its end. */
export async function runProgram(
  args: readonly string[],
  options: { readonly env?: Readonly<Record<string, string>>; readonly cwd?: string } = {},
): Promise<{ readonly code: number | NodeJS.Signals; readonly stdout: string; readonly stderr: string }> {
  const run = runScript(PROGRAM, args, options);
  const code = await run.ended;
  return { code, stdout: run.stdout(), stderr: run.stderr() };
}

/**
 * Runs the program's command line in this process, without the second of the processor that a start takes.
 * @returns With what is written to standard output before anything is waited for, such as help: tap writes there later.
 */
export async function runHere(
  args: readonly string[],
): Promise<{ readonly code: number | undefined; readonly stdout: string; readonly stderr: string }> {
  // Commands listen to signals until their process ends.
  process.setMaxListeners(0);
  const written = { stdout: "", stderr: "" };
  const collect = (name: keyof typeof written) => {
    const { write } = process[name];
    process[name].write = (text: string | Uint8Array) => {
      written[name] += text;
      return true;
    };
    return () => {
      process[name].write = write;
    };
  };
  const restore = collect("stderr");
  const restoreOutput = collect("stdout");
  const running = runArguments(args);
  restoreOutput();
  const code = await running.finally(restore);
  return { code, ...written };
}
