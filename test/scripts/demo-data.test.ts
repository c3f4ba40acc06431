import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import * as zarr from "zarrita";
import { makeDemoData } from "../../scripts/demo-data.js";

/** zarrita's view of a directory. */
function storeOf(directory: string) {
  const get = async (key: string): Promise<Uint8Array | undefined> =>
    readFile(join(directory, key)).catch((error: NodeJS.ErrnoException) => {
      if (error.code === "ENOENT") return undefined;
      throw error;
    });
  return {
    get,
    async getRange(key: string, range: { offset: number; length: number } | { suffixLength: number }) {
      const bytes = await get(key);
      if ("suffixLength" in range) return bytes?.subarray(-range.suffixLength);
      return bytes?.subarray(range.offset, range.offset + range.length);
    },
  };
}

async function openArray(directory: string, path: `/${string}`) {
  return zarr.open(zarr.root(storeOf(directory)).resolve(path), { kind: "array" });
}

t.test("demonstration data is made once, and again when it is not what this version makes", async (t) => {
  const directory = join(t.testdir(), "demo");
  const { air } = await makeDemoData(directory);
  const made = (await stat(join(air, ".zmetadata"))).mtimeMs;
  await makeDemoData(directory);
  t.equal((await stat(join(air, ".zmetadata"))).mtimeMs, made, "reused");
  await writeFile(join(directory, "version.txt"), "another\n");
  await makeDemoData(directory);
  t.not((await stat(join(air, ".zmetadata"))).mtimeMs, made, "made anew");
  t.strictSame((await readdir(join(directory, ".."))).sort(), ["demo"], "nothing unfinished is left");
});

t.test("the flat dataset reads as plausible air temperatures", async (t) => {
  const { air } = await makeDemoData(join(t.testdir(), "demo"));
  const array = await openArray(air, "/air");
  t.strictSame(array.shape, [2920, 25, 53]);
  const { data } = await zarr.get(array);
  t.type(data, Int16Array);
  const kelvin = Float64Array.from(data as Int16Array, (value) => value * 0.01 + 273.15);
  t.ok(kelvin.every((value) => value > 200 && value < 330));
  const metadata = JSON.parse(await readFile(join(air, ".zmetadata"), "utf8")) as {
    metadata: Record<string, unknown>;
  };
  t.strictSame(Object.keys(metadata.metadata).length, 10);
  t.match(metadata.metadata["air/.zattrs"], { _ARRAY_DIMENSIONS: ["time", "lat", "lon"] });
});

t.test("every array of the tree reads, shards and texts among them", async (t) => {
  const { climate } = await makeDemoData(join(t.testdir(), "demo"));
  const sst = await openArray(climate, "/surface/daily/sst");
  t.strictSame(sst.shape, [365, 45, 90]);
  const { data } = (await zarr.get(sst)) as { data: Float32Array };
  const sea = data.filter((value) => !Number.isNaN(value));
  t.ok(sea.length > data.length / 3 && sea.length < data.length, "there is land and sea");
  const isSea = (row: number, column: number) => !Number.isNaN(data[row * 90 + column]);
  t.strictSame(
    // Latitudes and longitudes rise by 4 degrees from 88 south and from 0.
    [isSea(22, 45), isSea(22, 5), isSea(33, 65), isSea(33, 80), isSea(0, 10)],
    [true, false, false, true, false],
    "the Pacific, the Congo, Dakota, the Atlantic, and Antarctica",
  );
  t.ok(sea.every((value) => value > -10 && value < 40));
  const names = await zarr.get(await openArray(climate, "/profiles/station_name"));
  t.strictSame([...(names.data as unknown as string[])].slice(0, 2), [
    "Station Papa",
    "Hawaiʻi Ocean Time-series",
  ]);
  const ssh = (await zarr.get(await openArray(climate, "/regional/ssh"))) as { data: Float32Array };
  t.equal(ssh.data.length, 31 * 60 * 80);
  t.ok(ssh.data.every((value) => Math.abs(value) <= 0.5));
});
