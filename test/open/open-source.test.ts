import { pathToFileURL } from "node:url";
import t from "tap";
import { openSource } from "../../src/open/open-source.js";
import { makeDirectory, writeFiles, zgroup } from "../support/write-store.js";

t.test("opens directories, by path or file URL", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { ".zgroup": zgroup });
  for (const location of [root, pathToFileURL(root).href]) {
    const source = await openSource(location);
    t.same((await source.readTree()).groups, [{ path: "/", attrs: {}, arrays: [] }]);
    await source.close();
  }
});

t.test("says what a path is that has no dataset", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "empty.nc": "", "text.nc": "hello" });
  const known = "expected a Zarr store, NetCDF, HDF5, GeoTIFF, a zip archive or kerchunk references";
  const refused = {
    "/dev/null": "/dev/null: expected a file or directory, found a device, pipe or socket",
    [`${root}/empty.nc`]: `${root}/empty.nc: ${known}, found an empty file`,
    [`${root}/text.nc`]: `${root}/text.nc: ${known}, found a file that begins with "hello"`,
    [`file://${root}/text.nc/`]: `file://${root}/text.nc/: ${known}, found a file that begins with "hello"`,
  };
  for (const [location, message] of Object.entries(refused))
    await t.rejects(openSource(location), { code: "unsupported", message });
});

t.test("opens after icechunk: a repository and nothing else", async (t) => {
  const root = await makeDirectory(t);
  await writeFiles(root, { "air.nc": "CDF\u0001", "store/.zgroup": zgroup });
  const refused = {
    "air.nc": `${root}/air.nc: expected an Icechunk repository, received a file that is no zip archive`,
    nothing: `${root}/nothing: its directory cannot be read (ENOENT)`,
    store: /no Icechunk repository: expected 'repo' or/,
  };
  for (const [name, message] of Object.entries(refused))
    await t.rejects(
      openSource(`icechunk:${root}/${name}?tag=v1`).then((source) => source.readTree()),
      { message },
    );
});

t.test("refuses other locations", async (t) => {
  const refused = {
    "gs://bucket/a.zarr": "expected an https://, http:// or s3:// URL, received gs://bucket/a.zarr/",
    "https://me:secret@host:port/a.zarr":
      "expected an https://, http:// or s3:// URL, received one that cannot be parsed",
    "ftp://me:secret@host/a.zarr":
      'expected a URL without user and password: name variables under "stores" instead',
    "https://me:secret@host/a.zarr":
      'expected a URL without user and password: name variables under "stores" instead',
    "https://host/a.zarr?token=secret":
      'expected a URL without query and fragment: secrets belong under "stores"',
  };
  for (const [location, message] of Object.entries(refused))
    await t.rejects(openSource(location), { code: "invalid-config", message });
  await t.rejects(openSource("file://elsewhere/a.zarr"), { code: "invalid-metadata" });
  // Node.js refuses this path before it asks the system.
  await t.rejects((await openSource("/a\0b")).readTree(), { code: "source-unreadable" });
});
