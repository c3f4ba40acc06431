/**
 * Damaged chunks and noise for every decoder:
 *
 *     node dist/bench/fuzz-codecs.js [--minutes N] [--seed N] [--max-inputs N] [--only "blosc lz4"]
 *     node dist/bench/fuzz-codecs.js FILE.json…        decodes again what has failed, as written to .build/fuzz
 *
 * Every one must decode to the length that was planned, or be refused as corrupt; good chunks must decode afterwards. Prints a Markdown table; ends with 1 where anything
 * has failed.
 */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import type { CodecStep } from "../src/zarr/codec-step.js";
import { packageRoot } from "./data/bench-data.js";
import { decodeInLease, type FuzzFailure } from "./fuzz/fuzz-batch.js";
import { type FuzzReport, runFuzz } from "./fuzz/run-fuzz.js";
import { createProgress } from "./progress.js";
import { formatNumber, markdownTable } from "./report/markdown-cells.js";
import { runProgram } from "./run-program.js";

const FOLDER = join(packageRoot(), ".build", "fuzz");
const DEFAULT_MINUTES = 1;
const DEFAULT_MAX_INPUTS = 100_000_000;
const INPUTS_PER_BATCH = 400;
const BATCH_TIMEOUT_MS = 120_000;

/** What is written of a failure, so that it can be decoded again. */
interface FailureFile extends Omit<FuzzFailure, "bytes"> {
  /** Base64. */
  readonly bytes: string;
}

/** Writes a failing input. @returns Its file. */
export function writeFailure(failure: FuzzFailure, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const bytes = Buffer.from(failure.bytes);
  const name = createHash("sha256").update(bytes).digest("hex").slice(0, 16);
  const file = join(folder, `${failure.step.codec.id}-${name}.json`);
  const content: FailureFile = { ...failure, bytes: bytes.toString("base64") };
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
  return file;
}

/** The report as Markdown. */
export function fuzzText(report: FuzzReport, seed: number, files: readonly string[]): string {
  const { targets, failures, notes, memory, nextSeed } = report;
  const columns = ["decoder", "damaged chunks", "decoded", "refused", "longest ms", "largest buffer"];
  const rows = targets.map((each) => [
    each.target,
    ...[each.inputs, each.decoded, each.refused],
    each.longestMs,
    each.largestAllocation,
  ]);
  const mib = (bytes: number) => formatNumber(bytes / 2 ** 20);
  const total = targets.reduce((sum, { inputs }) => sum + inputs, 0);
  return [
    ...markdownTable(columns, rows),
    "",
    `- ${total.toLocaleString("en-US")} damaged chunks, seeds ${seed} to ${nextSeed - 1}, ${memory.length} ${memory.length === 1 ? "process" : "processes"}.`,
    ...memory.map(
      ({ before, after }) =>
        `- Resident memory: ${mib(before)} MiB when every decoder had had a turn, ${mib(after)} MiB at the end.`,
    ),
    ...notes.map((note) => `- ${note}`),
    ...failures.map(
      ({ target, kind, problem, seed }, i) =>
        `- **FAILED** ${target}, seed ${seed}, ${kind}: ${problem}; kept in ${files[i]}`,
    ),
    failures.length === 0 ? "- Nothing failed." : `- **${failures.length} failed.**`,
    "",
  ].join("\n");
}

/** Decodes a kept input again. @returns What comes of it. */
export async function replay(file: string): Promise<string> {
  const { bytes, step } = JSON.parse(readFileSync(file, "utf8")) as { bytes: string; step: CodecStep };
  const input = new Uint8Array(Buffer.from(bytes, "base64"));
  return decodeInLease(input, step).then(
    ({ length }) =>
      `${length} bytes, ${step.decodedByteLength ?? `at most ${step.maxDecodedByteLength}`} planned`,
    (error: unknown) => String(error),
  );
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: String(DEFAULT_MINUTES) },
      seed: { type: "string" },
      only: { type: "string", default: "" },
      "max-inputs": { type: "string", default: String(DEFAULT_MAX_INPUTS) },
    },
  });
  for (const file of positionals) console.log(`${file}\n${await replay(file)}`);
  if (positionals.length > 0) return;
  // Another one every time, unless it is said: what has been tried once need not be tried again.
  const seed = values.seed === undefined ? (Date.now() % 1_000_000_000) + 1 : Number(values.seed);
  console.error(`bench: seed ${seed}`);
  const progress = createProgress();
  progress.label("fuzz-codecs");
  const report = await runFuzz({
    seed,
    seconds: Number(values.minutes) * 60,
    maxInputs: Number(values["max-inputs"]),
    inputsPerBatch: INPUTS_PER_BATCH,
    only: values.only,
    folder: FOLDER,
    batchTimeoutMs: BATCH_TIMEOUT_MS,
    onProgress: progress.update,
  });
  progress.end();
  const files = report.failures.map((failure) => relative(process.cwd(), writeFailure(failure, FOLDER)));
  console.log(fuzzText(report, seed, files));
  if (report.failures.length > 0) process.exitCode = 1;
}

await runProgram(import.meta.url, main);
