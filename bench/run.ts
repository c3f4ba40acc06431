import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { killChildren } from "./children.js";
import { type BenchOptions, parseBenchOptions } from "./options.js";
import { ROWS } from "./rows.js";
import { runRows, SCRATCH } from "./run-rows.js";

/** Benchmarks that are programs of their own, with what they are; run only when named. */
const PROGRAMS: Readonly<Record<string, string>> = {
  "cache-hit-ratio":
    "What the chunk cache keeps, against first-in first-out, least recently used, and the best possible",
};

const HELP = `npm run bench [-- NAME… OPTIONS]

Measures zpublish beside bare uWebSockets.js, nginx and servers of yours. Data are made at the first run (about 660 MB,
of them 60 MB with --small) and kept in .build/bench-data; results are written to bench/results. Nothing is asserted about time.

  --rounds N     rounds per row (default 5)
  --seconds N    length of a measurement in warm rows (default 3)
  --small        few chunks, and not the row of 50,000 variables unless it is named
  --peer URL     a running server that has the stores as /datasets/mib, /datasets/kib64, /datasets/many; repeatable

Rows (all, where none is named):
${Object.entries(ROWS)
  .map(([name, { title }]) => `  ${name.padEnd(18)}${title}`)
  .join("\n")}
Programs, run where named:
${Object.entries(PROGRAMS)
  .map(([name, title]) => `  ${name.padEnd(18)}${title}`)
  .join("\n")}
`;

/** What `kill` and Ctrl-C give as exit codes. */
const EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
for (const [signal, code] of Object.entries(EXIT_CODES)) {
  process.once(signal, () => {
    killChildren();
    rmSync(SCRATCH, { recursive: true, force: true });
    process.exit(code);
  });
}

let options: BenchOptions | "help";
try {
  options = parseBenchOptions(process.argv.slice(2), [...Object.keys(ROWS), ...Object.keys(PROGRAMS)]);
} catch (error) {
  console.error(`bench: ${(error as Error).message}`);
  process.exit(2);
}
if (options === "help") console.log(HELP);
else await run(options);

async function run(asked: BenchOptions): Promise<void> {
  for (const name of asked.names.filter((each) => each in PROGRAMS)) {
    console.log(`\n## ${name}\n\n${PROGRAMS[name]}.\n`);
    const { status } = spawnSync(process.execPath, [fileURLToPath(new URL(`${name}.js`, import.meta.url))], {
      stdio: "inherit",
    });
    if (status !== 0) process.exit(status ?? 1);
  }
  const named = asked.names.filter((each) => each in ROWS);
  const rows =
    asked.names.length > 0
      ? named
      : Object.keys(ROWS).filter((name) => !(asked.isSmall && ROWS[name]!.isLarge));
  if (rows.length === 0) return;
  try {
    await runRows(rows, asked);
  } catch (error) {
    console.error(`bench: ${(error as Error).message}`);
    process.exitCode = 1;
  } finally {
    killChildren();
    rmSync(SCRATCH, { recursive: true, force: true });
  }
}
