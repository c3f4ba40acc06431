import { spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** Folder of the checkout. */
export const CHECKOUT = fileURLToPath(new URL("../../../", import.meta.url));

/** The parts of a `package.json` that are read or written here. */
export interface Manifest {
  name: string;
  version: string;
  private?: boolean;
  scripts?: Record<string, string>;
  files?: string[];
  dependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  overrides?: unknown;
  bundleDependencies?: string[];
  repository?: { type: string; url: string };
  publishConfig?: { access: string; tag?: string };
  [field: string]: unknown;
}

/** Reads the manifest of a package. */
export function readManifest(folder: string): Manifest {
  return JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Manifest;
}

/** Copies what the field `files` of the checkout's manifest names, without the manifest itself. @throws Error if npm fails. */
export function copyProgram(to: string): void {
  const listed = npm(["pack", "--dry-run", "--json", "--ignore-scripts"], CHECKOUT);
  const [packed] = JSON.parse(listed) as [{ readonly files: readonly { readonly path: string }[] }];
  for (const { path } of packed.files) if (path !== "package.json") copy(CHECKOUT, to, path);
}

/** Copies all packages that the program depends on at run time, trimmed for this platform and this Node.js. */
export function copyDependencies(to: string): void {
  const listed = npm(["ls", "--omit=dev", "--all", "--parseable"], CHECKOUT).trim().split("\n");
  for (const folder of listed.slice(1))
    copyTrimmed(folder, join(to, relative(CHECKOUT, folder)), readManifest(folder).name);
}

const { platform, arch, versions } = process;

/** Files that no package needs to run: types, maps, documents, tests, modules for bundlers, binaries for others. */
const NEEDLESS = [
  /\.(?:map|[cm]?ts|flow|tsbuildinfo|gyp|c|cc|cpp|h)$/,
  /^(?!.*(?:licen[cs]e|copying)).*\.(?:md|markdown)$/i,
  /^(?:\.github|bench(?:mark)?|docs?|examples?|tests?|test-jest|__tests__)\//,
  /^(?:dist-es|dist-types)\//,
  /musl\.node$/,
  new RegExp(`\\.abi(?!${versions.modules}\\.)\\d+\\..*\\.node$`),
];

/** All that is needed of packages of which most is not, beside manifest and licence. */
const NEEDED: Readonly<Record<string, RegExp>> = {
  h5wasm: /^dist\/esm\//,
  "swagger-ui-dist": /^(?:swagger-ui\.css|swagger-ui-bundle\.js|favicon-32x32\.png)$/,
  uwebsockets: new RegExp(`^uws(?:_${platform}_${arch}_${versions.modules}\\.node|\\.js)$`),
};

/** Copies the part of a package that runs, its manifest and its licence. @param name As the package calls itself. */
export function copyTrimmed(from: string, to: string, name: string): void {
  const isNeeded = (path: string): boolean =>
    /^(?:package\.json|(?:licen[cs]e|notice|copying)[^/]*)$/i.test(path) ||
    (NEEDED[name]?.test(path) ?? true);
  for (const entry of readdirSync(from, { recursive: true, withFileTypes: true })) {
    const path = relative(from, join(entry.parentPath, entry.name));
    // Packages inside it are listed by themselves.
    if (entry.isDirectory() || /(?:^|\/)node_modules\//.test(path)) continue;
    if (isNeeded(path) && !NEEDLESS.some((pattern) => pattern.test(path))) copy(from, to, path);
  }
}

function copy(from: string, to: string, path: string): void {
  const target = join(to, path);
  mkdirSync(dirname(target), { recursive: true });
  copyFileSync(join(from, path), target);
}

/** Runs npm. @returns Its standard output. @throws Error with its standard error if it fails. */
export function npm(args: readonly string[], cwd: string): string {
  const { status, stdout, stderr } = spawnSync("npm", args, { cwd, encoding: "utf8", maxBuffer: 2 ** 26 });
  if (status !== 0) throw new Error(`npm ${args.join(" ")}: ${stderr || stdout}`);
  return stdout;
}

/** Makes sure that the build is there. @throws Error if it is not. */
export function expectBuild(): void {
  for (const file of ["src/zpublish.cjs", "src/explore/assets/assets.json", "src/codec/kernel/kernel.wasm"])
    if (!existsSync(join(CHECKOUT, "dist", file)))
      throw new Error(`expected dist/${file}; npm run build makes it`);
}
