import { createHash } from "node:crypto";
import { mkdir, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { build } from "esbuild";
import { coastlineOf } from "./write-coastlines.js";

// Bundles the explorer (src/explore) for browsers: files named after their content, compressed forms beside them, and their list.

const source = fileURLToPath(new URL("../../src/explore/", import.meta.url));
const target = fileURLToPath(new URL("../src/explore/assets/", import.meta.url));

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
  define: { COASTLINES: JSON.stringify([assets["coast-110m.bin"], assets["coast-50m.bin"]]) },
  write: false,
  logLevel: "warning",
});

await rm(target, { recursive: true, force: true });
await mkdir(target, { recursive: true });
for (const { path, contents } of result.outputFiles) addAsset(basename(path), contents);
for (const [file, contents] of contentsOf) {
  await writeFile(join(target, file), contents);
  await writeFile(join(target, `${file}.gz`), gzipSync(contents, { level: 9 }));
  const quality = { [constants.BROTLI_PARAM_QUALITY]: 11 };
  await writeFile(join(target, `${file}.br`), brotliCompressSync(contents, { params: quality }));
}
await writeFile(join(target, "assets.json"), `${JSON.stringify(assets, null, 2)}\n`);

function addAsset(path: string, contents: Uint8Array): void {
  const [name = "", extension = ""] = path.split(/\.(?=[^.]+$)/);
  const file = `${name}-${createHash("sha256").update(contents).digest("hex").slice(0, 12)}.${extension}`;
  assets[path] = file;
  contentsOf.set(file, contents);
}
