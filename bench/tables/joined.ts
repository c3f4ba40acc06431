import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as zarr from "zarrita";
import {
  FIELDS,
  fieldOf,
  type HourlyFiles,
  type HourlyFormat,
  openHourlyFiles,
} from "../data/hourly-data.js";
import { CHUNK_HOURS, openMonthlyStores } from "../data/monthly-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type MeasuredLoad, runLoad } from "../load/load.js";
import { readProcessCost } from "../process-cost.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { fetchBody } from "../subjects/check-answers.js";
import { residentMib } from "./memory.js";

const SIZES = {
  full: { hours: 8_760, months: 12, monthHours: 730 },
  small: { hours: 1_000, months: 3, monthHours: 730 },
  tiny: { hours: 50, months: 2, monthHours: 30 },
} as const;
const CONNECTIONS = 8;
/** Chunks that are asked for again and again. */
const HOT = 200;
const JOIN = { concat: "time" };
const GROWTH_TIMEOUT_MS = 120_000;
/** A process that takes less processor time than this in that time is quiet. */
const QUIET_CPU_SECONDS = 0.03;
const QUIET_MS = 500;
const JOINED = "joined";
const STORE = "one store";

/** A year of hourly files as one dataset, by the format of the files. */
export const JOINED_TABLES: Readonly<Record<string, BenchTable>> = {
  "joined-netcdf4": hourlyTable("netcdf4"),
  "joined-netcdf3": hourlyTable("netcdf3"),
  "joined-zarr": hourlyTable("zarr"),
  "joined-pieces": {
    title: "chunks that are put together from several Zarr stores, beside chunks that are rechunked",
    async *contests(context) {
      yield await piecedChunks(context);
    },
  },
};

function hourlyTable(format: HourlyFormat): BenchTable {
  return {
    title: `a year of hourly files (${format}) as one dataset: start, one more file, chunks beside those of one store`,
    async *contests(context) {
      context.onProgress(0, "making files");
      const files = await openHourlyFiles(format, SIZES[context.size].hours, context.parent);
      yield {
        title: "Start, and one more file",
        contestants: perBuild(context, format, (build) => measureOpening(files, build, context)),
        compared: "ready from kept descriptions, s",
        aims: [
          { of: format, figure: "ready cold, s", most: 10 },
          { of: format, most: 1 },
        ],
        notes: [
          `${files.hours.toLocaleString("en-US")} files of one hour, 64 × 64 cells of float32.`,
          "Bytes for one more file are those of read calls of the server, answers to the waiting client included.",
        ],
      };
      yield passedChunks(files, context);
    },
  };
}

async function measureOpening(
  files: HourlyFiles,
  build: Build,
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const settings = {
    ...{ build, scratch: freshFolder("joined"), args: ["--refresh", "1"] },
    datasets: { hours: { location: files.pattern, ...JOIN } },
  };
  const coldSeconds = await withZpublish(settings, async (server) => {
    await untilQuiet(server);
    return server.readySeconds;
  });
  return withZpublish(settings, async (server) => {
    const resident = residentMib(server);
    const readyCpuSeconds = cpuSecondsOf(server);
    const { hours } = files;
    await checkField(server, "hours", hours);
    const before = readBytes(server.pid);
    const began = performance.now();
    const path = files.add(hours);
    try {
      while ((await lengthOf(server, "hours")) !== hours + 1) {
        if (performance.now() - began > GROWTH_TIMEOUT_MS)
          throw new Error(`expected ${hours + 1} hours after ${path} was written`);
        await sleep(20);
      }
      const addedSeconds = (performance.now() - began) / 1_000;
      const addedBytes = readBytes(server.pid) - before;
      await checkField(server, "hours", hours + 1);
      return {
        ...{ "ready cold, s": coldSeconds, "ready from kept descriptions, s": server.readySeconds },
        "CPU s for that": readyCpuSeconds,
        ...{ "memory, MiB": resident, "one more file is served after, s": addedSeconds },
        "KiB read for it": addedBytes / 1_024,
      };
    } finally {
      rmSync(path, { recursive: true });
    }
  });
}

/** Waits until a server does nothing: then descriptions are kept. */
async function untilQuiet(server: RunningZpublish): Promise<void> {
  for (let before = -1; ; ) {
    const now = cpuSecondsOf(server);
    if (now - before < QUIET_CPU_SECONDS) return;
    before = now;
    await sleep(QUIET_MS);
  }
}

function cpuSecondsOf({ pid }: RunningZpublish): number {
  return readProcessCost(pid)?.cpuSeconds ?? 0;
}

/** Returns the bytes that a process has read by calls. */
function readBytes(pid: number): number {
  return Number(/^rchar: (\d+)$/m.exec(readFileSync(`/proc/${pid}/io`, "utf8"))?.[1]);
}

async function lengthOf({ baseUrl }: RunningZpublish, id: string): Promise<number> {
  const { shape } = JSON.parse((await fetchBody(baseUrl, `/datasets/${id}/zarr/field/.zarray`)).toString());
  return shape[0];
}

/** Compares times and some hours of the field, those at the ends included. */
async function checkField({ baseUrl }: RunningZpublish, id: string, hours: number): Promise<void> {
  const root = zarr.root(new zarr.FetchStore(`${baseUrl}/datasets/${id}/zarr`));
  const time = await zarr.open.v2(root.resolve("time"), { kind: "array" });
  const times = (await zarr.get(time)).data as Float64Array;
  const wrong = Array.from({ length: hours }, (_, hour) => hour).findIndex((hour) => times[hour] !== hour);
  if (times.length !== hours || wrong !== -1)
    throw new Error(
      `${id}: expected times from 0 to ${hours - 1}, received ${times.length}, wrong at ${wrong}`,
    );
  const field = await zarr.open.v2(root.resolve("field"), { kind: "array" });
  for (const hour of new Set([0, 1, FIELDS + 1, Math.floor(hours / 2), hours - 2, hours - 1])) {
    const { data } = await zarr.get(field, [hour, null, null]);
    const expected = fieldOf(hour);
    const at = expected.findIndex((value, cell) => value !== (data as Float32Array)[cell]);
    if (at !== -1) throw new Error(`${id}: hour ${hour}: cell ${at} differs`);
  }
}

/** Chunks as the files have them, one server for all figures. Files are not open at first: no store has such a thing. */
function passedChunks({ format, hours, pattern, store }: HourlyFiles, context: BenchContext): Contest {
  const datasets = { joined: { location: pattern, ...JOIN }, store };
  const keys = Array.from({ length: hours }, (_, hour) => `field/${hour}.0.0`);
  const hot = { keys: keys.slice(0, HOT), length: { seconds: context.seconds } };
  const asked: Asked = {
    ...{ datasets, hours },
    loads: {
      [FIRST]: { keys, length: "once" },
      [IN_ORDER]: { keys, length: "once" },
      [`${HOT} of them, µs`]: hot,
    },
  };
  const least = format === "zarr" ? 0.9 : 0.95;
  return {
    ...compare(`${format}: CPU of the server per chunk`, asked, FIRST, context),
    against: [JOINED],
    aims: [
      { of: STORE, against: JOINED, least: 0.5 },
      { of: STORE, against: JOINED, figure: IN_ORDER, least },
    ],
  };
}

const FIRST = "each for the first time, µs";
const IN_ORDER = "all in order, again, µs";

/** What is served in both ways, and the keys of the same chunks by what is measured: CPU, or chunks per second. */
interface Asked {
  readonly datasets: Readonly<Record<string, unknown>>;
  readonly hours: number;
  readonly loads: Readonly<
    Record<string, { readonly keys: readonly string[]; readonly length: MeasuredLoad["length"] }>
  >;
}

/** Chunks that are put together from several files, beside chunks that are rechunked. */
async function piecedChunks(context: BenchContext): Promise<Contest> {
  const { months, monthHours } = SIZES[context.size];
  const stores = await openMonthlyStores(months, context.parent, monthHours);
  const { hours } = stores;
  const variables = { field: { chunks: { time: CHUNK_HOURS + 1 } } };
  const datasets = {
    joined: { location: stores.pattern, ...JOIN },
    store: { location: stores.store, variables },
  };
  // Those of the first month are passed through.
  const first = Math.ceil(monthHours / CHUNK_HOURS);
  const last = Math.floor(hours / (CHUNK_HOURS + 1)) - 1;
  const keys = Array.from({ length: last - first }, (_, at) => `field/${first + at}.0.0`);
  const loads = { [PER_SECOND]: { keys, length: { seconds: context.seconds } } };
  const title = `Pieces of ${months} stores of ${monthHours} hours, beside one store that is rechunked`;
  return {
    ...compare(title, { datasets, hours, loads }, PER_SECOND, context),
    against: [STORE],
    aims: [{ of: JOINED, against: STORE, least: 0.9 }],
  };
}

const PER_SECOND = "chunks/s";

function compare(title: string, asked: Asked, compared: string, context: BenchContext): Contest {
  return {
    title,
    contestants: [JOINED, STORE].flatMap((name) =>
      perBuild(context, name, (build, round) => askFor(name, asked, { build, round }, context)),
    ),
    compared,
    notes: [
      "A fresh server each time, which keeps no chunks. Files stay open as far as there is memory for their indexes.",
    ],
  };
}

function askFor(
  name: string,
  { datasets, hours, loads }: Asked,
  { build, round }: { readonly build: Build; readonly round: number },
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const scratch = freshFolder("server");
  const id = name === JOINED ? "joined" : "store";
  const args = ["--no-cache", "--refresh", "0"];
  return withZpublish({ build, datasets: { [id]: datasets[id] }, scratch, args }, async (server) => {
    const figures: Record<string, number | undefined> = {};
    for (const [figure, { keys, length }] of Object.entries(loads)) {
      const paths = keys.map((key) => `/datasets/${id}/zarr/${key}`);
      const before = cpuSecondsOf(server);
      const { requests, seconds } = await runLoad(server, {
        paths,
        connections: CONNECTIONS,
        scratch,
        length,
      });
      const used = cpuSecondsOf(server) - before;
      figures[figure] = figure === PER_SECOND ? requests / seconds : (used * 1e6) / requests;
    }
    if (round === 0) await checkField(server, id, hours);
    return figures;
  });
}
