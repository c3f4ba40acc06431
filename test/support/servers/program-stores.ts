import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { Test } from "tap";
import { makeDirectory, writeFiles, zarray, zgroup } from "../write-store.js";
import { type Program, type ProgramOptions, startProgram, startSmall } from "./start-program.js";

/** Chunks of the store of {@link writeNoise}: 256 KiB as stored, made in some ten milliseconds. */
export const NOISE_CHUNKS = 24;

/** Writes a store with an array `noise` of {@link NOISE_CHUNKS} chunks in a row. */
export async function writeNoise(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "noise.zarr");
  const chunks = Array.from({ length: NOISE_CHUNKS }, (_, index): [string, Uint8Array] => {
    // Half of the bytes compress.
    const bytes = Buffer.alloc(2 ** 18, index);
    randomBytes(2 ** 17).copy(bytes);
    return [`noise/${index}.0`, bytes];
  });
  await writeFiles(location, {
    ".zgroup": zgroup,
    ".zattrs": { title: "first" },
    "noise/.zarray": { ...zarray, shape: [NOISE_CHUNKS, 2 ** 16], chunks: [1, 2 ** 16], dtype: "<f4" },
    "noise/.zattrs": { _ARRAY_DIMENSIONS: ["n", "x"] },
    ...Object.fromEntries(chunks),
  });
  return location;
}

/**
 * Starts the program, two processes unless another number is given, with the dataset `noise` recompressed and as stored (`plain`).
 * @param level Of Zstandard, by which a chunk takes longer.
 */
export function serveNoise(
  t: Test,
  location: string,
  {
    args = [],
    processes = 2,
    level = 12,
  }: Pick<ProgramOptions, "args" | "processes"> & { level?: number } = {},
): Promise<Program> {
  const noise = { location, encoding: { compressor: { id: "zstd", level } } };
  return startProgram(t, {
    config: { datasets: { noise, plain: location } },
    args: ["--log-level", "debug", "--refresh", "0", ...args],
    processes,
  });
}

/** Chunks that a program made so far, by `path coords`; it logs them at level debug. */
export function madeChunks(program: Program): string[] {
  return program
    .said("making a chunk")
    .map(({ path, chunkCoords }) => `${path} ${(chunkCoords as number[]).join(".")}`);
}

/** Chunks of the array `v` of {@link writeArray}. */
export const ARRAY_CHUNKS = 8;

/** The bytes of a chunk of {@link writeArray}. */
export function chunkOf(seed: number, index: number): Buffer {
  return Buffer.alloc(4_096, `${seed} ${index} `);
}

/** A store with an array `v` of {@link ARRAY_CHUNKS} chunks, of bytes that tell it from others, and attributes. */
export async function writeArray(location: string, seed: number): Promise<string> {
  const chunks = Array.from({ length: ARRAY_CHUNKS }, (_, index) => [`v/${index}`, chunkOf(seed, index)]);
  await writeFiles(location, {
    ".zgroup": zgroup,
    ".zattrs": { seed },
    "v/.zarray": { ...zarray, shape: [ARRAY_CHUNKS * 4_096], chunks: [4_096] },
    ...Object.fromEntries(chunks),
  });
  return location;
}

/** A plugin that answers `/gate` when there is a file, and nothing before that. Its path, and what opens it. */
export async function writeGate(
  directory: string,
): Promise<{ readonly module: string; readonly file: string }> {
  const file = join(directory, "gate-is-open");
  const module = join(directory, "gate.mjs");
  await writeFiles(directory, {
    "gate.mjs": `import { existsSync } from "node:fs";
      import { setTimeout as delay } from "node:timers/promises";
      export default {
        name: "gate", version: "1.0.0", path: "example/gate",
        routes: ({ createDocument }) => [{
          path: "/gate", priority: "chunk", operation: { summary: "gate", contentType: "text/plain" },
          async handler() {
            while (!existsSync(${JSON.stringify(file)})) await delay(10);
            return { kind: "document", document: createDocument("open", "text/plain") };
          },
        }],
      };`,
  });
  return { module, file };
}

/** A token nobody else has. */
export function newToken(): string {
  return randomBytes(16).toString("hex");
}

/** Starts the program with one worker and the dataset `one`, of {@link writeArray}. @param settings Further keys of its configuration. */
export function serveOne(
  t: Test,
  settings: object = {},
  options: Omit<ProgramOptions, "config"> = {},
): Promise<Program> {
  return startSmall(t, {
    ...options,
    async config(directory) {
      await writeArray(join(directory, "one"), 1);
      return { datasets: { one: "one" }, ...settings };
    },
  });
}
