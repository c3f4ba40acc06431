import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { hasJpeg } from "../../src/codec/file-formats/jpeg.js";
import { errorsOf, makeTemporaryDirectory, runPython, startServer } from "../support/clients/harness.js";
import { clientMissing } from "../support/clients/require-client.js";

t.setTimeout(280_000);

/** Overviews of the files that have some. */
const OVERVIEWS: Readonly<Record<string, number>> = {
  "cog_0.tif": 2,
  "cog_1.tif": 2,
  "cog_2.tif": 2,
  "cog_3.tif": 2,
  "jpeg_cog.tif": 1,
  "pyramid.tif": 2,
};

t.test(
  "xarray reads from served TIFF files what rioxarray reads from the files",
  { skip: clientMissing("xarray", "zarr", "fsspec", "gdal", "rasterio", "rioxarray", "tifffile", "tiffcp") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    const files = join(directory, "files");
    await mkdir(files);
    const written = JSON.parse(await runPython("write_tiffs.py", [files]));
    const served = (written.served as string[]).filter((name) => hasJpeg() || !name.startsWith("jpeg"));
    const refused = (written.refused as string[]).filter((name) => name.endsWith(".tif"));
    const datasets = Object.fromEntries([
      ...served.map((name, index) => [`file${index}`, { location: join(files, name) }]),
      ...refused.map((name, index) => [`refused${index}`, { location: join(files, "refused", name) }]),
    ]);
    const server = await startServer({ datasets, directory });
    t.teardown(async () => {
      await server.stop();
      await rm(directory, { recursive: true, force: true });
    });

    const jobs = served.map((name, index) => ({
      file: join(files, name),
      url: server.storeUrl(`file${index}`),
      overviews: OVERVIEWS[name] ?? 0,
      pages: name === "pages.tif" ? 3 : 1,
    }));
    const { compared, differences } = JSON.parse(
      await runPython("compare_tiffs.py", [], JSON.stringify(jobs)),
    );
    t.same(differences, []);
    t.ok(compared >= 10 * jobs.length - 100, `compared ${compared} variables of ${jobs.length} files`);

    t.same(errorsOf(server), []);

    for (const [index, name] of refused.entries()) {
      const reply = await fetch(`${server.storeUrl(`refused${index}`)}/.zmetadata`);
      t.not(reply.status, 200, `${name} is refused`);
      await reply.arrayBuffer();
    }
  },
);
