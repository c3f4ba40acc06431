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
}

/** Rounds shorter than this are pointed out. */
const SHORT_SECONDS = 0.5;

const NONE = "–";

/** The results as Markdown: a table per row of the benchmark. @param against See `summarize`. */
export function markdownReport(
  summaries: readonly Summary[],
  against: readonly string[],
  text: ReportText,
): string {
  const lines = ["# Benchmark of zpublish", "", `\`${text.command}\`, ${text.date}`, ""];
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
    ...["CPU s/GB", "CPU µs/request", "peak MiB", ...against.map((name) => `× ${name}`)],
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
    ...against.map((name) => (name === row.subject ? NONE : (row.ratios[name]?.toFixed(2) ?? NONE))),
  ]);
  return [head, head.map((_, i) => (i === 0 ? "---" : "--:")), ...body].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
}

function explanation({ rounds, seconds }: ReportText): string[] {
  return [
    `- Medians of ${rounds} rounds; the subjects take turns within a round, and the order is turned round every other round. A ratio is the median of the ratios within a round. A difference smaller than lowest–highest means nothing.`,
    `- Every answer was checked before it was timed: zpublish's chunks byte by byte with the stored files or, decoded, with the field's values, its documents with what is stored; the bytes of the others with those; a peer's chunks decoded; 304 by each subject's own ETag. Warm rows: ${seconds} s per subject and round, on one server per subject, after a second of load that is not counted. Cold rows: a fresh server with an empty cache each round, and each chunk once; the files themselves are in the system's page cache, for every subject alike.`,
    "- Server and load generator share the machine and speak over loopback: there is no network in these numbers, and on few cores the generator takes its part of the CPU.",
    "- MiB/s and CPU s/GB count bodies, as sent. CPU is that of the server with all its threads and processes, left out below 0.1 s in a round. Peak memory includes mapped files, so zpublish's includes pages of its cache that the system may take back.",
    "- zpublish looks at the file behind a cached chunk before it answers, so that a rewritten chunk is not served stale; nginx's open_file_cache, as set here, does so once a minute, and zpublish not at all for a dataset with `immutable`, which has a line of its own.",
    "- Where zpublish transcodes or rechunks, the others answer its results ready-made from memory or files: what it would cost to have prepared them all.",
  ];
}

function capitalized(title: string): string {
  return title.charAt(0).toUpperCase() + title.slice(1);
}

function number(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return NONE;
  if (value >= 100) return Math.round(value).toLocaleString("en-US");
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}
