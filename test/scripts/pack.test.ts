import { existsSync } from "node:fs";
import { join } from "node:path";
import t from "tap";
import { CHECKOUT, copyTrimmed, readManifest } from "../../scripts/pack/packed-files.js";
import { PLATFORMS, platformManifest, publishedManifest } from "../../scripts/pack/published.js";
import { makeDirectory } from "../support/write-store.js";

const checkout = readManifest(CHECKOUT);
const repository = "https://host.example/owner/zpublish";

t.test(
  "the published package depends on what the checkout does, and on uWebSockets.js by platform",
  async (t) => {
    const { dependencies, optionalDependencies, ...manifest } = publishedManifest(
      checkout,
      "3.0.6",
      repository,
    );
    const { "uWebSockets.js": _, ...others } = { ...checkout.optionalDependencies, ...checkout.dependencies };
    const platforms = Object.entries(optionalDependencies ?? {}).filter(([name]) =>
      name.startsWith("@zpublish/"),
    );
    t.match({ ...dependencies, ...optionalDependencies }, others, "each as before");
    t.notOk("uWebSockets.js" in (dependencies ?? {}));
    t.strictSame(
      platforms,
      PLATFORMS.map(({ os, cpu }) => [`@zpublish/uws-${os}-${cpu}`, "3.0.6"]),
    );
    for (const name of manifest.bundleDependencies ?? []) {
      t.ok(name in (dependencies ?? {}), name);
      const { dependencies: own = {} } = readManifest(join(CHECKOUT, "node_modules", name));
      t.strictSame(own, {}, "it could not find dependencies of its own");
    }
    t.strictSame(manifest.publishConfig, { access: "public", tag: "next" }, "nobody gets it without asking");
    t.strictSame(publishedManifest({ ...checkout, version: "1.0.0" }, "3.0.6", undefined).publishConfig, {
      access: "public",
    });
    t.equal(manifest.repository?.url, `git+${repository}.git`);
    for (const field of ["private", "scripts", "files", "devDependencies", "overrides"])
      t.notOk(field in manifest);
    t.equal(checkout.private, true, "a checkout is not published by mistake: it has all binaries");
  },
);

t.test("packages of platforms say for which they are", async (t) => {
  for (const platform of PLATFORMS) {
    const { os, cpu, libc, version } = platformManifest(platform, "3.0.6", undefined);
    t.strictSame([os, cpu, version], [[platform.os], [platform.cpu], "3.0.6"]);
    t.strictSame(libc, platform.os === "linux" ? ["glibc"] : undefined, "musl cannot load them");
  }
});

t.test("a package is copied without what does not run, and never without its licence", async (t) => {
  const modules = join(CHECKOUT, "node_modules");
  const to = await makeDirectory(t);
  const isThere = (path: string) => existsSync(join(to, path));
  for (const name of ["h5wasm", "swagger-ui-dist", "zod", "undici"])
    copyTrimmed(join(modules, name), join(to, name), name);
  for (const path of ["h5wasm/LICENSE.txt", "h5wasm/dist/esm/hdf5_hl.js", "swagger-ui-dist/LICENSE"])
    t.ok(isThere(path), path);
  for (const path of ["zod/LICENSE", "zod/v4/index.js", "undici/lib/api/index.js", "undici/package.json"])
    t.ok(isThere(path), path);
  for (const path of ["h5wasm/dist/node", "swagger-ui-dist/swagger-ui.js", "zod/index.d.ts", "undici/docs"])
    t.notOk(isThere(path), path);
  t.notOk(isThere("swagger-ui-dist/swagger-ui-bundle.js.map"));
});
