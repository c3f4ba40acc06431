import { spawnSync } from "node:child_process";
import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { cpus, loadavg, totalmem } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { packageVersions } from "../src/observe/versions.js";
import { EXIT_CODES, killChildren } from "./children.js";
import { DATA_DIRECTORY, packageRoot } from "./data/bench-data.js";
import { type BenchContext, baseBuild, runTable, THIS_BUILD } from "./harness/harness.js";
import { markdownReport, type NamedResult } from "./harness/report.js";
import { wrkVersion } from "./load/load.js";
import { type BenchOptions, parseBenchOptions } from "./options.js";
import { createProgress } from "./progress.js";
import { nginxVersion } from "./subjects/nginx.js";
import { ROWS } from "./tables/rows.js";
import { TABLES } from "./tables/tables.js";

/** Benchmarks that are programs of their own; run only if named. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "cache-hit-ratio":
    "what the chunk cache keeps, against first-in first-out, least recently used, and the best possible",
  "foreign-files":
    "NetCDF, HDF5 and TIFF files of a folder, served and compared with what their own libraries read: equal, refused, different",
};

const HELP = `npm run bench [-- NAME… OPTIONS]

Measures zpublish beside bare uWebSockets.js, nginx and servers of yours, beside another build of itself, and how it
behaves under load and scales. Data are made at the first run (about 1.5 GB, of them 150 MB with --small) and kept in
.build/bench-data; results are written to bench/results. Nothing is asserted about time.

  --rounds N       rounds of each contest (default 5)
  --seconds N      length of a warm measurement (default 3)
  --small          few chunks and datasets, and not the row of 50,000 variables unless it is named
  --against DIR    another checkout, built: each zpublish is measured twice, by turns with that build
  --peer URL       a running server that has the stores as /datasets/mib, /datasets/kib64, /datasets/many; repeatable
  --same-headers   one subject more in the rows: bare uWebSockets.js that sends zpublish's headers, too
  --connections N  connections of the rows (default 32, or 8 for fresh servers)
  --directory DIR  the files of foreign-files
  --outcomes FILE  what foreign-files finds, file by file, as JSON

Rows: requests per second beside other servers (all, if nothing is named):
${list(Object.entries(ROWS).map(([name, { title }]) => [name, title]))}
Tables (all, if nothing is named):
${list(Object.entries(TABLES).map(([name, { title }]) => [name, title]))}
Programs, run if named:
${list(Object.entries(PROGRAMS))}
`;

/** Caches, configurations and scripts of this run. */
const SCRATCH = join(DATA_DIRECTORY, `run-${process.pid}`);
const ALL = { ...ROWS, ...TABLES };

for (const [signal, code] of Object.entries(EXIT_CODES)) {
  process.once(signal, () => {
    clear();
    process.exit(code);
  });
}

let options: BenchOptions | "help";
try {
  options = parseBenchOptions(process.argv.slice(2), [ALL, PROGRAMS].flatMap(Object.keys));
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exit(2);
}
if (options === "help") console.log(HELP);
else await run(options);

async function run(asked: BenchOptions): Promise<void> {
  const { directory, outcomes, isSmall } = asked;
  for (const name of asked.names.filter((each) => each in PROGRAMS)) {
    console.log(`\n## ${name}\n\n${PROGRAMS[name]}.\n`);
    const program = fileURLToPath(new URL(`${name}.js`, import.meta.url));
    const args = [
      ...(directory === undefined ? [] : ["--directory", directory]),
      ...(outcomes === undefined ? [] : ["--outcomes", outcomes]),
    ];
    const { status } = spawnSync(process.execPath, [program, ...args], { stdio: "inherit" });
    if (status !== 0) process.exit(status ?? 1);
  }
  const names = Object.keys(ALL).filter((name) =>
    asked.names.length > 0 ? asked.names.includes(name) : !(isSmall && ALL[name]?.isLarge === true),
  );
  if (names.length === 0) return;
  try {
    await measure(names, asked);
  } catch (error) {
    console.error(`bench: ${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    clear();
  }
}

/**
 * Runs tables by name and writes `results.md` and `rounds.ndjson` into a folder of `bench/results`, again after each, so that what was
 * measured stays if something fails later.
 */
async function measure(names: readonly string[], asked: BenchOptions): Promise<void> {
  const { rounds, seconds, against } = asked;
  const date = new Date().toISOString();
  const folder = join(packageRoot(), "bench", "results", date.slice(0, 19).replace(/:/g, "-"));
  mkdirSync(folder, { recursive: true });
  const machine = describeMachine(against);
  const command = [
    "npm run bench",
    ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : []),
  ].join(" ");
  const writeRaw = (record: object) =>
    appendFileSync(join(folder, "rounds.ndjson"), `${JSON.stringify(record)}\n`);
  writeRaw({ date, command, options: asked, machine });
  const notes = [
    ...(nginxVersion() === undefined ? ["nginx is not installed"] : []),
    ...(wrkVersion() === undefined
      ? ["wrk is not installed: the load comes from a Node process, which may be the limit"]
      : []),
  ];
  const results: NamedResult[] = [];
  const progress = createProgress();
  let report = "";
  for (const [i, name] of names.entries()) {
    const table = ALL[name]!;
    progress.label(name);
    const onProgress = (done: number, detail: string) => progress.update((i + done) / names.length, detail);
    const contests = await runTable(table, contextOf(name, asked, onProgress));
    for (const { contest, measurements } of contests)
      for (const each of measurements) writeRaw({ table: name, contest: contest.title, ...each });
    results.push({ name, title: table.title, contests });
    report = markdownReport(results, { command, date, machine, rounds, seconds, notes });
    writeFileSync(join(folder, "results.md"), report);
  }
  progress.end();
  console.log(`${report}\nWritten to ${relative(process.cwd(), folder)}`);
}

function contextOf(name: string, asked: BenchOptions, onProgress: BenchContext["onProgress"]): BenchContext {
  const { isSmall, rounds, seconds, peers, hasSameHeaders, connections, against } = asked;
  return {
    ...{ size: isSmall ? "small" : "full", rounds, seconds, peers, hasSameHeaders, connections, onProgress },
    builds: [THIS_BUILD, ...(against === undefined ? [] : [baseBuild(against)])],
    freshFolder(label) {
      const path = join(SCRATCH, name, label);
      rmSync(path, { recursive: true, force: true });
      mkdirSync(path, { recursive: true });
      return path;
    },
  };
}

function clear(): void {
  killChildren();
  rmSync(SCRATCH, { recursive: true, force: true });
}

function list(entries: readonly (readonly [name: string, title: string])[]): string {
  return entries.map(([name, title]) => `  ${name.padEnd(20)}${title}`).join("\n");
}

/** Where and with what the numbers were made, as they stand in the results. @param against Another checkout that was measured. */
function describeMachine(against?: string): Record<string, string> {
  const processors = cpus();
  return {
    CPU: `${processors.length} × ${processors[0]?.model.trim() ?? "unknown"}`,
    memory: `${(totalmem() / 2 ** 30).toFixed(1)} GiB`,
    "load average before": loadavg()[0]!.toFixed(2),
    commit: commitOf(packageRoot()),
    ...(against !== undefined && { base: commitOf(against) }),
    ...packageVersions(),
    nginx: nginxVersion() ?? "not installed",
    wrk: wrkVersion() ?? "not installed",
  };
}

function commitOf(cwd: string): string {
  const git = (...args: string[]) => spawnSync("git", args, { cwd, encoding: "utf8" });
  const { status, stdout } = git("rev-parse", "HEAD");
  if (status !== 0) return "unknown";
  const isChanged = git("status", "--porcelain").stdout !== "";
  return `${stdout.trim()}${isChanged ? ", with changes that are not committed" : ""}`;
}
