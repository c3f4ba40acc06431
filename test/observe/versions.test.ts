import { readFileSync } from "node:fs";
import t from "tap";
import { packageVersions } from "../../src/observe/versions.js";

t.test("versions are those of the lock file and of the system, all strings", async (t) => {
  const versions = packageVersions();
  const { packages } = JSON.parse(readFileSync("package-lock.json", "utf8")) as {
    packages: Record<string, { version: string }>;
  };
  for (const name of ["uWebSockets.js", "piscina", "zarrita", "numcodecs", "lmdb"]) {
    t.equal(versions[name], packages[`node_modules/${name}`]?.version, name);
  }
  t.equal(versions.zpublish, packages[""]?.version);
  t.equal(versions.node, process.versions.node);
  t.match(versions.byteorder, /^(little|big)$/);
  t.same(Object.keys(versions).slice(-5), ["OS", "OS-release", "machine", "byteorder", "LANG"]);
  for (const [name, version] of Object.entries(versions)) t.type(version, "string", name);
});
