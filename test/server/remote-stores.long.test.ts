import { isDeepStrictEqual } from "node:util";
import t, { type Test } from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import { openSource } from "../../src/open/open-source.js";
import type { StoreSettings } from "../../src/stores/byte-store.js";
import type { Source, StoredTree } from "../../src/zarr/stored-tree.js";
import { type FixtureStore, type Fixtures, openFixtures } from "../support/clients/fixtures.js";
import { clientMissing } from "../support/clients/require-client.js";
import { VARIANTS } from "../support/clients/served-variants.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { startServer } from "../support/servers/start-server.js";

/** Passed through, and made by workers: from the same chunks and from others. */
const SERVED_AS = VARIANTS.filter(({ name }) => ["stored", "zstd", "rechunked"].includes(name));
/** Chunks of each array. */
const MAX_CHUNKS = 6;
const PLACES = ["local", "http", "s3"] as const;

t.setTimeout(240_000);

/** Opens a fixture store as it lies in a directory, behind a web server, and in a bucket. */
type OpenStore = (store: string, place: (typeof PLACES)[number]) => Promise<Source>;

async function startPlaces(t: Test, fixtures: Fixtures): Promise<OpenStore> {
  const directory = `${fixtures.directory}/stores`;
  const web = await startFaultyOrigin(t, { directory });
  const bucket = await startFaultyOrigin(t, { directory, s3: { bucket: "data", pageSize: 3 } });
  const stores: StoreSettings[] = [{ name: "s3", url: "s3://data/", endpoint: bucket.url, anonymous: true }];
  const location = { local: directory, http: web.url, s3: "s3://data" };
  return (store, place) => {
    const { consolidated, arrays, groups } = fixtures.stores[store] as FixtureStore;
    // Nothing but the operator lists what is on a web server.
    const names =
      consolidated || place === "s3"
        ? []
        : [...groups, ...Object.keys(arrays)].map((path) => path.replace(/^\//, ""));
    return openSource(`${location[place]}/${store}`, { stores, names, freshness: "always" });
  };
}

/** Everything that a source says of its groups and arrays but the places of their chunks. */
function describe({ groups, refused }: StoredTree): unknown {
  return withoutPlaces({ groups, refused });
}

function withoutPlaces(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutPlaces);
  if (value === null || typeof value !== "object" || Object.getPrototypeOf(value) !== Object.prototype)
    return value;
  const places = "kind" in value ? ["directory", "root", "metadataFile", "objects"] : [];
  const entries = Object.entries(value).filter(([name]) => !places.includes(name));
  return Object.fromEntries(entries.map(([name, each]) => [name, withoutPlaces(each)]));
}

function chunkKeys({ shape, chunks }: { shape: readonly number[]; chunks: readonly number[] }): string[] {
  const counts = shape.map((length, axis) => Math.ceil(length / (chunks[axis] as number)));
  const total = counts.reduce((product, count) => product * count, 1);
  const wanted = Math.min(total, MAX_CHUNKS);
  return Array.from({ length: wanted }, (_, i) => {
    let rest = Math.floor((i * total) / wanted);
    const coords = counts.map(() => 0);
    for (let axis = counts.length - 1; axis >= 0; axis--) {
      coords[axis] = rest % (counts[axis] as number);
      rest = Math.floor(rest / (counts[axis] as number));
    }
    return coords.join(".") || "0";
  });
}

t.test(
  "every store is the same behind a web server and in a bucket as in a directory",
  { skip: clientMissing("zarr", "xarray", "gdal") },
  async (t) => {
    const fixtures = await openFixtures();
    const names = Object.keys(fixtures.stores);
    const openStore = await startPlaces(t, fixtures);

    await t.test("groups, arrays, attributes and fill values", async (t) => {
      for (const store of names) {
        const [local, ...remote] = await Promise.all(
          PLACES.map(async (place) => describe(await (await openStore(store, place)).readTree())),
        );
        for (const [i, tree] of remote.entries())
          if (!isDeepStrictEqual(tree, local)) t.same(tree, local, `${store} ${PLACES[i + 1]}`);
        t.pass(store);
      }
    });

    await t.test("documents and chunks, passed through and made", async (t) => {
      for (const variant of SERVED_AS) {
        const datasets: (DatasetConfig & { source: Source })[] = [];
        for (const store of names) {
          const given = variant.config(fixtures.stores[store] as FixtureStore) as Partial<DatasetConfig>;
          for (const place of PLACES) {
            const source = await openStore(store, place);
            datasets.push({
              id: `${store}-${place}`,
              location: source.location,
              source,
              immutable: false,
              encoding: {},
              variables: {},
              ...given,
            });
          }
        }
        const { get, json, server } = await startServer(t, { datasets });
        let compared = 0;
        for (const store of names) {
          const base = (place: string) => `/datasets/${store}-${place}/zarr`;
          const documents = await Promise.all(PLACES.map((place) => json(`${base(place)}/.zmetadata`)));
          t.same(documents[1], documents[0], `${variant.name} ${store} http`);
          t.same(documents[2], documents[0], `${variant.name} ${store} s3`);
          const { metadata } = documents[0] as {
            metadata: Record<string, { shape: number[]; chunks: number[] }>;
          };
          const keys = Object.entries(metadata)
            .filter(([key]) => key.endsWith(".zarray"))
            .flatMap(([key, array]) => chunkKeys(array).map((chunk) => key.replace(".zarray", chunk)));
          for (const key of keys) {
            const [local, ...remote] = await Promise.all(
              PLACES.map(async (place) => {
                const answer = await get(`${base(place)}/${encodeURI(key)}`);
                return `${answer.status} ${Buffer.from(await answer.arrayBuffer())
                  .toString("latin1")
                  .replace(`-${place}`, "")}`;
              }),
            );
            compared++;
            for (const [i, answer] of remote.entries())
              if (answer !== local)
                t.equal(
                  answer.slice(0, 200),
                  local?.slice(0, 200),
                  `${variant.name} ${store} ${PLACES[i + 1]} ${key}`,
                );
          }
        }
        t.ok(compared > 500, `${variant.name}: ${compared} chunks`);
        await server.close();
      }
    });
  },
);
