import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { endianness, machine, release, type } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** Version of this package, from its `package.json`: `1.0.0`. */
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

/**
 * Packages that may have uWebSockets.js: its own, of a checkout or of a project that brings it, and the one with the binaries of this
 * platform, which npm installs with zpublish where there is one.
 */
export const UWS_PACKAGES = ["uWebSockets.js", `@zpublish/uws-${process.platform}-${process.arch}`] as const;

/** Packages whose versions decide how the service behaves, by the name that is shown: the first that is installed counts. */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "uWebSockets.js": UWS_PACKAGES,
  piscina: ["piscina"],
  zarrita: ["zarrita"],
  numcodecs: ["numcodecs"],
  lmdb: ["lmdb"],
};

let versions: Readonly<Record<string, string>> | undefined;

/** Returns the versions of this package, its dependencies and the system; read once. */
export function packageVersions(): Readonly<Record<string, string>> {
  versions ??= Object.freeze({
    zpublish: packageVersion,
    node: process.versions.node,
    v8: process.versions.v8,
    ...Object.fromEntries(
      Object.entries(PACKAGES).map(([name, packages]) => [name, installedVersion(packages)]),
    ),
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
function installedVersion(names: readonly string[]): string {
  const require = createRequire(import.meta.url);
  const folders = names.flatMap((name) =>
    (require.resolve.paths(name) ?? []).map((modules) => join(modules, name)),
  );
  for (const folder of folders) {
    const manifest = join(folder, "package.json");
    if (!existsSync(manifest)) continue;
    const { version } = JSON.parse(readFileSync(manifest, "utf8")) as { version?: unknown };
    if (typeof version === "string") return version;
  }
  return "unknown";
}
