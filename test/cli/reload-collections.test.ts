import { join } from "node:path";
import t from "tap";
import { serveFolder, until } from "../support/folder-of-days.js";
import { writeNetcdfPart } from "../support/write-parts.js";
import { makeDirectory, writeFiles } from "../support/write-store.js";

t.test("HUP takes collections and joined files along, or leaves all as it is", async (t) => {
  const directory = await makeDirectory(t);
  for (const first of [0, 1]) await writeNetcdfPart(directory, `data/${first}.nc`, { first, count: 1 });
  const write = (config: object) => writeFiles(directory, { "config.json": config });
  await write({ collections: { days: "data" } });
  const { url, run } = await serveFolder(t, ["--config", join(directory, "config.json"), "--no-cache"]);
  const idsOf = async () => (await (await fetch(`${url}/datasets`)).json()) as readonly string[];
  t.same(await idsOf(), ["days~0.nc", "days~1.nc"]);
  const chunk = await fetch(`${url}/datasets/days~1.nc/zarr/v/0.0`);

  await write({
    datasets: { all: { location: "data/*.nc", concat: "time" } },
    collections: { days: "data", others: { root: "data", exclude: ["0.*"] } },
  });
  run.child.kill("SIGHUP");
  const ids = await until(idsOf, ({ length }) => length !== 2);
  t.same(ids, ["all", "days~0.nc", "days~1.nc", "others~1.nc"]);
  t.match(
    run.stderr(),
    /"datasets":1,"added":1,"removed":0,"changed":0,"collections":2,"msg":"configuration reloaded"/,
  );
  const again = await fetch(`${url}/datasets/days~1.nc/zarr/v/0.0`);
  t.equal(again.headers.get("etag"), chunk.headers.get("etag"));

  await write({ collections: { days: "nowhere" } });
  run.child.kill("SIGHUP");
  await run.says("the new configuration cannot be used");
  t.match(run.stderr(), /nowhere/);
  t.same(await idsOf(), ids);
});
