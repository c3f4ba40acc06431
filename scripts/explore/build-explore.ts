import { createHash } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { coastlineOf, landOutlines } from "./coastlines.js";
import { licencesOf } from "./licences.js";

// Bundles the explorer (src/explore) for browsers: files named after their content, compressed forms beside them, their list,
// and the licences of what is in them. Outlines of land for the demonstration come from the same package.

/** Maximum of bytes of all files together, as brotli sends them: a phone loads them in a second or two. */
const MAX_BYTES = 300_000;

const root = fileURLToPath(new URL("../../../", import.meta.url));
const source = fileURLToPath(new URL("../../../src/explore/", import.meta.url));
const target = fileURLToPath(new URL("../../src/explore/assets/", import.meta.url));

const assets: Record<string, string> = {};
const contentsOf = new Map<string, Uint8Array>();
for (const resolution of ["110m", "50m"] as const)
  addAsset(`coast-${resolution}.bin`, await coastlineOf(resolution));

const result = await build({
  entryPoints: { page: join(source, "main.tsx"), worker: join(source, "explore-worker.ts") },
  outdir: target,
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  legalComments: "none",
  // zarrita would load them for codecs that the worker replaces: half a megabyte, which a strict policy does not let run.
  external: ["numcodecs/*"],
  absWorkingDir: root,
  metafile: true,
  write: false,
  logLevel: "warning",
});

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
for (const { path, contents } of result.outputFiles) addAsset(basename(path), contents);
// The outlines of world-atlas are in the coastlines.
addAsset("licences.txt", Buffer.from(await licencesOf(result.metafile, root, ["world-atlas"])));
let sentBytes = 0;
for (const [file, contents] of contentsOf) {
  await writeFile(join(target, file), contents);
  await writeFile(join(target, `${file}.gz`), gzipSync(contents, { level: 9 }));
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  const brotli = brotliCompressSync(contents, { params: quality });
  await writeFile(join(target, `${file}.br`), brotli);
  sentBytes += brotli.byteLength;
}
if (sentBytes > MAX_BYTES)
  throw new Error(`expected the explorer in at most ${MAX_BYTES} bytes of brotli, received ${sentBytes}`);
await writeFile(join(target, "assets.json"), `${JSON.stringify(assets, null, 2)}\n`);
await writeFile(join(root, "dist/scripts/demo/land.json"), JSON.stringify(await landOutlines()));
// For the next build. Packages have the versions of the lock file.
const inputs = Object.keys(result.metafile.inputs).filter((path) => !path.includes("node_modules/"));
await writeFile(join(root, "dist/explore-inputs.json"), JSON.stringify(inputs));

function addAsset(path: string, contents: Uint8Array): void {
  const [name = "", extension = ""] = path.split(/\.(?=[^.]+$)/);
  const file = `${name}-${createHash("sha256").update(contents).digest("hex").slice(0, 12)}.${extension}`;
  assets[path] = file;
  contentsOf.set(file, contents);
}
