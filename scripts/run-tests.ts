import { spawn } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { argumentsOf, processesOf } from "./test-processes.js";

/**
 * Runs compiled test files; prints a line per process, what was skipped, what was chosen at random, what failed, and the sum.
 * tap's own runner loads hooks into every process and thread, to know what to cover and what has changed. They take twice the CPU time that
 * most files take without them.
 *
 *     node dist/scripts/run-tests.js [--long] [--jobs=4] [FILE or FOLDER below dist/test] …
 */
const { values, positionals } = parseArgs({
  // Four keep two processors busy: tests wait for programs, clients, origins and clocks.
  options: { long: { type: "boolean", default: false }, jobs: { type: "string", default: "4" } },
  allowPositionals: true,
});

/** Seconds after which a test file fails by itself, unless it sets another limit. */
const TIMEOUT_S = values.long ? 600 : 300;
/** Seconds after which a process is killed, for each of its files: longer than the limits that they set. */
const KILL_S = 700;
/** A test in TAP of which only name and plan are left, and that did not fail. */
const PASSED = /^( *)# Subtest: .*\n\1 {4}1\.\.\d+(?:\n|$)(?!\1not ok)/gm;

const files = testFiles(positionals.length > 0 ? positionals : ["dist/test"]);
const waiting = processesOf(files);
const running = new Set<ReturnType<typeof spawn>>();
const sum = { total: 0, pass: 0, fail: 0, skip: 0, todo: 0 };
const started = performance.now();

process.once("exit", () => {
  for (const child of running) child.kill("SIGKILL");
});
for (const signal of ["SIGINT", "SIGTERM"]) process.once(signal, () => process.exit(1));

await Promise.all(Array.from({ length: Math.max(1, Number(values.jobs)) }, runWaiting));
const counts = Object.entries(sum).filter(([name, count]) => count > 0 || name === "total");
console.log(`# ${files.length} files in ${secondsSince(started)} s`);
console.log(`# { ${counts.map(([name, count]) => `${name}: ${count}`).join(", ")} }`);
if (sum.fail > 0 || sum.total === 0) process.exitCode = 1;

/**
 * Files of this ring in these folders, and files that are named, of whatever ring. Those that give themselves most time come first, so that
 * no long one is left when the others have ended.
 */
function testFiles(paths: readonly string[]): string[] {
  const files = paths.flatMap((path) => {
    if (statSync(path).isFile()) return [path];
    return readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((file) => file.endsWith(".test.js") && file.endsWith(".long.test.js") === values.long)
      .map((file) => `${path.replace(/\/$/, "")}/${file}`);
  });
  const limits = new Map(files.map((file) => [file, limitOf(file)]));
  return files.sort().sort((a, b) => (limits.get(b) ?? 0) - (limits.get(a) ?? 0));
}

/** Milliseconds that a test file sets as its limit; 0 if it sets none. */
function limitOf(file: string): number {
  const [, limit = "0"] = /^t\.setTimeout\(([\d_]+)\)/m.exec(readFileSync(file, "utf8")) ?? [];
  return Number(limit.replaceAll("_", ""));
}

async function runWaiting(): Promise<void> {
  for (let group = waiting.shift(); group !== undefined; group = waiting.shift()) await run(group);
}

async function run(group: readonly string[]): Promise<void> {
  const start = performance.now();
  const child = spawn(process.execPath, argumentsOf(group), {
    cwd: fileURLToPath(new URL("../..", import.meta.url)),
    env: { TAP_TIMEOUT: String(TIMEOUT_S * group.length), ...process.env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  running.add(child);
  const output: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (data: Buffer) => output.push(data));
  const killing = setTimeout(() => child.kill("SIGKILL"), KILL_S * group.length * 1_000);
  const end = await new Promise<string>((resolve) =>
    child.once("close", (code, signal) => resolve(String(code ?? signal))),
  );
  clearTimeout(killing);
  running.delete(child);
  report(group.join(", "), end, Buffer.concat(output).toString(), secondsSince(start));
}

function report(file: string, end: string, output: string, seconds: string): void {
  const counts = /^# (\{ total: .*\})$/m.exec(output)?.[1];
  for (const [, name, count] of (counts ?? "").matchAll(/(\w+): (\d+)/g)) {
    sum[name as keyof typeof sum] += Number(count);
  }
  const isGood = end === "0" && counts !== undefined;
  if (!isGood && !/\bfail: /.test(counts ?? "")) sum.fail += 1;
  console.log(`${isGood ? "ok" : "not ok"} - ${file} # ${seconds} s`);
  if (isGood) {
    for (const line of output.split("\n"))
      if (/^ *(ok .* # (SKIP|TODO)|# .*ZPUBLISH_TEST_SEED=)/.test(line)) console.log(line);
    return;
  }
  console.log(failuresOf(output));
  console.log(`# ${file} ended with ${end}, expected 0 and the sum of its tests`);
}

/** What a test file printed, without what passed. */
function failuresOf(output: string): string {
  const lines = output
    .split("\n")
    .filter((line) => !/^ *ok (?!.* # (SKIP|TODO))/.test(line) && line.trim() !== "");
  let text = lines.join("\n");
  // Tests in tests that passed are left out first, then those that hold no others.
  for (let before = ""; before !== text; ) {
    before = text;
    text = text.replace(PASSED, "");
  }
  return text;
}

function secondsSince(start: number): string {
  return ((performance.now() - start) / 1_000).toFixed(1);
}
