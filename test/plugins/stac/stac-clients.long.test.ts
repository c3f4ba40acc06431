import t from "tap";
import { createServer } from "../../../src/index.js";
import { runPython } from "../../support/clients/fixtures.js";
import { clientMissingIn } from "../../support/clients/require-client.js";
import { gridFile } from "../../support/grid-file.js";
import { makeDirectory, writeFiles } from "../../support/write-store.js";

t.setTimeout(600_000);

t.test(
  "pystac, pystac-client, stac-validator and rdflib find every dataset and nothing wrong",
  { skip: clientMissingIn("forky", "stac") },
  async (t) => {
    const root = await makeDirectory(t);
    const title = "A </script> \"title\" & 'more' ü\u2028.";
    await writeFiles(root, {
      "a b/1.nc": gridFile({ days: [1, 2], title }),
      "ü.nc": gridFile({ days: [3], latitudes: [-10, 10], longitudes: [170, 180, 190] }),
      "none.nc": gridFile({ latitudes: [7], longitudes: [8] }),
    });
    const server = await createServer({ datasets: {}, collections: { days: { root } }, port: 0, workers: 1 });
    t.teardown(() => server.close());
    const { url } = await server.listen();
    const read = JSON.parse(await runPython("read_stac.py", [`${url}/stac`], "", "forky"));
    const ids = ["days~a b~1.nc", "days~none.nc", "days~ü.nc"];
    t.same(read.problems, []);
    t.same([Object.keys(read.found).sort(), read.listed, read.catalogs], [ids, ids, 1]);
    const dataset = `${url}/datasets/${encodeURIComponent("days~a b~1.nc")}`;
    t.match(read.found["days~a b~1.nc"], {
      extent: {
        spatial: { bbox: [[5, 45, 12, 53]] },
        temporal: { interval: [["2000-01-02T00:00:00Z", "2000-01-03T00:00:00Z"]] },
      },
      dimensions: { time: "temporal", lat: "spatial", lon: "spatial" },
      maps: {
        tilejson: `${dataset}/tiles/t2m/tilejson.json`,
        xyz: `${dataset}/tiles/t2m/{z}/{x}/{y}.png`,
        wms: `${dataset}/wms`,
      },
      assets: { zarr: `${dataset}.zarr`, zarr3: `${dataset}/zarr3` },
      page: {
        ...{
          url: [`${dataset}/`],
          name: [title],
          temporalCoverage: ["2000-01-02T00:00:00/2000-01-03T00:00:00"],
        },
        ...{ box: ["45 5 53 12"], variables: ["t2m"] },
        urls: [
          `${dataset}.zarr`,
          `${dataset}/opendap/${encodeURIComponent("days~a b~1.nc")}.nc`,
          `${dataset}/zarr3`,
        ],
      },
    });
    t.same(read.found["days~ü.nc"].extent.spatial.bbox, [[170, -10, -170, 10]]);
    t.same(read.found["days~none.nc"].maps, {}, "one cell has no map");
    t.same(read.found["days~none.nc"].extent.temporal.interval, [[null, null]]);
    for (const { page } of Object.values(read.found) as { page: { length: number } }[])
      t.ok(page.length >= 50);
  },
);
