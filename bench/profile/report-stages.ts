import type { ExperimentResult, ResultTable } from "../experiments/experiment.js";
import { type Attribution, STAGE_TITLES, STAGES } from "./stages.js";

/** One measurement of one kind of chunk. */
export interface StageRecord {
  readonly kind: string;
  /** Whether workers make the chunk. */
  readonly isMade: boolean;
  readonly load: "one at a time" | "many at a time";
  readonly requests: number;
  /** Microseconds per request of samples, by stage, on the main thread and on the workers. */
  readonly main: Micros;
  readonly workers: Micros;
  /** CPU per request as the system counts it. */
  readonly mainCpuMicros: number;
  readonly workersCpuMicros: number;
  readonly otherCpuMicros: number;
  /** One at a time: from request to last byte, for the client. */
  readonly totalMicros?: number | undefined;
  /** One at a time: means of what the answers said. */
  readonly serverTiming?: Readonly<Record<string, number>> | undefined;
}

/** Microseconds per request, by stage. */
export type Micros = Readonly<Partial<Record<Attribution, number>>>;

/** @param settings How the records were made. */
export function reportStages(
  records: readonly StageRecord[],
  { connections, sampleMicros }: { readonly connections: number; readonly sampleMicros: number },
): Omit<ExperimentResult, "records"> {
  return {
    tables: [
      costTable(
        records.filter(({ load }) => load === "many at a time"),
        connections,
      ),
      agreementTable(records.filter(({ load }) => load === "one at a time")),
    ],
    goals: [],
    notes: [
      ...STAGES.map((stage) => STAGE_TITLES[stage]),
      `The server ran with --cpu-prof, a sample every ${sampleMicros} µs, which itself costs a few percent. A sample counts for the innermost function that belongs to a stage; \`bench/profile/stages.ts\` has the table. Samples are time, not CPU: where more threads want to run than there are processors, their sum is more than the CPU of the same threads, as the system counts it.`,
      "Reads of files and writes of the cache happen on other threads too, which no profile shows; the system counts their CPU.",
      "One at a time: Server-Timing and profile are of the same requests. `read` of the profile is, for chunks passed through, the main thread's part and the CPU of other threads; for the others a worker's part and what it waited. Server-Timing's is from asking to having, so it holds the ways between threads as well.",
    ],
  };
}

function costTable(records: readonly StageRecord[], connections: number): ResultTable {
  const columns = records.flatMap(({ kind, workers }, i) =>
    Object.keys(workers).length === 0
      ? [{ kind, i, thread: "main" as const }]
      : (["main", "workers"] as const).map((thread) => ({ kind, i, thread })),
  );
  const sumOf = (micros: Micros) => STAGES.reduce((sum, stage) => sum + (micros[stage] ?? 0), 0);
  const cell = (micros: Micros, value: number | undefined) =>
    value === undefined ? undefined : `${value.toFixed(1)} (${Math.round((100 * value) / sumOf(micros))} %)`;
  const perColumn = (
    value: (record: StageRecord, thread: "main" | "workers") => string | number | undefined,
  ) => columns.map(({ i, thread }) => value(records[i]!, thread));
  const once = (value: (record: StageRecord) => number) =>
    perColumn((record, thread) => (thread === "main" ? value(record) : undefined));
  return {
    title: `µs per request (percent of the thread's), ${connections} connections`,
    columns: [
      "stage",
      ...columns.map(({ kind, i, thread }) =>
        Object.keys(records[i]!.workers).length === 0 ? kind : `${kind}: ${thread}`,
      ),
    ],
    rows: [
      ...STAGES.map((stage) => [
        stage,
        ...perColumn((record, thread) => cell(record[thread], record[thread][stage])),
      ]),
      ["sum of the stages", ...perColumn((record, thread) => sumOf(record[thread]))],
      [
        "CPU of these threads, by the system",
        ...perColumn((record, thread) =>
          thread === "main" ? record.mainCpuMicros : record.workersCpuMicros,
        ),
      ],
      ["CPU of other threads", ...once(({ otherCpuMicros }) => otherCpuMicros)],
      [
        "CPU of all threads",
        ...once((record) => record.mainCpuMicros + record.workersCpuMicros + record.otherCpuMicros),
      ],
      ["requests", ...once(({ requests }) => requests)],
    ],
  };
}

function agreementTable(records: readonly StageRecord[]): ResultTable {
  const rows: ResultTable["rows"][number][] = [];
  for (const record of records) {
    const said = record.serverTiming!;
    for (const stage of ["cache", "read", "decode", "encode"] as const) {
      if (said[stage] === undefined) continue;
      const profiled = profiledMicros(record, stage);
      rows.push([record.kind, stage, said[stage], profiled, said[stage] / profiled]);
    }
    const sum = Object.values(said).reduce((total, micros) => total + micros, 0);
    rows.push([record.kind, "all that Server-Timing has", sum, undefined, undefined]);
    rows.push([
      record.kind,
      "request to last byte, for the client",
      record.totalMicros,
      undefined,
      undefined,
    ]);
  }
  return {
    title: "Server-Timing beside the profile, µs per request, one at a time",
    columns: ["chunk", "stage", "Server-Timing", "profile", "÷"],
    rows,
  };
}

function profiledMicros(
  { isMade, main, workers, otherCpuMicros }: StageRecord,
  stage: "cache" | "read" | "decode" | "encode",
): number {
  if (stage !== "read") return (main[stage] ?? 0) + (workers[stage] ?? 0);
  return isMade ? (workers.read ?? 0) + (workers.idle ?? 0) : (main.read ?? 0) + otherCpuMicros;
}
