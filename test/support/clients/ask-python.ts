import { spawnSync } from "node:child_process";
import { PYTHON } from "./require-client.js";

/**
 * Runs a Python program and gives back what it prints. `input` is its `json.load(sys.stdin)`, arguments its `sys.argv[1:]`.
 * @throws Error with the end of its standard error where it fails.
 */
export function askPython(program: string, input: unknown = null, args: readonly string[] = []): string {
  const run = spawnSync(PYTHON, ["-W", "ignore", "-c", program, ...args], {
    input: JSON.stringify(input),
    encoding: "utf8",
    timeout: 120_000,
    maxBuffer: 64 * 1024 * 1024,
  });
  if (run.status !== 0) throw new Error(`Python ended with ${run.status}: ${run.stderr.slice(-2000)}`);
  return run.stdout;
}
