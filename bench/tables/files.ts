import { existsSync, linkSync } from "node:fs";
import { join } from "node:path";
import { PYTHON, runChild } from "../children.js";
import { DATA_DIRECTORY, makeOnce, packageRoot } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { measureLoad, runLoad } from "../load/load.js";
import { startOrigin } from "../remote/origin.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { fetchBody } from "../subjects/check-answers.js";
import { type ServingProgram, startServing } from "../subjects/serving-program.js";

const SCRIPTS = join(packageRoot(), "bench", "files");
const CONNECTIONS = 8;
/** Datasets that a server reads at start; the others are opened by their first request. */
const READ_AT_START = 100;
/** A server opens many files, and V8 compiles what is used often. */
const TIMES_OPENED = 5;
/** Raised when what is written changes. */
const FORMAT = 1;
const SIZES = {
  full: { steps: 1_000, variables: 1_000, chunks: 300_000, peerSteps: 300, remoteSteps: 900 },
  small: { steps: 100, variables: 200, chunks: 20_000, peerSteps: 50, remoteSteps: 900 },
  tiny: { steps: 4, variables: 5, chunks: 200, peerSteps: 4, remoteSteps: 4 },
} as const;
/** Chunks that cached contests ask for in rotation. */
const ROTATED = 200;
const MAX_REMOTE_REQUESTS = 12;
/** Folders of Xpublish and cachey, which Debian has not, for the comparison with it. */
const { XPUBLISH_PATH } = process.env;
const FILE = "NetCDF-4";
const DIRECTORY = "Zarr directory";
const XPUBLISH = "Xpublish without its cache";
const WALK = "h5py's walk";

/** NetCDF-4 and HDF5 files beside Zarr directories, Xpublish, xarray and h5py. */
export const files: BenchTable = {
  title:
    "chunks of a NetCDF-4 file beside the same in a Zarr directory, Xpublish, xarray; opening large files beside h5py",
  async *contests(context) {
    const folder = await openFiles(context);
    const peer = await startXpublish(join(folder, "field.nc"));
    try {
      await compareWithFile(context, folder, peer?.baseUrl);
      yield coldChunks(folder, peer?.baseUrl, context);
      yield cachedChunks(folder, context);
    } finally {
      await peer?.stop();
    }
    yield* openings(folder, context);
    yield await remoteOpening(folder, context);
  },
};

/** Makes the files if they are not there. @returns Their folder */
export async function openFiles({
  size,
  parent = DATA_DIRECTORY,
  onProgress,
}: BenchContext): Promise<string> {
  const { steps, variables, chunks, remoteSteps } = SIZES[size];
  const numbers = [steps, variables, chunks].map(String);
  const folder = join(parent, `files-${numbers.join("-")}-v${FORMAT}`);
  await makeOnce(folder, async (unfinished) => {
    onProgress(0, "writing files");
    await runChild(PYTHON, [join(SCRIPTS, "write_files.py"), unfinished, ...numbers]);
  });
  await makeOnce(`${folder}-remote`, async (unfinished) => {
    const file = join(unfinished, "remote.nc");
    await runChild(PYTHON, [join(SCRIPTS, "write_remote_file.py"), file, String(remoteSteps)]);
  });
  return folder;
}

function pathsOf(steps: number): string[] {
  return Array.from({ length: steps }, (_, step) => `/datasets/field/zarr/field/${step}.0.0`);
}

function coldChunks(folder: string, peer: string | undefined, context: BenchContext): Contest {
  const { steps, peerSteps } = SIZES[context.size];
  const served = (location: string) => (build: Build) =>
    withField(join(folder, location), build, context, (server, scratch) =>
      measureLoad(server, {
        ...{ paths: pathsOf(steps), connections: CONNECTIONS, length: "once", scratch, unit: "chunks" },
      }),
    );
  return {
    title: "Chunks of 1 MiB, about 540 KB stored, each once",
    contestants: [
      ...perBuild(context, DIRECTORY, served("field.zarr")),
      ...perBuild(context, FILE, served("field.nc")),
      { name: "xarray", measure: () => readWithXarray(join(folder, "field.nc"), steps) },
      ...(peer === undefined ? [] : [{ name: XPUBLISH, measure: () => readPeer(peer, peerSteps, context) }]),
    ],
    compared: "chunks/s",
    against: [DIRECTORY, FILE],
    aims: [
      { of: FILE, against: DIRECTORY, least: 0.9 },
      { of: FILE, against: XPUBLISH, least: 20 },
    ],
    notes: [
      `A fresh server with an empty cache each round, ${CONNECTIONS} connections. The first and the last step are compared with the file by xarray before anything is timed.`,
      "xarray: h5netcdf reads and decodes the whole variable within one process, without a server.",
      ...(XPUBLISH_PATH === undefined
        ? ["Xpublish was not measured: XPUBLISH_PATH names no folders of it and of cachey."]
        : []),
    ],
  };
}

function cachedChunks(folder: string, context: BenchContext): Contest {
  const { size, seconds } = context;
  const served = (location: string) => (build: Build) =>
    withField(join(folder, location), build, context, async (server, scratch) => {
      const paths = pathsOf(Math.min(ROTATED, SIZES[size].steps));
      const load = { paths, connections: CONNECTIONS, scratch, unit: "chunks" };
      await runLoad(server, { ...load, length: "once" });
      return measureLoad(server, { ...load, length: { seconds } });
    });
  return {
    title: "The same, cached",
    contestants: [
      ...perBuild(context, DIRECTORY, served("field.zarr")),
      ...perBuild(context, FILE, served("field.nc")),
    ],
    compared: "chunks/s",
    against: [DIRECTORY],
    aims: [{ of: FILE, against: DIRECTORY, least: 0.95 }],
  };
}

function withField(
  location: string,
  build: Build,
  { freshFolder }: BenchContext,
  use: (server: RunningZpublish, scratch: string) => Promise<Figures>,
): Promise<Figures> {
  const scratch = freshFolder("files");
  return withZpublish({ build, datasets: { field: location }, scratch }, async (server) => {
    // Opens the dataset, as the first request of any client does.
    await fetchBody(server.baseUrl, "/datasets/field/zarr/.zmetadata");
    return use(server, scratch);
  });
}

async function readWithXarray(file: string, steps: number): Promise<Figures> {
  const output = await runChild(PYTHON, [join(SCRIPTS, "read_with_xarray.py"), file, "field"]);
  return { "chunks/s": steps / (JSON.parse(output) as { seconds: number }).seconds };
}

async function readPeer(baseUrl: string, steps: number, { freshFolder }: BenchContext): Promise<Figures> {
  const load = { paths: pathsOf(steps), connections: CONNECTIONS, length: "once" as const };
  return measureLoad({ baseUrl }, { ...load, scratch: freshFolder("peer"), unit: "chunks" });
}

async function startXpublish(file: string): Promise<ServingProgram | undefined> {
  if (XPUBLISH_PATH === undefined) return undefined;
  // Without a cache: each chunk is made when it is asked for, as in the first round of zpublish.
  const args = [join(SCRIPTS, "serve_with_xpublish.py"), file, "0"];
  const env = { PYTHONPATH: XPUBLISH_PATH };
  return startServing((port) => [PYTHON, [...args, port]], "/datasets/field/zarr/.zmetadata", env);
}

/** Compares what zpublish and a peer serve over `zarr/` with the file. @throws Error if it differs */
export async function compareWithFile(
  { freshFolder }: BenchContext,
  folder: string,
  peer: string | undefined,
) {
  const file = join(folder, "field.nc");
  const datasets = { field: file, directory: join(folder, "field.zarr") };
  await withZpublish({ datasets, scratch: freshFolder("compare") }, async ({ baseUrl }) => {
    const own = Object.keys(datasets).map((id) => `${baseUrl}/datasets/${id}/zarr`);
    const urls = [...own, ...(peer === undefined ? [] : [`${peer}/datasets/field/zarr`])];
    await runChild(PYTHON, [join(SCRIPTS, "compare_chunks.py"), file, "field", ...urls]);
  });
}

/** Large files, beside h5py's walk over them. */
async function* openings(folder: string, context: BenchContext): AsyncGenerator<Contest> {
  const { variables, chunks } = SIZES[context.size];
  const titles = {
    "many.nc": `${variables.toLocaleString("en-US")} variables`,
    "chunks.h5": `${chunks.toLocaleString("en-US")} chunks, extensible array`,
    "tree.h5": `${chunks.toLocaleString("en-US")} chunks, B-tree`,
  };
  for (const [name, title] of Object.entries(titles)) {
    const path = join(folder, name);
    yield {
      title: `Opening a file: ${title}`,
      contestants: [
        ...perBuild(context, "zpublish", (build) => timeOpening(path, build, context)),
        { name: WALK, measure: () => walk(path) },
      ],
      compared: "first, s",
      against: [WALK],
      aims: [{ of: "zpublish", against: WALK, most: 1 }],
      notes: [
        "Seconds of the first request for a dataset of a server without a cache, and of the first request for the fifth copy of the file.",
      ],
    };
  }
}

async function timeOpening(path: string, build: Build, { freshFolder }: BenchContext): Promise<Figures> {
  const scratch = freshFolder("opening");
  const ids = Array.from({ length: TIMES_OPENED }, (_, i) => `copy${i}`);
  // Links beside the file: nothing that is known of one of them is known of another.
  const copies = Object.fromEntries(ids.map((id) => [id, `${path}.${id}`]));
  for (const link of Object.values(copies)) if (!existsSync(link)) linkSync(path, link);
  const others = Array.from({ length: READ_AT_START }, (_, i) => [`other${i}`, join(path, "../field.zarr")]);
  const datasets = { ...Object.fromEntries(others), ...copies };
  return withZpublish({ build, datasets, scratch, args: ["--no-cache"] }, async ({ baseUrl }) => {
    const seconds: number[] = [];
    await fetchBody(baseUrl, "/versions");
    for (const id of ids) {
      const began = performance.now();
      await fetchBody(baseUrl, `/datasets/${id}/zarr/.zgroup`);
      seconds.push((performance.now() - began) / 1_000);
    }
    return { "first, s": seconds[0], "fifth, s": seconds.at(-1) };
  });
}

async function walk(path: string): Promise<Figures> {
  const output = await runChild(PYTHON, [join(SCRIPTS, "walk_with_h5py.py"), path, "1"]);
  return { "first, s": (JSON.parse(output) as { seconds: number[] }).seconds[0] };
}

/** Requests that opening a remote file takes. */
async function remoteOpening(folder: string, context: BenchContext): Promise<Contest> {
  const { remoteSteps } = SIZES[context.size];
  const open = async (build: Build): Promise<Figures> => {
    const origin = await startOrigin(`${folder}-remote`, 0);
    try {
      const settings = { build, datasets: { remote: `${origin.url}/remote.nc` }, args: ["--no-cache"] };
      return await withZpublish(
        { ...settings, scratch: context.freshFolder("remote") },
        async ({ baseUrl }) => {
          await fetchBody(baseUrl, "/datasets/remote/zarr/.zgroup");
          return { requests: await origin.takeCount() };
        },
      );
    } finally {
      await origin.stop();
    }
  };
  return {
    title: `Opening a remote file of ${remoteSteps + 1} chunks`,
    contestants: perBuild(context, "zpublish", open),
    compared: "requests",
    aims: [{ of: "zpublish", most: MAX_REMOTE_REQUESTS }],
  };
}
