import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import { splitPattern } from "../../src/find/split-pattern.js";
import { makeDirectory } from "../open/write-store.js";

t.test("a pattern is split before the first name with a wildcard", async (t) => {
  const cases: [string, string, string][] = [
    ["/data/**/*.nc", "/data/", "**/*.nc"],
    ["/data/sst-*.nc", "/data/", "sst-*.nc"],
    ["/*.nc", "/", "*.nc"],
    ["data/2024/sst-????.nc", "data/2024/", "sst-????.nc"],
    ["*.nc", "", "*.nc"],
    ["/data/{a,b}/x.nc", "/data/", "{a,b}/x.nc"],
    ["/data/{a/x,b}/y.nc", "/data/", "{a/x,b}/y.nc"],
    ["/data/{2001..2024}.nc", "/data/", "{2001..2024}.nc"],
    ["/data/[0-9].nc", "/data/", "[0-9].nc"],
    ["/data/\\[x\\]/*.nc", "/data/[x]/", "*.nc"],
    ["s3://bucket/prefix/*.zarr", "s3://bucket/prefix/", "*.zarr"],
    ["s3://bucket/*/x.zarr", "s3://bucket/", "*/x.zarr"],
    ["https://host/a/*.nc", "https://host/a/", "*.nc"],
    ["file:///data/a%20b/*.nc", "/data/a b/", "*.nc"],
  ];
  for (const [location, root, include] of cases) t.same(splitPattern(location), { root, include }, location);
});

t.test("a location without wildcards is no pattern", async (t) => {
  for (const location of [
    "/data/air.zarr",
    "/data/sst (1)+.nc",
    "/data/{a}.nc",
    "/data/[.nc",
    "/data/a\\*.nc",
    "/data/a\\",
    "s3://bucket/air.zarr",
    "https://host/air.zarr?version=1",
    "https://host/[a]/{b,c}.nc",
    "file:///data/air.nc",
    "file://elsewhere/*.nc",
  ]) {
    t.equal(splitPattern(location), undefined, location);
  }
});

t.test("names that exist count as they are", async (t) => {
  const directory = await makeDirectory(t);
  await mkdir(join(directory, "[a]"));
  await writeFile(join(directory, "[a]", "x[1].nc"), "");
  t.equal(splitPattern(join(directory, "[a]/x[1].nc")), undefined);
  t.equal(splitPattern(join(directory, "[a]")), undefined);
  const expected = { root: join(directory, "[a]/"), include: "x[12].nc" };
  t.same(splitPattern(join(directory, "[a]/x[12].nc")), expected);
  t.same(splitPattern(`${pathToFileURL(join(directory, "[a]"))}/x*.nc`), { ...expected, include: "x*.nc" });
});
