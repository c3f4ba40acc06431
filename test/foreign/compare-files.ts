import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { PACKAGE_ROOT } from "../support/clients/client-generation.js";
import { errorsOf, serveDatasets } from "../support/clients/fixtures.js";
import { PYTHON } from "../support/clients/require-client.js";
import type { Program, ProgramLogLine } from "../support/servers/start-program.js";
import { type ForeignFile, type MeasuredOutcome, type OracleFormat, oracleFormatOf } from "./foreign-file.js";
import { inspectFiles } from "./inspect-files.js";
import type { InspectedFile } from "./inspect-worker.js";
import { type OracleAnswer, outcomeOf } from "./outcome-of.js";

const SCRIPT = join(PACKAGE_ROOT, "test", "fixtures", "compare_foreign.py");
/** Files that one server has. */
const LOT = 50;

interface Job {
  readonly id: string;
  readonly path: string;
  readonly format: OracleFormat;
  /** Of its store; null if the service refuses the file. */
  readonly url: string | null;
}

/**
 * Opens files with the service and serves them, and compares what clients get with what the libraries of their formats read.
 * Files that kill or hang a process are outcomes like others.
 * @param directory For the files of servers; the caller removes it.
 * @param onLot Called after each lot with the number of files done.
 */
export async function compareFiles(
  files: readonly ForeignFile[],
  directory: string,
  onLot: (done: number) => void = () => {},
): Promise<MeasuredOutcome[]> {
  const outcomes: MeasuredOutcome[] = [];
  for (let from = 0; from < files.length; from += LOT) {
    outcomes.push(...(await compareLot(files.slice(from, from + LOT), directory)));
    onLot(outcomes.length);
  }
  return outcomes;
}

/** Compares one lot. If the server dies over it, the halves are compared apart, down to the file that kills it. */
async function compareLot(files: readonly ForeignFile[], parent: string): Promise<MeasuredOutcome[]> {
  const inspected = await inspectFiles(files);
  const formats = new Map<string, OracleFormat | undefined>();
  for (const { id, path } of files) formats.set(id, await oracleFormatOf(path));
  return compareHalves(files, parent, inspected, formats);
}

async function compareHalves(
  files: readonly ForeignFile[],
  parent: string,
  inspected: ReadonlyMap<string, InspectedFile>,
  formats: ReadonlyMap<string, OracleFormat | undefined>,
): Promise<MeasuredOutcome[]> {
  const { answers, log, crash } = await serveAndAsk(files, parent, inspected, formats);
  if (crash !== undefined && files.length > 1) {
    const middle = files.length >> 1;
    return [
      ...(await compareHalves(files.slice(0, middle), parent, inspected, formats)),
      ...(await compareHalves(files.slice(middle), parent, inspected, formats)),
    ];
  }
  return files.map((file, index) => {
    const seen = inspected.get(file.id)!;
    const lines = crash === undefined ? log.filter((line) => isAbout(line, datasetId(index))) : [crash];
    return {
      file,
      format: formats.get(file.id),
      outcome: outcomeOf(file, seen, answers.get(file.id), lines),
      openMs: seen.openMs,
      heldMs: seen.heldMs,
    };
  });
}

interface Answers {
  readonly answers: ReadonlyMap<string, OracleAnswer>;
  /** Errors that the server logged. */
  readonly log: readonly ProgramLogLine[];
  /** Why the server ended, if it did by itself. */
  readonly crash?: ProgramLogLine;
}

async function serveAndAsk(
  files: readonly ForeignFile[],
  parent: string,
  inspected: ReadonlyMap<string, InspectedFile>,
  formats: ReadonlyMap<string, OracleFormat | undefined>,
): Promise<Answers> {
  const isServed = ({ id }: ForeignFile) => inspected.get(id)!.problem === undefined;
  const datasets = files.flatMap((file, index) =>
    isServed(file) ? [[datasetId(index), { location: file.path }] as const] : [],
  );
  const jobsAt = (server: Program | undefined) =>
    files.flatMap((file, index): Job[] => {
      const format = formats.get(file.id);
      const url = isServed(file) ? server!.storeUrl(datasetId(index)) : null;
      return format === undefined ? [] : [{ id: file.id, path: file.path, format, url }];
    });
  if (datasets.length === 0) return { answers: await askOracles(jobsAt(undefined)), log: [] };
  const directory = await mkdtemp(join(parent, "lot-"));
  let answers: ReadonlyMap<string, OracleAnswer> = new Map();
  let log: readonly ProgramLogLine[] = [];
  try {
    const server = await serveDatasets(
      { teardown: () => {} },
      {
        datasets: Object.fromEntries(datasets),
        directory,
        args: ["--skip-invalid"],
      },
    );
    try {
      answers = await askOracles(jobsAt(server));
      log = errorsOf(server);
    } finally {
      await server.stop();
    }
    return { answers, log };
  } catch (error) {
    return { answers, log, crash: { level: 60, msg: (error as Error).message } };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

function datasetId(index: number): string {
  return `f${index}`;
}

/** Tells whether a line of the log is about a dataset. */
function isAbout(line: ProgramLogLine, dataset: string): boolean {
  return line.dataset === dataset || `${line.path ?? line.url}`.includes(`/datasets/${dataset}/`);
}

/** Runs the comparison of all jobs in one Python process, which forks for each. */
async function askOracles(jobs: readonly Job[]): Promise<Map<string, OracleAnswer>> {
  const child = spawn(PYTHON, [SCRIPT], {
    stdio: ["pipe", "pipe", "pipe"],
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" },
  });
  let errorText = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errorText = (errorText + text).slice(-4_000);
  });
  child.stdin.on("error", () => {}).end(jobs.map((job) => `${JSON.stringify(job)}\n`).join(""));
  const closed = new Promise<number | string>((resolve) => {
    child.once("close", (code, signal) => resolve(code ?? signal ?? "nothing"));
  });
  const answers = new Map<string, OracleAnswer>();
  for await (const line of createInterface({ input: child.stdout })) {
    const { id, ...answer } = JSON.parse(line) as OracleAnswer & { id: string };
    answers.set(id, answer);
  }
  const status = await closed;
  if (status !== 0) throw new Error(`compare_foreign.py ended with ${status}: ${errorText}`);
  return answers;
}
