import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import t from "tap";
import { createPathFilter, splitPattern } from "../../src/find/patterns.js";
import { makeDirectory } from "../support/write-store.js";

t.test("files of known formats and all stores are found if nothing else is asked for", async (t) => {
  const { takesFile, takesStore, entersFolder } = createPathFilter(undefined, ["old", "**/*.part.nc"]);
  for (const extension of ["nc", "NC4", "h5", "he5", "hdf", "cdf", "tif", "TIFF", "zarr.zip"])
    t.ok(takesFile(`b/a.${extension}`), extension);
  for (const path of ["a.txt", "a.json", "nc", ".a.nc", "x/a.part.nc"]) t.notOk(takesFile(path), path);
  t.ok(takesStore("a"));
  t.notOk(takesStore("a/.b.zarr"));
  t.notOk(takesStore("old"));
  t.ok(entersFolder("a/b"));
  t.notOk(entersFolder("a/.b"));
  t.notOk(entersFolder("old"));
});

t.test("a pattern leads into no more folders than it must", async (t) => {
  const cases: [string, string[], string[]][] = [
    ["*.nc", [], ["a", "a/b"]],
    ["a/*.nc", ["a"], ["b", "a/b"]],
    ["./a/*.nc", ["a"], ["b"]],
    ["{a,b}/*.nc", ["a", "b"], ["c"]],
    ["{a/x,b}/*.nc", ["a", "a/x", "b"], [".a"]],
    ["20??/*/x.nc", ["2024", "2024/a"], ["24", "2024/a/b"]],
    ["a/**/*.nc", ["a", "a/b", "a/b/c"], ["b", "a/.b"]],
    ["**/.cache/*.nc", ["a", ".cache", "a/.cache"], [".git"]],
    ["a//b.nc", ["a"], ["a/b"]],
  ];
  for (const [pattern, entered, skipped] of cases) {
    const { entersFolder } = createPathFilter([pattern]);
    for (const path of entered) t.ok(entersFolder(path), `${pattern}: ${path}`);
    for (const path of skipped) t.notOk(entersFolder(path), `${pattern}: ${path}`);
  }
});

t.test("characters without a meaning are literal", async (t) => {
  const matches: [string, string, boolean][] = [
    ["sst (1)*.nc", "sst (1)-a.nc", true],
    ["sst (1)*.nc", "sst 1-a.nc", false],
    ["a+b*", "a+bc", true],
    ["@(a|b)", "@(a|b)", true],
    ["@(a|b)", "a", false],
    ["!a*", "!ab", true],
    ["!a*", "b", false],
    ["$a^*", "$a^b", true],
    ["[!a]b", "cb", true],
    ["[!a]b", "ab", false],
    ["[^a]b", "cb", true],
    ["s\\[1\\].nc", "s[1].nc", true],
    ["\\*", "a", false],
    ["{01..12}.nc", "07.nc", true],
    ["{01..12}.nc", "7.nc", false],
    ["{8..12}.nc", "10.nc", true],
    ["{a,b}.{nc,h5}", "b.h5", true],
    ["**", "a/b", true],
  ];
  for (const [pattern, path, expected] of matches) {
    t.equal(createPathFilter([pattern]).takesFile(path), expected, `${pattern}: ${path}`);
  }
});

t.test("an excluded folder is excluded with everything in it", async (t) => {
  for (const pattern of ["tmp", "tmp/**"]) {
    t.notOk(createPathFilter(["**"], [pattern]).entersFolder("tmp"), pattern);
  }
  t.notOk(createPathFilter(["**"], ["**/tmp"]).entersFolder("a/tmp"));
  t.notOk(createPathFilter(["**/.*/*"], ["**/.git"]).entersFolder("a/.git"));
});

t.test("a pattern that cannot be understood is refused", async (t) => {
  for (const pattern of ["", "/a", "{1..99999}", "{2..1}", "a".repeat(70_000)]) {
    t.throws(() => createPathFilter([pattern]), { code: "invalid-config", message: /^expected a pattern/ });
    t.throws(() => createPathFilter(undefined, [pattern]), { code: "invalid-config" });
  }
});

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
    "icechunk:/data/repo?tag=v1",
    "icechunk:s3://bucket/*/repo?branch=main",
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
