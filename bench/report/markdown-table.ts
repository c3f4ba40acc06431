import { experimentSection, goalSection, type NamedResult } from "./experiment-section.js";
import { markdownTable, NONE, formatNumber as number } from "./markdown-cells.js";
import { rowGoals } from "./row-goals.js";
import type { Summary } from "./summarize.js";

/** What the results say besides the numbers. */
export interface ReportText {
  readonly command: string;
  readonly date: string;
  readonly machine: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly seconds: number;
  /** Title of each row, by name. */
  readonly titles: Readonly<Record<string, string>>;
  readonly notes: readonly string[];
  readonly experiments: readonly NamedResult[];
}

/** Rounds shorter than this are pointed out. */
const SHORT_SECONDS = 0.5;

/** A generator that uses more of a processor than this may be what is measured. */
const BUSY_GENERATOR = 0.9;

/** The results as Markdown: goals, a table per row of the benchmark, a section per experiment. @param against See `summarize`. */
export function markdownReport(
  summaries: readonly Summary[],
  against: readonly string[],
  text: ReportText,
): string {
  const lines = ["# Benchmark of zpublish", "", `\`${text.command}\`, ${text.date}`, ""];
  lines.push(
    ...goalSection([...rowGoals(summaries), ...text.experiments.flatMap(({ result }) => result.goals)]),
  );
  for (const [name, title] of Object.entries(text.titles)) {
    const rows = summaries.filter(({ row }) => row === name);
    if (rows.length === 0) continue;
    const generator = rows[0]!.generator === "wrk" ? "wrk" : "a Node process, which may itself be the limit";
    const shortest = Math.min(...rows.map(({ seconds }) => seconds));
    const warning =
      shortest < SHORT_SECONDS
        ? ` The shortest round took ${number(shortest)} s, which is too short to rely on.`
        : "";
    lines.push(
      `## ${name}`,
      "",
      `${capitalized(title)}. Load: ${generator}.${warning}`,
      "",
      ...table(rows, against),
      "",
    );
  }
  lines.push(...text.experiments.flatMap(experimentSection));
  if (text.notes.length > 0) lines.push("## Left out", "", ...text.notes.map((note) => `- ${note}`), "");
  lines.push("## How to read it", "", ...explanation(text), "");
  lines.push(
    "## Machine",
    "",
    ...Object.entries(text.machine).map(([name, value]) => `- ${name}: ${value}`),
    "",
  );
  return lines.join("\n");
}

function table(rows: readonly Summary[], against: readonly string[]): string[] {
  const head = [
    ...["subject", "requests/s", "lowest–highest", "MiB/s", "p50 ms", "p90 ms", "p99 ms"],
    ...[
      "CPU s/GB",
      "CPU µs/request",
      "peak MiB",
      "load CPU",
      "head B",
      ...against.map((name) => `× ${name}`),
    ],
  ];
  const body = rows.map((row) => [
    row.subject,
    number(row.requestsPerSecond),
    row.range.map(number).join("–"),
    number(row.mibPerSecond || undefined),
    number(row.p50),
    number(row.p90),
    number(row.p99),
    number(row.cpuSecondsPerGb),
    number(row.cpuMicrosPerRequest),
    number(row.peakBytes === undefined ? undefined : row.peakBytes / 2 ** 20),
    generatorUse(row.generatorUse),
    row.headByteLength,
    ...against.map((name) => (name === row.subject ? NONE : (row.ratios[name]?.toFixed(2) ?? NONE))),
  ]);
  return markdownTable(head, body);
}

function generatorUse(use: number | undefined): string {
  if (use === undefined) return NONE;
  return `${Math.round(use * 100)} %${use > BUSY_GENERATOR ? " (!)" : ""}`;
}

function explanation({ rounds, seconds }: ReportText): string[] {
  return [
    `- Medians of ${rounds} rounds; the subjects take turns within a round, and the order is turned round every other round. A ratio is the median of the ratios within a round. A difference smaller than lowest–highest means nothing.`,
    `- Every answer was checked before it was timed: zpublish's chunks byte by byte with the stored files or, decoded, with the field's values, its documents with what is stored; the bytes of the others with those; a peer's chunks decoded; 304 by each subject's own ETag. Warm rows: ${seconds} s per subject and round, on one server per subject, after a second of load that is not counted. Cold rows: a fresh server with an empty cache each round, and each chunk once; the files themselves are in the system's page cache, for every subject alike.`,
    "- Server and load generator share the machine and speak over loopback: there is no network in these numbers, and on few cores the generator takes its part of the CPU.",
    `- "load CPU" is how much of one processor the generator used, which has one thread: above ${BUSY_GENERATOR * 100} % (!) it may be the limit rather than the server. "head B" are the bytes of status line and headers of one answer: zpublish sends what its contract asks for (CORS, ETag, Cache-Control, Server-Timing …), bare uWebSockets.js next to nothing; \`--same-headers\` adds a subject that sends the same.`,
    "- MiB/s and CPU s/GB count bodies, as sent. CPU is that of the server with all its threads and processes, left out below 0.1 s in a round. Peak memory includes mapped files, so zpublish's includes pages of its cache that the system may take back.",
    "- zpublish looks at the file behind a cached chunk before it answers, so that a rewritten chunk is not served stale; nginx's open_file_cache, as set here, does so once a minute, and zpublish not at all for a dataset with `immutable`, which has a line of its own.",
    "- Where zpublish transcodes or rechunks, the others answer its results ready-made from memory or files: what it would cost to have prepared them all.",
  ];
}

function capitalized(title: string): string {
  return title.charAt(0).toUpperCase() + title.slice(1);
}
