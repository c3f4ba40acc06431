import { join } from "node:path";
import { PYTHON, runChild } from "../children.js";
import { DATA_DIRECTORY, makeOldTree, makeOnce, packageRoot } from "../data/bench-data.js";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { measureLoad } from "../load/load.js";
import { type RunningZpublish, withZpublish } from "../start-zpublish.js";
import { fetchAnswer } from "../subjects/check-answers.js";
import { readIndexedPng } from "./thumbnails.js";

/** Steps of 16 tiles that are made, each once. */
const SIZES = { full: 40, small: 20, tiny: 2 } as const;
const CONNECTIONS = 8;
const SCRIPT = join(packageRoot(), "bench", "files", "warp_tiles.py");
const COLD = "tiles, each once";
const LINEAR = "tiles with `interpolate=linear`, each once";
const WARM = "16 tiles, cached";
const GDAL = "GDAL's warper alone";
const LEAST_COLD = 100;
const LEAST_WARM = 5_000;

/** A view of 16 tiles of a global grid of a quarter of a degree. */
export const tiles: BenchTable = {
  title: "16 map tiles of a global grid of a quarter of a degree, each once and cached; beside GDAL's warper",
  async *contests(context) {
    const { file, steps } = await openGrid(context);
    const expected = (await runOnGrid("show", file, "0")).subarray(9 * 256 ** 2, 10 * 256 ** 2);
    const serve = (build: Build, use: (server: RunningZpublish, scratch: string) => Promise<Figures>) => {
      const scratch = context.freshFolder("server");
      const settings = { build, datasets: { grid: file }, scratch, args: ["--workers", "1"] };
      return withZpublish(settings, async (server) => {
        await checkTile(server, expected);
        return use(server, scratch);
      });
    };
    const once = (build: Build, query: string) =>
      serve(build, (server, scratch) => {
        const paths = Array.from({ length: steps }, (_, step) => viewOf(step + 1, query)).flat();
        return measureLoad(server, {
          paths,
          connections: CONNECTIONS,
          length: "once",
          scratch,
          unit: "tiles",
        });
      });
    const cached = (build: Build) =>
      serve(build, async (server, scratch) => {
        for (const path of viewOf(1, "")) await fetchAnswer(server.baseUrl, path);
        const length = { seconds: context.seconds };
        return measureLoad(server, {
          paths: viewOf(1, ""),
          connections: CONNECTIONS,
          length,
          scratch,
          unit: "tiles",
        });
      });
    yield {
      contestants: [
        ...perBuild(context, COLD, (build) => once(build, "")),
        ...perBuild(context, LINEAR, (build) => once(build, "&interpolate=linear")),
        ...perBuild(context, WARM, cached),
        { name: GDAL, measure: () => warpTiles(file, steps) },
      ],
      compared: "tiles/s",
      against: [GDAL],
      aims: [
        { of: COLD, least: LEAST_COLD },
        { of: WARM, least: LEAST_WARM },
      ],
      notes: [
        `\`--workers 1\`, a fresh server with an empty cache for each measurement, ${CONNECTIONS} connections: the 16 tiles of zoom 2 at ${steps} times, whose chunks of 4 MB (NetCDF-4, zlib) are decoded once each.`,
        "GDAL warps the same tiles by nearest neighbour with an error threshold of 0, one after the other in one process, to memory: neither coloured nor encoded. All its pixels of one tile were compared.",
      ],
    };
  },
};

/** A file with a global grid of a quarter of a degree at one time more than the steps that are measured, hours from 2021 on. */
export async function openGrid(context: BenchContext): Promise<{ file: string; steps: number }> {
  const steps = SIZES[context.size];
  const folder = join(context.parent ?? DATA_DIRECTORY, `quarter-degrees-${steps}`);
  context.onProgress(0, "making data");
  await makeOnce(folder, async (unfinished) => {
    await runChild(PYTHON, [SCRIPT, "write", join(unfinished, "grid.nc"), String(steps + 1)]);
    makeOldTree(unfinished);
  });
  return { file: join(folder, "grid.nc"), steps };
}

/** Runs `show` or `read` of `warp_tiles.py`. @returns An index of the palette for each pixel of the 16 tiles. */
export async function runOnGrid(...args: readonly string[]): Promise<Buffer> {
  return Buffer.from(await runChild(PYTHON, [SCRIPT, ...args]), "base64");
}

/** Paths of the 16 tiles of zoom 2. */
function viewOf(step: number, query: string): string[] {
  return Array.from({ length: 16 }, (_, tile) => tilePath(step, tile % 4, Math.floor(tile / 4), query));
}

/** Path of a tile of zoom 2, of the dataset `grid`. */
export function tilePath(step: number, x: number, y: number, query = ""): string {
  return `/datasets/grid/tiles/t/2/${x}/${y}.png?isel.time=${step}&range=-40,60${query}`;
}

/** Compares a tile with the pixels of GDAL's warper. @throws Error if one differs */
async function checkTile({ baseUrl }: RunningZpublish, expected: Buffer): Promise<void> {
  const path = tilePath(0, 1, 2, "");
  const { status, body } = await fetchAnswer(baseUrl, path);
  if (status !== 200) throw new Error(`${path}: expected 200, received ${status} ${body}`);
  const { pixels } = readIndexedPng(body);
  const differing = pixels.reduce((sum, index, at) => sum + (index === expected[at] ? 0 : 1), 0);
  if (differing > 0) throw new Error(`${path}: expected the pixels of GDAL, received ${differing} others`);
}

async function warpTiles(file: string, steps: number): Promise<Figures> {
  return { "tiles/s": Number(await runChild(PYTHON, [SCRIPT, "warp", file, "1", String(steps)])) };
}
