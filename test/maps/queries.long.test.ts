import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { readResidentMemory } from "../../bench/process-cost.js";
import { workThrough } from "../../src/event-loop/work-through.js";
import { effort } from "../support/effort.js";
import { startSmall } from "../support/servers/start-program.js";
import { writeFiles, zarray, zgroup } from "../support/write-store.js";

/** Different queries, which fill the cache of pictures several times: a million if `ZPUBLISH_TEST_EFFORT` is 1000. */
const QUERIES = effort(1_000);
/** Queries for large pictures, of which a dozen fill the cache. Later ones are small, and are drawn and kept all the same. */
const LARGE = 1_000;
const MAX_BYTES = 2 ** 22;
const [ROWS, COLUMNS] = [180, 360];

async function byteLengthBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((each) => each.isFile() && each.name === "data.mdb");
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

function axis(name: string, units: string, values: Float64Array): Record<string, Uint8Array | object> {
  const shape = [values.length];
  return {
    [`grid/${name}/.zarray`]: { ...zarray, shape, chunks: shape, dtype: "<f8" },
    [`grid/${name}/.zattrs`]: { _ARRAY_DIMENSIONS: [name], units },
    [`grid/${name}/0`]: new Uint8Array(values.buffer),
  };
}

const GRID = {
  "grid/.zgroup": zgroup,
  ...axis(
    "lat",
    "degrees_north",
    new Float64Array(ROWS).map((_, at) => 89.5 - at),
  ),
  ...axis(
    "lon",
    "degrees_east",
    new Float64Array(COLUMNS).map((_, at) => at - 179.5),
  ),
  "grid/v/.zarray": { ...zarray, shape: [ROWS, COLUMNS], chunks: [ROWS, COLUMNS], dtype: "<f4" },
  "grid/v/.zattrs": { _ARRAY_DIMENSIONS: ["lat", "lon"] },
  "grid/v/0.0": new Uint8Array(
    new Float32Array(ROWS * COLUMNS).map((_, at) => 100 * Math.sin(at * at)).buffer,
  ),
};

/** Path of a query: large ones are tiles and maps by turns. */
function pathOf(at: number): string {
  const range = `-${1 + at / 1e6},${50 + at}`;
  if (at < LARGE && at % 2 === 0) return `/datasets/d/tiles/v/${at % 3}/0/0.png?range=${range}`;
  const side = at < LARGE ? 256 : 16;
  const frame = `crs=CRS:84&bbox=-180,-90,${180 - at / 1e4},90&width=${side}&height=${side}`;
  return `/datasets/d/wms?request=GetMap&layers=v&${frame}&colorscalerange=${range}`;
}

t.test(
  "pictures of ever new queries take a bounded share of the cache, and drive no chunk out",
  async (t) => {
    const { url, pid, directory } = await startSmall(t, {
      config: async (directory: string) => {
        await writeFiles(directory, GRID);
        const encoding = { compressor: { id: "zlib", level: 1 } };
        return { datasets: { d: { location: join(directory, "grid"), encoding } } };
      },
      args: ["--cache-size", String(MAX_BYTES), "--log-level", "warn"],
    });
    const cache = join(directory, "cache");
    const chunk = async () => (await fetch(`${url}/datasets/d/zarr/v/0.0`)).headers.get("x-cache");
    t.equal(await chunk(), "MISS");
    let bytes = 0;
    const began = performance.now();
    const say = async (at: number) => {
      const memory = readResidentMemory(pid)?.otherBytes ?? Number.NaN;
      const [held, kept] = [memory, await byteLengthBelow(cache)].map((each) => (each / 2 ** 20).toFixed(1));
      const seconds = ((performance.now() - began) / 1_000).toFixed(0);
      t.comment(`${at} queries, ${seconds} s: ${held} MiB of memory beside ${kept} MiB of caches`);
    };
    await workThrough(new Array(QUERIES).keys(), 8, async (at) => {
      if (at % Math.ceil(QUERIES / 5) === 0) await say(at);
      const answer = await fetch(url + pathOf(at));
      if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
      bytes += (await answer.arrayBuffer()).byteLength;
    });
    await say(QUERIES);
    const pictures = await byteLengthBelow(join(cache, "pictures"));
    t.ok(bytes > 4 * (MAX_BYTES / 16), `${QUERIES} pictures have ${bytes} bytes`);
    t.ok(pictures <= 1.5 * (MAX_BYTES / 16) + 2 ** 20, `their cache has ${pictures}`);
    t.equal(await chunk(), "HIT", "the chunk is still there");
  },
);
