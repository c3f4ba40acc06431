import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import {
  type BenchContext,
  type BenchTable,
  type Build,
  type Figures,
  perBuild,
} from "../harness/harness.js";
import { type LoadTarget, measureLoad } from "../load/load.js";
import { startZpublish } from "../start-zpublish.js";
import { fetchBody } from "../subjects/check-answers.js";
import { PEERS_PATH, startPython } from "./peers.js";
import { readIndexedPng } from "./thumbnails.js";
import { openGrid, runOnGrid, tilePath } from "./tiles.js";

const CONNECTIONS = 8;
const ZPUBLISH = "zpublish";
const VIEW = Array.from({ length: 16 }, (_, tile) => [tile % 4, Math.floor(tile / 4)] as const);
/** Steps of 255 that a colour may be off from GDAL's warper. Neighbouring pixels differ by as much: two rows off are refused. */
const MOST_OFF = 2;

/** A server of tiles. */
interface TileServer {
  readonly name: string;
  /** What has to be below PEERS_PATH for it. */
  readonly package: string;
  /** Starts it with nothing drawn. @param scratch A fresh folder */
  start(file: string, scratch: string, build?: Build): Promise<LoadTarget & { stop(): Promise<void> }>;
  path(step: number, x: number, y: number, scale: "gray" | "viridis"): string;
  /** Returns indices of the palette from the 16 tiles in `gray`. */
  read(tiles: readonly Buffer[], scratch: string): Uint8Array | Promise<Uint8Array>;
}

const OWN: TileServer = {
  ...{ name: ZPUBLISH, package: "" },
  start: (file, scratch, build) =>
    startZpublish({ build, datasets: { grid: file }, scratch, args: ["--workers", "1"] }),
  path: (step, x, y) => tilePath(step, x, y, "&scale=viridis"),
  read: (tiles) => Buffer.concat(tiles.map((tile) => readIndexedPng(tile).pixels)),
};

function titiler(reader: "gdal" | "xarray"): TileServer {
  return {
    ...{ name: `titiler, rio-tiler by ${reader}`, package: "titiler", read: readGrey },
    start: (file) => startPython("serve_with_titiler.py", [file], "/openapi.json"),
    path: (step, x, y, scale) => {
      const tile = `/${reader}/tiles/WebMercatorQuad/2/${x}/${y}.png`;
      // Its own grey scale is not linear: without one, pixels are the steps.
      const colours = scale === "gray" ? "" : `&colormap_name=${scale}`;
      return `${tile}?step=${step}&rescale=-40,60${colours}`;
    },
  };
}

function xpublishTiles(name: string, place: "stored" | "memory"): TileServer {
  return {
    ...{ name, package: "xpublish_tiles", read: readGrey },
    start: (file) => startPython("serve_with_xpublish_tiles.py", [file, place], "/openapi.json"),
    path: (step, x, y, scale) => {
      const time = new Date(Date.UTC(2021, 0, 1, step)).toISOString().slice(0, 16);
      const frame = `time=${time}&width=256&height=256`;
      return `/tiles/WebMercatorQuad/2/${y}/${x}?variables=t&${frame}&colorscalerange=-40,60&style=raster/${scale}`;
    },
  };
}

async function readGrey(tiles: readonly Buffer[], scratch: string): Promise<Uint8Array> {
  for (const [i, tile] of tiles.entries()) writeFileSync(join(scratch, `${i}.png`), tile);
  return runOnGrid("read", scratch);
}

const PEERS: readonly TileServer[] = [
  titiler("gdal"),
  titiler("xarray"),
  xpublishTiles("xpublish-tiles", "stored"),
  xpublishTiles("xpublish-tiles, values in memory", "memory"),
];

/** A grid and what is known of its tiles. */
interface Grid {
  readonly file: string;
  readonly steps: number;
  /** Indices of the palette, of the 16 tiles of step 0. */
  readonly expected: Uint8Array;
}

/** Map tiles of zpublish beside those of other servers, of the same file. */
export const tileServers: BenchTable = {
  title: "16 map tiles of a global grid of a quarter of a degree from zpublish, rio-tiler and xpublish-tiles",
  async *contests(context) {
    const { file, steps } = await openGrid(context);
    const grid: Grid = { file, steps, expected: await runOnGrid("show", file, "0") };
    const peers = PEERS.filter((peer) => existsSync(join(PEERS_PATH, peer.package)));
    yield {
      contestants: [
        ...perBuild(context, ZPUBLISH, (build) => measure(OWN, grid, context, build)),
        ...peers.map((peer) => ({
          ...{ name: peer.name, isForeign: true },
          measure: () => measure(peer, grid, context),
        })),
      ],
      ...{ compared: "tiles/s", rounds: ["again, tiles/s"], against: [ZPUBLISH] },
      notes: [
        `A fresh server each round. The 16 tiles of zoom 2 at one time come first, to be compared and to compile code. Then those of up to ${steps} other times, each once, for as long as a measurement takes; then the 16 of one time, again and again. ${CONNECTIONS} connections; PNG of 256 × 256 pixels by nearest neighbour, coloured from -40 to 60.`,
        "Each server is one process with the threads that it has by default, zpublish with one worker. Only zpublish keeps tiles, and its worker the chunk of 4 MB that it has decoded.",
        `Pixels are off whose colour is not that of GDAL's warper with an error threshold of 0, by ${MOST_OFF} steps of 255 at most. xpublish-tiles shows the mean of the cells in a pixel.`,
        ...PEERS.filter((peer) => !peers.includes(peer)).map(
          (peer) => `Without ${peer.name}: expected ${peer.package} below PEERS_PATH.`,
        ),
      ],
    };
  },
};

/** @throws Error if a pixel differs by too much */
async function measure(
  tiles: TileServer,
  { file, steps, expected }: Grid,
  context: BenchContext,
  build?: Build,
): Promise<Figures> {
  const scratch = context.freshFolder("tile-server");
  const server = await tiles.start(file, scratch, build);
  try {
    const bodies: Buffer[] = [];
    for (const [x, y] of VIEW) bodies.push(await fetchBody(server.baseUrl, tiles.path(0, x, y, "gray")));
    const indices = await tiles.read(bodies, scratch);
    if (indices.length !== expected.length)
      throw new Error(`expected ${expected.length} pixels, received ${indices.length}`);
    const off = expected.map((index, at) => Math.abs(index - indices[at]!));
    const most = off.reduce((most, each) => Math.max(most, each), 0);
    if (most > MOST_OFF) throw new Error(`expected the pixels of GDAL, received one that is ${most} off`);
    const paths = Array.from({ length: steps }, (_, step) =>
      VIEW.map(([x, y]) => tiles.path(step + 1, x, y, "viridis")),
    ).flat();
    const { seconds } = context;
    const load = { connections: CONNECTIONS, scratch, unit: "tiles" };
    const once = await measureLoad(server, { ...load, paths, length: { seconds, isOnce: true } });
    const again = await measureLoad(server, { ...load, paths: paths.slice(0, 16), length: { seconds } });
    return {
      ...once,
      "again, tiles/s": again["tiles/s"],
      "% of pixels off": 100 * (off.filter((each) => each > 0).length / off.length),
    };
  } finally {
    await server.stop();
  }
}
