import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { killChildren } from "./children.js";
import { EXPERIMENTS } from "./experiments/experiments.js";
import { type BenchOptions, parseBenchOptions } from "./options.js";
import { ROWS } from "./rows.js";
import { runBenchmark, SCRATCH } from "./run-benchmark.js";
import { EXIT_CODES } from "./run-program.js";

/** A benchmark that is a program of its own; run only when named. */
interface Program {
  readonly title: string;
  readonly args: (options: BenchOptions) => readonly string[];
}

const PROGRAMS: Readonly<Record<string, Program>> = {
  "cache-hit-ratio": {
    title:
      "what the chunk cache keeps, against first-in first-out, least recently used, and the best possible",
    args: () => [],
  },
  "foreign-files": {
    title:
      "NetCDF, HDF5 and TIFF files of a folder, served and compared with what their own libraries read: equal, refused, different",
    args: ({ directory, outcomes }) => [
      ...(directory === undefined ? [] : ["--directory", directory]),
      ...(outcomes === undefined ? [] : ["--outcomes", outcomes]),
    ],
  },
};

const HELP = `npm run bench [-- NAME… OPTIONS]

Measures zpublish beside bare uWebSockets.js, nginx and servers of yours, and how it behaves under load and scales. Data
are made at the first run (about 1.5 GB, of them 150 MB with --small) and kept in .build/bench-data; results are written
to bench/results. Nothing is asserted about time.

  --rounds N       rounds per row, and per experiment that compares (default 5)
  --seconds N      length of a measurement in warm rows and in experiments (default 3)
  --small          few chunks and datasets, and not the row of 50,000 variables unless it is named
  --peer URL       a running server that has the stores as /datasets/mib, /datasets/kib64, /datasets/many; repeatable
  --same-headers   one subject more in the rows: bare uWebSockets.js that sends zpublish's headers, too
  --directory DIR  the files of foreign-files
  --outcomes FILE  what foreign-files finds, file by file, as JSON

Rows: requests per second beside others (all, where nothing is named):
${list(Object.entries(ROWS).map(([name, { title }]) => [name, title]))}
Experiments (all, where nothing is named):
${list(Object.entries(EXPERIMENTS).map(([name, { title }]) => [name, title]))}
Programs, run where named:
${list(Object.entries(PROGRAMS).map(([name, { title }]) => [name, title]))}
`;

for (const [signal, code] of Object.entries(EXIT_CODES)) {
  process.once(signal, () => {
    killChildren();
    rmSync(SCRATCH, { recursive: true, force: true });
    process.exit(code);
  });
}

let options: BenchOptions | "help";
try {
  const known = [ROWS, EXPERIMENTS, PROGRAMS].flatMap((table) => Object.keys(table));
  options = parseBenchOptions(process.argv.slice(2), known);
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exit(2);
}
if (options === "help") console.log(HELP);
else await run(options);

async function run(asked: BenchOptions): Promise<void> {
  for (const name of asked.names.filter((each) => each in PROGRAMS)) {
    const { title, args } = PROGRAMS[name]!;
    console.log(`\n## ${name}\n\n${title.charAt(0).toUpperCase()}${title.slice(1)}.\n`);
    const program = fileURLToPath(new URL(`${name}.js`, import.meta.url));
    const { status } = spawnSync(process.execPath, [program, ...args(asked)], { stdio: "inherit" });
    if (status !== 0) process.exit(status ?? 1);
  }
  const all = [...Object.keys(ROWS), ...Object.keys(EXPERIMENTS)];
  const names =
    asked.names.length > 0
      ? all.filter((name) => asked.names.includes(name))
      : all.filter((name) => !(asked.isSmall && ROWS[name]?.isLarge));
  if (names.length === 0) return;
  try {
    await runBenchmark(names, asked);
  } catch (error) {
    console.error(`bench: ${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    killChildren();
    rmSync(SCRATCH, { recursive: true, force: true });
  }
}

function list(entries: readonly (readonly [name: string, title: string])[]): string {
  return entries.map(([name, title]) => `  ${name.padEnd(20)}${title}`).join("\n");
}
