/**
 * Programs that try to break the service for some minutes:
 *
 *     npm run stress -- chaos [--minutes N] [--seed N] [--processes N] [--only "cache,worker"] [--program zpublish.cjs] [--keep]
 *     npm run stress -- fuzz-codecs [--minutes N] [--seed N] [--only "blosc lz4"]
 *     npm run stress -- fuzz-files [--minutes N] [--seed N] [--only netcdf3]
 *
 * `chaos` runs the real program under load while workers die, sources change and fail, the cache is damaged, and processes are
 * killed; clients check every byte of every answer. `fuzz-codecs` feeds damaged chunks and noise to every decoder, `fuzz-files`
 * damaged NetCDF, HDF5 and TIFF files to the readers of their formats. Each prints a report in Markdown, with the seed, and ends
 * with 1 if anything has failed. What is needed to see a failure again is kept in `.build/stress`.
 */
import { mkdirSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { join, relative } from "node:path";
import { parseArgs } from "node:util";
import { runProgram } from "../../bench/children.js";
import { createProgress } from "../../bench/progress.js";
import { PACKAGE_ROOT } from "../support/clients/client-generation.js";
import { chaosText, isClean, runChaos } from "./chaos/chaos.js";
import { fuzzText, keepFailure, runFuzz } from "./fuzz/fuzz.js";

const FOLDER = join(PACKAGE_ROOT, ".build", "stress");
const BATCH_TIMEOUT_MS = 120_000;

/** What the command line asks for. */
interface StressOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly only: string;
  /** Undefined: half of the time with one process, and half with two. */
  readonly processes: number | undefined;
  readonly program: string | undefined;
  readonly isKept: boolean;
}

/** A program. @returns Whether nothing failed. */
type Program = (options: StressOptions) => Promise<boolean>;

const PROGRAMS: Readonly<Record<string, Program>> = {
  chaos,
  "fuzz-codecs": (options) => fuzz("codecs", 400, options),
  "fuzz-files": (options) => fuzz("files", 64, options),
};

async function chaos({ seconds, seed, only, processes, program, isKept }: StressOptions): Promise<boolean> {
  const legs = processes === undefined ? [1, 2] : [processes];
  const progress = createProgress();
  let isAllClean = true;
  mkdirSync(FOLDER, { recursive: true });
  for (const count of legs) {
    const folder = await mkdtemp(join(FOLDER, "chaos-"));
    progress.label(`chaos, ${count} ${count === 1 ? "process" : "processes"}`);
    const report = await runChaos({
      ...{ seed, seconds: Math.round(seconds / legs.length), processes: count, folder },
      ...(program !== undefined && { program }),
      only: only.split(",").filter((name) => name !== ""),
      onProgress: progress.update,
    });
    progress.end();
    console.log(chaosText(report, seed));
    isAllClean &&= isClean(report);
    if (isClean(report) && !isKept) await rm(folder, { recursive: true, force: true });
    else console.log(`Data, configuration and log are kept in ${folder}\n`);
  }
  return isAllClean;
}

async function fuzz(
  name: string,
  inputsPerBatch: number,
  { seconds, seed, only }: StressOptions,
): Promise<boolean> {
  const progress = createProgress();
  progress.label(`fuzz-${name}`);
  const folder = join(FOLDER, `fuzz-${name}`);
  const report = await runFuzz({
    ...{ kind: name, seed, seconds, maxBatches: Number.MAX_SAFE_INTEGER, inputsPerBatch, only, folder },
    batchTimeoutMs: BATCH_TIMEOUT_MS,
    onProgress: progress.update,
  });
  progress.end();
  const kept = report.failures.map((failure) =>
    relative(process.cwd(), keepFailure(failure, join(folder, "failures"))),
  );
  console.log(fuzzText(report, seed, kept));
  return report.failures.length === 0;
}

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      minutes: { type: "string", default: "1" },
      seed: { type: "string" },
      only: { type: "string", default: "" },
      processes: { type: "string" },
      program: { type: "string" },
      keep: { type: "boolean", default: false },
    },
  });
  const [name = ""] = positionals;
  const program = PROGRAMS[name];
  const seconds = Number(values.minutes) * 60;
  if (program === undefined || !(seconds > 0)) {
    const expected = `one of ${Object.keys(PROGRAMS).join(", ")}, and --minutes above 0`;
    console.error(`stress: expected ${expected}; received ${name || "nothing"}, ${values.minutes}`);
    process.exitCode = 2;
    return;
  }
  // Another one every time, unless it is given: inputs that were tried once need not be tried again.
  const seed = values.seed === undefined ? (Date.now() % 1_000_000) + 1 : Number(values.seed);
  console.error(`stress: seed ${seed}`);
  const isRight = await program({
    ...{ seconds, seed, only: values.only, program: values.program, isKept: values.keep },
    processes: values.processes === undefined ? undefined : Number(values.processes),
  });
  if (!isRight) process.exitCode = 1;
}

await runProgram(import.meta.url, main);
