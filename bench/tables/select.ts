import { join } from "node:path";
import { PYTHON, runChild } from "../children.js";
import { boxOf, type FieldStore, packageRoot } from "../data/bench-data.js";
import { FIELD_SIDE, fieldValues } from "../data/field.js";
import { FIELDS, fieldOf, type HourlyFiles, openHourlyFiles, SIDE } from "../data/hourly-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type LoadTarget, runLoad } from "../load/load.js";
import { createLoopDelay } from "../load/loop-delay.js";
import { createRandom } from "../random.js";
import { type RunningZpublish, runWarm, withZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import { fetchBody } from "../subjects/check-answers.js";
import { type ServingProgram, startServing } from "../subjects/serving-program.js";
import { openMibStore } from "./rows.js";

/** Files of one step; points, and the steps that they lie in; steps of the box and of the store. */
const SIZES = {
  full: { files: 3_650, points: 10_000, pointSteps: 4, boxSteps: 6, steps: 64 },
  small: { files: 1_000, points: 2_000, pointSteps: 2, boxSteps: 2, steps: 8 },
  tiny: { files: 30, points: 50, pointSteps: 1, boxSteps: 1, steps: 2 },
} as const;
/** Requests whose median is taken. */
const TIMES = 5;
/** Those of points, which take some hundredths of a second: the code of a fresh server is compiled meanwhile. */
const POINT_TIMES = 25;
const CONNECTIONS = 8;
const MEGABYTE = 1e6;
/** Cells along y and x of a chunk of the encoding for series. Those of both places are warmed. */
const TILE = 16;
const WARMED = ["--isel", `y=0:${TILE}`, "--isel", `x=32:${SIDE}`];
const SERIES = "select";
const ENCODED = "select, with a warmed encoding for series";
const XARRAY = "xarray in one process";
const FASTAPI = "xarray under FastAPI";
const POST = "one POST";
const REQUESTS = "a request for each point";
const BOX = "select, `nc`";
const STORED = "zarr/, as stored";
const PLAIN = "zarr/, without a compressor";

/** Pieces of datasets: a series, points, a box. */
export const select: BenchTable = {
  title: "a series over ten years of daily files, 10,000 points, a box of 100 MB; beside xarray and FastAPI",
  async *contests(context) {
    const { files: count, steps } = SIZES[context.size];
    context.onProgress(0, "making data");
    const files = await openHourlyFiles("netcdf4", count, context.parent);
    const store = await openMibStore(context, steps);
    const peer = await startPeer(files, store);
    try {
      yield await series(files, peer, context);
      yield points(store, peer, context);
      yield box(store, peer, context);
    } finally {
      await peer?.stop();
    }
  },
};

/** Starts xarray under FastAPI; undefined if it is not installed. @throws Error if it ends */
async function startPeer(
  { pattern }: HourlyFiles,
  { directory }: FieldStore,
): Promise<ServingProgram | undefined> {
  const isThere = await runChild(PYTHON, ["-c", "import fastapi, uvicorn, dask, h5netcdf, zarr"]).then(
    () => true,
    () => false,
  );
  if (!isThere) return undefined;
  const script = join(packageRoot(), "bench", "files", "serve_with_fastapi.py");
  return startServing((port) => [PYTHON, [script, pattern, directory, port]], "/ready");
}

/** Returns seconds and answer. */
async function timed<T>(work: () => Promise<T>): Promise<readonly [seconds: number, answer: T]> {
  const began = performance.now();
  const answer = await work();
  return [(performance.now() - began) / 1_000, answer];
}

/** Returns the median of several. */
async function repeated(seconds: () => Promise<number>, times = TIMES): Promise<number> {
  const all: number[] = [];
  for (let i = 0; i < times; i++) all.push(await seconds());
  return median(all)!;
}

interface PeerTime {
  readonly seconds: number;
  readonly values: readonly number[];
}

async function askPeer(url: string, body?: string): Promise<PeerTime> {
  const response = await fetch(url, body === undefined ? {} : { method: "POST", body });
  if (!response.ok) throw new Error(`${url}: expected 200, received ${response.status}`);
  return (await response.json()) as PeerTime;
}

/** @throws Error if values are not those that are expected */
export function checkValues(received: ArrayLike<number>, expected: ArrayLike<number>): void {
  const at = Array.from(expected).findIndex((value, index) => value !== received[index]);
  if (received.length !== expected.length || at !== -1)
    throw new Error(
      `expected ${expected.length} values, ${expected[at]} at ${at}, received ${received.length}, ${received[at]}`,
    );
}

/** Returns the numbers of a file of npy, version 1 (of float32). */
export function npyValues(file: Buffer): Float32Array {
  return new Float32Array(Uint8Array.from(file.subarray(10 + file.readUInt16LE(8))).buffer);
}

/** Returns the numbers of the last column of a table. */
function csvValues(file: Buffer): number[] {
  const [head = "", ...rows] = file.toString().trim().split("\n");
  const column = head.trim().split(",").indexOf("field");
  return rows.map((row) => Number(row.split(",")[column]));
}

async function series(
  files: HourlyFiles,
  peer: ServingProgram | undefined,
  context: BenchContext,
): Promise<Contest> {
  const { hours } = files;
  const caches = new Map<Build, string>();
  for (const build of context.builds) {
    context.onProgress(0, "warming");
    const scratch = context.freshFolder(`warm-${build.name}`);
    const args = ["--encoding", "series", ...WARMED];
    await runWarm({ build, datasets: datasetsOf(files, true), scratch, args });
    caches.set(build, join(scratch, "cache"));
  }
  const fields = Array.from({ length: FIELDS }, (_, number) => fieldOf(number));
  const expected = ([y, x]: Place) =>
    Float32Array.from({ length: hours }, (_, t) => fields[t % FIELDS]![y * SIDE + x]!);
  const check = (received: ArrayLike<number>, place: Place) => checkValues(received, expected(place));
  return {
    title: `A series at a point: ${hours.toLocaleString("en-US")} NetCDF-4 files of one day, joined`,
    contestants: [
      ...perBuild(context, SERIES, (build) => measureSeries(files, build, check, context)),
      ...perBuild(context, ENCODED, (build) =>
        measureSeries(files, build, check, context, caches.get(build)),
      ),
      ...(peer === undefined
        ? []
        : [
            { name: XARRAY, measure: (round: number) => timeXarraySeries(peer, round, check) },
            { name: FASTAPI, measure: (round: number) => timePeerSeries(peer, round, check) },
          ]),
    ],
    compared: "again, s",
    against: peer === undefined ? [] : [XARRAY, FASTAPI],
    aims:
      peer === undefined
        ? []
        : [
            { of: SERIES, figure: "first, s", against: XARRAY, most: 1 / 2 },
            { of: SERIES, figure: "again, s", against: XARRAY, most: 1 / 10 },
            { of: ENCODED, figure: "again, s", against: XARRAY, most: 1 / 100 },
          ],
    notes: [
      `${SIDE} × ${SIDE} cells of float32 in one deflated chunk a day. zpublish: npy over HTTP, a fresh server that has opened the dataset. \`open_mfdataset\` (h5netcdf) has opened its files once, before.`,
      `"Again" is the median of ${TIMES}. "Another place" has not been asked for.`,
      ...(peer === undefined ? ["xarray was not measured: FastAPI is not installed."] : []),
    ],
  };
}

type Place = readonly [y: number, x: number];
type CheckSeries = (received: ArrayLike<number>, place: Place) => void;

/** A place that no other round asks for, and the one beside it. */
function placesOf(round: number): readonly [Place, Place] {
  return [
    [(round * 7 + 3) % SIDE, 32],
    [(round * 7 + 3) % SIDE, 50],
  ];
}

function datasetsOf({ pattern }: HourlyFiles, isEncoded: boolean): Readonly<Record<string, unknown>> {
  const encodings = { series: { chunks: { time: -1, y: TILE, x: TILE } } };
  return { days: { location: pattern, concat: "time", ...(isEncoded && { encodings }) } };
}

/** @param cache Directory of a cache with the encoding for series; undefined for an empty one, and no such encoding. */
function measureSeries(
  files: HourlyFiles,
  build: Build,
  check: CheckSeries,
  { freshFolder }: BenchContext,
  cache?: string,
): Promise<Figures> {
  const args = cache === undefined ? [] : ["--cache-dir", cache];
  const datasets = datasetsOf(files, cache !== undefined);
  return withZpublish({ build, datasets, scratch: freshFolder("series"), args }, async ({ baseUrl }) => {
    const [place, other] = placesOf(0);
    const ask = ([y, x]: Place, format: string) =>
      timed(() => fetchBody(baseUrl, `/datasets/days/select?var=field&y=${y}&x=${x}&f=${format}`));
    // Opens the dataset, as the first request of any client does.
    await fetchBody(baseUrl, "/datasets/days/zarr/.zmetadata");
    const [first, answer] = await ask(place, "npy");
    check(npyValues(answer), place);
    const [another, answer2] = await ask(other, "npy");
    check(npyValues(answer2), other);
    const again = await repeated(async () => (await ask(place, "npy"))[0]);
    const [, table] = await ask(place, "csv");
    check(csvValues(table), place);
    const csv = await repeated(async () => (await ask(place, "csv"))[0]);
    return { "first, s": first, "another place, s": another, "again, s": again, "as csv, s": csv };
  });
}

async function timeXarraySeries(
  { baseUrl }: ServingProgram,
  round: number,
  check: CheckSeries,
): Promise<Figures> {
  const [place] = placesOf(round);
  const ask = () => askPeer(`${baseUrl}/seconds/series?y=${place[0]}&x=${place[1]}`);
  const first = await ask();
  check(first.values, place);
  return { "first, s": first.seconds, "again, s": (await ask()).seconds };
}

async function timePeerSeries(
  { baseUrl }: ServingProgram,
  round: number,
  check: CheckSeries,
): Promise<Figures> {
  const [, place] = placesOf(round);
  // xarray keeps 128 files open and no values: once is as good as again.
  const ask = () => timed(() => fetchBody(baseUrl, `/series.csv?y=${place[0]}&x=${place[1]}`));
  const [seconds, answer] = await ask();
  check(csvValues(answer), place);
  return { "again, s": seconds, "as csv, s": seconds };
}

function points(store: FieldStore, peer: ServingProgram | undefined, context: BenchContext): Contest {
  const { points: count, pointSteps } = SIZES[context.size];
  const random = createRandom(25);
  const below = (length: number) => Math.floor(random() * length);
  const rows = Array.from({ length: count }, () => [below(pointSteps), below(FIELD_SIDE), below(FIELD_SIDE)]);
  const expected = Float32Array.from(
    rows,
    (begin) => fieldValues({ begin: begin as [number, number, number], length: [1, 1, 1] })[0]!,
  );
  const serve = (build: Build, use: (server: RunningZpublish, scratch: string) => Promise<Figures>) => {
    const scratch = context.freshFolder("points");
    return withZpublish({ build, datasets: { field: store.directory }, scratch }, async (server) => {
      await fetchBody(server.baseUrl, "/datasets/field/zarr/.zmetadata");
      return use(server, scratch);
    });
  };
  const body = ["time,y,x", ...rows.map((row) => row.join())].join("\n");
  const post = (build: Build) =>
    serve(build, async ({ baseUrl }) => {
      const headers = { "content-type": "text/csv", "accept-encoding": "identity" };
      const ask = () =>
        timed(async () => {
          const answer = await fetch(`${baseUrl}/datasets/field/select?var=field&f=csv`, {
            method: "POST",
            headers,
            body,
          });
          return Buffer.from(await answer.arrayBuffer());
        });
      const [first, answer] = await ask();
      checkValues(Float32Array.from(csvValues(answer)), expected);
      const again = await repeated(async () => (await ask())[0], POINT_TIMES);
      return { "points/s": count / again, "points/s, first": count / first };
    });
  const singly = (build: Build) =>
    serve(build, async (server, scratch) => {
      const paths = rows.map(
        ([t, y, x]) => `/datasets/field/select?var=field&isel.time=${t}&isel.y=${y}&isel.x=${x}&f=npy`,
      );
      checkValues(npyValues(await fetchBody(server.baseUrl, paths[0]!)), expected.subarray(0, 1));
      const { requests, seconds } = await runLoad(server, {
        paths,
        connections: CONNECTIONS,
        length: "once",
        scratch,
      });
      return { "points/s": requests / seconds };
    });
  const locally = async ({ baseUrl }: ServingProgram): Promise<Figures> => {
    const first = await askPeer(`${baseUrl}/seconds/points`, JSON.stringify(rows));
    checkValues(first.values, expected);
    const again = await repeated(
      async () => (await askPeer(`${baseUrl}/seconds/points`, JSON.stringify(rows))).seconds,
      POINT_TIMES,
    );
    return { "points/s": count / again, "points/s, first": count / first.seconds };
  };
  return {
    title: `${count.toLocaleString("en-US")} points`,
    contestants: [
      ...perBuild(context, POST, post),
      ...perBuild(context, REQUESTS, singly),
      ...(peer === undefined ? [] : [{ name: XARRAY, measure: () => locally(peer) }]),
    ],
    compared: "points/s",
    against: [REQUESTS, ...(peer === undefined ? [] : [XARRAY])],
    aims: [
      { of: POST, against: REQUESTS, least: 50 },
      ...(peer === undefined ? [] : [{ of: POST, against: XARRAY, least: 1 }]),
    ],
    notes: [
      `Anywhere in ${pointSteps} steps of ${FIELD_SIDE} × ${FIELD_SIDE} cells: ${(pointSteps * FIELD_SIDE ** 2) / store.chunkSide ** 2} chunks of 1 MiB, Blosc-LZ4. POST: CSV in, CSV out. Requests: npy, ${CONNECTIONS} connections. xarray: \`isel\` with points on \`open_zarr\` without dask, which is faster, no CSV. Medians of ${POINT_TIMES} after a first one.`,
    ],
  };
}

function box(store: FieldStore, peer: ServingProgram | undefined, context: BenchContext): Contest {
  const { boxSteps } = SIZES[context.size];
  const bytes = boxSteps * FIELD_SIDE ** 2 * 4;
  const keys = store.chunkKeys.filter((key) => boxOf(key, [1, 1, 1]).begin[0] < boxSteps);
  const datasets = {
    field: store.directory,
    plain: { location: store.directory, variables: { field: { compressor: null } } },
  };
  const served = (paths: readonly string[], connections: number) => (build: Build) => {
    const scratch = context.freshFolder("box");
    const loop = createLoopDelay(scratch);
    return withZpublish({ build, datasets, scratch, ...loop.settings }, async (server) => {
      let sent = 0;
      for (const path of paths) sent += (await fetchBody(server.baseUrl, path)).length;
      await loop.take(server.pid);
      const measured = await transfer(server, paths, connections, { sent, bytes, scratch });
      const { p99, longest } = await loop.take(server.pid);
      return { ...measured, "loop p99, ms": p99, "loop longest, ms": longest };
    });
  };
  const nc = `/datasets/field/select?var=field&isel.time=0:${boxSteps}&f=nc`;
  const fromPeer = async ({ baseUrl }: ServingProgram) => {
    const path = `/box.nc?steps=${boxSteps}`;
    const sent = (await fetchBody(baseUrl, path)).length;
    return transfer({ baseUrl }, [path], 1, { sent, bytes, scratch: context.freshFolder("peer") });
  };
  return {
    title: `A box of ${Math.round(bytes / MEGABYTE)} MB`,
    contestants: [
      ...perBuild(context, BOX, served([nc], 1)),
      ...perBuild(
        context,
        STORED,
        served(
          keys.map((key) => `/datasets/field/zarr/${key}`),
          CONNECTIONS,
        ),
      ),
      ...perBuild(
        context,
        PLAIN,
        served(
          keys.map((key) => `/datasets/plain/zarr/${key}`),
          CONNECTIONS,
        ),
      ),
      ...(peer === undefined ? [] : [{ name: FASTAPI, measure: () => fromPeer(peer) }]),
    ],
    compared: "MB sent/s",
    against: [STORED, PLAIN, ...(peer === undefined ? [] : [FASTAPI])],
    aims: [
      { of: BOX, against: STORED, least: 0.7 },
      { of: BOX, figure: "loop p99, ms", most: 10 },
    ],
    notes: [
      `${TIMES} times after a first one. \`nc\`: one connection. Chunks: ${CONNECTIONS} connections, from the cache.`,
    ],
  };
}

/** Asks for all paths several times. @param size `sent`: bytes of all answers; `bytes`: of their values. */
async function transfer(
  target: LoadTarget,
  paths: readonly string[],
  connections: number,
  { sent, bytes, scratch }: { readonly sent: number; readonly bytes: number; readonly scratch: string },
): Promise<Figures> {
  const all = Array.from({ length: TIMES }, () => paths).flat();
  const { seconds } = await runLoad(target, { paths: all, connections, length: "once", scratch });
  return {
    "MB sent/s": (TIMES * sent) / MEGABYTE / seconds,
    "MB of values/s": (TIMES * bytes) / MEGABYTE / seconds,
  };
}
