import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Quick files that share a process at most. With more of them, one process would be left when the others have ended. */
const TOGETHER = 6;

const RUN_TOGETHER = fileURLToPath(new URL("run-together.js", import.meta.url));

/**
 * Test files by the processes that run them. Quick files share one with their neighbours, since to load the same modules takes longer than most of
 * them. Those that set `t.setTimeout` or `t.jobs`, which hold for a process, run alone, and first.
 */
export function processesOf(files: readonly string[]): string[][] {
  const isAlone = (file: string) =>
    file.endsWith(".long.test.js") || /^t\.(setTimeout|jobs)\b/m.test(readFileSync(file, "utf8"));
  const groups = files.filter(isAlone).map((file) => [file]);
  const others = files.filter((file) => !isAlone(file));
  for (let at = 0; at < others.length; at += TOGETHER) groups.push(others.slice(at, at + TOGETHER));
  return groups;
}

/** Arguments with which Node.js runs test files in one process. */
export function argumentsOf(files: readonly string[]): readonly string[] {
  return files.length === 1 ? files : [RUN_TOGETHER, ...files];
}
