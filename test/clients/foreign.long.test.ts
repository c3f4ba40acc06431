import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { compareFiles } from "../foreign/compare-files.js";
import { type ForeignOutcome, findFiles } from "../foreign/foreign-file.js";
import { PACKAGE_ROOT } from "../support/clients/client-generation.js";
import { makeTemporaryDirectory } from "../support/clients/fixtures.js";
import { clientMissing } from "../support/clients/require-client.js";
import { choose } from "../support/effort.js";

t.setTimeout(600_000);

const FOLDER = join(PACKAGE_ROOT, "test", "fixtures", "foreign");
/** Files that come with the Debian packages of the clients. */
const INSTALLED = [
  "h5py/_debian_h5py_serial/tests/data_files",
  "scipy/io/tests/data",
  "xarray/tests/data",
].map((folder) => join("/usr/lib/python3/dist-packages", folder));

interface Manifest {
  readonly projects: Readonly<Record<string, { readonly license: string; readonly text: string }>>;
  readonly files: Readonly<Record<string, { readonly from: string; readonly sha256: string }>>;
}

const manifest: Manifest = JSON.parse(readFileSync(join(FOLDER, "manifest.json"), "utf8"));

t.test("every file is as its project distributes it, with the text of its licence", async (t) => {
  for (const [id, { sha256 }] of Object.entries(manifest.files)) {
    t.equal(
      createHash("sha256")
        .update(readFileSync(join(FOLDER, id)))
        .digest("hex"),
      sha256,
      id,
    );
    const project = manifest.projects[id.slice(0, id.indexOf("/"))];
    t.ok(project !== undefined && existsSync(join(FOLDER, project.text)), `licence of ${id}`);
  }
});

t.test(
  "files of other projects are served equal to what their own libraries read, or refused with a reason",
  {
    skip: clientMissing(
      "xarray",
      "zarr",
      "fsspec",
      "netcdf4",
      "h5py",
      "h5netcdf",
      "rasterio",
      "rioxarray",
      "gdal",
    ),
  },
  async (t) => {
    const expected: Record<string, ForeignOutcome> = JSON.parse(
      readFileSync(join(FOLDER, "outcomes.json"), "utf8"),
    );
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const files = choose(t, Object.keys(manifest.files)).map((id) => ({ id, path: join(FOLDER, id) }));
    for (const { file, outcome } of await compareFiles(files, directory)) {
      t.strictSame(outcome, expected[file.id], file.id);
      const { refusedFile = "", refused = {} } = outcome;
      for (const reason of [refusedFile, ...Object.values(refused)]) {
        t.notMatch(reason, /^(crash|defect)|^undefined|not a function/, `reason of ${file.id}`);
      }
    }
  },
);

t.test(
  "files that come with the clients' packages are served equal to what their own libraries read",
  { skip: clientMissing("xarray", "zarr", "fsspec", "netcdf4", "h5py", "h5netcdf", "scipy") },
  async (t) => {
    const directory = await makeTemporaryDirectory();
    t.teardown(() => rm(directory, { recursive: true, force: true }));
    const files = INSTALLED.filter((folder) => existsSync(folder))
      .flatMap(findFiles)
      .filter(({ id }) => /\.(nc|h5)$/.test(id));
    t.ok(files.length > 0, `${files.length} files`);
    for (const { file, outcome } of await compareFiles(
      choose(t, files).map(({ path }) => ({ id: path, path })),
      directory,
    )) {
      t.equal(outcome.refusedFile, undefined, file.id);
      t.strictSame(
        [outcome.differs, outcome.refused, outcome.differences],
        [undefined, undefined, undefined],
        file.id,
      );
    }
  },
);
