import { join } from "node:path";
import { PYTHON, runChild } from "../children.js";
import { packageRoot } from "../data/bench-data.js";
import {
  type Aim,
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type LoadTarget, runLoad } from "../load/load.js";
import { readProcessCost } from "../process-cost.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { fetchBody } from "../subjects/check-answers.js";
import { type ServingProgram, startServing } from "../subjects/serving-program.js";
import { uwsSubject } from "../subjects/uws.js";
import { compareWithFile, openFiles } from "./files.js";
import { checkValues } from "./select.js";

const SCRIPTS = join(packageRoot(), "bench", "files");
/** Steps of 512 × 512 cells of the box, and of the series. */
const SIZES = {
  full: { boxSteps: 96, steps: 1_000 },
  small: { boxSteps: 24, steps: 100 },
  tiny: { boxSteps: 2, steps: 4 },
} as const;
const STEP_BYTES = 4 * 512 ** 2;
const MEGABYTE = 1e6;
const CONNECTIONS = 8;
/** Times that an answer is asked for again. */
const TIMES = 5;
/** Folder of pydap, which Debian has not, for the comparison with its server. */
const { PYDAP_PATH } = process.env;
const WITHOUT_PYDAP =
  "pydap was skipped, because PYDAP_PATH names no folder of it: bench/README.md says what is needed.";
const DODS = ".dods";
const STORED = "zarr/, as stored";
const PLAIN = "zarr/, without a compressor";
const PYDAP = "pydap's server";
const BARE = "bare uWebSockets.js, from memory";
const STEPS = "a request for each step";
const SLICE = "one request";
const CHUNKS = "a chunk for each step, zarr/";
const PYDAP_STEPS = "a request for each step, pydap's server";

/** OPeNDAP beside pydap's server and chunks of the same file. */
export const dap: BenchTable = {
  title:
    "100 MB of a NetCDF-4 file by OPeNDAP, and a series by netCDF-C; beside pydap's server and chunks over zarr/",
  async *contests(context) {
    const folder = await openFiles(context);
    const pydap = await startPydap(folder);
    try {
      await compareWithFile(context, folder, undefined);
      const body = await compareDods(folder, pydap, context);
      yield box(folder, pydap, context);
      yield box(folder, pydap, context, body);
      yield await series(folder, pydap, context);
    } finally {
      await pydap?.stop();
    }
  },
};

/** Starts pydap's server, with one process of gunicorn; undefined if there is none. @throws Error if it ends */
async function startPydap(folder: string): Promise<ServingProgram | undefined> {
  if (PYDAP_PATH === undefined) return undefined;
  const script = join(SCRIPTS, "serve_with_pydap.py");
  return startServing((port) => [PYTHON, [script, folder, port]], "/field.nc.dds", {
    PYTHONPATH: PYDAP_PATH,
  });
}

type Range = readonly [first: number, last: number];

/** Path of a box of `field` at a server of OPeNDAP. @param url Of the dataset */
export function boxPath(url: string, ...ranges: readonly [time: Range, y: Range, x: Range]): string {
  // Without steps, which Xpublish takes for the end.
  return `${url}.dods?field${ranges.map(([first, last]) => `%5B${first}:${last}%5D`).join("")}`;
}

/** Returns the values of the first array of an answer of OPeNDAP, as little-endian bytes of float32. */
export function dodsValues(body: Buffer): Buffer {
  const begin = body.indexOf("\n", body.indexOf("\nData:") + 1) + 1;
  // The count of values comes twice before them.
  const end = begin + 8 + 4 * body.readUInt32BE(begin);
  return Buffer.from(body.subarray(begin + 8, end)).swap32();
}

/** Path of the dataset by OPeNDAP. */
export const DATASET = "/datasets/field/opendap/field.nc";

const wholeBox = (url: string, { size }: BenchContext) =>
  boxPath(url, [0, SIZES[size].boxSteps - 1], [0, 511], [0, 511]);

/** Compares the box with the file. @returns The answer of zpublish. @throws Error if values differ */
async function compareDods(
  folder: string,
  pydap: ServingProgram | undefined,
  context: BenchContext,
): Promise<Buffer> {
  const file = join(folder, "field.nc");
  return withZpublish(
    { datasets: { field: file }, scratch: context.freshFolder("compare") },
    async (server) => {
      const urls = [wholeBox(server.baseUrl + DATASET, context)];
      if (pydap !== undefined) urls.push(wholeBox(`${pydap.baseUrl}/field.nc`, context));
      const script = join(SCRIPTS, "compare_dods.py");
      await runChild(PYTHON, [script, file, String(SIZES[context.size].boxSteps), ...urls]);
      return fetchBody(server.baseUrl, wholeBox(DATASET, context));
    },
  );
}

/** Runs a fresh server that has opened the file. */
function serveFile(
  folder: string,
  build: Build,
  context: BenchContext,
  use: (server: RunningZpublish, scratch: string) => Promise<Figures>,
): Promise<Figures> {
  const scratch = context.freshFolder("dap");
  const file = join(folder, "field.nc");
  const plain = { location: file, variables: { field: { compressor: null, filters: null } } };
  return withZpublish({ build, datasets: { field: file, plain }, scratch }, async (server) => {
    await fetchBody(server.baseUrl, `${DATASET}.dds`);
    await fetchBody(server.baseUrl, "/datasets/plain/zarr/.zmetadata");
    return use(server, scratch);
  });
}

/** @param body If given, the box is measured after a first time, beside a server that sends this from memory. */
function box(
  folder: string,
  pydap: ServingProgram | undefined,
  context: BenchContext,
  body?: Buffer,
): Contest {
  const { boxSteps } = SIZES[context.size];
  const bytes = boxSteps * STEP_BYTES;
  const keys = Array.from({ length: boxSteps }, (_, step) => `field/${step}.0.0`);
  const measure = async (
    target: LoadTarget,
    paths: readonly string[],
    connections: number,
    scratch: string,
  ) => {
    const first = await transfer(target, paths, { connections, scratch, bytes, times: 1 });
    return body !== undefined
      ? transfer(target, paths, { connections, scratch, bytes, times: TIMES })
      : first;
  };
  const chunks = (id: string) => (build: Build) => {
    const paths = keys.map((key) => `/datasets/${id}/zarr/${key}`);
    return serveFile(folder, build, context, (server, scratch) =>
      measure(server, paths, CONNECTIONS, scratch),
    );
  };
  const aims: Aim[] = [{ of: DODS, against: PLAIN, least: 0.6 }];
  return {
    title: `${Math.round(bytes / MEGABYTE)} MB of a NetCDF-4 file, ${body === undefined ? "for the first time" : "again"}`,
    contestants: [
      ...perBuild(context, DODS, (build) =>
        serveFile(folder, build, context, (server, scratch) =>
          measure(server, [wholeBox(DATASET, context)], 1, scratch),
        ),
      ),
      ...perBuild(context, STORED, chunks("field")),
      ...perBuild(context, PLAIN, chunks("plain")),
      ...(pydap === undefined
        ? []
        : [
            {
              name: PYDAP,
              measure: () =>
                measure(pydap, [wholeBox("/field.nc", context)], 1, context.freshFolder("pydap")),
            },
          ]),
      ...(body === undefined
        ? []
        : [
            {
              name: BARE,
              measure: () =>
                withBare(body, folder, context, (server, path, scratch) =>
                  measure(server, [path], 1, scratch),
                ),
            },
          ]),
    ],
    compared: "MB of values/s",
    against: [STORED, PLAIN, ...(body === undefined ? [] : [BARE]), ...(pydap === undefined ? [] : [PYDAP])],
    aims: pydap === undefined ? aims : [...aims, { of: DODS, against: PYDAP, least: 10 }],
    notes: [
      `${boxSteps} steps of 512 × 512 cells of float32, each a chunk, shuffled and deflated to about half. A fresh server each round, which has opened the file; pydap's has run before. OPeNDAP: one connection; chunks: ${CONNECTIONS}. All values were compared with the file before.`,
      ...(body !== undefined ? [`${TIMES} times after a first one.`] : []),
      "CPU: of the server, for all that is sent once; in steps of 10 ms.",
      ...(pydap === undefined ? [WITHOUT_PYDAP] : []),
    ],
  };
}

/** Runs a server that sends a document from memory. */
async function withBare(
  body: Buffer,
  directory: string,
  context: BenchContext,
  use: (server: LoadTarget, path: string, scratch: string) => Promise<Figures>,
): Promise<Figures> {
  const scratch = context.freshFolder("bare");
  const path = "/box.dods";
  const server = await uwsSubject.start({
    ...{ store: { id: "field", directory }, paths: [path], documents: new Map([[path, body]]) },
    ...{ headers: {}, serving: {}, scratch },
  });
  try {
    return await use(server, path, scratch);
  } finally {
    await server.stop();
  }
}

/** Asks for all paths, several times, each time on new connections. */
async function transfer(
  target: LoadTarget,
  paths: readonly string[],
  { connections, scratch, bytes, times }: Transfer,
): Promise<Figures> {
  const before = readProcessCost(target.pid!);
  let seconds = 0;
  for (let time = 0; time < times; time++)
    seconds += (await runLoad(target, { paths, connections, length: "once", scratch })).seconds;
  const after = readProcessCost(target.pid!);
  return {
    "MB of values/s": (times * bytes) / MEGABYTE / seconds,
    "CPU ms": before && after && ((after.cpuSeconds - before.cpuSeconds) * 1_000) / times,
  };
}

interface Transfer {
  readonly connections: number;
  readonly scratch: string;
  /** Bytes of the values of all paths. */
  readonly bytes: number;
  readonly times: number;
}

type Cell = readonly [y: number, x: number];
/** Those of the first series of a round, and of the one after it. */
const CELLS: readonly [Cell, Cell] = [
  [100, 200],
  [300, 40],
];

async function series(
  folder: string,
  pydap: ServingProgram | undefined,
  context: BenchContext,
): Promise<Contest> {
  const { steps } = SIZES[context.size];
  const read = async (mode: string, source: string, cell: Cell) => {
    const args = [mode, source, steps, ...cell].map(String);
    const output = await runChild(PYTHON, [join(SCRIPTS, "read_series.py"), ...args]);
    return JSON.parse(output) as { readonly seconds: number; readonly values: readonly number[] };
  };
  context.onProgress(0, "reading the file");
  const expected: (readonly number[])[] = [];
  for (const cell of CELLS) expected.push((await read("slice", join(folder, "field.nc"), cell)).values);
  const timed = async (mode: string, target: LoadTarget, path: string): Promise<Figures> => {
    const seconds: number[] = [];
    let cpu: number | undefined;
    for (const [at, cell] of CELLS.entries()) {
      const before = readProcessCost(target.pid!);
      const received = await read(mode, target.baseUrl + path, cell);
      const after = readProcessCost(target.pid!);
      checkValues(received.values, expected[at]!);
      seconds.push(received.seconds);
      cpu = before && after && after.cpuSeconds - before.cpuSeconds;
    }
    return { "first, s": seconds[0], "another cell, s": seconds[1], "CPU, s": cpu };
  };
  const own = (mode: string, path: string) => (build: Build) =>
    serveFile(folder, build, context, (server) => timed(mode, server, path));
  const others = [STEPS, CHUNKS, ...(pydap === undefined ? [] : [PYDAP_STEPS])];
  return {
    title: `A series of ${steps.toLocaleString("en-US")} steps at one cell`,
    contestants: [
      ...perBuild(context, SLICE, own("slice", DATASET)),
      ...perBuild(context, STEPS, own("steps", DATASET)),
      ...perBuild(context, CHUNKS, own("chunks", "/datasets/field/zarr")),
      ...(pydap === undefined
        ? []
        : [{ name: PYDAP_STEPS, measure: () => timed("steps", pydap, "/field.nc") }]),
    ],
    compared: "another cell, s",
    against: others,
    notes: [
      "A step is a chunk of 1 MiB. OPeNDAP: netCDF4 of Python, that is netCDF-C, with DAP2. Chunks: zarr-python, which asks for several at a time.",
      "Without opening; a fresh server each round, which has opened the file. All values are compared with the file. CPU: of the server, for the second series and its client's opening.",
      ...(pydap === undefined ? [WITHOUT_PYDAP] : []),
    ],
  };
}
