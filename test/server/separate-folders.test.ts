import { join } from "node:path";
import t from "tap";
import type { Config } from "../../src/config/config.js";
import { resolveConfig } from "../../src/config/resolve-config.js";
import { separateFolders } from "../../src/server/open-app.js";

function resolve(argv: readonly string[], cwd: string): Config {
  return resolveConfig({ argv, env: {}, cwd });
}

t.test(
  "a folder of files and stores on the command line is a collection, a store is a dataset",
  async (t) => {
    const cwd = t.testdir({
      days: { "a.nc": "", b: {} },
      "store.zarr": { ".zgroup": "{}" },
      v3: { "zarr.json": "{}" },
      "c.nc": "",
      empty: {},
      "broken.zarr": {},
      "config.json": JSON.stringify({ datasets: { inFile: "days" }, collections: { other: "empty" } }),
    });
    const argv = [
      "--config",
      "config.json",
      "days",
      "store.zarr",
      "v3",
      "c.nc",
      "x=empty",
      "broken.zarr",
      "absent",
    ];
    const config = resolve(argv, cwd);
    const { datasets, collections } = await separateFolders(config);
    t.same(
      datasets.map(({ id }) => id),
      ["inFile", "store", "v3", "c", "broken", "absent"],
      "what the file calls a dataset stays one",
    );
    t.same(collections, [
      config.collections[0],
      { name: "", root: join(cwd, "days"), immutable: false, encoding: {}, variables: {} },
      { name: "x", root: join(cwd, "empty"), immutable: false, encoding: {}, variables: {} },
    ]);
  },
);

t.test("a folder whose files are joined is a dataset", async (t) => {
  const cwd = t.testdir({ days: { "a.nc": "" } });
  const config = resolve(["days", "--concat", "time"], cwd);
  t.equal(await separateFolders(config), config);
});

t.test("a folder has the options that hold for datasets", async (t) => {
  const cwd = t.testdir({ days: {}, "config.json": JSON.stringify({ references: { allow: ["/x"] } }) });
  const { collections } = await separateFolders(
    resolve(["--config", "config.json", "--overviews", "days"], cwd),
  );
  t.match(collections, [{ references: { allow: ["/x"] }, overviews: { levels: "auto" } }]);
});

t.test("what cannot be looked at stays a dataset", async (t) => {
  const config = resolve(["s3://bucket/x", "/data", "https://host/y"], "/");
  const asked: string[] = [];
  const separated = await separateFolders(config, async (location) => {
    asked.push(location);
    if (location === "/data") throw new Error("EIO");
    return true;
  });
  t.same(asked.sort(), ["/data", "s3://bucket/x"], "what cannot be listed is not looked at");
  t.same(separated.datasets, config.datasets.slice(1));
  t.match(separated.collections, [{ name: "", root: "s3://bucket/x/" }]);
});
