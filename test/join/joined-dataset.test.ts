import { readdir, readFile, rename, rm, utimes, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import t, { type Test } from "tap";
import type { DatasetConfig } from "../../src/config/config.js";
import type { Joining } from "../../src/join/join-source.js";
import { startS3Origin } from "../support/origins/s3-origin.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";
import { type PartSteps, valuesOf, writeNetcdfPart, writeZarrPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

const CONCAT: Joining = { kind: "concat", dimension: "time" };

async function serveJoined(
  t: Test,
  location: string,
  options: Partial<DatasetConfig> & { readonly cache?: string } = {},
): Promise<RunningServer> {
  const { cache, ...dataset } = options;
  const defaults = { id: "d", location, immutable: false, encoding: {}, variables: {}, join: CONCAT };
  return startServer(t, {
    refreshSeconds: 3_600,
    datasets: [{ ...defaults, ...dataset }],
    ...(cache !== undefined && { cache: { directory: cache, maxBytes: 2 ** 26 } }),
  });
}

const VARIABLE = "/datasets/d/zarr/v";

/** Reads a variable of floats without codecs, chunk by chunk. */
async function readValues({ get, json }: RunningServer, variable = VARIABLE): Promise<number[]> {
  const { shape, chunks } = (await json(`${variable}/.zarray`)) as {
    readonly shape: readonly [number, number];
    readonly chunks: readonly [number, number];
  };
  const values: number[] = [];
  for (let index = 0; index * chunks[0] < shape[0]; index++) {
    const response = await get(`${variable}/${index}.0`);
    if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
    values.push(...new Float32Array(await response.arrayBuffer()));
  }
  return values.slice(0, shape[0] * shape[1]);
}

const all = (count: number) => valuesOf({ first: 0, count });

async function writeParts(folder: string, parts: Readonly<Record<string, PartSteps>>): Promise<void> {
  for (const [name, steps] of Object.entries(parts)) {
    if (name.endsWith(".nc")) await writeNetcdfPart(folder, name, steps);
    else await writeZarrPart(folder, name, steps);
  }
}

t.test(
  "files of several formats, lengths and chunks are one dataset, in the order of their coordinate",
  async (t) => {
    const folders: Readonly<Record<string, Readonly<Record<string, PartSteps>>>> = {
      stores: {
        "z.zarr": { first: 0, count: 4 },
        "b.zarr": { first: 4, count: 4 },
        "a.zarr": { first: 8, count: 3 },
      },
      uneven: {
        "a.zarr": { first: 0, count: 3 },
        "b.zarr": { first: 3, count: 4 },
        "c.zarr": { first: 7, count: 5, chunk: 3 },
        "d.zarr": { first: 12, count: 1 },
        "e.zarr": { first: 13, count: 7, chunk: 100 },
      },
      formats: {
        "2000-01.nc": { first: 0, count: 5 },
        "2000-02.nc": { first: 5, count: 4 },
        "sub/2000-03.zarr": { first: 9, count: 4, since: 400 },
        "sub/2000-04.nc": { first: 13, count: 2, since: 31 },
      },
    };
    const patterns: Readonly<Record<string, string>> = { stores: "/*.zarr", formats: "/**/2000-*" };
    const datasets: DatasetConfig[] = [];
    for (const [id, parts] of Object.entries(folders)) {
      const folder = await makeDirectory(t);
      await writeParts(folder, parts);
      const location = `${folder}${patterns[id] ?? ""}`;
      datasets.push({ id, location, immutable: false, encoding: {}, variables: {}, join: CONCAT });
    }
    const server = await startServer(t, { refreshSeconds: 3_600, datasets });
    const variableOf = (id: string) => `/datasets/${id}/zarr/v`;

    await t.test("stores", async (t) => {
      t.match(await server.json(`${variableOf("stores")}/.zarray`), { shape: [11, 2], chunks: [2, 2] });
      t.same(await readValues(server, variableOf("stores")), all(11));
      t.match(await server.json("/datasets/stores/zarr/.zattrs"), { title: "z.zarr" });
      t.equal((await server.get("/datasets/stores/zarr/time/0")).status, 200);
      t.equal((await server.get(`${variableOf("stores")}/6.0`)).status, 404);
      const area = await server.get("/datasets/stores/zarr/area/0.0");
      t.same([...new Uint8Array(await area.arrayBuffer())], [7, 7, 7, 7]);
    });
    await t.test("lengths that are no multiples of the chunk length", async (t) => {
      t.same(await readValues(server, variableOf("uneven")), all(20));
    });
    await t.test("NetCDF files and Zarr stores", async (t) => {
      const { shape, dtype } = (await server.json(`${variableOf("formats")}/.zarray`)) as {
        readonly shape: readonly number[];
        readonly dtype: string;
      };
      t.same(shape, [15, 2]);
      const swapped = Float32Array.from(await readValues(server, variableOf("formats")));
      if (dtype.startsWith(">")) Buffer.from(swapped.buffer).swap32();
      t.same([...swapped], all(15));
    });
  },
);

t.test("a file that comes extends the dataset, and old chunks stay what they are", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, { "a.zarr": { first: 0, count: 4 }, "b.zarr": { first: 4, count: 3 } });
  const server = await serveJoined(t, folder);
  t.same(await readValues(server), all(7));
  const etagOf = async (chunk: string) => (await server.get(`/datasets/d/zarr/${chunk}`)).headers.get("etag");
  const chunks = ["v/0.0", "v/1.0", "v/2.0", "v/3.0", "area/0.0"];
  const before = await Promise.all(chunks.map(etagOf));

  await writeParts(folder, { "c.zarr": { first: 7, count: 3 } });
  await server.server.refresh();
  t.match(await server.json(`${VARIABLE}/.zarray`), { shape: [10, 2] });
  t.same(await readValues(server), all(10));
  const after = await Promise.all(chunks.map(etagOf));
  t.same(after.slice(0, 3), before.slice(0, 3));
  t.not(after[3], before[3], "the last chunk has more steps than before");
  t.equal(after[4], before[4], "an array without the dimension");

  await writeParts(folder, { "0.zarr": { first: -2, count: 2 } });
  await server.server.refresh();
  t.match(await server.json(`${VARIABLE}/.zarray`), { shape: [12, 2] });
  t.same(await readValues(server), [...valuesOf({ first: -2, count: 2 }), ...all(10)]);
});

t.test("a part that is gone fails, and is missing after a refresh", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, {
    "a.nc": { first: 0, count: 2 },
    "b.nc": { first: 2, count: 2 },
    "c.nc": { first: 4, count: 2 },
  });
  const server = await serveJoined(t, folder);
  const shape = async () => ((await server.json(`${VARIABLE}/.zarray`)) as { shape: number[] }).shape[0];
  t.equal(await shape(), 6);
  const etag = (await server.get(`${VARIABLE}/0.0`)).headers.get("etag");
  await rm(join(folder, "b.nc"));
  const response = await server.get(`${VARIABLE}/1.0`);
  t.equal(response.status, 500);
  t.notMatch(await response.text(), folder, "without a path of the machine");
  t.match(JSON.stringify(server.lines), "part 'b.nc'");
  t.equal((await server.get(`${VARIABLE}/2.0`)).status, 200);
  await server.server.refresh();
  t.equal(await shape(), 4);
  t.match(server.lines.map(({ msg }) => msg).join("\n"), /'b.nc' is gone/);
  t.equal((await server.get(`${VARIABLE}/0.0`)).headers.get("etag"), etag);
  t.equal((await server.get(`${VARIABLE}/2.0`)).status, 404);
  t.equal((await server.get(`${VARIABLE}/1.0`)).status, 200);
});

t.test("a store that is gone is no absent chunk", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, { "a.zarr": { first: 0, count: 2 }, "b.zarr": { first: 2, count: 2 } });
  const server = await serveJoined(t, folder);
  t.equal((await server.get(`${VARIABLE}/1.0`)).status, 200);
  await rename(join(folder, "b.zarr"), `${folder}-b`);
  t.teardown(() => rm(`${folder}-b`, { recursive: true, force: true }));
  t.equal((await server.get(`${VARIABLE}/1.0`)).status, 500);
  t.match(JSON.stringify(server.lines), "part 'b.zarr'");
  await server.server.refresh();
  await rename(`${folder}-b`, join(folder, "b.zarr"));
  await server.server.refresh();
  t.equal((await server.get(`${VARIABLE}/1.0`)).status, 200, "when it comes back");
});

t.test("a part that is replaced is read again", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, { "a.nc": { first: 0, count: 2 }, "b.nc": { first: 2, count: 2 } });
  const server = await serveJoined(t, folder);
  t.equal((await readValues(server)).length, 8);
  await writeParts(folder, { "b.nc": { first: 2, count: 1 } });
  await server.server.refresh();
  t.match(await server.json(`${VARIABLE}/.zarray`), { shape: [3, 2], chunks: [2, 2] });
  await writeParts(folder, { "b.nc": { first: 2, count: 2 } });
  t.equal((await server.get(`${VARIABLE}/1.0`)).status, 200);
  t.match(await server.json(`${VARIABLE}/.zarray`), { shape: [4, 2] }, "as soon as a request finds out");
});

t.test("a part that is replaced by one with the same metadata is read again", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, { "a.nc": { first: 0, count: 2 }, "b.nc": { first: 2, count: 2 } });
  const server = await serveJoined(t, folder);
  const before = await readValues(server);
  await utimes(join(folder, "b.nc"), 1_000_000_000, 1_000_000_000);
  t.equal((await server.get(`${VARIABLE}/1.0`)).status, 200, "as soon as a request finds out");
  await utimes(join(folder, "b.nc"), 1_100_000_000, 1_100_000_000);
  await server.server.refresh();
  t.same(await readValues(server), before);
});

t.test("a file that cannot be opened, or does not fit, is left out and named", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, { "a.nc": { first: 0, count: 2 }, "b.nc": { first: 2, count: 2 } });
  await writeFiles(folder, { "c.nc": "CDF\u0001broken", "d.zarr/.zarray": "{" });
  const server = await serveJoined(t, folder);
  const { get, json, lines } = server;
  t.match(await json(`${VARIABLE}/.zarray`), { shape: [4, 2] });
  t.match(lines.map(({ msg }) => msg).join("\n"), /'c.nc' is left out: .*\n/);
  await writeParts(folder, { "e.nc": { first: 4, count: 2, rows: 3 }, "f.nc": { first: 4, count: 1 } });
  await server.server.refresh();
  t.match(await json(`${VARIABLE}/.zarray`), { shape: [5, 2] });
  t.match(lines.map(({ msg }) => msg).join("\n"), /'e.nc' is left out: .*/);
  t.equal((await get(`${VARIABLE}/0.0`)).status, 200);
});

t.test("a file that is still being copied harms no other, and is read again when it is whole", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, { "a.nc": { first: 0, count: 4 }, "b.nc": { first: 4, count: 4 } });
  const path = join(folder, "b.nc");
  const whole = await readFile(path);
  await rm(path);
  const server = await serveJoined(t, `${folder}/*.nc`);
  async function readSwapped(): Promise<number[]> {
    const values = Float32Array.from(await readValues(server));
    Buffer.from(values.buffer).swap32();
    return [...values];
  }
  t.same(await readSwapped(), all(4));
  for (const share of [0, 0.3, 0.9]) {
    await writeFile(path, whole.subarray(0, Math.floor(share * whole.length)));
    await server.server.refresh();
    t.equal((await server.get(`${VARIABLE}/0.0`)).status, 200, String(share));
  }
  await writeFile(path, whole);
  await server.server.refresh();
  t.same(await readSwapped(), all(8));
});

t.test("files of a bucket are one dataset", async (t) => {
  const folder = await makeDirectory(t);
  await writeParts(folder, {
    "a.zarr": { first: 0, count: 4 },
    "b.zarr": { first: 4, count: 3 },
    "c.nc": { first: 7, count: 2 },
  });
  const origin = await startS3Origin(t);
  async function upload(name: string): Promise<void> {
    for (const entry of await readdir(join(folder, name), { recursive: true, withFileTypes: true }).catch(
      () => [],
    )) {
      const path = join(entry.parentPath, entry.name);
      if (entry.isFile()) await origin.put("data", `in/${relative(folder, path)}`, await readFile(path));
    }
    if (name.endsWith(".nc")) await origin.put("data", `in/${name}`, await readFile(join(folder, name)));
  }
  for (const name of ["a.zarr", "b.zarr", "c.nc"]) await upload(name);
  const stores = [{ name: "s", url: "s3://data/", endpoint: origin.endpoint, anonymous: true }];
  const cache = await makeDirectory(t);
  const server = await serveJoined(t, "s3://data/in/[a-z].*", { stores, cache, freshness: "always" });
  t.match(await server.json(`${VARIABLE}/.zarray`), { shape: [9, 2] });
  t.same(await readValues(server), all(9));
  const etag = (await server.get(`${VARIABLE}/1.0`)).headers.get("etag");

  await writeParts(folder, { "d.zarr": { first: 9, count: 2 } });
  await upload("d.zarr");
  await server.server.refresh();
  t.same(await readValues(server), all(11));
  t.equal((await server.get(`${VARIABLE}/1.0`)).headers.get("etag"), etag);
});
