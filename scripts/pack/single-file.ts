import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { chmodSync, copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { CHECKOUT, copyDependencies, copyProgram, readManifest } from "./packed-files.js";

/** Copies the program with all that it depends on, for this platform and this Node.js. */
export function packFolder(directory: string): void {
  mkdirSync(directory, { recursive: true });
  copyFileSync(join(CHECKOUT, "package.json"), join(directory, "package.json"));
  copyProgram(directory);
  copyDependencies(directory);
}

/**
 * Writes one file that runs on any Linux of this kind with glibc, a shell, tar and gzip: a script, then the program and this Node.js,
 * compressed. It unpacks itself when it first runs. Not Node's single executables: native packages and the files of workers have to lie in the
 * file system, so that these would unpack themselves, too.
 * @returns Its path.
 */
export function packSingleFile(directory: string): string {
  const { platform, arch } = process;
  if (platform !== "linux") throw new Error(`expected Linux, received ${platform}`);
  const folder = join(directory, "single-file");
  rmSync(folder, { recursive: true, force: true });
  packFolder(folder);
  copyFileSync(process.execPath, join(folder, "node"));
  const options = ["--sort=name", "--owner=0", "--group=0", "--mtime=@0", "-czf", "-", "-C", folder, "."];
  const { status, stdout, stderr } = spawnSync("tar", options, { maxBuffer: 2 ** 30 });
  if (status !== 0) throw new Error(`tar: ${stderr}`);
  const script = readFileSync(join(CHECKOUT, "scripts/pack/unpack-and-run.sh"), "utf8");
  const id = createHash("sha256").update(stdout).digest("hex").slice(0, 12);
  const { version } = readManifest(CHECKOUT);
  const path = join(directory, `zpublish-${version}-${platform}-${arch}`);
  const begin = script
    .replaceAll("@VERSION@", `${version}-${id}`)
    .replace("@LINE@", String(script.split("\n").length));
  writeFileSync(path, Buffer.concat([Buffer.from(begin), stdout]));
  chmodSync(path, 0o755);
  return path;
}
