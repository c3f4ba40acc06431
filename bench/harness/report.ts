import { groupBy, median } from "../statistics.js";
import type { Aim, ContestResult, Measurement } from "./harness.js";

/** A table that has been run. */
export interface NamedResult {
  readonly name: string;
  readonly title: string;
  readonly contests: readonly ContestResult[];
}

/** What the results say besides the numbers. */
export interface ReportText {
  readonly command: string;
  readonly date: string;
  readonly machine: Readonly<Record<string, string>>;
  readonly rounds: number;
  readonly seconds: number;
  /** Contestants that were left out, and why. */
  readonly notes: readonly string[];
}

/** A contestant, as it stands in a table. */
interface Line {
  readonly contestant: string;
  readonly build: string;
  readonly name: string;
  readonly own: readonly Measurement[];
}

const HOW_TO_READ = [
  "Contestants take turns within a round, and the order is turned round every other round. Numbers are medians of the rounds; ranges are of lowest and highest. A ratio is the median of the ratios within rounds. A difference within the range means nothing.",
  "Every answer was checked before it was timed: zpublish's chunks byte by byte with the stored files or, decoded, with the field's values, its documents with what is stored; the bytes of the others with those; a peer's chunks decoded.",
  "Server and load generator share the machine and speak over loopback: there is no network in these numbers, and on few cores the generator takes its part of the CPU.",
  '"load CPU" is how much of one processor the generator used, which has one thread: above 0.9 it may be the limit rather than the server. "head B" are the bytes of status line and headers of one answer: zpublish sends what its contract asks for, bare uWebSockets.js next to nothing.',
  "CPU is that of the server with all its threads and processes, left out below 0.1 s in a round. Peak memory includes mapped files, so zpublish's includes pages of its cache that the system may take back.",
];

/** Returns the results as Markdown: goals, and a section per table with every round. */
export function markdownReport(results: readonly NamedResult[], text: ReportText): string {
  const { command, date, machine, rounds, seconds, notes } = text;
  const goals = results.flatMap(({ name, contests }) =>
    contests.flatMap((result) =>
      (result.contest.aims ?? []).flatMap((aim) => goalRow(name, aim, result) ?? []),
    ),
  );
  const lines = ["# Benchmark of zpublish", "", `\`${command}\`, ${date}`, ""];
  if (goals.length > 0)
    lines.push("## Goals", "", ...markdownTable(["goal", "aim", "measured", "met"], goals), "");
  for (const { name, title, contests } of results) {
    lines.push(`## ${name}`, "", `${title.charAt(0).toUpperCase()}${title.slice(1)}.`, "");
    for (const result of contests) lines.push(...contestSection(result));
  }
  if (notes.length > 0) lines.push("## Left out", "", ...notes.map((note) => `- ${note}`), "");
  const length = `${rounds} rounds; a warm measurement takes ${seconds} s.`;
  lines.push("## How to read it", "", ...[length, ...HOW_TO_READ].map((note) => `- ${note}`), "");
  lines.push("## Machine", "", ...Object.entries(machine).map(([key, value]) => `- ${key}: ${value}`), "");
  return lines.join("\n");
}

function linesOf({ measurements }: ContestResult): Line[] {
  const groups = groupBy(measurements, ({ contestant, build }) => `${contestant}\0${build}`);
  return [...groups.values()].map((own) => {
    const { contestant, build } = own[0];
    return { contestant, build, name: build === "" ? contestant : `${contestant}, ${build}`, own };
  });
}

function contestSection(result: ContestResult): string[] {
  const { title, compared, rounds = [], against = [], notes = [] } = result.contest;
  const lines = linesOf(result);
  const others = against.flatMap((name) => lineOf(lines, name) ?? []);
  const hasBase = lines.some(({ build }) => build !== "");
  const columns = [...new Set(result.measurements.flatMap(({ figures }) => Object.keys(figures)))];
  const head = [
    "",
    ...columns.flatMap((column) => (column === compared ? [column, "lowest–highest"] : [column])),
    ...others.map(({ name }) => `÷ ${name}`),
    ...(hasBase ? ["÷ base"] : []),
  ];
  const rows = lines.map((line) => {
    const base = line.build === "" ? lineOf(lines, line.contestant, "base") : undefined;
    return [
      line.name,
      ...columns.flatMap((column) => {
        const values = valuesOf(line, column);
        return column === compared ? [median(values), rangeText(values)] : [median(values)];
      }),
      ...others.map((other) => (other === line ? NONE : ratioText(ratios(line, other, compared)))),
      ...(hasBase ? [base === undefined ? NONE : ratioText(ratios(line, base, compared))] : []),
    ];
  });
  return [
    ...(title === undefined ? [] : [`### ${title}`, ""]),
    ...[...markdownTable(head, rows), ""],
    ...[compared, ...rounds].flatMap((column) => everyRound(lines, column)),
    ...[...result.notes, ...notes].map((note) => `- ${note}`),
    "",
  ];
}

function everyRound(lines: readonly Line[], column: string): string[] {
  const rounds = [...new Set(lines.flatMap(({ own }) => own.map(({ round }) => round)))];
  if (rounds.length < 2) return [];
  const rows = lines.map((line) => [line.name, ...rounds.map((round) => valueIn(line, round, column))]);
  const head = [`${column}, each round`, ...rounds.map((round) => String(round + 1))];
  return [...markdownTable(head, rows), ""];
}

function lineOf(lines: readonly Line[], contestant: string, build = ""): Line | undefined {
  return lines.find((line) => line.contestant === contestant && line.build === build);
}

function valuesOf({ own }: Line, column: string): number[] {
  return own.map(({ figures }) => figures[column]).filter((value) => value !== undefined);
}

function valueIn({ own }: Line, round: number, column: string): number | undefined {
  return own.find((each) => each.round === round)?.figures[column];
}

/** Ratios within rounds. */
function ratios(line: Line, other: Line, column: string): number[] {
  return line.own.flatMap(({ round, figures }) => {
    const [value, divisor] = [figures[column], valueIn(other, round, column)];
    return value === undefined || divisor === undefined || divisor === 0 ? [] : [value / divisor];
  });
}

function ratioText(values: readonly number[]): string {
  const middle = median(values);
  if (middle === undefined) return NONE;
  const range = [Math.min(...values), Math.max(...values)].map((value) => value.toFixed(2));
  return values.length < 2 ? middle.toFixed(2) : `${middle.toFixed(2)} (${range.join("–")})`;
}

function rangeText(values: readonly number[]): string {
  return values.length === 0 ? NONE : [Math.min(...values), Math.max(...values)].map(formatNumber).join("–");
}

function goalRow(table: string, aim: Aim, result: ContestResult): [string[]] | undefined {
  const { of, figure = result.contest.compared, against, least, most } = aim;
  const lines = linesOf(result);
  const line = lineOf(lines, of);
  const other = against === undefined ? undefined : lineOf(lines, against);
  if (line === undefined || (against !== undefined && other === undefined)) return undefined;
  const measured = median(other === undefined ? valuesOf(line, figure) : ratios(line, other, figure));
  if (measured === undefined) return undefined;
  const isMet = (least === undefined || measured >= least) && (most === undefined || measured <= most);
  const unit = against === undefined ? "" : ` × ${against}`;
  const expected = least === undefined ? `at most ${most}` : `at least ${least}`;
  const where = [table, result.contest.title, of, figure].filter((part) => part !== undefined).join(": ");
  return [[where, expected + unit, formatNumber(measured), isMet ? "yes" : "**no**"]];
}

/** What stands where there is no number. */
const NONE = "–";

/** Three digits at least, with commas for thousands. */
export function formatNumber(value: number | null | undefined): string {
  // Without an answer in time there is no percentile: NaN, which JSON of another process writes as null.
  if (value === undefined || value === null || Number.isNaN(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** As a count is: without decimals where it has none. */
function formatCell(value: string | number | undefined): string {
  if (typeof value === "string") return value;
  return Number.isInteger(value) ? value!.toLocaleString("en-US") : formatNumber(value);
}

/** A table in Markdown, its first column to the left and the others to the right. */
export function markdownTable(
  columns: readonly string[],
  rows: readonly (readonly (string | number | undefined)[])[],
): string[] {
  const rule = columns.map((_, i) => (i === 0 ? "---" : "--:"));
  return [columns, rule, ...rows.map((row) => row.map(formatCell))].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
}
