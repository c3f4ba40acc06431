import { join } from "node:path";
import { deflateSync } from "node:zlib";
import type { Test } from "tap";
import { runProgram } from "./servers/run-program.js";
import { startProgram } from "./servers/start-program.js";
import { makeDirectory, writeFiles, zgroup } from "./write-store.js";

const STEPS = 40;
const LATITUDES = [60, 45, 30, 15];

function arrayDocument(shape: readonly number[], chunks: readonly number[], dtype: string): object {
  return {
    ...{ zarr_format: 2, shape, chunks, dtype, fill_value: null, order: "C", filters: null },
    compressor: { id: "zlib", level: 1 },
  };
}

function dimensions(...names: readonly string[]) {
  return { _ARRAY_DIMENSIONS: names };
}

/** Forty days of a calendar without leap days, from 2012-02-20 on, on a grid from north to south; a group below has a mask. */
async function writeStore(directory: string): Promise<string> {
  const location = join(directory, "air.zarr");
  const noise = (key: string) => deflateSync(Buffer.alloc(10 * 2 * 3 * 2, key));
  const keys = [0, 1, 2, 3].flatMap((time) => [0, 1].flatMap((y) => [0, 1].map((x) => `${time}.${y}.${x}`)));
  await writeFiles(location, {
    ".zgroup": zgroup,
    "deep/.zgroup": zgroup,
    "t2m/.zarray": arrayDocument([STEPS, 4, 6], [10, 2, 3], "<i2"),
    "t2m/.zattrs": dimensions("time", "lat", "lon"),
    // The last chunk is absent.
    ...Object.fromEntries(keys.slice(0, -1).map((key) => [`t2m/${key}`, noise(key)])),
    "time/.zarray": arrayDocument([STEPS], [STEPS], "<i4"),
    "time/.zattrs": { ...dimensions("time"), units: "days since 2012-02-20", calendar: "noleap" },
    "time/0": deflateSync(Int32Array.from({ length: STEPS }, (_, day) => day)),
    "lat/.zarray": arrayDocument([4], [2], "<f4"),
    "lat/.zattrs": { ...dimensions("lat"), units: "degrees_north" },
    "lat/0": deflateSync(Float32Array.from(LATITUDES.slice(0, 2))),
    "lat/1": deflateSync(Float32Array.from(LATITUDES.slice(2))),
    "deep/mask/.zarray": arrayDocument([4, 6], [4, 6], "|u1"),
    "deep/mask/.zattrs": dimensions("lat", "lon"),
    "deep/mask/0.0": deflateSync(Buffer.alloc(24, 1)),
  });
  return location;
}

/** Keys of all chunks of the store that there are. */
export const ALL = [
  ...["lat/0", "lat/1", "time/0", "deep/mask/0.0"],
  ...[0, 1, 2, 3].flatMap((time) => ["0.0", "0.1", "1.0", "1.1"].map((key) => `t2m/${time}.${key}`)),
].filter((key) => key !== "t2m/3.1.1");

/** Makes a configuration in which each chunk has to be encoded, and a directory for the cache. */
export async function setUp(t: Test) {
  const directory = await makeDirectory(t);
  const location = await writeStore(directory);
  const encoding = { compressor: { id: "gzip", level: 1 } };
  const config = join(directory, "config.json");
  await writeFiles(directory, { "config.json": { datasets: { air: { location, encoding } } } });
  const args = ["--config", config, "--cache-dir", join(directory, "cache"), "--workers", "1"];
  return {
    directory,
    location,
    args,
    warm: (...more: readonly string[]) => runProgram(["warm", ...args, ...more]),
    /** Asks a real server for chunks. @returns Those that were in the cache. */
    async hits(keys: readonly string[] = ALL): Promise<string[]> {
      const { url, stop } = await startProgram(t, { args });
      const found = await hitsAt(url, keys);
      await stop();
      return found;
    },
  };
}

/** Asks a server for chunks. @param store Path of the store. @returns Those that were in the cache. */
export async function hitsAt(
  url: string,
  keys: readonly string[],
  store = "datasets/air/zarr",
): Promise<string[]> {
  const found: string[] = [];
  for (const key of keys) {
    const answer = await fetch(`${url}/${store}/${key}`);
    await answer.arrayBuffer();
    if (answer.status !== 200) throw new Error(`${key}: ${answer.status}`);
    if (answer.headers.get("x-cache") === "HIT") found.push(key);
  }
  return found;
}

/** Reads the counts of a summary. */
export function countsOf(stdout: string) {
  const count = (name: string) =>
    Number(new RegExp(`${name} +([\\d,]+)`).exec(stdout)?.[1]?.replaceAll(",", ""));
  return {
    made: count("made"),
    cached: count("already there"),
    absent: count("absent"),
    stored: count("served as stored"),
    failed: count("failed"),
  };
}

/** Many small chunks of one stored one. */
export async function manyChunks(t: Test) {
  const directory = await makeDirectory(t);
  const count = 20_000;
  await writeFiles(join(directory, "many.zarr"), {
    ".zgroup": zgroup,
    "v/.zarray": arrayDocument([count], [count], "<i2"),
    "v/.zattrs": dimensions("x"),
    "v/0": deflateSync(Buffer.alloc(count * 2, "many")),
  });
  const encoding = { chunks: [1], compressor: { id: "zlib", level: 1 } };
  const config = { datasets: { many: { location: "many.zarr", encoding } } };
  await writeFiles(directory, { "config.json": config });
  const args = ["--config", join(directory, "config.json"), "--cache-dir", join(directory, "cache")];
  return { count, args: ["warm", ...args] };
}
