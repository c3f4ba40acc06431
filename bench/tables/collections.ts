import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type Archive, addToArchive, archiveValue, openArchive } from "../data/archive-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { runLoad } from "../load/load.js";
import { createLoopDelay, type LoopDelay } from "../load/loop-delay.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import { fetchAnswer, fetchBody } from "../subjects/check-answers.js";
import { residentMib } from "./memory.js";

/** Datasets below the folder; seconds of `--refresh`; datasets that are opened to see that they are right. */
const SIZES = {
  full: { count: 100_000, refresh: 5, opened: 50 },
  small: { count: 10_000, refresh: 2, opened: 20 },
  tiny: { count: 300, refresh: 1, opened: 4 },
} as const;
/** Refreshes during which the event loop is watched. */
const REFRESHES = 5;
const PAGE = 100;
const ARRIVAL_TIMEOUT_MS = 120_000;
const FULL = "the folder";
const EMPTY = "an empty folder";
const FIND = "`find` alone";

/** A folder with very many datasets. */
export const collections: BenchTable = {
  title: "100,000 datasets below one folder: start, memory, pages of the list, refreshes, a new dataset",
  async *contests(context) {
    const { count, refresh } = SIZES[context.size];
    context.onProgress(0, "making data");
    const archive = await openArchive(count, context.parent);
    yield {
      contestants: [
        ...perBuild(context, FULL, (build) => measure(archive, build, context)),
        ...perBuild(context, EMPTY, (build) => measureEmpty(build, context)),
        { name: FIND, measure: async () => ({ "ready, s": timeListing(archive) }) },
      ],
      compared: "ready, s",
      against: [FIND],
      aims: [
        { of: FULL, figure: "memory, MiB", most: 300 },
        { of: FULL, figure: "page: p99 ms", most: 20 },
        { of: FULL, figure: "loop held in a refresh, ms", most: 20 },
        { of: FULL, figure: "/stac: first ms", most: 50 },
        { of: FULL, figure: "/stac/collections: first ms", most: 50 },
      ],
      notes: [
        `${count.toLocaleString("en-US")} datasets: NetCDF-3 files and, one in a hundred, Zarr stores, 1,000 to a folder. \`find\` lists all entries with their sizes and times. Pages of ${PAGE} after ids all over the list are asked for one after the other. A refresh every ${refresh} s.`,
        `The event loop is watched by a timer of one millisecond within the server: the longest delay of a refresh, the median of ${REFRESHES}.`,
      ],
    };
  },
};

function measure(archive: Archive, build: Build, context: BenchContext): Promise<Figures> {
  const { refresh, opened } = SIZES[context.size];
  return withFolder(archive.directory, build, context, async (server, loop, scratch) => {
    const resident = residentMib(server);
    await checkList(server, archive);
    // The first answer of each, before anything is kept for another one.
    const stacMs = await timeAnswer(server, "/stac");
    const stacPageMs = await timeAnswer(server, `/stac/collections?limit=${PAGE}`);
    await checkDatasets(server, archive, opened);
    const heldMs = await watchRefreshes(server, loop, refresh);
    const { paths } = archive;
    const pages = Array.from({ length: 500 }, (_, i) => {
      const after = paths[Math.floor((i * paths.length) / 500)]!;
      return `/datasets?limit=${PAGE}&after=${idOf(after)}`;
    });
    const { seconds } = context;
    const load = { paths: pages, connections: 1, length: { seconds, isOnce: false }, scratch };
    const { p50, p99 } = await runLoad(server, load);
    return {
      ...{ "ready, s": server.readySeconds, "memory, MiB": resident },
      ...{ "page: p50 ms": p50, "page: p99 ms": p99, "loop held in a refresh, ms": heldMs },
      ...{ "/stac: first ms": stacMs, "/stac/collections: first ms": stacPageMs },
      "new dataset listed after, s": await timeArrival(server, archive),
    };
  });
}

/** What the process takes anyway. */
function measureEmpty(build: Build, context: BenchContext): Promise<Figures> {
  return withFolder(context.freshFolder("empty"), build, context, async (server, loop) => ({
    "ready, s": server.readySeconds,
    "memory, MiB": residentMib(server),
    "loop held in a refresh, ms": await watchRefreshes(server, loop, SIZES[context.size].refresh),
  }));
}

function withFolder(
  root: string,
  build: Build,
  { size, freshFolder }: BenchContext,
  use: (server: RunningZpublish, loop: LoopDelay, scratch: string) => Promise<Figures>,
): Promise<Figures> {
  const scratch = freshFolder("server");
  const loop = createLoopDelay(scratch);
  const args = ["--refresh", String(SIZES[size].refresh)];
  const collections = { archive: { root } };
  return withZpublish({ build, datasets: {}, collections, scratch, args, ...loop.settings }, (server) =>
    use(server, loop, scratch),
  );
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

/** Returns the longest delay of the event loop in a refresh: the median of several, since other processes hold it, too. */
async function watchRefreshes({ pid }: RunningZpublish, loop: LoopDelay, refresh: number): Promise<number> {
  await loop.take(pid);
  const longest: number[] = [];
  for (let watched = 0; watched < REFRESHES; watched++) {
    await sleep(refresh * 1_000);
    longest.push((await loop.take(pid)).longest);
  }
  return median(longest)!;
}

async function timeAnswer({ baseUrl }: RunningZpublish, path: string): Promise<number> {
  const began = performance.now();
  await fetchBody(baseUrl, path);
  return performance.now() - began;
}

function idOf(path: string): string {
  return `archive~${path.replaceAll("/", "~")}`;
}

/** Compares the whole list, and a page of it. */
async function checkList({ baseUrl }: RunningZpublish, { paths }: Archive): Promise<void> {
  const expected = paths.map(idOf).sort();
  const received = JSON.parse((await fetchBody(baseUrl, "/datasets")).toString()) as string[];
  if (received.length !== expected.length || received.toSorted().some((id, at) => id !== expected[at]))
    throw new Error(
      `/datasets: expected ${expected.length} ids from ${expected[0]} on, received ${received.length} from ${received[0]} on`,
    );
  const middle = Math.floor(received.length / 2);
  const path = `/datasets?limit=${PAGE}&after=${received[middle]}`;
  const page = JSON.parse((await fetchBody(baseUrl, path)).toString()) as string[];
  const rest = received.slice(middle + 1, middle + 1 + PAGE);
  if (page.join() !== rest.join())
    throw new Error(`/datasets: expected a page from ${rest[0]} on, received one from ${page[0]} on`);
}

async function checkDatasets({ baseUrl }: RunningZpublish, { paths }: Archive, count: number): Promise<void> {
  const every = Math.ceil(paths.length / count);
  const some = paths.filter((path, at) => at % every === 0 || path.endsWith("099.zarr"));
  for (const path of some.slice(0, 2 * count)) {
    const bytes = await fetchBody(baseUrl, `/datasets/${idOf(path)}/zarr/value/0`);
    const value = path.endsWith(".nc") ? bytes.readFloatBE(0) : bytes.readFloatLE(0);
    if (value !== archiveValue(path))
      throw new Error(`${path}: expected ${archiveValue(path)}, received ${value}`);
  }
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
