import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { compareFiles } from "../test/foreign/compare-files.js";
import { type ForeignOutcome, findFiles, type MeasuredOutcome } from "../test/foreign/foreign-file.js";
import { runProgram } from "./children.js";
import { createProgress } from "./progress.js";
import { groupBy } from "./statistics.js";

/** Examples of each reason. */
const EXAMPLES = 3;
const SLOWEST = 10;

/** Writes what became of files as Markdown: counts, every kind of refusal with its reason, every kind of difference. */
export function foreignReport(outcomes: readonly MeasuredOutcome[]): string {
  return [
    "# Files of other projects\n",
    counts(outcomes),
    reasons(
      "Files that are refused, though their own library opens them",
      outcomes.flatMap(({ file, outcome }) =>
        outcome.refusedFile !== undefined && outcome.oracle === undefined
          ? [[outcome.refusedFile, file.id]]
          : [],
      ),
    ),
    reasons(
      "Files that are refused, and that no library opens",
      outcomes.flatMap(({ file, outcome }) =>
        outcome.refusedFile !== undefined && outcome.oracle !== undefined
          ? [[outcome.refusedFile, file.id]]
          : [],
      ),
    ),
    reasons(
      "Files that are served, though their own library does not open them",
      outcomes.flatMap(({ file, outcome }) =>
        outcome.refusedFile === undefined && outcome.oracle !== undefined ? [[outcome.oracle, file.id]] : [],
      ),
    ),
    reasons(
      "Arrays and groups that are refused",
      outcomes.flatMap(({ file, outcome }) =>
        Object.entries(outcome.refused ?? {}).map(([path, reason]) => [reason, `${file.id} ${path}`]),
      ),
    ),
    reasons(
      "Arrays that differ",
      outcomes.flatMap(({ file, outcome }) =>
        Object.entries(outcome.differs ?? {}).map(([path, what]) => [what, `${file.id} ${path}`]),
      ),
    ),
    reasons(
      "What xarray reads otherwise",
      outcomes.flatMap(({ file, outcome }) =>
        (outcome.differences ?? []).map((what) => [
          what.replace(/^(\S+ \S+) \S*: /, "$1: "),
          `${file.id}: ${what}`,
        ]),
      ),
    ),
    slowest("Slowest to open", outcomes, "openMs"),
    slowest("Event loop held longest", outcomes, "heldMs"),
  ].join("\n");
}

function counts(outcomes: readonly MeasuredOutcome[]): string {
  const groups: (readonly [string, readonly MeasuredOutcome[]])[] = [
    ...groupBy(outcomes, ({ format }) => format ?? "none of these"),
    ["all", outcomes],
  ];
  const rows = groups.map(([format, group]) => {
    const sum = (count: (outcome: ForeignOutcome) => number) =>
      group.map(({ outcome }) => count(outcome)).reduce((total, each) => total + each, 0);
    return [
      format,
      group.length,
      sum(({ refusedFile }) => (refusedFile === undefined ? 1 : 0)),
      sum(({ refusedFile, oracle }) => (refusedFile !== undefined && oracle === undefined ? 1 : 0)),
      sum(({ refusedFile, oracle }) => (refusedFile !== undefined && oracle !== undefined ? 1 : 0)),
      sum(({ equal = 0 }) => equal),
      sum(({ refused = {} }) => Object.keys(refused).length),
      sum(({ unread = [] }) => unread.length),
      sum(({ differs = {} }) => Object.keys(differs).length),
      sum(({ compared = 0 }) => compared),
      sum(({ differences = [] }) => differences.length),
    ];
  });
  const head = [
    ...[
      "format",
      "files",
      "open",
      "refused",
      "refused by their library too",
      "arrays equal",
      "arrays refused",
    ],
    ...[
      "arrays their library cannot read",
      "arrays that differ",
      "variables compared in xarray",
      "differences there",
    ],
  ];
  return `${[head, head.map(() => "---"), ...rows].map((row) => `| ${row.join(" | ")} |`).join("\n")}\n`;
}

/** Groups reasons that differ only in names and numbers. */
function reasons(title: string, all: readonly (readonly string[])[]): string {
  const groups = [...groupBy(all, ([reason]) => shapeOf(reason as string))].sort(
    (a, b) => b[1].length - a[1].length,
  );
  if (groups.length === 0) return `## ${title}\n\nNone.\n`;
  const lines = groups.map(([, group]) => {
    const examples = group.slice(0, EXAMPLES).map(([, where]) => `\`${where}\``);
    return `- **${group.length}** × ${group[0]![0]!.slice(0, 300).replaceAll("\n", " ")}\n  ${examples.join(", ").slice(0, 600)}`;
  });
  return `## ${title} (${all.length})\n\n${lines.join("\n")}\n`;
}

function shapeOf(reason: string): string {
  return reason
    .replace(/'[^']*'|"[^"]*"|\/tmp\/\S+|\S+\.(nc|h5|hdf5|tiff?|cdf|mnc)\b/g, "…")
    .replace(/(expected|received) [^:;]*/g, "$1 …")
    .replace(/-?\d[\d.]*/g, "n")
    .slice(0, 120);
}

function slowest(title: string, outcomes: readonly MeasuredOutcome[], key: "openMs" | "heldMs"): string {
  const lines = [...outcomes]
    .sort((a, b) => b[key] - a[key])
    .slice(0, SLOWEST)
    .map((outcome) => `- ${Math.round(outcome[key])} ms: \`${outcome.file.id}\``);
  return `## ${title}\n\n${lines.join("\n")}\n`;
}

/**
 * Serves every file below a folder, compares it with what its own libraries read, and prints a report. `--outcomes` writes what became
 * of each file, as `test/fixtures/foreign/outcomes.json` has it.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      directory: { type: "string" },
      outcomes: { type: "string" },
    },
  });
  if (values.directory === undefined) {
    console.error("foreign-files: expected --directory with a folder of NetCDF, HDF5 and TIFF files");
    process.exitCode = 2;
    return;
  }
  // In the fixtures' own folder, these are no data.
  const files = findFiles(values.directory).filter(({ id }) => !/\.(json|md|txt|tsv|jsonl|list)$/.test(id));
  const progress = createProgress();
  progress.label(`${files.length} files`);
  const scratch = await mkdtemp(join(tmpdir(), "zpublish-foreign-"));
  try {
    const outcomes = await compareFiles(files, scratch, (done) =>
      progress.update(done / files.length, `${done} of ${files.length}`),
    );
    progress.end();
    console.log(foreignReport(outcomes));
    if (values.outcomes !== undefined) {
      const entries = outcomes.map(({ file, outcome }) => [file.id, outcome]);
      writeFileSync(values.outcomes, `${JSON.stringify(Object.fromEntries(entries), null, 2)}\n`);
    }
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

await runProgram(import.meta.url, main);
