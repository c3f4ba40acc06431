import { spawnSync } from "node:child_process";
import { basename, dirname } from "node:path";
import { type FieldStore, openFieldStore, storedBytes } from "../data/bench-data.js";
import { FIELD_SIDE } from "../data/field.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type MeasuredLoad, runLoad } from "../load/load.js";
import { processTree } from "../process-cost.js";
import { type Origin, startOrigin } from "../remote/origin.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import {
  checkDecoded,
  checkNotModified,
  checkSame,
  fetchBody,
  warmCache,
} from "../subjects/check-answers.js";
import { storePath } from "../subjects/subject.js";
import { readThreadCost } from "./thread-cost.js";

/** Steps of time of the field in chunks of 1 MiB (16 a step) and of 64 KiB (256 a step), and chunks in rotation. */
const SIZES = {
  full: { steps: 64, smallSteps: 4, chunks: 64 },
  small: { steps: 4, smallSteps: 1, chunks: 64 },
  tiny: { steps: 1, smallSteps: 1, chunks: 4 },
} as const;
const CONNECTIONS = 32;
/** So long that each process has read each cached chunk in place, and that its code is compiled. */
const WARM_UP_SECONDS = 4;
/** Numbers of cores that throughput is computed for. */
const CORES = [16, 64];
/** Elements along a side of an uncompressed chunk of 360 KB. */
const SIDE_360 = 300;

/** What is asked for. */
interface Kind {
  readonly name: string;
  /** As in the configuration file. */
  readonly dataset: (stores: Stores, origin: Origin) => Readonly<Record<string, unknown>>;
  /** Whether its chunks are of 64 KiB. Default false: of 1 MiB, or as the dataset cuts them. */
  readonly isOfSmall?: boolean;
  /** Path below the dataset, if there is one; else chunks in rotation. */
  readonly path?: string;
  readonly isNotModified?: boolean;
  /** Side of the chunks that the dataset is cut into, if it is. */
  readonly side?: number;
  /** Whether the cache answers: the others have none. Default false. */
  readonly isCached?: boolean;
  /** Whether workers make the answers, so that more of them are compared instead of more processes. Default false. */
  readonly isMade?: boolean;
}

interface Stores {
  readonly mib: FieldStore;
  readonly kib64: FieldStore;
}

const stored: Kind["dataset"] = ({ mib }) => ({ location: mib.directory });
const uncompressed = { encoding: { compressor: null } };

const KINDS: readonly Kind[] = [
  { name: "304", dataset: stored, path: "zarr/field/0.0.0", isNotModified: true },
  { name: "`/info`", dataset: stored, path: "info" },
  { name: "`.zmetadata`", dataset: stored, path: "zarr/.zmetadata" },
  {
    name: "cached, 37 KB",
    dataset: ({ kib64 }) => ({ location: kib64.directory }),
    isOfSmall: true,
    isCached: true,
  },
  {
    name: "cached, 360 KB",
    dataset: ({ mib }) => ({
      location: mib.directory,
      ...uncompressed,
      variables: { field: { chunks: [1, SIDE_360, SIDE_360] } },
    }),
    side: SIDE_360,
    isCached: true,
  },
  {
    name: "cached, 1 MiB",
    dataset: ({ mib }) => ({ location: mib.directory, ...uncompressed }),
    isCached: true,
  },
  { name: "passed through, 590 KB", dataset: stored },
  {
    name: "transcoded, 1 MiB to Zstandard",
    dataset: ({ mib }) => ({ location: mib.directory, encoding: { compressor: { id: "zstd", level: 3 } } }),
    isMade: true,
  },
  {
    name: "remote, 590 KB",
    dataset: ({ mib }, origin) => ({ location: `${origin.url}/${basename(mib.directory)}` }),
  },
];

const ID = "field";

/** What one request costs, by kind, and what follows for machines with many cores. */
export const requestCost: BenchTable = {
  title: "CPU time of one request of each kind, by thread, and throughput on many cores that follows from it",
  async *contests(context) {
    const { steps, smallSteps } = SIZES[context.size];
    const open = (id: string, side: number, count: number) =>
      openFieldStore(id, side, count, () => context.onProgress(0, "making data"), context.parent);
    const stores = { mib: await open("mib", 512, steps), kib64: await open("kib64", 128, smallSteps) };
    const origin = await startOrigin(dirname(stores.mib.directory), 0);
    try {
      yield* contestsOf(stores, origin, context);
    } finally {
      await origin.stop();
    }
  },
};

function* contestsOf(stores: Stores, origin: Origin, context: BenchContext): Generator<Contest> {
  const measured = (kind: Kind, name: string, how: Serving) =>
    perBuild(context, name, (build) => measure(kind, { build, ...how }, stores, origin, context));
  yield {
    title: "One process, the server pinned to one core",
    contestants: KINDS.flatMap((kind) => measured(kind, kind.name, { args: [], cores: "0" })),
    compared: "µs/request",
    notes: [
      "Server: threads that answer requests. Others: workers, which read, decode and encode chunks, and the helpers of Node.js and of the cache.",
      `On n cores the throughput is at most n × 1 s ÷ µs/request, with processes and workers in the proportion of the times of their threads. ${CONNECTIONS} connections from one process on the other core.`,
    ],
  };
  const kinds = context.size === "tiny" ? KINDS.filter((kind) => kind.isMade || kind.isNotModified) : KINDS;
  yield {
    title: "The same with two processes, or two workers, on both cores, which the load shares",
    contestants: kinds.flatMap((kind) => {
      const args = kind.isMade ? ["--workers", "2"] : ["--processes", "2"];
      return measured(kind, `${kind.name}, ${args.join(" ")}`, { args, cores: "0,1" });
    }),
    compared: "µs/request",
  };
}

/** How a server is started. */
interface Serving {
  readonly args: readonly string[];
  /** Cores that its threads may use, as `taskset` takes them. */
  readonly cores: string;
}

async function measure(
  kind: Kind,
  { build, args, cores }: Serving & { readonly build: Build },
  stores: Stores,
  origin: Origin,
  context: BenchContext,
): Promise<Figures> {
  const { freshFolder, seconds } = context;
  const datasets = { [ID]: kind.dataset(stores, origin) };
  const cache = kind.isCached ? [] : ["--no-cache"];
  const settings = { build, datasets, scratch: freshFolder("server"), args: [...args, ...cache] };
  return withZpublish(settings, async (server) => {
    const paths = pathsOf(kind, stores, context);
    const headers = await checkAnswers(kind, server, stores, paths);
    pin(server.pid, cores);
    const load: Omit<MeasuredLoad, "length"> = {
      ...{ paths, headers, connections: CONNECTIONS, scratch: freshFolder("load") },
      status: kind.isNotModified ? 304 : 200,
    };
    await runLoad(server, { ...load, length: { seconds: Math.min(seconds * 2, WARM_UP_SECONDS) } });
    const before = readThreadCost(server.pid);
    const { requests, seconds: took } = await runLoad(server, { ...load, length: { seconds } });
    const after = readThreadCost(server.pid);
    const each = (of: "server" | "others", part: "user" | "system") =>
      (after[of][part] - before[of][part]) / requests;
    const own = each("server", "user") + each("server", "system");
    const others = each("others", "user") + each("others", "system");
    const total = own + others;
    return {
      ...{ "server: user µs": each("server", "user"), "server: system µs": each("server", "system") },
      ...{ "others: user µs": each("others", "user"), "others: system µs": each("others", "system") },
      ...{ "µs/request": total, "requests/s": requests / took },
      ...Object.fromEntries(CORES.map((count) => [`${count} cores/s`, (count * 1e6) / total])),
      "processes of 16 cores": Math.max(1, Math.round((16 * own) / total)),
    };
  });
}

function pathsOf(kind: Kind, { mib, kib64 }: Stores, { size }: BenchContext): readonly string[] {
  if (kind.path !== undefined) return [`/datasets/${ID}/${kind.path}`];
  const { side } = kind;
  const { chunkKeys, steps } = kind.isOfSmall ? kib64 : mib;
  const keys = side === undefined ? chunkKeys : wholeChunks(side, steps);
  return keys.slice(0, SIZES[size].chunks).map((key) => storePath({ id: ID, directory: "" }, key));
}

/** Keys of the chunks that are not cut by the end of the field. */
function wholeChunks(side: number, steps: number): string[] {
  const perSide = Math.floor(FIELD_SIDE / side);
  return Array.from({ length: steps * perSide * perSide }, (_, i) => {
    const y = Math.floor(i / perSide) % perSide;
    return `field/${Math.floor(i / perSide ** 2)}.${y}.${i % perSide}`;
  });
}

/** Checks an answer, and fills the cache. @returns Headers that the load has to send. @throws Error if the answer is wrong. */
async function checkAnswers(
  kind: Kind,
  { baseUrl }: RunningZpublish,
  { mib, kib64 }: Stores,
  paths: readonly string[],
): Promise<Record<string, string>> {
  const [path = ""] = paths;
  if (kind.isNotModified) return { "If-None-Match": await checkNotModified(baseUrl, path) };
  if (kind.path !== undefined) JSON.parse((await fetchBody(baseUrl, path)).toString());
  else if (kind.side !== undefined) {
    const { length } = await fetchBody(baseUrl, path);
    if (length !== kind.side ** 2 * 4)
      throw new Error(`${path}: expected a whole chunk, received ${length} bytes`);
  } else if (kind.name === "cached, 1 MiB") {
    const { length } = await fetchBody(baseUrl, path);
    if (length !== 2 ** 20) throw new Error(`${path}: expected 1 MiB, received ${length} bytes`);
  } else {
    const store = kind.isOfSmall ? kib64 : mib;
    const [key = ""] = store.chunkKeys;
    if (kind.isMade) await checkDecoded(baseUrl, { ...store, id: ID }, [key]);
    else await checkSame(baseUrl, path, storedBytes(store, key));
  }
  if (kind.isCached) await warmCache(baseUrl, paths);
  return {};
}

/** Pins all threads of a process and its children to cores, if the system has `taskset`. */
function pin(pid: number, cores: string): void {
  for (const each of processTree(pid)) spawnSync("taskset", ["-acp", cores, String(each)]);
}
