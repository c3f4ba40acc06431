import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { commandOf } from "../../test/support/clients/client-generation.js";
import { PYTHON, runChild } from "../children.js";
import { DATA_DIRECTORY, makeOnce, packageRoot } from "../data/bench-data.js";
import { openHourlyFiles, SIDE } from "../data/hourly-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Contestant,
  type Figures,
  perBuild,
  THIS_BUILD,
} from "../harness/harness.js";
import { readChildrenCpuSeconds } from "../process-cost.js";
import { optionsOf } from "../start-zpublish.js";

const SCRIPTS = join(packageRoot(), "bench", "files");
const FILES = { full: 1_000, small: 100, tiny: 5 } as const;
/** Raised when what is written changes. */
const FORMAT = 1;
/** A Debian root that has kerchunk, which Debian 12 and 13 have not. */
const { KERCHUNK_ROOT } = process.env;
const KERCHUNK = "kerchunk";
const MIN_RATIO = 10;

/** Files whose references are written. */
interface ReferredFiles {
  readonly title: string;
  readonly pattern: string;
  readonly variables: readonly string[];
}

/** References of many files as one dataset, beside kerchunk's. */
export const references: BenchTable = {
  title: "kerchunk's references of many NetCDF-4 files as one dataset, written by zpublish and by kerchunk",
  async *contests(context) {
    const { size, parent = DATA_DIRECTORY, onProgress } = context;
    const count = FILES[size];
    onProgress(0, "writing files");
    const { pattern } = await openHourlyFiles("netcdf4", count, parent);
    yield* compare(context, { title: "one chunk in a file", pattern, variables: ["field"] });
    const days = join(parent, `days-${count}-v${FORMAT}`);
    await makeOnce(days, async (unfinished) => {
      mkdirSync(join(unfinished, "files"));
      const script = join(SCRIPTS, "write_days.py");
      await runChild(PYTHON, [script, join(unfinished, "files"), String(SIDE), String(count)]);
    });
    yield* compare(context, {
      title: "five variables of 24 chunks in a file",
      pattern: join(days, "files", "day-*.nc"),
      variables: ["v0", "v1", "v2", "v3", "v4"],
    });
  },
};

async function* compare(
  context: BenchContext,
  { title, pattern, variables }: ReferredFiles,
): AsyncGenerator<Contest> {
  const count = FILES[context.size];
  const folder = context.freshFolder("references");
  const own = join(folder, "own.json");
  const theirs = join(folder, "kerchunk.json");

  async function timed(target: string, run: () => Promise<unknown>): Promise<Figures> {
    rmSync(target, { force: true });
    const cpuBefore = readChildrenCpuSeconds() ?? Number.NaN;
    const began = performance.now();
    await run();
    const seconds = (performance.now() - began) / 1_000;
    const cpu = (readChildrenCpuSeconds() ?? Number.NaN) - cpuBefore;
    return { "files/s": count / seconds, s: seconds, "CPU s": cpu };
  }

  const write = ({ program }: Build) => {
    const args = ["references", pattern, "--concat", "time", "-o", own];
    return timed(own, () => runChild(process.execPath, [...optionsOf(program), program, ...args]));
  };
  const writeTheirs = (processes: number) => {
    const args = [join(SCRIPTS, "kerchunk_references.py"), pattern, theirs, String(processes)];
    return timed(theirs, () => runKerchunk(args));
  };

  // The files are in the system's cache then, too.
  await write(THIS_BUILD);
  const peers: Contestant[] = [];
  if (KERCHUNK_ROOT !== undefined) {
    await writeTheirs(1);
    const compared = await runKerchunk([join(SCRIPTS, "compare_references.py"), own, theirs, ...variables]);
    if (Number(compared) < count) throw new Error(`expected at least ${count} chunks, compared ${compared}`);
    peers.push(
      { name: KERCHUNK, measure: () => writeTheirs(1) },
      { name: "kerchunk, 2 processes", measure: () => writeTheirs(2) },
    );
  } else if (Object.keys(JSON.parse(readFileSync(own, "utf8")).refs).length < count)
    throw new Error(`expected a reference to each of ${count} files`);
  yield {
    title: `${count.toLocaleString("en-US")} files, ${title}`,
    contestants: [...perBuild(context, "zpublish", write), ...peers],
    compared: "files/s",
    against: peers.map(({ name }) => name),
    aims: peers.slice(0, 1).map(({ name }) => ({ of: "zpublish", against: name, least: MIN_RATIO })),
    notes: [
      "From the start of each program to its end.",
      peers.length > 0
        ? "Places of all chunks, and values of the first and last step, were compared before anything was timed."
        : "kerchunk was not measured: KERCHUNK_ROOT names no Debian root that has it.",
    ],
  };
}

/** Runs a script where kerchunk is. @returns What it prints. */
function runKerchunk(args: readonly string[]): Promise<string> {
  const [program, rest] = commandOf("trixie", PYTHON, ["-W", "ignore", ...args], KERCHUNK_ROOT);
  return runChild(program, rest);
}
