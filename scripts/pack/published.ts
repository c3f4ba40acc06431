import { copyFileSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT, copyProgram, copyTrimmed, type Manifest, npm, readManifest } from "./packed-files.js";

/** A platform for which uWebSockets.js has binaries. */
interface Platform {
  readonly os: string;
  readonly cpu: string;
  readonly libc?: string;
}

/** All of them. */
export const PLATFORMS: readonly Platform[] = [
  { os: "linux", cpu: "x64", libc: "glibc" },
  { os: "linux", cpu: "arm64", libc: "glibc" },
  { os: "darwin", cpu: "x64" },
  { os: "darwin", cpu: "arm64" },
  { os: "win32", cpu: "x64" },
];

/** Binary interfaces of the versions of Node.js that get security fixes or did this year: 20, 22, 24. There is none for 26. */
const ABIS = [115, 127, 137] as const;

/** Packages of which the published one brings the part that it needs: half a megabyte for each that npm would install. */
const BUNDLED = ["h5wasm", "swagger-ui-dist"] as const;

const UWS = "uWebSockets.js";

/**
 * Returns the manifest of the published package: that of the checkout, with uWebSockets.js by platform, and without what only a checkout
 * needs.
 * @param uwsVersion Version of the packages of all platforms: that of the binaries.
 * @param repository `https://host/owner/name`, which npm compares with the one that built the package; undefined names none.
 */
export function publishedManifest(
  { private: _, scripts, files, devDependencies, overrides, ...kept }: Manifest,
  uwsVersion: string,
  repository: string | undefined,
): Manifest {
  const dependencies: Record<string, string> = { ...kept.dependencies };
  const optional: Record<string, string> = { ...kept.optionalDependencies };
  delete dependencies[UWS];
  for (const name of BUNDLED) {
    dependencies[name] ??= optional[name] as string;
    delete optional[name];
  }
  for (const platform of PLATFORMS) optional[platformName(platform)] = uwsVersion;
  return {
    ...kept,
    dependencies,
    optionalDependencies: optional,
    bundleDependencies: [...BUNDLED],
    ...published(kept.version, repository),
  };
}

/** Returns the manifest of the package with the binaries of a platform. */
export function platformManifest(
  platform: Platform,
  uwsVersion: string,
  repository: string | undefined,
): Manifest {
  const { os, cpu, libc } = platform;
  return {
    name: platformName(platform),
    version: uwsVersion,
    description: `Binaries of uWebSockets.js for zpublish on ${os} ${cpu}`,
    license: "Apache-2.0",
    main: "uws.js",
    os: [os],
    cpu: [cpu],
    ...(libc === undefined ? {} : { libc: [libc] }),
    ...published(uwsVersion, repository),
  };
}

function platformName({ os, cpu }: Platform): string {
  return `@zpublish/uws-${os}-${cpu}`;
}

/** What a registry is told. A version such as 1.0.0-rc.1 is not what `npm install zpublish` gets. */
function published(
  version: string,
  repository: string | undefined,
): Pick<Manifest, "publishConfig" | "repository"> {
  return {
    publishConfig: { access: "public", ...(version.includes("-") ? { tag: "next" } : {}) },
    ...(repository === undefined ? {} : { repository: { type: "git", url: `git+${repository}.git` } }),
  };
}

/** Packs zpublish and the binaries of all platforms. @returns Paths of the files, zpublish first. */
export function packPublished(directory: string, repository: string | undefined): string[] {
  const manifest = readManifest(CHECKOUT);
  const modules = join(CHECKOUT, "node_modules");
  const uws = join(modules, UWS);
  const { version: uwsVersion } = readManifest(uws);
  const folders: string[] = [];
  const begin = (name: string, written: Manifest): string => {
    const folder = join(directory, "packages", name);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, "package.json"), `${JSON.stringify(written, null, 2)}\n`);
    folders.push(folder);
    return folder;
  };

  const program = begin("zpublish", publishedManifest(manifest, uwsVersion, repository));
  copyProgram(program);
  for (const name of BUNDLED) copyTrimmed(join(modules, name), join(program, "node_modules", name), name);
  for (const platform of PLATFORMS) {
    const { os, cpu } = platform;
    const folder = begin(`uws-${os}-${cpu}`, platformManifest(platform, uwsVersion, repository));
    const binaries = ABIS.map((abi) => `uws_${os}_${cpu}_${abi}.node`);
    for (const file of ["uws.js", "LICENSE", ...binaries]) copyFileSync(join(uws, file), join(folder, file));
    const text = `Binaries of [uWebSockets.js](https://github.com/uNetworking/uWebSockets.js) for \`zpublish\`, which installs them.\n`;
    writeFileSync(join(folder, "README.md"), text);
  }
  return folders.map((folder) => {
    const packed = npm(["pack", "--json", "--ignore-scripts", "--pack-destination", directory], folder);
    const [{ filename }] = JSON.parse(packed) as [{ filename: string }];
    return join(directory, filename.replace("@", "").replace("/", "-"));
  });
}
