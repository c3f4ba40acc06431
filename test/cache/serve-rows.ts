import { join } from "node:path";
import type { Test } from "tap";
import { PROGRAM, type Run, runScript } from "../cli/run-program.js";
import { makeDirectory, writeFiles, zarray, zgroup } from "../open/write-store.js";

export const ROWS = 192;
export const ROW_BYTES = 48 * 1024;
const ROWS_PER_STORED_CHUNK = 16;

/** Makes a row of the array, independently of the program. */
function rowOf(row: number): Buffer {
  const bytes = Buffer.alloc(ROW_BYTES);
  for (let i = 0; i < ROW_BYTES; i += 4)
    bytes.writeUInt32LE(Math.imul(row * ROW_BYTES + i + 1, 2654435761) >>> 0, i);
  return bytes;
}

/** Rows of the array. Each is one served chunk, `ROW.0`. */
export const EXPECTED_ROWS = Array.from({ length: ROWS }, (_, row) => rowOf(row));

/** Writes a store that is rechunked, and a configuration for it. */
export async function prepareRows(t: Test, cacheSize: number, cacheDir = "cache"): Promise<string> {
  const directory = await makeDirectory(t);
  const chunks = Array.from({ length: ROWS / ROWS_PER_STORED_CHUNK }, (_, n): [string, Buffer] => [
    `store/v/${n}.0`,
    Buffer.concat(EXPECTED_ROWS.slice(n * ROWS_PER_STORED_CHUNK, (n + 1) * ROWS_PER_STORED_CHUNK)),
  ]);
  await writeFiles(directory, {
    "store/.zgroup": zgroup,
    "store/v/.zarray": { ...zarray, shape: [ROWS, ROW_BYTES], chunks: [ROWS_PER_STORED_CHUNK, ROW_BYTES] },
    ...Object.fromEntries(chunks),
    "config.json": {
      cacheSize,
      cacheDir,
      datasets: { d: { location: "store", encoding: { chunks: [1, ROW_BYTES] } } },
    },
  });
  return directory;
}

/** Runs the program on the rows. */
export async function serveRows(
  directory: string,
  args: readonly string[] = [],
): Promise<{ readonly run: Run; readonly port: number }> {
  const run = runScript(PROGRAM, [
    "serve",
    ...["--config", join(directory, "config.json"), "--port", "0", "--workers", "1"],
    ...["--log-level", "warn", ...args],
  ]);
  await run.says("zpublish ready on ");
  return { run, port: Number(new URL(run.stdout().trim().split(" ").at(-1) as string).port) };
}
