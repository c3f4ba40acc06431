import { rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { SOME_GENERATIONS } from "../support/clients/client-generation.js";
import { CLIENT_LIMITS } from "../support/clients/client-limits.js";
import {
  type FixtureStore,
  makeTemporaryDirectory,
  openFixtures,
  type ReadBackJob,
  readBack,
  serveDatasets,
} from "../support/clients/fixtures.js";
import { checkCleanLog } from "../support/clients/refusals.js";
import { clientMissing, clientMissingIn } from "../support/clients/require-client.js";
import { datasetId, datasetsOf, refusedBy, VARIANTS } from "../support/clients/served-variants.js";
import { choose } from "../support/effort.js";
import type { Program } from "../support/servers/start-program.js";

t.setTimeout(600_000);

t.test(
  "chunks from the cache are the chunks made afresh",
  { skip: clientMissing("zarr", "xarray", "fsspec", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const stores = choose(t, ["types.zarr", "codecs.zarr", "v3.zarr", "air.zarr"], 2);
    const variants = VARIANTS.filter(({ name }) =>
      ["blosc", "rechunked-packed", "refiltered"].includes(name),
    );
    const datasets = datasetsOf(fixtures, stores, variants);
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const cacheDir = join(directory, "shared-cache");

    const first = await serveDatasets(t, { datasets, directory, cacheDir });
    const paths = (await Promise.all(Object.keys(datasets).map((id) => chunkPaths(first, id)))).flat();
    t.ok(paths.length > 100, `${paths.length} chunks`);
    const fresh = await fetchAll(first, paths);
    const again = await fetchAll(first, paths);
    // Chunks of a v3 store with nothing behind them share one entry, so that the second of them is a hit.
    const known = paths.filter((path) => !path.startsWith("/datasets/v3-"));
    t.same(statesOf(fresh, known), ["MISS"], "first time");
    t.same(statesOf(again, paths), ["HIT"], "second time");
    t.same(differences(fresh, again), []);
    checkCleanLog(t, first);
    await first.stop();

    const second = await serveDatasets(t, { datasets, directory, cacheDir });
    const warm = await fetchAll(second, paths);
    t.same(statesOf(warm, paths), ["HIT"], "after a restart");
    t.same(differences(fresh, warm), []);
    for (const generation of SOME_GENERATIONS) {
      await t.test(
        `zarr-python reads the right values from it (${generation})`,
        { skip: clientMissingIn(generation, "zarr", "fsspec") },
        async (t) => {
          const { unreadable } = CLIENT_LIMITS[generation];
          const jobs = stores.flatMap((store) =>
            variants.map((variant): ReadBackJob => {
              const refused = refusedBy(variant, fixtures.stores[store] as FixtureStore);
              const url = second.storeUrl(datasetId(store, variant));
              return {
                client: "zarr",
                store,
                url,
                consolidated: true,
                refused,
                unreadable: unreadable[store] ?? [],
              };
            }),
          );
          t.same((await readBack(fixtures, jobs, generation)).differences, []);
        },
      );
    }
    checkCleanLog(t, second);
    await second.stop();

    const third = await serveDatasets(t, { datasets, directory, args: ["--no-cache"] });
    t.same(differences(fresh, await fetchAll(third, paths)), [], "another instance without a cache");
    checkCleanLog(t, third);
    await third.stop();
  },
);

interface Answer {
  readonly status: number;
  readonly state: string | null;
  readonly etag: string | null;
  readonly bytes: Buffer;
}

/** URL paths of every chunk of every array of a dataset. */
async function chunkPaths(server: Program, id: string): Promise<string[]> {
  const response = await fetch(`${server.storeUrl(id)}/.zmetadata`);
  const { metadata } = (await response.json()) as {
    metadata: Record<string, { readonly shape: number[]; readonly chunks: number[] }>;
  };
  return Object.entries(metadata).flatMap(([key, { shape, chunks }]) => {
    if (!key.endsWith("/.zarray")) return [];
    const grid = shape.map((length, axis) => Math.ceil(length / (chunks[axis] as number)));
    const count = grid.reduce((product, length) => product * length, 1);
    return Array.from({ length: count }, (_, index) => {
      const coords: number[] = [];
      for (let axis = grid.length - 1, rest = index; axis >= 0; axis--) {
        coords.unshift(rest % (grid[axis] as number));
        rest = Math.floor(rest / (grid[axis] as number));
      }
      const array = key.slice(0, -"/.zarray".length).split("/").map(encodeURIComponent).join("/");
      return `/datasets/${id}/zarr/${array}/${coords.join(".") || "0"}`;
    });
  });
}

async function fetchAll(server: Program, paths: readonly string[]): Promise<Map<string, Answer>> {
  const answers = new Map<string, Answer>();
  let next = 0;
  const fetchOneAfterAnother = async () => {
    while (next < paths.length) {
      const path = paths[next++] as string;
      const response = await fetch(server.url + path);
      answers.set(path, {
        status: response.status,
        state: response.headers.get("x-cache"),
        etag: response.headers.get("etag"),
        bytes: Buffer.from(await response.arrayBuffer()),
      });
    }
  };
  await Promise.all(Array.from({ length: 8 }, fetchOneAfterAnother));
  return answers;
}

/** The states of chunks that are there; absent ones and those that could be passed through have others. */
function statesOf(answers: ReadonlyMap<string, Answer>, paths: readonly string[]): string[] {
  const states = new Set<string>();
  for (const path of paths) {
    const { status, state } = answers.get(path) as Answer;
    if (status === 200 && state !== "PASS") states.add(String(state));
  }
  return [...states];
}

function differences(a: ReadonlyMap<string, Answer>, b: ReadonlyMap<string, Answer>): string[] {
  const found: string[] = [];
  for (const [path, one] of a) {
    const other = b.get(path) as Answer;
    if (one.status !== 200 && one.status !== 404) found.push(`${path}: ${one.status}`);
    else if (one.status !== other.status) found.push(`${path}: ${one.status} and ${other.status}`);
    else if (one.status === 200 && one.etag !== other.etag)
      found.push(`${path}: ETag ${one.etag} and ${other.etag}`);
    else if (one.status === 200 && !one.bytes.equals(other.bytes)) found.push(`${path}: other bytes`);
  }
  return found;
}
