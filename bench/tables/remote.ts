import { mkdir, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { type FieldStore, openManyStore, openSmallStores, storedBytes } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Contest,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { measureLoad } from "../load/load.js";
import { type Origin, startOrigin } from "../remote/origin.js";
import { readObjects } from "../remote/read-objects.js";
import { startZpublish, withZpublish } from "../start-zpublish.js";
import { warmCache } from "../subjects/check-answers.js";
import { residentMib } from "./memory.js";
import { openMibStore, pathsOf } from "./rows.js";

const DELAY_MS = 20;
/** Requests at a time, of the client and of the peer: few wait for the network, many for the processor. */
const FEW = 4;
const AT_ONCE = 32;
/** Arrays, chunks, and chunk requests after which memory is read. */
const SIZES = {
  full: { arrays: 1_000, chunks: 1_000, requests: 10_000 },
  small: { arrays: 100, chunks: 100, requests: 500 },
  tiny: { arrays: 10, chunks: 8, requests: 16 },
} as const;
const CHECKED = 4;
const ALONE = "undici alone";
const SERVED = "zpublish";
const REDIRECTED = "zpublish, redirected";
const LOCAL = "local";
const REMOTE = "remote";

/** Datasets in a remote store, beside undici alone and beside local ones. */
export const remote: BenchTable = {
  title:
    "chunks of 590 KB and metadata of 1,000 arrays in a store that is 20 ms away, and in one that is not",
  async *contests(context) {
    const store = await openMibStore(context, Math.max(1, Math.ceil(SIZES[context.size].chunks / 16)));
    for (const [delayMs, atOnce] of [
      [DELAY_MS, FEW],
      [DELAY_MS, AT_ONCE],
      [0, AT_ONCE],
    ] as const) {
      const origin = await startOrigin(dirname(store.directory), delayMs);
      try {
        yield coldChunks({ store, origin, atOnce }, delayMs, context);
      } finally {
        await origin.stop();
      }
    }
    yield* openings(context);
    yield* cachedChunks(store, context);
  },
};

function keysOf(store: FieldStore, { size }: BenchContext): readonly string[] {
  return store.chunkKeys.slice(0, SIZES[size].chunks);
}

/** What a client reads: chunks of a store, from an origin, so many at a time. */
interface ColdRead {
  readonly store: FieldStore;
  readonly origin: Origin;
  readonly atOnce: number;
}

function coldChunks(cold: ColdRead, delayMs: number, context: BenchContext): Contest {
  const least = delayMs > 0 ? 0.9 : 0.5;
  return {
    title: `Cold chunks, ${delayMs} ms away, ${cold.atOnce} at a time`,
    contestants: [
      { name: ALONE, measure: () => readAlone(cold, context) },
      ...[SERVED, REDIRECTED].flatMap((name) =>
        perBuild(context, name, (build) => readCold(name, build, cold, context)),
      ),
    ],
    compared: "chunks/s",
    against: [ALONE],
    aims: [{ of: SERVED, against: ALONE, least }],
    notes: [
      `Origin, zpublish and client are processes of this machine. The client and "${ALONE}" are the same loop of undici, ${cold.atOnce} requests at a time; it follows redirects. Every round of zpublish is a fresh server with an empty cache.`,
      "Requests are those that the origin received, metadata included.",
    ],
  };
}

/** Reads the chunks below a URL. @throws Error if they have not the stored number of bytes. */
async function read(
  url: string,
  { store, atOnce }: ColdRead,
  scratch: string,
  context: BenchContext,
): Promise<number> {
  const keys = keysOf(store, context);
  const urls = keys.map((key) => `${url}/${key}`);
  const { seconds, bytes } = await readObjects({ urls, atOnce }, scratch);
  const expected = keys.reduce((sum, key) => sum + storedBytes(store, key).length, 0);
  if (bytes !== expected) throw new Error(`expected ${expected} bytes in all, received ${bytes}`);
  return keys.length / seconds;
}

async function readAlone(cold: ColdRead, context: BenchContext): Promise<Figures> {
  const { store, origin } = cold;
  await origin.takeCount();
  const url = `${origin.url}/${basename(store.directory)}`;
  const rate = await read(url, cold, context.freshFolder("alone"), context);
  return { "chunks/s": rate, "requests to the origin": await origin.takeCount() };
}

function readCold(name: string, build: Build, cold: ColdRead, context: BenchContext): Promise<Figures> {
  const { store, origin } = cold;
  const scratch = context.freshFolder("remote");
  const location = `${origin.url}/${basename(store.directory)}`;
  // Another dataset of the same objects is checked, so that the measured one stays cold.
  const datasets = { field: location, check: location };
  const stores = { origin: { url: `${origin.url}/`, redirect: name === REDIRECTED } };
  return withZpublish({ build, datasets, stores, scratch }, async ({ baseUrl }) => {
    for (const key of keysOf(store, context).slice(0, CHECKED)) {
      // `fetch` follows redirects.
      const received = await (await fetch(`${baseUrl}/datasets/check/zarr/${key}`)).arrayBuffer();
      if (!storedBytes(store, key).equals(Buffer.from(received))) throw new Error(`${key} is wrong`);
    }
    await origin.takeCount();
    const rate = await read(`${baseUrl}/datasets/field/zarr`, cold, scratch, context);
    return { "chunks/s": rate, "requests to the origin": await origin.takeCount() };
  });
}

/** Opens a consolidated store of Zarr v2, and one of v3 whose arrays have to be listed. */
async function* openings(context: BenchContext): AsyncGenerator<Contest> {
  const count = SIZES[context.size].arrays;
  const consolidated = await openManyStore(count, context.parent);
  const [local = ""] = await openSmallStores(1, () => {}, context.parent);
  const listed = join(context.freshFolder("opening"), "listed.zarr");
  await writeV3Store(listed, count);
  const kinds = [
    { name: "consolidated, HTTP", directory: consolidated.directory, isListed: false },
    { name: "v3, listed, S3", directory: listed, isListed: true },
  ];
  const origins = new Map<string, Origin>();
  try {
    for (const { name, directory } of kinds)
      origins.set(name, await startOrigin(dirname(directory), DELAY_MS));
    yield {
      title: `Opening a store of ${count.toLocaleString("en-US")} arrays ${DELAY_MS} ms away`,
      contestants: kinds.flatMap(({ name, directory, isListed }) =>
        perBuild(context, name, async (build) => {
          const origin = origins.get(name)!;
          const location = `${isListed ? "s3://bucket" : origin.url}/${basename(directory)}`;
          const stores = { origin: { url: "s3://bucket/", endpoint: origin.endpoint, anonymous: true } };
          const start = async (datasets: Readonly<Record<string, string>>) => {
            const server = await startZpublish({
              build,
              datasets,
              stores,
              scratch: context.freshFolder("start"),
            });
            await server.stop();
            return server.readySeconds;
          };
          const without = await start({ local });
          await origin.takeCount();
          const seconds = (await start({ local, many: location })) - without;
          const requests = await origin.takeCount();
          return { "seconds more": seconds, "round trips": (seconds * 1_000) / DELAY_MS, requests };
        }),
      ),
      compared: "seconds more",
      aims: [
        { of: kinds[0]!.name, figure: "requests", most: 3 },
        { of: kinds[1]!.name, figure: "requests", most: count + 5 },
        { of: kinds[1]!.name, figure: "round trips", most: Math.max(4, (2 * count) / AT_ONCE) },
      ],
      notes: ["Seconds that the start takes more than without the store."],
    };
  } finally {
    for (const origin of origins.values()) await origin.stop();
  }
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
async function* cachedChunks(store: FieldStore, context: BenchContext): AsyncGenerator<Contest> {
  const { size, seconds, freshFolder } = context;
  const origin = await startOrigin(dirname(store.directory), DELAY_MS);
  const location = `${origin.url}/${basename(store.directory)}`;
  const datasets = { [LOCAL]: store.directory, [REMOTE]: location };
  const keys = keysOf(store, context).slice(0, 200);
  const measure = (name: string, build: Build): Promise<Figures> => {
    const scratch = freshFolder("warm");
    return withZpublish({ build, datasets, scratch }, async (server) => {
      const ready = residentMib(server);
      const paths = pathsOf({ ...store, id: name }, keys);
      await warmCache(server.baseUrl, paths);
      await origin.takeCount();
      const load = { paths, connections: AT_ONCE, length: { seconds }, scratch, unit: "chunks" };
      const figures = await measureLoad(server, load);
      const requests = await origin.takeCount();
      const urls = Array.from(
        { length: SIZES[size].requests },
        (_, i) => `${server.baseUrl}/datasets/${name}/zarr/${store.chunkKeys[i % SIZES[size].chunks]}`,
      );
      await readObjects({ urls, atOnce: AT_ONCE }, scratch);
      return {
        ...figures,
        "requests to the origin/s": requests / seconds,
        [`MiB above idle after ${SIZES[size].requests} chunks`]: residentMib(server) - ready,
      };
    });
  };
  try {
    yield {
      title: `Cached chunks, ${DELAY_MS} ms away`,
      contestants: [LOCAL, REMOTE].flatMap((name) =>
        perBuild(context, name, (build) => measure(name, build)),
      ),
      compared: "chunks/s",
      against: [LOCAL],
      aims: [{ of: REMOTE, against: LOCAL, least: 0.9 }],
    };
  } finally {
    await origin.stop();
  }
}
