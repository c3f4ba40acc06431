import { existsSync, renameSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Child, runChild, startChild, stopChild } from "../children.js";
import { DATA_DIRECTORY, packageRoot } from "../data/bench-data.js";
import { timeOpening } from "../files/open-file.js";
import { freePort } from "../free-port.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { startOrigin } from "../remote/origin.js";
import { startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment, ExperimentContext, Goal, ResultTable } from "./experiment.js";

const PYTHON = "/usr/bin/python3";
const SCRIPTS = join(packageRoot(), "bench", "files");
const CONNECTIONS = 8;
/** A server opens many files, and V8 compiles what is used often. */
const TIMES_OPENED = 5;
/** Raised when what is written changes. */
const FORMAT = 1;
const SIZES = {
  full: { steps: 1_000, variables: 1_000, chunks: 300_000, peerSteps: 300, remoteSteps: 900 },
  small: { steps: 100, variables: 200, chunks: 20_000, peerSteps: 50, remoteSteps: 900 },
  tiny: { steps: 4, variables: 5, chunks: 200, peerSteps: 4, remoteSteps: 4 },
} as const;
const REMOTE_FILE = "remote.nc";
const MAX_REMOTE_REQUESTS = 12;
/** Folders of Xpublish and cachey, which Debian has not, for the comparison with it. */
const { XPUBLISH_PATH } = process.env;

/** Chunks per second of one way of reading the field, by round. */
interface Rate {
  readonly kind: "rate";
  readonly way: string;
  readonly round: number;
  readonly chunks: number;
  readonly seconds: number;
}

/** NetCDF-4 and HDF5 files beside Zarr directories, Xpublish, xarray and h5py. */
export const files: Experiment = {
  title:
    "chunks of a NetCDF-4 file beside the same in a Zarr directory, Xpublish, xarray; opening large files beside h5py",
  async run(context) {
    const folder = await openFiles(context);
    const rates = await measureRates(context, folder);
    const opened = await measureOpening(context, folder);
    const remote = await measureRemote(context, folder);
    const goals = [...rateGoals(rates), ...opened.goals, ...remote.goals];
    return {
      records: [...rates, ...opened.records, ...remote.records],
      tables: [rateTable(rates), opened.table, remote.table],
      goals,
      notes: [
        `Cold rounds: a fresh server with an empty cache is asked for every chunk once on ${CONNECTIONS} connections. The first and the last step are compared with the file by xarray before anything is timed.`,
        XPUBLISH_PATH === undefined
          ? "Xpublish was not measured: XPUBLISH_PATH names no folders of it and of cachey."
          : "Xpublish keeps no chunks, as the cold rounds of zpublish: each is decoded and encoded when it is asked for.",
        "xarray: h5netcdf reads and decodes the whole variable within one process, without a server.",
      ],
    };
  },
};

/** Makes the files if they are not there. */
async function openFiles({ size, parent = DATA_DIRECTORY, onProgress }: ExperimentContext): Promise<string> {
  const { steps, variables, chunks } = SIZES[size];
  const folder = join(parent, `files-${steps}-${variables}-${chunks}-v${FORMAT}`);
  if (existsSync(folder)) return folder;
  onProgress(0, "writing files");
  const unfinished = `${folder}.unfinished`;
  rmSync(unfinished, { recursive: true, force: true });
  const numbers = [steps, variables, chunks].map(String);
  await runChild(PYTHON, [join(SCRIPTS, "write_files.py"), unfinished, ...numbers]);
  renameSync(unfinished, folder);
  return folder;
}

const keysOf = (steps: number): string[] => Array.from({ length: steps }, (_, step) => `field/${step}.0.0`);

/** Measures all ways in turn, in another order every other round. */
async function measureRates(context: ExperimentContext, folder: string): Promise<Rate[]> {
  const { size, rounds, onProgress } = context;
  const { steps, peerSteps } = SIZES[size];
  const peer = await startXpublish(join(folder, "field.nc"));
  try {
    await compareWithFile(context, folder, peer?.url);
    const ways: Record<string, () => Promise<Pick<Rate, "chunks" | "seconds">>> = {
      "Zarr directory": () => readServed(context, join(folder, "field.zarr"), steps, "cold"),
      "NetCDF-4": () => readServed(context, join(folder, "field.nc"), steps, "cold"),
      "Zarr directory, cached": () => readServed(context, join(folder, "field.zarr"), 200, "cached"),
      "NetCDF-4, cached": () => readServed(context, join(folder, "field.nc"), 200, "cached"),
      xarray: async () => {
        const script = join(SCRIPTS, "read_with_xarray.py");
        const { seconds } = JSON.parse(
          await runChild(PYTHON, [script, join(folder, "field.nc"), "field"]),
        ) as { seconds: number };
        return { chunks: steps, seconds };
      },
      ...(peer && { Xpublish: () => readPeer(context, peer, peerSteps) }),
    };
    const records: Rate[] = [];
    for (let round = 0; round < rounds; round++) {
      const names = Object.keys(ways);
      for (const way of round % 2 === 0 ? names : names.toReversed()) {
        onProgress(round / rounds, way);
        const measure = ways[way] as () => Promise<Pick<Rate, "chunks" | "seconds">>;
        records.push({ kind: "rate", way, round, ...(await measure()) });
      }
    }
    return records;
  } finally {
    if (peer !== undefined) await stopChild(peer.child);
  }
}

/** @param state Whether each chunk is asked for once, or all of them are in the cache and asked for again and again. */
async function readServed(
  context: ExperimentContext,
  location: string,
  steps: number,
  state: "cold" | "cached",
): Promise<{ readonly chunks: number; readonly seconds: number }> {
  const scratch = context.freshFolder("files");
  const server = await startZpublish({ datasets: { field: location }, scratch });
  try {
    const paths = keysOf(Math.min(steps, SIZES[context.size].steps)).map(
      (key) => `/datasets/field/zarr/${key}`,
    );
    const load = {
      baseUrl: server.baseUrl,
      paths,
      headers: {},
      connections: CONNECTIONS,
      status: 200,
      scratch,
    };
    // Opens the dataset, as the first request of any client does.
    await (await fetch(`${server.baseUrl}/datasets/field/zarr/.zmetadata`)).arrayBuffer();
    if (state === "cached") checkLoad(await runNodeLoad({ ...load, length: "once" }), location, server);
    const length = state === "cold" ? "once" : { seconds: context.seconds };
    const result = await runNodeLoad({ ...load, length });
    checkLoad(result, location, server);
    return { chunks: result.requests, seconds: result.seconds };
  } finally {
    await server.stop();
  }
}

interface Peer {
  readonly url: string;
  readonly child: Child;
}

async function startXpublish(file: string): Promise<Peer | undefined> {
  if (XPUBLISH_PATH === undefined) return undefined;
  const port = await freePort();
  const child = await startChild(PYTHON, [join(SCRIPTS, "serve_with_xpublish.py"), file, String(port)], {
    env: { ...process.env, PYTHONPATH: XPUBLISH_PATH },
  });
  const url = `http://127.0.0.1:${port}`;
  for (;;) {
    const answer = await fetch(`${url}/datasets/field/zarr/.zmetadata`).catch(() => undefined);
    if (answer?.ok) return { url, child };
    if (child.process.exitCode !== null) throw new Error(`Xpublish: ${child.errorText()}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

async function readPeer(context: ExperimentContext, { url }: Peer, steps: number) {
  const paths = keysOf(steps).map((key) => `/datasets/field/zarr/${key}`);
  const result = await runNodeLoad({
    ...{ baseUrl: url, paths, headers: {}, connections: CONNECTIONS, status: 200, length: "once" },
    scratch: context.freshFolder("peer"),
  });
  if (result.failures > 0) throw new Error(`Xpublish: ${result.failures} failures: ${result.firstFailure}`);
  return { chunks: result.requests, seconds: result.seconds };
}

async function compareWithFile(context: ExperimentContext, folder: string, peer: string | undefined) {
  const file = join(folder, "field.nc");
  const datasets = { field: file, directory: join(folder, "field.zarr") };
  const server = await startZpublish({ datasets, scratch: context.freshFolder("compare") });
  try {
    const own = Object.keys(datasets).map((id) => `${server.baseUrl}/datasets/${id}/zarr`);
    const urls = [...own, ...(peer === undefined ? [] : [`${peer}/datasets/field/zarr`])];
    await runChild(PYTHON, [join(SCRIPTS, "compare_chunks.py"), file, "field", ...urls]);
  } finally {
    await server.stop();
  }
}

const rateOf = ({ chunks, seconds }: Rate): number => chunks / seconds;

/** Ratios of two ways, round by round. */
function ratiosOf(rates: readonly Rate[], way: string, other: string): number[] {
  return rates
    .filter((rate) => rate.way === way)
    .map((rate) => {
      const peer = rates.find((each) => each.way === other && each.round === rate.round) as Rate;
      return rateOf(rate) / rateOf(peer);
    });
}

function rateTable(rates: readonly Rate[]): ResultTable {
  const ways = [...new Set(rates.map(({ way }) => way))].sort();
  return {
    title: "Chunks of 1 MiB, about 540 KB stored",
    columns: ["", "chunks/s", "NetCDF-4 cold ÷ this", "least", "most"],
    rows: ways.map((way) => {
      const ratios = ratiosOf(rates, "NetCDF-4", way);
      const own = rates.filter((rate) => rate.way === way).map(rateOf);
      return [way, median(own), median(ratios), Math.min(...ratios), Math.max(...ratios)];
    }),
  };
}

function rateGoals(rates: readonly Rate[]): Goal[] {
  const goals = [
    {
      what: "NetCDF-4 ÷ Zarr directory, cold",
      ratios: ratiosOf(rates, "NetCDF-4", "Zarr directory"),
      least: 0.9,
    },
    {
      what: "NetCDF-4 ÷ Zarr directory, cached",
      ratios: ratiosOf(rates, "NetCDF-4, cached", "Zarr directory, cached"),
      least: 0.95,
    },
    ...(XPUBLISH_PATH === undefined
      ? []
      : [{ what: "NetCDF-4 ÷ Xpublish, cold", ratios: ratiosOf(rates, "NetCDF-4", "Xpublish"), least: 20 }]),
  ];
  return goals.map(({ what, ratios, least }) => {
    const ratio = median(ratios) as number;
    return { what, expected: `at least ${least}`, measured: ratio.toFixed(2), isMet: ratio >= least };
  });
}

/** Opens large files, beside h5py's walk over them. */
async function measureOpening({ size, rounds, onProgress }: ExperimentContext, folder: string) {
  const { variables, chunks } = SIZES[size];
  const titles = {
    "many.nc": `${variables} variables`,
    "chunks.h5": `${chunks} chunks, extensible array`,
    "tree.h5": `${chunks} chunks, B-tree`,
  };
  const rows: (string | number)[][] = [];
  const goals: Goal[] = [];
  const records: object[] = [];
  for (const [name, title] of Object.entries(titles)) {
    onProgress(0.9, `opening ${name}`);
    const path = join(folder, name);
    const own: number[] = [];
    const again: number[] = [];
    const walks: number[] = [];
    for (let round = 0; round < rounds; round++) {
      const one = async () => {
        const times = await timeOpening(path, TIMES_OPENED);
        own.push(times[0] as number);
        again.push(times.at(-1) as number);
      };
      const other = async () => {
        const walk = await runChild(PYTHON, [join(SCRIPTS, "walk_with_h5py.py"), path, "1"]);
        walks.push(...(JSON.parse(walk) as { seconds: number[] }).seconds);
      };
      for (const measure of round % 2 === 0 ? [one, other] : [other, one]) await measure();
    }
    const ratios = own.map((seconds, round) => seconds / (walks[round] as number));
    const ratio = median(ratios) as number;
    rows.push([
      title,
      median(own) as number,
      median(again) as number,
      median(walks) as number,
      ratio,
      Math.min(...ratios),
      Math.max(...ratios),
    ]);
    records.push({ kind: "open", name, own, again, walks });
    goals.push({
      what: `opening ${title}: seconds ÷ h5py's walk`,
      expected: "less than 1",
      measured: ratio.toFixed(2),
      isMet: ratio < 1,
    });
  }
  const columns = ["", "first in a process", "fifth", "h5py's walk", "first ÷ walk", "least", "most"];
  return { records, goals, table: { title: "Seconds to open a file", columns, rows } };
}

/** Counts the requests that opening a remote file takes. */
async function measureRemote(context: ExperimentContext, folder: string) {
  const path = await openRemoteFile(context, folder);
  const origin = await startOrigin(dirname(path), 0);
  try {
    await origin.takeCount();
    const [seconds = Number.NaN] = await timeOpening(`${origin.url}/${REMOTE_FILE}`, 1);
    const requests = await origin.takeCount();
    return {
      records: [{ kind: "remote", requests, seconds }],
      table: {
        title: `Opening a remote file of ${SIZES[context.size].remoteSteps + 1} chunks`,
        columns: ["requests", "seconds"],
        rows: [[requests, seconds]],
      },
      goals: [
        {
          what: `requests that open a remote file of ${SIZES[context.size].remoteSteps + 1} chunks`,
          expected: `at most ${MAX_REMOTE_REQUESTS}`,
          measured: String(requests),
          isMet: requests <= MAX_REMOTE_REQUESTS,
        },
      ],
    };
  } finally {
    await origin.stop();
  }
}

async function openRemoteFile({ size, onProgress }: ExperimentContext, folder: string): Promise<string> {
  const path = join(folder, REMOTE_FILE);
  if (existsSync(path)) return path;
  onProgress(0.95, "writing a file");
  await runChild(PYTHON, [
    join(SCRIPTS, "write_remote_file.py"),
    `${path}.unfinished`,
    String(SIZES[size].remoteSteps),
  ]);
  renameSync(`${path}.unfinished`, path);
  return path;
}
