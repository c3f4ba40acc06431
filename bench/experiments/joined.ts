import { readFileSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import * as zarr from "zarrita";
import {
  canWriteNetcdf4,
  FIELDS,
  fieldOf,
  type HourlyFiles,
  type HourlyFormat,
  openHourlyFiles,
} from "../data/hourly-data.js";
import { CHUNK_HOURS, openMonthlyStores } from "../data/monthly-data.js";
import { fetchBody } from "../fetch-answer.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { readProcessCost } from "../process-cost.js";
import { readResidentMemory } from "../resident-memory.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment, ExperimentContext, Goal, ResultTable } from "./experiment.js";

const SIZES = {
  full: { hours: 8_760, months: 12, monthHours: 730 },
  small: { hours: 1_000, months: 3, monthHours: 730 },
  tiny: { hours: 50, months: 2, monthHours: 30 },
} as const;
const CONNECTIONS = 8;
/** Chunks that are asked for again and again. */
const HOT = 200;
/** Chunks of files that are not open yet: no store has such a thing. */
const FIRST = "each for the first time";
const MIB = 2 ** 20;
const JOIN = { concat: "time" };
const GROWTH_TIMEOUT_MS = 120_000;
/** A process that takes less processor time than this in that time is quiet. */
const QUIET_CPU_SECONDS = 0.03;
const QUIET_MS = 500;

/** Opening and growing one kind of files. */
interface OpenRecord {
  readonly kind: "open";
  readonly format: HourlyFormat;
  readonly round: number;
  readonly coldSeconds: number;
  readonly keptSeconds: number;
  readonly residentBytes: number;
  /** Until one more file is served, and the bytes that the server read for it. */
  readonly addedSeconds: number;
  readonly addedBytes: number;
}

/** Chunks per second of files, and of one store. */
interface RateRecord {
  readonly kind: "rate";
  readonly what: string;
  readonly round: number;
  readonly joined: number;
  readonly store: number;
}

/** A year of hourly files as one dataset. */
export const joined: Experiment = {
  title: "a year of hourly files as one dataset: start, chunks beside those of one store, one more file",
  async run(context) {
    const { size, rounds, parent, onProgress } = context;
    const formats = await formatsOf(size);
    const opened: OpenRecord[] = [];
    const rates: RateRecord[] = [];
    for (const [at, format] of formats.entries()) {
      onProgress(at / (formats.length + 1), `making ${format}`);
      const files = await openHourlyFiles(format, SIZES[size].hours, parent);
      for (let round = 0; round < rounds; round++) {
        onProgress((at + round / rounds) / (formats.length + 1), format);
        opened.push(await measureOpening(files, round, context));
        rates.push(...(await measurePassed(files, round, context)));
      }
    }
    onProgress(formats.length / (formats.length + 1), "pieces");
    for (let round = 0; round < rounds; round++) rates.push(await measurePieced(round, context));
    return {
      records: [...opened, ...rates],
      tables: [openTable(formats, opened), rateTable(rates)],
      goals: [...openGoals(formats, opened), ...rateGoals(rates)],
      notes: [
        `${SIZES[size].hours.toLocaleString("en-US")} files of one hour, ${FIELD_TEXT}; one store has the same stored chunks. The server keeps no chunks. A file is opened for its first chunk; files stay open as far as there is memory for their indexes.`,
        `Pieces: ${SIZES[size].months} stores of ${SIZES[size].monthHours} hours in chunks of ${CHUNK_HOURS}, which is no divisor. Beside them, one store with chunks of ${CHUNK_HOURS} hours is served in chunks of ${CHUNK_HOURS + 1}.`,
        "Bytes for one more file are those of read calls of the server, answers to the waiting client included.",
      ],
    };
  },
};

/** Returns the kinds of files that can be written here; to show that it runs, one is enough. */
async function formatsOf(size: ExperimentContext["size"]): Promise<readonly HourlyFormat[]> {
  if (size === "tiny") return ["netcdf3"];
  return (await canWriteNetcdf4()) ? ["netcdf4", "netcdf3", "zarr"] : ["netcdf3", "zarr"];
}

const FIELD_TEXT = "64 × 64 cells of float32";

async function measureOpening(
  files: HourlyFiles,
  round: number,
  context: ExperimentContext,
): Promise<OpenRecord> {
  const scratch = context.freshFolder("joined");
  const settings = {
    datasets: { hours: { location: files.pattern, ...JOIN } },
    scratch,
    args: ["--refresh", "1"],
  };
  const cold = await startZpublish(settings);
  await untilQuiet(cold);
  await cold.stop();
  const kept = await startZpublish(settings);
  const { hours } = files;
  let path: string | undefined;
  try {
    const residentBytes = readResidentMemory(kept.pid)?.otherBytes ?? 0;
    await checkField(kept, "hours", hours);
    const before = readBytes(kept.pid);
    const began = performance.now();
    path = files.add(hours);
    while ((await lengthOf(kept, "hours")) !== hours + 1) {
      if (performance.now() - began > GROWTH_TIMEOUT_MS)
        throw new Error(`expected ${hours + 1} hours after ${path} was written`);
      await sleep(20);
    }
    const addedSeconds = (performance.now() - began) / 1_000;
    const addedBytes = readBytes(kept.pid) - before;
    await checkField(kept, "hours", hours + 1);
    return {
      ...{
        kind: "open",
        format: files.format,
        round,
        coldSeconds: cold.readySeconds,
        keptSeconds: kept.readySeconds,
      },
      ...{ residentBytes, addedSeconds, addedBytes },
    };
  } finally {
    await kept.stop();
    if (path !== undefined) rmSync(path, { recursive: true });
  }
}

/** Waits until a server does nothing: then descriptions are kept. */
async function untilQuiet({ pid }: RunningZpublish): Promise<void> {
  for (let before = -1; ; ) {
    const now = readProcessCost(pid)?.cpuSeconds ?? 0;
    if (now - before < QUIET_CPU_SECONDS) return;
    before = now;
    await sleep(QUIET_MS);
  }
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

async function measurePassed(
  files: HourlyFiles,
  round: number,
  context: ExperimentContext,
): Promise<RateRecord[]> {
  const datasets = { joined: { location: files.pattern, ...JOIN }, store: files.store };
  const scratch = context.freshFolder("passed");
  const server = await startZpublish({ datasets, scratch, args: ["--no-cache", "--refresh", "0"] });
  try {
    for (const id of Object.keys(datasets)) await checkField(server, id, files.hours);
    const keys = Array.from({ length: files.hours }, (_, hour) => `field/${hour}.0.0`);
    for (const key of [keys[0], keys.at(-1)]) {
      const [own, other] = await Promise.all(
        Object.keys(datasets).map((id) => fetchBody(server.baseUrl, `/datasets/${id}/zarr/${key}`)),
      );
      if (!own?.equals(other as Buffer)) throw new Error(`${key}: expected the same stored bytes`);
    }
    const { format } = files;
    const again = { seconds: context.seconds };
    const of = (what: string, asked: readonly string[], length: "once" | typeof again) =>
      compare(server, `${format}, ${what}`, asked, length, round, scratch);
    return [
      await of(FIRST, keys, "once"),
      await of("all in order, again", keys, "once"),
      await of(`${HOT} of them`, keys.slice(0, HOT), again),
    ];
  } finally {
    await server.stop();
  }
}

async function measurePieced(round: number, context: ExperimentContext): Promise<RateRecord> {
  const { months, monthHours } = SIZES[context.size];
  const stores = await openMonthlyStores(months, context.parent, monthHours);
  const scratch = context.freshFolder("pieced");
  const variables = { field: { chunks: { time: CHUNK_HOURS + 1 } } };
  const datasets = {
    joined: { location: stores.pattern, ...JOIN },
    store: { location: stores.store, variables },
  };
  const server = await startZpublish({ datasets, scratch, args: ["--no-cache", "--refresh", "0"] });
  try {
    for (const id of Object.keys(datasets)) await checkField(server, id, stores.hours);
    // Those of the first month are passed through.
    const first = Math.ceil(monthHours / CHUNK_HOURS);
    const last = Math.floor(stores.hours / (CHUNK_HOURS + 1)) - 1;
    const keys = Array.from({ length: last - first }, (_, at) => `field/${first + at}.0.0`);
    return await compare(server, "pieces ÷ rechunked", keys, { seconds: context.seconds }, round, scratch);
  } finally {
    await server.stop();
  }
}

/** Asks for the same chunks of the joined dataset and of the store, in another order every other round. */
async function compare(
  server: RunningZpublish,
  what: string,
  keys: readonly string[],
  length: "once" | { readonly seconds: number },
  round: number,
  scratch: string,
): Promise<RateRecord> {
  const rates: Record<string, number> = {};
  for (const id of round % 2 === 0 ? ["joined", "store"] : ["store", "joined"]) {
    const paths = keys.map((key) => `/datasets/${id}/zarr/${key}`);
    const request = {
      baseUrl: server.baseUrl,
      paths,
      headers: {},
      connections: CONNECTIONS,
      status: 200,
      scratch,
    };
    const result = await runNodeLoad({ ...request, length });
    checkLoad(result, `${what}: ${id}`, server);
    rates[id] = result.requests / result.seconds;
  }
  return { kind: "rate", what, round, joined: rates.joined as number, store: rates.store as number };
}

function openTable(formats: readonly HourlyFormat[], records: readonly OpenRecord[]): ResultTable {
  return {
    title: "Start, and one more file",
    columns: [
      "",
      "ready cold, s",
      "ready from kept descriptions, s",
      "memory, MiB",
      "one more file is served after, s",
      "KiB read for it",
    ],
    rows: formats.map((format) => {
      const of = medians(records.filter((each) => each.format === format));
      return [
        format,
        of("coldSeconds"),
        of("keptSeconds"),
        of("residentBytes") / MIB,
        of("addedSeconds"),
        of("addedBytes") / 1_024,
      ];
    }),
  };
}

function medians<Item>(items: readonly Item[]) {
  return (key: keyof Item): number => median(items.map((item) => item[key] as number)) as number;
}

function rateTable(records: readonly RateRecord[]): ResultTable {
  return {
    title: "Chunks per second",
    columns: ["", "joined", "one store", "joined ÷ one store", "least", "most"],
    rows: [...new Set(records.map(({ what }) => what))].map((what) => {
      const own = records.filter((each) => each.what === what);
      const ratios = own.map(({ joined, store }) => joined / store);
      const of = medians(own);
      return [what, of("joined"), of("store"), median(ratios), Math.min(...ratios), Math.max(...ratios)];
    }),
  };
}

function openGoals(formats: readonly HourlyFormat[], records: readonly OpenRecord[]): Goal[] {
  return formats.flatMap((format) => {
    const of = medians(records.filter((each) => each.format === format));
    const goals = [
      { what: "ready cold", seconds: of("coldSeconds"), most: 10 },
      { what: "ready from kept descriptions", seconds: of("keptSeconds"), most: 1 },
    ];
    return goals.map(({ what, seconds, most }) => ({
      what: `${format}: ${what}`,
      expected: `less than ${most} s`,
      measured: `${seconds.toFixed(2)} s`,
      isMet: seconds < most,
    }));
  });
}

function rateGoals(records: readonly RateRecord[]): Goal[] {
  const aims = [...new Set(records.map(({ what }) => what))].filter((what) => !what.includes(FIRST));
  return aims.map((what) => {
    const own = records.filter((each) => each.what === what);
    const ratio = median(own.map(({ joined, store }) => joined / store)) as number;
    return { what, expected: "at least 0.9", measured: ratio.toFixed(2), isMet: ratio >= 0.9 };
  });
}
