import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import Blosc from "numcodecs/blosc";
import { commandOf } from "../../test/support/clients/client-generation.js";
import { PYTHON } from "../children.js";
import { FIELD_COMPRESSOR, packageRoot } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Contestant,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type LoadTarget, runLoad } from "../load/load.js";
import { readResidentMemory } from "../process-cost.js";
import { startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import { fetchBody } from "../subjects/check-answers.js";
import { nginxSubject, nginxVersion } from "../subjects/nginx.js";
import { startServing } from "../subjects/serving-program.js";
import { boxPath, DATASET, dodsValues } from "./dap.js";
import { openFiles } from "./files.js";
import { checkValues, npyValues } from "./select.js";

/** Steps of series and of cached chunks, which are checked, and steps that cold chunks are of at most; the last opens the dataset. */
const SIZES = {
  full: { steps: 100, cold: 900 },
  small: { steps: 50, cold: 99 },
  tiny: { steps: 3, cold: 3 },
} as const;
const SIDE = 512;
const CONNECTIONS = 8;
const CACHE_BYTES = 2 ** 30;
/** A folder of what Debian has not: bench/README.md says what is needed. */
export const PEERS_PATH = process.env.PEERS_PATH ?? "";
/** A Debian root of the rest. */
const { PEERS_ROOT } = process.env;

type Cell = readonly [y: number, x: number];
/** The first series of a round, and those whose median is taken. */
const CELLS: readonly Cell[] = [
  [100, 200],
  [300, 40],
  [17, 511],
  [450, 333],
];

/** A server of the same chunks. */
interface Peer {
  readonly name: string;
  start(build?: Build): Promise<LoadTarget & { stop(): Promise<void> }>;
  chunkPath(step: number): string;
  /** Returns the values of a chunk from an answer, little-endian. */
  readonly decode: (body: Buffer) => Uint8Array | Promise<Uint8Array>;
  /** How it selects, if it does. */
  readonly series?: Series;
}

/** A series from step 0 on. */
interface Series {
  path(steps: number, cell: Cell): string;
  values(body: Buffer): ArrayLike<number>;
}

const ZPUBLISH = "zpublish";
const NOT_INSTALLED = [
  "Xpublish 0.5: its Zarr endpoint has become a package of its own, xpublish-zarr, which Debian has not.",
  "THREDDS and ERDDAP of Java, and Hyrax: neither Debian nor npm has them.",
];

/** zpublish beside other servers of arrays, and of files. */
export const peers: BenchTable = {
  title:
    "the same chunks and a series at a point from zpublish, nginx, zarr-http-server, Xpublish, tiled, pydap",
  async *contests(context) {
    const folder = await openFiles(context);
    const expected = readExpected(folder, SIZES[context.size].steps);
    const notes: string[] = [];
    const contestants: Contestant[] = [];
    for (const peer of ownServers(folder, context)) {
      for (const build of context.builds) await checkPeer(peer, expected, context, build);
      contestants.push(...perBuild(context, peer.name, (build) => measure(peer, expected, context, build)));
    }
    for (const { package: name, peer } of [...fileServers(folder, context), ...arrayServers(folder)]) {
      if (name !== undefined && !existsSync(join(PEERS_PATH, name))) {
        notes.push(`Without ${peer.name}: expected ${name} below PEERS_PATH.`);
        continue;
      }
      try {
        await checkPeer(peer, expected, context);
        contestants.push({
          ...{ name: peer.name, isForeign: true },
          measure: () => measure(peer, expected, context),
        });
      } catch (error) {
        notes.push(`Without ${peer.name}: ${(error as Error).message.slice(-500)}`);
      }
    }
    yield contestOf(
      contestants,
      [...notes, ...NOT_INSTALLED.map((each) => `Not measured: ${each}`)],
      context,
    );
  },
};

function contestOf(
  contestants: readonly Contestant[],
  notes: readonly string[],
  context: BenchContext,
): Contest {
  const { steps, cold } = SIZES[context.size];
  return {
    contestants,
    compared: "cached chunks/s",
    rounds: ["cold chunks/s", "series, ms", "MiB"],
    against: [ZPUBLISH],
    notes: [
      `Chunks of 1 MiB, shuffled and deflated to about 540 KB, in a Zarr directory, or NetCDF-4. A fresh server each round: one request that opens the dataset, then up to ${cold} chunks once each, for as long as a measurement takes, the first ${steps} of them in rotation, and series of ${steps} steps at one cell; ${CONNECTIONS} connections for chunks, one for series. The series is the median of ${CELLS.length - 1} cells after a first one.`,
      `Each server is one process, or one worker, with its defaults; Xpublish has a cache of 1 GiB. Before anything was timed, ${steps} chunks and all series were decoded and compared with the stored ones.`,
      "MiB are resident after that. Those of zpublish's cache file, which the system may take back, are counted apart.",
      ...notes,
    ],
  };
}

interface Expected {
  /** Values by step, little-endian. */
  readonly chunks: readonly Uint8Array[];
  /** Values by place in {@link CELLS}. */
  readonly series: readonly Float32Array[];
}

function readExpected(folder: string, steps: number): Expected {
  const chunks = Array.from({ length: steps }, (_, step) =>
    decodeStored(readFileSync(join(folder, "field.zarr", "field", `${step}.0.0`))),
  );
  const values = chunks.map(({ buffer }) => new Float32Array(buffer as ArrayBuffer));
  const series = CELLS.map(([y, x]) => Float32Array.from(values, (step) => step[y * SIDE + x]!));
  return { chunks, series };
}

/** Inflates, and undoes `shuffle` of items of four bytes. */
function decodeStored(body: Buffer): Uint8Array {
  const shuffled = inflateSync(body);
  const items = shuffled.length / 4;
  const bytes = new Uint8Array(shuffled.length);
  for (let plane = 0, from = 0; plane < 4; plane++)
    for (let item = 0; item < items; item++, from++) bytes[4 * item + plane] = shuffled[from]!;
  return bytes;
}

/** @throws Error if any answer is wrong */
async function checkPeer(
  peer: Peer,
  expected: Expected,
  { onProgress }: BenchContext,
  build?: Build,
): Promise<void> {
  onProgress(0, `checking ${peer.name}`);
  const server = await peer.start(build);
  try {
    for (const [step, chunk] of expected.chunks.entries()) {
      const values = await peer.decode(await fetchBody(server.baseUrl, peer.chunkPath(step)));
      if (Buffer.compare(chunk, values) !== 0) throw new Error(`step ${step} differs from the file`);
    }
    for (const i of CELLS.keys()) await timeSeries(peer, server, expected, i);
  } finally {
    await server.stop();
  }
}

/** Asks for a series, and compares it. @returns Milliseconds; undefined if it cannot select */
async function timeSeries({ series }: Peer, server: LoadTarget, expected: Expected, i: number) {
  if (series === undefined) return undefined;
  const began = performance.now();
  const body = await fetchBody(server.baseUrl, series.path(expected.series[i]!.length, CELLS[i]!));
  const milliseconds = performance.now() - began;
  checkValues(series.values(body), expected.series[i]!);
  return milliseconds;
}

async function measure(
  peer: Peer,
  expected: Expected,
  context: BenchContext,
  build?: Build,
): Promise<Figures> {
  const { steps, cold } = SIZES[context.size];
  const server = await peer.start(build);
  try {
    await fetchBody(server.baseUrl, peer.chunkPath(cold));
    const paths = Array.from({ length: cold }, (_, step) => peer.chunkPath(step));
    const { seconds } = context;
    const load = { connections: CONNECTIONS, scratch: context.freshFolder("peers-load") };
    const once = await runLoad(server, { ...load, paths, length: { seconds, isOnce: true } });
    const cached = await runLoad(server, { ...load, paths: paths.slice(0, steps), length: { seconds } });
    const series: (number | undefined)[] = [];
    for (const i of CELLS.keys()) series.push(await timeSeries(peer, server, expected, i));
    const [first, ...others] = series;
    const memory = readResidentMemory(server.pid!);
    return {
      "cached chunks/s": cached.requests / cached.seconds,
      "cold chunks/s": once.requests / once.seconds,
      "first series, ms": first,
      "series, ms": median(others.filter((each) => each !== undefined)),
      MiB: memory && memory.otherBytes / 2 ** 20,
      "MiB of the cache file": memory && memory.cacheMapBytes / 2 ** 20,
    };
  } finally {
    await server.stop();
  }
}

const zarrPath = (step: number) => `/datasets/field/zarr/field/${step}.0.0`;

function ownServers(folder: string, context: BenchContext): readonly Peer[] {
  const serve = (file: string) => (build?: Build) =>
    startZpublish({
      ...{ build, datasets: { field: join(folder, file) }, scratch: context.freshFolder("peers") },
    });
  return [
    {
      name: ZPUBLISH,
      start: serve("field.zarr"),
      chunkPath: zarrPath,
      decode: decodeStored,
      series: {
        path: (steps, [y, x]) =>
          `/datasets/field/select?var=field&isel.time=0:${steps}&isel.y=${y}&isel.x=${x}&f=npy`,
        values: npyValues,
      },
    },
    {
      name: "zpublish, NetCDF-4 and OPeNDAP",
      start: serve("field.nc"),
      chunkPath: zarrPath,
      decode: decodeStored,
      series: dapSeries(DATASET),
    },
  ];
}

/** @param url Of a dataset by OPeNDAP, below the server */
function dapSeries(url: string): Series {
  return {
    path: (steps, [y, x]) => boxPath(url, [0, steps - 1], [y, y], [x, x]),
    values: (body) => new Float32Array(Uint8Array.from(dodsValues(body)).buffer),
  };
}

/** Starts a server of `bench/files` in Python, which gets its port as last argument; `ready` is a path that is answered with 200. */
export function startPython(script: string, args: readonly string[], ready: string) {
  const program = join(packageRoot(), "bench", "files", script);
  return startServing(
    (port) =>
      commandOf(PEERS_ROOT === undefined ? "system" : "forky", PYTHON, [program, ...args, port], PEERS_ROOT),
    ready,
    { PYTHONPATH: PEERS_PATH },
  );
}

const decodeBlosc = (body: Buffer) => Blosc.fromConfig(FIELD_COMPRESSOR).decode(body);

/** A server of others, and what has to be below PEERS_PATH for it. */
interface OtherServer {
  readonly package?: string;
  readonly peer: Peer;
}

/** Servers of files or stores, which select nothing. */
function fileServers(folder: string, context: BenchContext): readonly OtherServer[] {
  const directory = join(folder, "field.zarr");
  const site = {
    store: { id: "field", directory },
    paths: [],
    documents: new Map(),
    headers: {},
    serving: {},
  };
  const nginx: Peer = {
    name: "nginx",
    start: () => nginxSubject.start({ ...site, scratch: context.freshFolder("nginx") }),
    chunkPath: zarrPath,
    decode: decodeStored,
  };
  const ofStore = { chunkPath: (step: number) => `/field/${step}.0.0`, decode: decodeStored };
  const httpServer = "node_modules/http-server/bin/http-server";
  const nodeArgs = [join(PEERS_PATH, httpServer), directory, "-a", "127.0.0.1", "-s", "-p"];
  return [
    ...(nginxVersion() === undefined ? [] : [{ peer: nginx }]),
    {
      package: httpServer,
      peer: {
        ...{ ...ofStore, name: "http-server of npm" },
        start: () => startServing((port) => [process.execPath, [...nodeArgs, port]], "/field/.zarray"),
      },
    },
    {
      package: "zarr_http_server",
      peer: {
        ...{ ...ofStore, name: "zarr-http-server" },
        start: () => startPython("serve_with_zarr_http_server.py", [directory], "/field/.zarray"),
      },
    },
  ];
}

/** Servers of arrays, each with its own way to select. */
function arrayServers(folder: string): readonly OtherServer[] {
  const store = join(folder, "field.zarr");
  const xpublish: Peer = {
    name: "Xpublish",
    start: () => {
      const args = [store, String(CACHE_BYTES)];
      return startPython("serve_with_xpublish.py", args, "/datasets/field/zarr/.zmetadata");
    },
    chunkPath: zarrPath,
    decode: decodeBlosc,
    series: dapSeries("/datasets/field/opendap"),
  };
  const tiled: Peer = {
    name: "tiled",
    start: () => startPython("serve_with_tiled.py", [store], "/zarr/v2/field/.zarray"),
    chunkPath: (step) => `/zarr/v2/field/${step}.0.0`,
    decode: decodeBlosc,
    series: {
      path: (steps, [y, x]) =>
        `/api/v1/array/full/field?slice=0:${steps},${y},${x}&format=application/octet-stream`,
      values: (body) => new Float32Array(Uint8Array.from(body).buffer),
    },
  };
  const pydap: Peer = {
    name: "pydap",
    start: () => startPython("serve_with_pydap.py", [folder], "/field.nc.dds"),
    chunkPath: (step) => boxPath("/field.nc", [step, step], [0, SIDE - 1], [0, SIDE - 1]),
    decode: dodsValues,
    series: dapSeries("/field.nc"),
  };
  return [xpublish, tiled, pydap].map((peer) => ({ package: peer.name.toLowerCase(), peer }));
}
