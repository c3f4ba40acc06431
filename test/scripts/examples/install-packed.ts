import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Test } from "tap";
import { makeDirectory } from "../../support/write-store.js";

/** Folder of the repository. */
export const CHECKOUT = packageRoot();

/** Folder of the example plugins. */
export const PLUGINS = join(CHECKOUT, "scripts/examples/plugins");

function packageRoot(): string {
  let folder = dirname(fileURLToPath(import.meta.url));
  while (!existsSync(join(folder, "package.json"))) folder = dirname(folder);
  return folder;
}

/**
 * Makes an empty folder in which zpublish and an example plugin are installed as npm would install them: packed, unpacked, with what they
 * depend on, and a command. Dependencies are those of the checkout, so that no registry is needed.
 */
export async function installPacked(t: Test, plugin: string): Promise<string> {
  const folder = await makeDirectory(t);
  const modules = join(folder, "node_modules");
  for (const [name, source] of [
    ["zpublish", CHECKOUT],
    [plugin, join(PLUGINS, plugin)],
  ] as const) {
    // Scripts would build the package again.
    const pack = ["pack", source, "--json", "--ignore-scripts", "--offline", "--pack-destination", folder];
    const [packed] = JSON.parse(execFileSync("npm", pack, { cwd: folder, encoding: "utf8" })) as [
      { filename: string },
    ];
    const target = join(modules, name);
    mkdirSync(target, { recursive: true });
    execFileSync("tar", ["-xzf", join(folder, packed.filename), "-C", target, "--strip-components=1"]);
    const { dependencies = {}, optionalDependencies = {} } = JSON.parse(
      readFileSync(join(target, "package.json"), "utf8"),
    ) as Record<string, Readonly<Record<string, string>>>;
    for (const each of Object.keys({ ...dependencies, ...optionalDependencies })) {
      const link = join(modules, each);
      mkdirSync(dirname(link), { recursive: true });
      if (!existsSync(link)) symlinkSync(join(CHECKOUT, "node_modules", each), link);
    }
  }
  mkdirSync(join(modules, ".bin"));
  symlinkSync("../zpublish/dist/src/zpublish.cjs", join(modules, ".bin", "zpublish"));
  return folder;
}
