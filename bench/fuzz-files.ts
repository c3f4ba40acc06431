/**
 * Damaged NetCDF, HDF5 and TIFF files for the readers of file formats:
 *
 *     node dist/bench/fuzz-files.js [--minutes N] [--seed N] [--max-batches N] [--only netcdf3]
 *     node dist/bench/fuzz-files.js FILE…        reads files again that have failed, as kept in .build/fuzz-files
 *
 * Each is refused or read, in bounded time and memory. Values of a copy differ from those of the good file only if bytes that they
 * are made of were damaged. Prints a Markdown table; ends with 1 if anything has failed.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { FORMATS } from "../src/formats/formats.js";
import { packageRoot } from "./data/bench-data.js";
import { readWholeFile } from "./fuzz/file-reading.js";
import type { FileFailure } from "./fuzz/fuzz-file.js";
import { writeGeneratedFiles } from "./fuzz/generated-files.js";
import { type FileFuzzReport, runFileFuzz } from "./fuzz/run-file-fuzz.js";
import { createProgress } from "./progress.js";
import { markdownTable } from "./report/markdown-cells.js";
import { runProgram } from "./run-program.js";

const FOLDER = join(packageRoot(), ".build", "fuzz-files");
const FIXTURES = join(packageRoot(), "test", "fixtures");
const DEFAULT_MINUTES = 1;
const INPUTS_PER_BATCH = 64;
const BATCH_TIMEOUT_MS = 60_000;

/** Writes a damaged file that has failed. @returns Its path. */
export function writeFileFailure({ target, bytes }: FileFailure, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const hash = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const file = join(folder, `${target.replace(/[^\w.-]+/g, "-")}-${hash}`);
  writeFileSync(file, bytes);
  return file;
}

/** Returns the report as Markdown. */
export function fileFuzzText(report: FileFuzzReport, seed: number, files: readonly string[]): string {
  const { formats, failures, notes, processes, nextSeed } = report;
  const columns = [
    "format",
    "damaged files",
    "refused",
    "chunks decoded",
    "chunks refused",
    "longest ms",
    "largest buffer",
    "resident MiB",
  ];
  const rows = [...formats].map(([format, each]) => [
    format,
    ...[
      each.inputs,
      each.refused,
      each.decodedChunks,
      each.refusedChunks,
      each.longestMs,
      each.largestAllocation,
    ],
    each.largestRss / 2 ** 20,
  ]);
  const total = [...formats.values()].reduce((sum, { inputs }) => sum + inputs, 0);
  return [
    ...markdownTable(columns, rows),
    "",
    `- ${total.toLocaleString("en-US")} damaged files, seeds ${seed} to ${nextSeed - 1}, ${processes} ${processes === 1 ? "process" : "processes"}.`,
    ...notes.map((note) => `- ${note}`),
    ...failures.map(
      ({ target, kind, problem, seed, number }, i) =>
        `- **FAILED** ${target}, seed ${seed}, number ${number}, ${kind}: ${problem.replace(/\s+/g, " ")}; kept in ${files[i]}`,
    ),
    failures.length === 0 ? "- Nothing failed." : `- **${failures.length} failed.**`,
    "",
  ].join("\n");
}

/** Reads a kept file again. @returns What comes of it. */
async function replay(file: string): Promise<string> {
  const bytes = new Uint8Array(readFileSync(file));
  const lines: string[] = [];
  for (const format of FORMATS) {
    if (!format.recognizes(bytes.subarray(0, 4096))) continue;
    const { arrays, refusal, problems } = await readWholeFile(format, bytes);
    lines.push(`${format.id}: ${refusal ?? `${arrays.size} arrays`}`, ...problems);
  }
  return lines.join("\n") || "no format recognizes it";
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: String(DEFAULT_MINUTES) },
      seed: { type: "string" },
      only: { type: "string", default: "" },
      "max-batches": { type: "string", default: String(Number.MAX_SAFE_INTEGER) },
    },
  });
  for (const file of positionals) console.log(`${file}\n${await replay(file)}`);
  if (positionals.length > 0) return;
  const seed = values.seed === undefined ? (Date.now() % 1_000_000_000) + 1 : Number(values.seed);
  console.error(`bench: seed ${seed}`);
  const generated = join(FOLDER, "generated");
  const notes = writeGeneratedFiles(generated);
  const progress = createProgress();
  progress.label("fuzz-files");
  const report = await runFileFuzz({
    seed,
    seconds: Number(values.minutes) * 60,
    maxBatches: Number(values["max-batches"]),
    inputsPerBatch: INPUTS_PER_BATCH,
    only: values.only,
    seedFolders: [FIXTURES, generated],
    folder: FOLDER,
    batchTimeoutMs: BATCH_TIMEOUT_MS,
    onProgress: progress.update,
  });
  progress.end();
  const kept = report.failures.map((failure) =>
    relative(process.cwd(), writeFileFailure(failure, join(FOLDER, "failures"))),
  );
  console.log(fileFuzzText({ ...report, notes: [...notes, ...report.notes] }, seed, kept));
  if (report.failures.length > 0) process.exitCode = 1;
}

await runProgram(import.meta.url, main);
