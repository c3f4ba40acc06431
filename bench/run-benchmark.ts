import { appendFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { DATA_DIRECTORY, packageRoot } from "./data/bench-data.js";
import type { ExperimentContext } from "./experiments/experiment.js";
import { EXPERIMENTS } from "./experiments/experiments.js";
import { describeMachine } from "./machine.js";
import type { Round } from "./measure-row.js";
import type { BenchOptions } from "./options.js";
import { createProgress } from "./progress.js";
import { requestsChart } from "./report/bar-chart.js";
import type { NamedResult } from "./report/experiment-section.js";
import { markdownReport } from "./report/markdown-table.js";
import { summarize } from "./report/summarize.js";
import { ROWS } from "./rows.js";
import { createContest, runRow } from "./run-rows.js";

/** Caches, configurations and scripts of this run; whoever ends the run removes it. */
export const SCRATCH = join(DATA_DIRECTORY, `run-${process.pid}`);

/**
 * Measures rows and experiments by name and writes `results.md`, `rounds.ndjson`, `requests.svg` and pictures of
 * experiments into a folder of `bench/results`, anew after each, so that what was measured stays if something fails later.
 * @throws Error where a server does not start or answers wrongly.
 */
export async function runBenchmark(names: readonly string[], options: BenchOptions): Promise<void> {
  const contest = createContest(options);
  const date = new Date().toISOString();
  const results = join(packageRoot(), "bench", "results", date.slice(0, 19).replace(/:/g, "-"));
  mkdirSync(results, { recursive: true });
  const machine = describeMachine();
  const raw = join(results, "rounds.ndjson");
  const writeRaw = (records: readonly object[]) =>
    appendFileSync(raw, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
  const command = [
    "npm run bench",
    ...(process.argv.length > 2 ? ["--", ...process.argv.slice(2)] : []),
  ].join(" ");
  writeRaw([{ date, command, options, machine }]);

  const rounds: Round[] = [];
  const experiments: NamedResult[] = [];
  const notes = [...contest.notes];
  const titles = Object.fromEntries(
    names.flatMap((name) => (name in ROWS ? [[name, ROWS[name]!.title]] : [])),
  );
  const progress = createProgress();
  let report = "";
  for (const [i, name] of names.entries()) {
    const update = (done: number, detail: string) => progress.update((i + done) / names.length, detail);
    progress.label(name);
    if (name in ROWS) {
      const result = await runRow(name, contest, options, SCRATCH, update);
      rounds.push(...result.rounds);
      notes.push(...result.notes);
      writeRaw(result.rounds);
    } else {
      const experiment = EXPERIMENTS[name]!;
      const result = await experiment.run(contextOf(name, options, update));
      experiments.push({ name, title: experiment.title, result });
      for (const [file, picture] of Object.entries(result.pictures ?? {}))
        writeFileSync(join(results, file), picture);
      writeRaw(result.records.map((record) => ({ experiment: name, ...record })));
    }
    const summaries = summarize(rounds, contest.against);
    const { rounds: count, seconds } = options;
    const text = { command, date, machine, rounds: count, seconds, titles, notes, experiments };
    report = markdownReport(summaries, contest.against, text);
    writeFileSync(join(results, "results.md"), report);
    if (rounds.length > 0) writeFileSync(join(results, "requests.svg"), requestsChart(summaries));
  }
  progress.end();
  console.log(`${report}\nWritten to ${relative(process.cwd(), results)}`);
}

function contextOf(
  name: string,
  { isSmall, rounds, seconds }: BenchOptions,
  onProgress: ExperimentContext["onProgress"],
): ExperimentContext {
  return {
    size: isSmall ? "small" : "full",
    rounds,
    seconds,
    freshFolder(folder) {
      const path = join(SCRATCH, name, folder);
      rmSync(path, { recursive: true, force: true });
      mkdirSync(path, { recursive: true });
      return path;
    },
    onProgress,
  };
}
