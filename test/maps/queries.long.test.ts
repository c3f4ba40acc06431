import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { workThrough } from "../../src/event-loop/work-through.js";
import { createMemorySource } from "../../src/open/memory-source.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { effort } from "../support/effort.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory } from "../support/write-store.js";

/** Different queries, which fill the cache of pictures several times: a million if `ZPUBLISH_TEST_EFFORT` is 1000. */
const QUERIES = effort(1_000);
const MAX_BYTES = 2 ** 22;

async function byteLengthBelow(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = names.filter((each) => each.isFile() && each.name === "data.mdb");
  const sizes = await Promise.all(
    files.map(async ({ parentPath, name }) => (await stat(join(parentPath, name))).size),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

/** Says how much memory this process has, with its server, and how large the caches are. */
async function sizes(directory: string): Promise<string> {
  const { rss, heapUsed } = process.memoryUsage();
  const all = [rss, heapUsed, await byteLengthBelow(directory)];
  const [memory, heap, disk] = all.map((bytes) => (bytes / 2 ** 20).toFixed(1));
  return `${memory} MiB of memory, ${heap} of them used by JavaScript; ${disk} MiB of caches`;
}

t.test(
  "pictures of ever new queries take a bounded share of the cache, and drive no chunk out",
  async (t) => {
    const [rows, columns] = [180, 360];
    const arrays = [
      {
        ...{ name: "v", dims: ["lat", "lon"], shape: [rows, columns] },
        data: Float32Array.from({ length: rows * columns }, (_, at) => 100 * Math.sin(at * at)),
      },
      {
        ...{ name: "lat", dims: ["lat"], shape: [rows], attrs: { units: "degrees_north" } },
        data: Float64Array.from({ length: rows }, (_, at) => 89.5 - at),
      },
      {
        ...{ name: "lon", dims: ["lon"], shape: [columns], attrs: { units: "degrees_east" } },
        data: Float64Array.from({ length: columns }, (_, at) => at - 179.5),
      },
    ];
    const source = createMemorySource({ location: "memory", groups: [{ path: "/", arrays }] });
    const directory = join(await makeDirectory(t), "cache");
    const encoding = { compressor: { id: "zlib", level: 1 } } as const;
    const { get } = await startServer(t, {
      datasets: [datasetOf("d", source, { encoding })],
      cache: { directory, maxBytes: MAX_BYTES },
    });
    const chunk = async () => (await get("/datasets/d/zarr/v/0.0")).headers.get("x-cache");
    t.equal(await chunk(), "MISS");
    let bytes = 0;
    await workThrough(
      Array.from({ length: QUERIES }, (_, at) => at),
      8,
      async (at) => {
        if (at % Math.ceil(QUERIES / 5) === 0) t.comment(`${at} queries: ${await sizes(directory)}`);
        const range = `-${1 + at / 1e6},${50 + at}`;
        const frame = `crs=CRS:84&bbox=-180,-90,${180 - at / 1e4},90&width=256&height=256`;
        const answer = await get(
          at % 2 === 0
            ? `/datasets/d/tiles/v/${at % 3}/0/0.png?range=${range}`
            : `/datasets/d/wms?request=GetMap&layers=v&${frame}&colorscalerange=${range}`,
        );
        if (answer.status !== 200) throw new Error(`${answer.status} ${await answer.text()}`);
        bytes += (await answer.arrayBuffer()).byteLength;
      },
    );
    t.comment(`${QUERIES} queries: ${await sizes(directory)}`);
    const pictures = await byteLengthBelow(join(directory, "pictures"));
    t.ok(bytes > 4 * (MAX_BYTES / 16), `${QUERIES} pictures have ${bytes} bytes`);
    t.ok(pictures <= 1.5 * (MAX_BYTES / 16) + 2 ** 20, `their cache has ${pictures}`);
    t.equal(await chunk(), "HIT", "the chunk is still there");
  },
);
