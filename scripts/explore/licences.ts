import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Metafile } from "esbuild";

/**
 * Returns names and licences of the packages whose code is in a bundle, as their licences demand of copies of it.
 * @param metafile Of a build below `root`.
 * @param others Further packages, of which the bundle has data.
 * @throws Error if a package has no licence.
 */
export async function licencesOf(
  metafile: Metafile,
  root: string,
  others: readonly string[] = [],
): Promise<string> {
  const names = new Set(others);
  for (const { inputs } of Object.values(metafile.outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      const name = bytesInOutput > 0 ? packageOf(path) : undefined;
      if (name !== undefined) names.add(name);
    }
  }
  const texts = await Promise.all(
    [...names].sort().map((name) => licenceOf(join(root, "node_modules", name))),
  );
  return `The explorer of zpublish contains code and data of these packages.\n${texts.join("")}`;
}

/** `@scope/name` of `node_modules/@scope/name/dist/index.js`; undefined for a file of this project. */
function packageOf(path: string): string | undefined {
  return /.*(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1];
}

async function licenceOf(folder: string): Promise<string> {
  const { name, version } = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
    readonly name: string;
    readonly version: string;
  };
  const file = (await readdir(folder)).find((entry) =>
    /^(?:licen[cs]e|copying)(?:\.(?:md|txt))?$/i.test(entry),
  );
  if (file === undefined) throw new Error(`package ${name}: expected a file LICENSE, received none`);
  const text = await readFile(join(folder, file), "utf8");
  return `\n${"-".repeat(80)}\n${name} ${version}\n\n${text.trim()}\n`;
}
