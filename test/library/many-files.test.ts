import { rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import * as zpublish from "../../src/index.js";
import { writeNetcdfPart } from "../support/write-parts.js";
import { makeDirectory } from "../support/write-store.js";

async function start(options: zpublish.ServerOptions) {
  const server = await zpublish.createServer({ workers: 1, refresh: 0, ...options });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  const json = async (path: string): Promise<unknown> => (await fetch(url + path)).json();
  return { server, json, ids: async () => (await json("/datasets")) as readonly string[] };
}

t.test("a program joins files, and publishes a folder of them", async (t) => {
  const root = await makeDirectory(t);
  for (const first of [0, 1, 2]) await writeNetcdfPart(root, `run-${first}.nc`, { first, count: 1 });
  const runs = await makeDirectory(t);
  for (const run of [7, 12]) await writeNetcdfPart(runs, `run-${run}.nc`, { first: 0, count: 1 });
  const stack = { dimension: "run", coordinate: "run-(\\d+)" };
  const options: zpublish.ServerOptions = {
    datasets: {
      all: { source: `${root}/run-*.nc`, concat: "time", overlap: "last" },
      some: { source: runs, stack },
    },
    collections: { each: { root, exclude: ["*-2.nc"] }, "": root },
  };
  const { server, json, ids } = await start(options);
  const each = ["each~run-0.nc", "each~run-1.nc"];
  const rest = ["run-0.nc", "run-1.nc", "run-2.nc"];
  t.same(await json("/datasets"), ["all", "some", ...each, ...rest]);
  t.match(await json("/datasets/all/zarr/v/.zarray"), { shape: [3, 2] });
  t.match(await json("/datasets/some/zarr/v/.zarray"), { shape: [2, 1, 2] });
  t.match(await json("/datasets/some/dict"), { coords: { run: { dims: ["run"], attrs: {} } } });
  t.match(await json("/datasets/each~run-1.nc/zarr/v/.zarray"), { shape: [1, 2] });

  await writeNetcdfPart(root, "run-3.nc", { first: 3, count: 1 });
  await rm(join(root, "run-0.nc"));
  await server.refresh();
  t.match(
    await json("/datasets/all/zarr/v/.zarray"),
    { shape: [4, 2] },
    "a file that is gone counts for one more look",
  );
  t.ok((await ids()).includes("each~run-3.nc"));
  // Looks without a file count that are a second apart.
  const lengthOf = async () => ((await json("/datasets/all/zarr/v/.zarray")) as { shape: number[] }).shape[0];
  while ((await lengthOf()) === 4) await server.refresh();
  t.equal(await lengthOf(), 3);
  t.notOk((await ids()).includes("each~run-0.nc"));

  await server.reload({ ...options, collections: { other: root }, workers: 1, refresh: 0 });
  t.same(await json("/datasets"), ["all", "some", ...[1, 2, 3].map((run) => `other~run-${run}.nc`)]);
});
