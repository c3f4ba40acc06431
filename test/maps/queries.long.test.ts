import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import t from "tap";
import { workThrough } from "../../src/event-loop/work-through.js";
import { createMemorySource } from "../../src/open/memory-source.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { effort } from "../support/effort.js";
import { startServer } from "../support/servers/start-server.js";
import { makeDirectory } from "../support/write-store.js";

/** Different queries: a thousandth of a million, which fill the cache of pictures several times. */
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
    const pictures = await byteLengthBelow(join(directory, "pictures"));
    t.ok(bytes > 4 * (MAX_BYTES / 16), `${QUERIES} pictures have ${bytes} bytes`);
    t.ok(pictures <= 1.5 * (MAX_BYTES / 16) + 2 ** 20, `their cache has ${pictures}`);
    t.equal(await chunk(), "HIT", "the chunk is still there");
  },
);
