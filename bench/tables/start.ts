import { existsSync } from "node:fs";
import { isDeepStrictEqual } from "node:util";
import { installedNode } from "../../test/support/servers/installed-node.js";
import { type BenchStore, openManyStore, openSmallStores } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { createLoopDelay } from "../load/loop-delay.js";
import { readProcessCost } from "../process-cost.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { checkDocument, fetchAnswer, fetchBody } from "../subjects/check-answers.js";
import { storePath } from "../subjects/subject.js";
import { residentMib } from "./memory.js";

/** How many datasets, and variables of one dataset. */
const SIZES = {
  full: { datasets: [1, 100, 10_000], variables: [1_000, 50_000] },
  small: { datasets: [1, 10, 100], variables: [100, 1_000] },
  tiny: { datasets: [1, 3], variables: [10] },
} as const;
const MAX_HELD_MS = 20;
/** Milliseconds to the first answer that are aimed at with V8's compile cache. */
const COLD_START_MS = 250;

/** Cost of datasets and variables that no client asks for, and the start of the program. */
export const start: BenchTable = {
  title: "start, memory and first answers with many datasets and variables; start with V8's compile cache",
  async *contests(context) {
    const { size, parent, onProgress } = context;
    const stores = await openSmallStores(
      SIZES[size].datasets.at(-1)!,
      (done) => onProgress(done, "data"),
      parent,
    );
    const many = new Map<number, BenchStore>();
    for (const count of SIZES[size].variables) many.set(count, await openManyStore(count, parent));
    yield {
      title: "Datasets",
      contestants: SIZES[size].datasets.flatMap((count) =>
        perBuild(context, `${count.toLocaleString("en-US")} datasets`, (build) =>
          startDatasets(stores.slice(0, count), build, context),
        ),
      ),
      compared: "ready, s",
      notes: [
        "Each dataset is a directory: a group, two variables with a chunk each, consolidated metadata. From the start of the process to its line that it is ready, start of Node.js included. Memory is resident memory beyond the cache's map when the server is ready.",
      ],
    };
    yield {
      title: "Variables of one dataset",
      contestants: [...many].flatMap(([count, store]) =>
        perBuild(context, variablesName(count), (build, round) =>
          startVariables(store, { count, build, round }, context),
        ),
      ),
      compared: "ready, s",
      aims: [...many.keys()].map((count) => ({
        ...{ of: variablesName(count), figure: "event loop held, ms", most: MAX_HELD_MS },
      })),
      notes: [
        "One store with consolidated metadata. The event loop is watched by a timer of one millisecond within the server, while `.zmetadata` is made for the first time: as it is, in br and in gzip.",
      ],
    };
    yield* coldStarts(stores[0]!, context);
  },
};

function variablesName(count: number): string {
  return `${count.toLocaleString("en-US")} variables`;
}

function startFigures({ pid, readySeconds }: RunningZpublish): Figures {
  return {
    "ready, s": readySeconds,
    "CPU s": readProcessCost(pid)?.cpuSeconds,
    "memory, MiB": residentMib({ pid }),
  };
}

async function timed(baseUrl: string, path: string): Promise<{ readonly ms: number; readonly body: Buffer }> {
  const began = performance.now();
  const body = await fetchBody(baseUrl, path);
  return { ms: performance.now() - began, body };
}

function startDatasets(
  locations: readonly string[],
  build: Build,
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const ids = locations.map((_, i) => `s${i}`);
  const datasets = Object.fromEntries(ids.map((id, i) => [id, locations[i]]));
  return withZpublish({ build, datasets, scratch: freshFolder("server") }, async (server) => {
    const started = startFigures(server);
    const { baseUrl } = server;
    await timed(baseUrl, "/versions");
    const metadata = async (index: number) => {
      const { ms, body } = await timed(baseUrl, `/datasets/s${index}/zarr/.zmetadata`);
      const title = JSON.parse(body.toString()).metadata?.[".zattrs"]?.title;
      if (title !== `small dataset ${index}`)
        throw new Error(`expected small dataset ${index}, received ${title}`);
      return ms;
    };
    const first = await metadata(ids.length - 1);
    const again = await metadata(ids.length - 1);
    const list = await timed(baseUrl, "/datasets");
    if (!isDeepStrictEqual(JSON.parse(list.body.toString()), ids))
      throw new Error(
        `/datasets: expected ${ids.length} ids in order, received ${list.body.subarray(0, 200)}`,
      );
    return { ...started, "first `.zmetadata`, ms": first, "again, ms": again, "`/datasets`, ms": list.ms };
  });
}

function startVariables(
  store: BenchStore,
  { count, build, round }: { readonly count: number; readonly build: Build; readonly round: number },
  { freshFolder }: BenchContext,
): Promise<Figures> {
  const scratch = freshFolder("server");
  const loop = createLoopDelay(scratch);
  const settings = { build, datasets: { [store.id]: store.directory }, scratch, ...loop.settings };
  return withZpublish(settings, async (server) => {
    const started = startFigures(server);
    const { baseUrl, pid } = server;
    await timed(baseUrl, "/versions");
    const array = await timed(baseUrl, storePath(store, `v${count - 1}/.zarray`));
    await loop.take(pid);
    const path = storePath(store, ".zmetadata");
    const first = await timed(baseUrl, path);
    for (const coding of ["br", "gzip"]) await fetchAnswer(baseUrl, path, { "accept-encoding": coding });
    const { longest: heldMs } = await loop.take(pid);
    const again = await timed(baseUrl, path);
    const keys = await timed(baseUrl, `/datasets/${store.id}/keys`);
    if (round === 0) await checkDocument(baseUrl, store, path);
    const listed = JSON.parse(keys.body.toString()).length;
    if (listed !== count) throw new Error(`/keys: expected ${count} names, received ${listed}`);
    return {
      ...started,
      ...{ "`.zmetadata`, MB": first.body.length / 1e6, "first `.zarray`, ms": array.ms },
      ...{ "first `.zmetadata`, ms": first.ms, "again, ms": again.ms, "`/keys`, ms": keys.ms },
      "event loop held, ms": heldMs,
    };
  });
}

/** The program with and without V8's compile cache, under this Node.js and those of `scripts/install/nodes.sh`. */
async function* coldStarts(location: string, context: BenchContext) {
  const [major = ""] = process.versions.node.split(".");
  const others = ([24, 26] as const).map((other) => ({
    major: String(other),
    node: installedNode(other).program,
  }));
  const nodes = [
    { major, node: process.execPath },
    ...others.filter((each) => each.major !== major && existsSync(each.node)),
  ];
  const cached = nodes.filter((each) => each.major !== "20");
  const contestants = [
    ...nodes.map((each) => ({ ...each, name: `Node.js ${each.major}`, hasCache: false })),
    ...cached.map((each) => ({ ...each, name: `Node.js ${each.major}, compile cache`, hasCache: true })),
  ];
  const cache = context.freshFolder("compiled");
  const measure = ({ node, hasCache }: (typeof contestants)[number], build: Build) => {
    const env: Record<string, string> = hasCache
      ? { XDG_CACHE_HOME: cache }
      : { NODE_DISABLE_COMPILE_CACHE: "1" };
    const scratch = context.freshFolder("server");
    const began = performance.now();
    return withZpublish({ build, datasets: { small: location }, scratch, node, env }, async (server) => {
      await fetchBody(server.baseUrl, "/datasets");
      const ms = performance.now() - began;
      return { "first answer, ms": ms, "ready, ms": server.readySeconds * 1_000, ...startFigures(server) };
    });
  };
  // Fills the compile cache.
  for (const each of contestants)
    for (const build of context.builds) if (each.hasCache) await measure(each, build);
  yield {
    title: "Program, one small dataset",
    contestants: contestants.flatMap((each) => perBuild(context, each.name, (build) => measure(each, build))),
    compared: "first answer, ms",
    aims: contestants
      .filter(({ hasCache }) => hasCache)
      .map(({ name }) => ({ of: name, most: COLD_START_MS })),
    notes: [
      "An empty chunk cache; the files are in the system's page cache. Node.js 20 has no compile cache.",
    ],
  };
}
