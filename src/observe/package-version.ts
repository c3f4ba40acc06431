import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Version of this package, from its `package.json`: `0.1.0`. */
export const packageVersion: string = readPackageVersion(dirname(fileURLToPath(import.meta.url)));

/** Walks up, because the compiled file lies at another depth than its source. */
function readPackageVersion(directory: string): string {
  const file = join(directory, "package.json");
  if (existsSync(file)) {
    const { name, version } = JSON.parse(readFileSync(file, "utf8")) as { name?: string; version?: string };
    if (name === "zpublish" && version !== undefined) return version;
  }
  const parent = dirname(directory);
  if (parent === directory)
    throw new Error("expected a package.json of zpublish above this file, found none");
  return readPackageVersion(parent);
}
