import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Archive, addToArchive, archiveValue, openArchive } from "../data/archive-data.js";
import { fetchAnswer, fetchBody } from "../fetch-answer.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { createLoopDelay, type LoopDelay } from "../loop-delay.js";
import { readResidentMemory } from "../resident-memory.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment, ExperimentContext, Goal } from "./experiment.js";

/** Datasets below the folder; seconds of `--refresh`; datasets that are opened to see that they are right. */
const SIZES = {
  full: { count: 100_000, refresh: 5, opened: 50 },
  small: { count: 10_000, refresh: 2, opened: 20 },
  tiny: { count: 300, refresh: 1, opened: 4 },
} as const;
/** Refreshes during which the event loop is watched. */
const REFRESHES = 5;
const PAGE = 100;
const MIB = 2 ** 20;
const ARRIVAL_TIMEOUT_MS = 120_000;

interface CollectionRecord {
  readonly round: number;
  readonly listedSeconds: number;
  readonly readySeconds: number;
  /** Seconds until a server without datasets is ready. */
  readonly emptySeconds: number;
  readonly residentBytes: number;
  readonly pageP50: number;
  readonly pageP99: number;
  readonly refreshDelayMs: number;
  readonly idleDelayMs: number;
  readonly arrivalSeconds: number;
}

/** A folder with very many datasets. */
export const collections: Experiment = {
  title: "100,000 datasets below one folder: start, memory, pages of the list, refreshes, a new dataset",
  async run(context) {
    const { size, rounds, parent, onProgress } = context;
    onProgress(0, "making data");
    const archive = await openArchive(SIZES[size].count, parent);
    const records: CollectionRecord[] = [];
    for (let round = 0; round < rounds; round++) {
      onProgress(round / rounds, "measuring");
      records.push(await measure(round, archive, context));
    }
    const of = (pick: (record: CollectionRecord) => number) => median(records.map(pick)) as number;
    const row = (title: string, pick: (record: CollectionRecord) => number) => {
      const values = records.map(pick);
      return [title, of(pick), Math.min(...values), Math.max(...values)];
    };
    const beyond = ({ readySeconds, emptySeconds, listedSeconds }: CollectionRecord) =>
      Math.max(0, readySeconds - emptySeconds - listedSeconds);
    return {
      records,
      tables: [
        {
          columns: ["", "median", "least", "most"],
          rows: [
            row("`find` and `stat` of all, s", ({ listedSeconds }) => listedSeconds),
            row("ready after, s", ({ readySeconds }) => readySeconds),
            row("ready after, with an empty folder, s", ({ emptySeconds }) => emptySeconds),
            row("ready, beyond both, s", beyond),
            row("memory, MiB", ({ residentBytes }) => residentBytes / MIB),
            row(`\`/datasets\`, ${PAGE} of a page: p50 ms`, ({ pageP50 }) => pageP50),
            row("p99 ms", ({ pageP99 }) => pageP99),
            row(
              `longest hold of the event loop in a refresh, median of ${REFRESHES}, ms`,
              (each) => each.refreshDelayMs,
            ),
            row("the same of an empty folder, ms", ({ idleDelayMs }) => idleDelayMs),
            row("a new dataset is listed after, s", ({ arrivalSeconds }) => arrivalSeconds),
          ],
        },
      ],
      goals: [
        goal("seconds to start beyond listing", "less than 3", of(beyond), of(beyond) < 3),
        goal(
          "memory, MiB",
          "less than 300",
          of((each) => each.residentBytes) / MIB,
          of((each) => each.residentBytes) < 300 * MIB,
        ),
        goal(
          "p99 of a page of `/datasets`, ms",
          "less than 20",
          of((each) => each.pageP99),
          of((each) => each.pageP99) < 20,
        ),
        goal(
          "longest hold of the event loop in a refresh, ms",
          "at most 20",
          of((each) => each.refreshDelayMs),
          of((each) => each.refreshDelayMs) <= 20,
        ),
      ],
      notes: [
        `${SIZES[size].count.toLocaleString("en-US")} datasets: NetCDF-3 files and, one in a hundred, Zarr stores, 1,000 to a folder. Pages after ids all over the list are asked for one after the other. A refresh every ${SIZES[size].refresh} s.`,
        "The event loop is watched by a timer of one millisecond within the server.",
      ],
    };
  },
};

function goal(what: string, expected: string, measured: number, isMet: boolean): Goal {
  return { what, expected, measured: measured.toFixed(2), isMet };
}

async function measure(
  round: number,
  archive: Archive,
  context: ExperimentContext,
): Promise<CollectionRecord> {
  const { refresh, opened } = SIZES[context.size];
  const listedSeconds = timeListing(archive);
  const empty = await watchEmpty(context);
  const scratch = context.freshFolder("collections");
  const loop = createLoopDelay(scratch);
  const server = await startZpublish({
    ...{ datasets: {}, collections: { archive: { root: archive.directory } }, scratch },
    ...{ args: ["--refresh", String(refresh)], ...loop.settings },
  });
  try {
    const residentBytes = readResidentMemory(server.pid)?.otherBytes ?? 0;
    await checkList(server, archive);
    await checkDatasets(server, archive, opened);
    const refreshDelayMs = await watchRefreshes(server, loop, refresh);
    const page = await loadPages(server, archive, context, scratch);
    const arrivalSeconds = await timeArrival(server, archive);
    return {
      ...{
        round,
        listedSeconds,
        readySeconds: server.readySeconds,
        residentBytes,
        refreshDelayMs,
        arrivalSeconds,
      },
      ...{
        pageP50: page.p50,
        pageP99: page.p99,
        emptySeconds: empty.readySeconds,
        idleDelayMs: empty.delayMs,
      },
    };
  } finally {
    await server.stop();
  }
}

/** Returns the seconds that `find` takes to list all entries with their sizes and times. */
function timeListing({ directory }: Archive): number {
  const began = performance.now();
  const { status } = spawnSync("find", [directory, "-printf", "%s %T@ %p\n"], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) throw new Error(`find: expected status 0, received ${status}`);
  return (performance.now() - began) / 1_000;
}

/** Starts a server of an empty folder: what its process takes anyway. */
async function watchEmpty({ freshFolder, size }: ExperimentContext) {
  const scratch = freshFolder("empty");
  const root = freshFolder("empty-root");
  const loop = createLoopDelay(scratch);
  const args = ["--refresh", String(SIZES[size].refresh)];
  const server = await startZpublish({
    datasets: {},
    collections: { archive: { root } },
    scratch,
    args,
    ...loop.settings,
  });
  try {
    return {
      readySeconds: server.readySeconds,
      delayMs: await watchRefreshes(server, loop, SIZES[size].refresh),
    };
  } finally {
    await server.stop();
  }
}

/** Returns the longest delay of the event loop in a refresh: the median of several, since other processes hold it, too. */
async function watchRefreshes({ pid }: RunningZpublish, loop: LoopDelay, refresh: number): Promise<number> {
  await loop.take(pid);
  const longest: number[] = [];
  for (let watched = 0; watched < REFRESHES; watched++) {
    await sleep(refresh * 1_000);
    longest.push(await loop.take(pid));
  }
  return median(longest) as number;
}

const idOf = (path: string): string => `archive~${path.replaceAll("/", "~")}`;

/** Compares the whole list, and a page of it. */
async function checkList({ baseUrl }: RunningZpublish, { paths }: Archive): Promise<void> {
  const expected = paths.map(idOf).sort();
  const received = JSON.parse((await fetchBody(baseUrl, "/datasets")).toString()) as string[];
  if (received.length !== expected.length || received.toSorted().some((id, at) => id !== expected[at]))
    throw new Error(
      `/datasets: expected ${expected.length} ids from ${expected[0]} on, received ${received.length} from ${received[0]} on`,
    );
  const middle = Math.floor(received.length / 2);
  const page = JSON.parse(
    (await fetchBody(baseUrl, `/datasets?limit=${PAGE}&after=${received[middle]}`)).toString(),
  ) as string[];
  const rest = received.slice(middle + 1, middle + 1 + PAGE);
  if (page.join() !== rest.join())
    throw new Error(`/datasets: expected a page from ${rest[0]} on, received one from ${page[0]} on`);
}

async function checkDatasets({ baseUrl }: RunningZpublish, { paths }: Archive, count: number): Promise<void> {
  const every = Math.ceil(paths.length / count);
  for (const path of paths
    .filter((path, at) => at % every === 0 || path.endsWith("099.zarr"))
    .slice(0, 2 * count)) {
    const bytes = await fetchBody(baseUrl, `/datasets/${idOf(path)}/zarr/value/0`);
    const value = path.endsWith(".nc") ? bytes.readFloatBE(0) : bytes.readFloatLE(0);
    if (value !== archiveValue(path))
      throw new Error(`${path}: expected ${archiveValue(path)}, received ${value}`);
  }
}

async function loadPages(
  server: RunningZpublish,
  { paths }: Archive,
  { seconds }: ExperimentContext,
  scratch: string,
) {
  const after = Array.from({ length: 500 }, (_, i) => paths[Math.floor((i * paths.length) / 500)] as string);
  const pages = after.map((path) => `/datasets?limit=${PAGE}&after=${idOf(path)}`);
  const request = {
    baseUrl: server.baseUrl,
    paths: pages,
    headers: {},
    connections: 1,
    status: 200,
    scratch,
  };
  const result = await runNodeLoad({ ...request, length: { seconds } });
  checkLoad(result, "/datasets", server);
  return result;
}

/** Adds a dataset, waits until it is listed, and removes it. @returns seconds */
async function timeArrival({ baseUrl }: RunningZpublish, archive: Archive): Promise<number> {
  const path = addToArchive(archive, "new.nc");
  const began = performance.now();
  try {
    for (;;) {
      const { body } = await fetchAnswer(baseUrl, `/datasets?limit=1&prefix=${idOf(path)}`);
      const passed = performance.now() - began;
      if (body.includes(idOf(path))) return passed / 1_000;
      if (passed > ARRIVAL_TIMEOUT_MS) throw new Error(`${path}: expected to be listed, received ${body}`);
      await sleep(20);
    }
  } finally {
    rmSync(join(archive.directory, path));
  }
}
