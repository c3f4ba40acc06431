import { availableParallelism } from "node:os";
import { NATIVE } from "../codecs/codec-subjects.js";
import type { ExperimentResult, Goal } from "../experiments/experiment.js";
import { groupBy } from "../group-by.js";
import { median } from "../statistics.js";

/** A server with an empty cache, first asked when it is ready. */
export const FRESH = "just started";
/** The same server asked again, for chunks that it has not in its cache. */
export const RUNNING = "running";

const ALL_WORKERS = ["--workers", String(availableParallelism())];

/** The servers that are measured, as they stand in the table, {@link FRESH} and {@link RUNNING}. */
export const SERVERS: readonly { readonly name: string; readonly args: readonly string[] }[] = [
  { name: "zpublish", args: [] },
  ...[ALL_WORKERS, [...ALL_WORKERS, "--no-cache"]].map((args) => ({
    name: `zpublish ${args.join(" ")}`,
    args,
  })),
];

/** What the server is compared with: stored chunks in memory, one after the other. */
export const NATIVE_LOOP = `${NATIVE}, a loop on one core`;
/** The loop that begins at the files. */
export const NATIVE_READING = `${NATIVE}, the same, reading the files`;

/** One subject in one round: a line of the raw results. */
export interface TranscodeRecord {
  readonly round: number;
  readonly subject: string;
  readonly chunks: number;
  readonly seconds: number;
  readonly chunksPerSecond: number;
  /** Of the server with its workers, or of the loop; undefined where the system does not say. */
  readonly cpuSeconds?: number | undefined;
  readonly generatorCpuSeconds?: number | undefined;
}

/** How many times the rate of the loop is aimed at. */
const GOAL = 0.8;

/** A line per subject, and whether the server reaches its goal. */
export function transcodeReport(
  records: readonly TranscodeRecord[],
): Pick<ExperimentResult, "tables" | "goals"> {
  const ratio = (subject: string, other: string) =>
    median(
      records
        .filter((record) => record.subject === subject)
        .flatMap(({ round, chunksPerSecond }) => {
          const beside = records.find((record) => record.subject === other && record.round === round);
          return beside === undefined ? [] : [chunksPerSecond / beside.chunksPerSecond];
        }),
    );
  const goals: Goal[] = SERVERS.flatMap(({ name }) => {
    const subject = `${name}, ${RUNNING}`;
    const reached = ratio(subject, NATIVE_LOOP);
    if (reached === undefined) return [];
    return [
      {
        what: `Blosc-LZ4 to Blosc-LZ4, chunks of 1 MiB by the whole server, load included: ${subject}`,
        expected: `at least ${GOAL} × ${NATIVE_LOOP}`,
        measured: `${reached.toFixed(2)} ×`,
        isMet: reached >= GOAL,
      },
    ];
  });
  return {
    goals,
    tables: [
      {
        columns: [
          "who",
          "chunks",
          "chunks/s",
          "lowest",
          "highest",
          `× ${NATIVE_LOOP}`,
          "× reading the files",
          "CPU ms/chunk",
          "processors used, server",
          "load",
        ],
        rows: [...groupBy(records, ({ subject }) => subject)].map(([subject, own]) => {
          const rates = own.map(({ chunksPerSecond }) => chunksPerSecond);
          const middle = (pick: (record: TranscodeRecord) => number | undefined) =>
            median(own.map(pick).filter((value) => value !== undefined));
          return [
            subject,
            own[0].chunks,
            median(rates),
            Math.min(...rates),
            Math.max(...rates),
            subject === NATIVE_LOOP ? undefined : ratio(subject, NATIVE_LOOP),
            subject === NATIVE_READING ? undefined : ratio(subject, NATIVE_READING),
            middle(({ cpuSeconds, chunks }) => cpuSeconds && (cpuSeconds * 1e3) / chunks),
            middle(({ cpuSeconds, seconds }) => cpuSeconds && cpuSeconds / seconds),
            middle(
              ({ generatorCpuSeconds, seconds }) => generatorCpuSeconds && generatorCpuSeconds / seconds,
            ),
          ];
        }),
      },
    ],
  };
}
