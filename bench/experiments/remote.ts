import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { warmCache } from "../check-answers.js";
import { type FieldStore, openManyStore, openSmallStores, storedBytes } from "../data/bench-data.js";
import { checkLoad } from "../load/check-load.js";
import { runNodeLoad } from "../load/node-load.js";
import { type Origin, startOrigin } from "../remote/origin.js";
import { readObjects } from "../remote/read-objects.js";
import { readResidentMemory } from "../resident-memory.js";
import { type RunningZpublish, startZpublish } from "../start-zpublish.js";
import { median } from "../statistics.js";
import type { Experiment, ExperimentContext, Goal, ResultTable } from "./experiment.js";
import { openMibStore } from "./open-mib-store.js";

const DELAY_MS = 20;
/** Requests at a time, of the client and of the peer. */
const AT_ONCE = 32;
const ARRAYS = { full: 1_000, small: 100, tiny: 10 } as const;
const CHUNKS = { full: 1_000, small: 100, tiny: 8 } as const;
/** Chunk requests after which memory is read. */
const MEMORY_REQUESTS = { full: 10_000, small: 500, tiny: 16 } as const;
const MIB = 2 ** 20;
const CHECKED = 4;

/** One measurement of reading all chunks. */
interface ColdRead {
  readonly kind: "cold";
  readonly delayMs: number;
  readonly way: "undici" | "zpublish" | "redirect";
  readonly round: number;
  readonly seconds: number;
  /** Requests to the origin. */
  readonly requests: number;
}

/** Datasets in a remote store, beside undici alone and beside local ones. */
export const remote: Experiment = {
  title:
    "chunks of 590 KB and metadata of 1,000 arrays in a store that is 20 ms away, and in one that is not",
  async run(context) {
    const { size, rounds, onProgress } = context;
    const store = await openMibStore(context, Math.max(1, Math.ceil(CHUNKS[size] / 16)));
    const records: ColdRead[] = [];
    for (const delayMs of [DELAY_MS, 0]) {
      const origin = await startOrigin(dirname(store.directory), delayMs);
      try {
        for (let round = 0; round < rounds; round++) {
          const ways = ["undici", "zpublish", "redirect"] as const;
          for (const way of round % 2 === 0 ? ways : ways.toReversed()) {
            onProgress(round / rounds, `${delayMs} ms: ${way}`);
            records.push(await readCold({ context, store, origin, delayMs, way, round }));
          }
        }
      } finally {
        await origin.stop();
      }
    }
    const opened = await measureOpening(context);
    const warm = await measureWarm(context, store);
    return {
      records: [...records, ...opened.records, ...warm.records],
      tables: [coldTable(records), opened.table, ...warm.tables],
      goals: [...coldGoals(records), ...opened.goals, ...warm.goals],
      notes: [
        `Origin, zpublish and client are processes of this machine. The client and "undici alone" are the same loop of undici, ${AT_ONCE} requests at a time; it follows redirects. Every round of zpublish is a fresh server with an empty cache.`,
        "Requests are what the origin received, metadata included.",
      ],
    };
  },
};

interface ColdOptions extends Pick<ColdRead, "delayMs" | "way" | "round"> {
  readonly context: ExperimentContext;
  readonly store: FieldStore;
  readonly origin: Origin;
}

async function readCold({ context, store, origin, delayMs, way, round }: ColdOptions): Promise<ColdRead> {
  const keys = store.chunkKeys.slice(0, CHUNKS[context.size]);
  const scratch = context.freshFolder(`remote-${way}`);
  const location = `${origin.url}/${store.directory.slice(dirname(store.directory).length + 1)}`;
  await origin.takeCount();
  if (way === "undici") {
    const urls = keys.map((key) => `${location}/${key}`);
    const { seconds, bytes } = await readObjects({ urls, atOnce: AT_ONCE }, scratch);
    assertBytes(store, keys, bytes);
    return { kind: "cold", delayMs, way, round, seconds, requests: await origin.takeCount() };
  }
  const server = await startZpublish({
    datasets: { field: location, check: location },
    stores: { origin: { url: `${origin.url}/`, redirect: way === "redirect" } },
    scratch,
  });
  try {
    // Another dataset of the same objects, so that the measured one stays cold.
    for (const key of keys.slice(0, CHECKED)) {
      // `fetch` follows redirects.
      const received = await (await fetch(`${server.baseUrl}/datasets/check/zarr/${key}`)).arrayBuffer();
      if (!storedBytes(store, key).equals(Buffer.from(received))) throw new Error(`${way}: ${key} is wrong`);
    }
    await origin.takeCount();
    const urls = keys.map((key) => `${server.baseUrl}/datasets/field/zarr/${key}`);
    const { seconds, bytes } = await readObjects({ urls, atOnce: AT_ONCE }, scratch);
    assertBytes(store, keys, bytes);
    return { kind: "cold", delayMs, way, round, seconds, requests: await origin.takeCount() };
  } finally {
    await server.stop();
  }
}

function assertBytes(store: FieldStore, keys: readonly string[], received: number): void {
  const expected = keys.reduce((sum, key) => sum + storedBytes(store, key).length, 0);
  if (received !== expected) throw new Error(`expected ${expected} bytes in all, received ${received}`);
}

function ratiosOf(records: readonly ColdRead[], delayMs: number, way: ColdRead["way"]): number[] {
  const of = (wanted: ColdRead["way"]) =>
    records.filter((each) => each.delayMs === delayMs && each.way === wanted).toSorted(byRound);
  const peer = of("undici");
  return of(way).map(({ seconds }, i) => (peer[i] as ColdRead).seconds / seconds);
}

function byRound(a: ColdRead, b: ColdRead): number {
  return a.round - b.round;
}

function coldTable(records: readonly ColdRead[]): ResultTable {
  const rows = [DELAY_MS, 0].flatMap((delayMs) =>
    (["undici", "zpublish", "redirect"] as const).map((way) => {
      const own = records.filter((each) => each.delayMs === delayMs && each.way === way);
      const ratios = ratiosOf(records, delayMs, way);
      return [
        `${delayMs} ms, ${way}`,
        median(own.map(({ seconds }) => seconds)),
        median(ratios),
        Math.min(...ratios),
        Math.max(...ratios),
        median(own.map(({ requests }) => requests)),
      ];
    }),
  );
  return {
    title: "Cold chunks",
    columns: ["", "seconds", "speed ÷ undici", "least", "most", "requests to the origin"],
    rows,
  };
}

function coldGoals(records: readonly ColdRead[]): Goal[] {
  return [DELAY_MS, 0].map((delayMs) => {
    const least = delayMs > 0 ? 0.9 : 0.5;
    const ratio = median(ratiosOf(records, delayMs, "zpublish")) as number;
    return {
      what: `cold chunks ${delayMs} ms away: speed ÷ undici alone`,
      expected: `at least ${least}`,
      measured: ratio.toFixed(2),
      isMet: ratio >= least,
    };
  });
}

/** Opens a consolidated store of Zarr v2, and one of v3 whose arrays have to be listed. */
async function measureOpening(context: ExperimentContext) {
  const count = ARRAYS[context.size];
  const consolidated = await openManyStore(count, context.parent);
  const folder = context.freshFolder("opening");
  const [local = ""] = await openSmallStores(1, () => {}, context.parent);
  await writeV3Store(join(folder, "listed.zarr"), count);
  const kinds = [
    {
      title: "consolidated, HTTP",
      directory: consolidated.directory,
      isListed: false,
      mostRequests: 3,
      mostTrips: 2,
    },
    {
      title: "v3, listed, S3",
      directory: join(folder, "listed.zarr"),
      isListed: true,
      mostRequests: count + 5,
      mostTrips: Math.max(4, (2 * count) / AT_ONCE),
    },
  ];
  const rows: (string | number)[][] = [];
  const goals: Goal[] = [];
  const records: object[] = [];
  for (const { title, directory, isListed, mostRequests, mostTrips } of kinds) {
    const origin = await startOrigin(dirname(directory), DELAY_MS);
    const name = directory.slice(dirname(directory).length + 1);
    try {
      const begins = await startTimes(context, { local }, {});
      const location = isListed ? `s3://bucket/${name}` : `${origin.url}/${name}`;
      const stores = { origin: { url: "s3://bucket/", endpoint: origin.endpoint, anonymous: true } };
      const seconds = (await startTimes(context, { local, many: location }, stores)) - begins;
      const requests = await origin.takeCount();
      const trips = (seconds * 1_000) / DELAY_MS;
      rows.push([`${count} arrays, ${title}`, requests, seconds, trips]);
      records.push({ kind: "open", title, count, requests, seconds });
      goals.push({
        what: `opening ${count} arrays, ${title}`,
        expected: `at most ${mostRequests} requests`,
        measured: String(requests),
        isMet: requests <= mostRequests,
      });
      if (isListed)
        goals.push({
          what: `opening ${count} arrays, ${title}: time in round trips`,
          expected: `at most ${mostTrips.toFixed(1)}`,
          measured: trips.toFixed(1),
          isMet: trips <= mostTrips,
        });
    } finally {
      await origin.stop();
    }
  }
  return {
    records,
    goals,
    table: {
      title: `Opening a store ${DELAY_MS} ms away`,
      columns: ["", "requests", "seconds more than without it", "in round trips"],
      rows,
    },
  };
}

/** Median of the seconds until a server with these datasets is ready. */
async function startTimes(
  context: ExperimentContext,
  datasets: Readonly<Record<string, string>>,
  stores: Readonly<Record<string, unknown>>,
): Promise<number> {
  const server = await startZpublish({ datasets, stores, scratch: context.freshFolder("start") });
  await server.stop();
  return server.readySeconds;
}

async function writeV3Store(directory: string, count: number): Promise<void> {
  const group = { zarr_format: 3, node_type: "group", attributes: {} };
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "zarr.json"), JSON.stringify(group));
  const array = {
    ...{ zarr_format: 3, node_type: "array", shape: [16], data_type: "float32", fill_value: 0 },
    chunk_grid: { name: "regular", configuration: { chunk_shape: [16] } },
    chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
    codecs: [{ name: "bytes", configuration: { endian: "little" } }],
    attributes: {},
    dimension_names: ["x"],
  };
  for (let i = 0; i < count; i++) {
    await mkdir(join(directory, `v${i}`));
    await writeFile(join(directory, `v${i}`, "zarr.json"), JSON.stringify(array));
  }
}

/** Compares cached chunks of a remote dataset with those of a local one, and counts requests and memory. */
async function measureWarm(context: ExperimentContext, store: FieldStore) {
  const { size, rounds, seconds, freshFolder } = context;
  const keys = store.chunkKeys.slice(0, Math.min(200, CHUNKS[size]));
  const origin = await startOrigin(dirname(store.directory), DELAY_MS);
  const location = `${origin.url}/${store.directory.slice(dirname(store.directory).length + 1)}`;
  const scratch = freshFolder("warm");
  const server = await startZpublish({ datasets: { local: store.directory, remote: location }, scratch });
  try {
    const idle = memoryOf(server);
    const paths = (id: string) => keys.map((key) => `/datasets/${id}/zarr/${key}`);
    for (const id of ["local", "remote"]) await warmCache(server.baseUrl, paths(id));
    const ratios: number[] = [];
    const rates = { local: [] as number[], remote: [] as number[] };
    let requests = 0;
    let answered = 0;
    for (let round = 0; round < rounds; round++) {
      for (const id of round % 2 === 0 ? (["local", "remote"] as const) : (["remote", "local"] as const)) {
        context.onProgress(round / rounds, `warm: ${id}`);
        await origin.takeCount();
        const result = await runNodeLoad({
          ...{
            baseUrl: server.baseUrl,
            paths: paths(id),
            headers: {},
            connections: AT_ONCE,
            length: { seconds },
          },
          ...{ status: 200, scratch },
        });
        checkLoad(result, `warm: ${id}`, server);
        rates[id].push(result.requests / result.seconds);
        if (id === "remote") {
          requests += await origin.takeCount();
          answered += result.requests;
        }
      }
      ratios.push((rates.remote[round] as number) / (rates.local[round] as number));
    }
    const grown = await growth(context, store, server, idle);
    const perThousand = (1_000 * requests) / answered;
    const ratio = median(ratios) as number;
    return {
      records: [{ kind: "warm", rates, requests, answered, grownBytes: grown }],
      tables: [
        {
          title: "Cached chunks, and memory",
          columns: ["", "median", "least", "most"],
          rows: [
            ["remote ÷ local, requests/s", ratio, Math.min(...ratios), Math.max(...ratios)],
            ["requests to the origin per 1,000 chunk requests", perThousand, perThousand, perThousand],
            [`MiB above idle after ${MEMORY_REQUESTS[size]} chunks`, grown / MIB, grown / MIB, grown / MIB],
          ],
        },
      ],
      goals: [
        {
          what: "cached chunks: remote ÷ local",
          expected: "1 within the spread of the rounds",
          measured: `${ratio.toFixed(2)}, ${Math.max(...ratios).toFixed(2)} at most`,
          isMet: Math.max(...ratios) >= 1,
        },
        {
          what: "memory above idle",
          expected: "less than 64 MiB",
          measured: `${(grown / MIB).toFixed(1)} MiB`,
          isMet: grown < 64 * MIB,
        },
      ],
    };
  } finally {
    await server.stop();
    await origin.stop();
  }
}

/** Memory without the cache's pages that a server has taken since `idle`, after very many chunks have passed. */
async function growth(
  { size, freshFolder }: ExperimentContext,
  store: FieldStore,
  server: RunningZpublish,
  idle: number,
): Promise<number> {
  const keys = store.chunkKeys.slice(0, CHUNKS[size]);
  const urls = Array.from(
    { length: MEMORY_REQUESTS[size] },
    (_, i) => `${server.baseUrl}/datasets/remote/zarr/${keys[i % keys.length]}`,
  );
  await readObjects({ urls, atOnce: AT_ONCE }, freshFolder("memory"));
  return memoryOf(server) - idle;
}

function memoryOf({ pid }: RunningZpublish): number {
  return readResidentMemory(pid)?.otherBytes ?? 0;
}
