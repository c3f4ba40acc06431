import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { endianness, machine, release, type } from "node:os";
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

/** Packages whose versions decide how the service behaves. */
const PACKAGES = ["uWebSockets.js", "piscina", "zarrita", "numcodecs", "lmdb"];

let versions: Readonly<Record<string, string>> | undefined;

/** Returns the versions of this package, its dependencies and the system; read once. */
export function packageVersions(): Readonly<Record<string, string>> {
  versions ??= Object.freeze({
    zpublish: packageVersion,
    node: process.versions.node,
    v8: process.versions.v8,
    ...Object.fromEntries(PACKAGES.map((name) => [name, installedVersion(name)])),
    OS: type(),
    "OS-release": release(),
    machine: machine(),
    byteorder: endianness() === "LE" ? "little" : "big",
    LANG: process.env.LANG ?? "None",
  });
  return versions;
}

/**
 * Reads the version of an installed package from its manifest, found by folder as Node.js does: the `exports` of several packages
 * hide it, and one is installed under another name than its own.
 */
function installedVersion(name: string): string {
  const folders = createRequire(import.meta.url).resolve.paths(name) ?? [];
  for (const folder of folders) {
    const manifest = join(folder, name, "package.json");
    if (!existsSync(manifest)) continue;
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version?: unknown };
    if (typeof version === "string") return version;
  }
  return "unknown";
}
