/**
 * The real program under load while everything that can go wrong does:
 *
 *     node dist/bench/chaos.js [--minutes N] [--seconds N] [--processes N] [--seed N] [--only "cache,worker"] [--program zpublish.cjs] [--keep]
 *
 * Clients check every byte of every answer against what was true while it was asked for. Chunks are rewritten, cut off
 * and removed, arrays grow and shrink, a dataset goes away and comes back, workers die, chunks are poisonous, a source
 * fails or hangs, the cache is damaged and removed, configurations are reloaded, processes and the whole program killed
 * and started again; others connect and never read, go in the middle of an answer and ask for nonsense. Without
 * `--processes`, half of the time is with one process and half with two. Prints a report; ends with 1 where a byte was wrong, a request failed that
 * nothing excuses, or something leaked.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type ChaosReport, DESCRIPTOR_BOUND, MEMORY_BOUND_BYTES, runChaos } from "./chaos/run-chaos.js";
import { createProgress } from "./progress.js";
import { formatNumber, markdownTable } from "./report/markdown-cells.js";
import { runProgram } from "./run-program.js";

const DEFAULT_MINUTES = "1";

/** Whether a run found nothing. */
export function isClean({ tally, failures }: ChaosReport): boolean {
  return tally.wrong === 0 && tally.failed === 0 && failures.length === 0;
}

/** The report as Markdown. */
export function chaosText(report: ChaosReport, seed: number): string {
  const { tally, events, before, after, descriptorKinds, notes, failures, processes, seconds } = report;
  const mib = (bytes: number) => formatNumber(bytes / 2 ** 20);
  const counts = <K>(map: ReadonlyMap<K, number>) =>
    [...map]
      .sort(([a], [b]) => (String(a) < String(b) ? -1 : 1))
      .map(([key, n]) => [String(key), n] as const);
  const statuses = counts(tally.statuses).map(
    ([status, n]) => [status === "0" ? "none" : status, n] as const,
  );
  return [
    `### ${processes} ${processes === 1 ? "process" : "processes"}, ${seconds} s, seed ${seed}`,
    "",
    `- ${tally.requests.toLocaleString("en-US")} requests; **wrong bytes ${tally.wrong}**, failed without an excuse ${tally.failed}.`,
    `- Latency: ${[50, 90, 99, 99.9].map((p) => `p${p} ${formatNumber(tally.latency(p))} ms`).join(", ")}.`,
    `- Memory: ${mib(before.memoryBytes)} MiB at the start, ${mib(after.memoryBytes)} MiB at the end (bound: ${mib(MEMORY_BOUND_BYTES * processes)} more).`,
    `- File descriptors: ${before.descriptors} at the start, ${after.descriptors} at the end (bound: ${DESCRIPTOR_BOUND * processes} more): ${descriptorKinds}.`,
    "",
    ...markdownTable(["answer", "requests"], statuses),
    "",
    ...markdownTable(["failure: excused by", "requests"], counts(tally.excused)),
    "",
    ...markdownTable(["event", "times"], counts(events)),
    "",
    ...[...new Set(notes)].map((note) => `- ${note}`),
    ...counts(tally.failures).map(([kind, n]) => `- **FAILED** ${n} × ${kind}`),
    ...tally.problems.map((problem) => `- ${problem}`),
    ...failures.map((failure) => `- **FAILED** ${failure}`),
    isClean(report) ? "- Nothing failed." : "- **Something failed.**",
    "",
  ].join("\n");
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      minutes: { type: "string", default: DEFAULT_MINUTES },
      seconds: { type: "string" },
      processes: { type: "string" },
      seed: { type: "string" },
      only: { type: "string", default: "" },
      program: { type: "string" },
      keep: { type: "boolean", default: false },
    },
  });
  const seed = values.seed === undefined ? (Date.now() % 1_000_000) + 1 : Number(values.seed);
  console.error(`bench: seed ${seed}`);
  const total = values.seconds === undefined ? Number(values.minutes) * 60 : Number(values.seconds);
  const legs = values.processes === undefined ? [1, 2] : [Number(values.processes)];
  const progress = createProgress();
  for (const processes of legs) {
    const folder = await mkdtemp(join(tmpdir(), "zpublish-chaos-"));
    progress.label(`chaos, ${processes} ${processes === 1 ? "process" : "processes"}`);
    const report = await runChaos({
      seed,
      seconds: Math.round(total / legs.length),
      processes,
      folder,
      ...(values.program === undefined ? {} : { program: values.program }),
      only: values.only.split(",").filter((name) => name !== ""),
      onProgress: progress.update,
    });
    progress.end();
    console.log(chaosText(report, seed));
    if (isClean(report) && !values.keep) await rm(folder, { recursive: true, force: true });
    else console.log(`Data, configuration and log are kept in ${folder}\n`);
    if (!isClean(report)) process.exitCode = 1;
  }
}

await runProgram(import.meta.url, main);
