import { truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import t, { type Test } from "tap";
import { createMemorySource, type MemoryArray } from "../../src/open/memory-source.js";
import { openSource } from "../../src/open/open-source.js";
import { type DecodedPng, decodePng, rowsOf } from "../support/codec/decode-png.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { startFaultyOrigin } from "../support/origins/faulty-origin.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";
import { makeDirectory, makeOld, writeFiles, zarray, zgroup } from "../support/write-store.js";

/** Draws each cell as one pixel: colours 1 to 255 for values 0 to 254. */
const PLAIN = "range=0,255&size=64";

async function pictureOf(
  { get }: Pick<RunningServer, "get">,
  path: string,
  query = PLAIN,
): Promise<DecodedPng> {
  const answer = await get(`/datasets/d/thumbnail/${path}.png?${query}`);
  if (answer.status !== 200) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
  return decodePng(new Uint8Array(await answer.arrayBuffer()));
}

/** Lists the colour of the middle of every cell, row by row. */
function cellsOf(png: DecodedPng, rows: number, columns: number): number[][] {
  const pixels = rowsOf(png);
  return Array.from({ length: rows }, (_, row) =>
    Array.from({ length: columns }, (_, column) => {
      const line = pixels[Math.floor(((row + 0.5) * png.height) / rows)] as number[];
      return line[Math.floor(((column + 0.5) * png.width) / columns)] as number;
    }),
  );
}

function serveArrays(t: Test, groups: Readonly<Record<string, readonly MemoryArray[]>>) {
  const source = createMemorySource({
    location: "memory",
    groups: Object.entries(groups).map(([path, arrays]) => ({ path, arrays })),
  });
  return startServer(t, { datasets: [datasetOf("d", source)] });
}

const SIX = { data: Uint8Array.of(10, 11, 12, 20, 21, 22), shape: [2, 3], dims: ["lat", "lon"] };
const LAT = { name: "lat", dims: ["lat"], shape: [2], attrs: { units: "degrees_north" } };
const LON = { name: "lon", dims: ["lon"], shape: [3], attrs: { units: "degrees_east" } };

t.test("north is up and east to the right, whatever the order of the coordinates", async (t) => {
  const server = await serveArrays(t, {
    "/": [],
    "/up": [
      { name: "v", ...SIX },
      { ...LAT, data: Float64Array.of(-10, 10) },
      { ...LON, data: Float32Array.of(0, 1, 2) },
    ],
    "/down": [
      { name: "v", ...SIX },
      { ...LAT, data: Int16Array.of(10, -10) },
      { ...LON, data: Float32Array.of(2, 1, 0) },
    ],
    "/packed": [
      { name: "v", ...SIX },
      { ...LAT, data: Int16Array.of(10, -10), attrs: { ...LAT.attrs, scale_factor: -0.1 } },
    ],
    "/bare": [{ name: "v", ...SIX }],
    "/inherited": [{ ...LAT, data: Float64Array.of(-10, 10) }],
    "/inherited/a": [{ name: "v", ...SIX }],
    "/turned": [
      { name: "v", data: Uint8Array.of(10, 20, 11, 21, 12, 22), shape: [3, 2], dims: ["lon", "lat"] },
      { ...LAT, data: Float64Array.of(-10, 10) },
    ],
  });
  const south = [11, 12, 13];
  const north = [21, 22, 23];
  for (const [path, expected] of [
    ["up/v", [north, south]],
    ["down/v", [south.toReversed(), north.toReversed()]],
    ["packed/v", [north, south]],
    ["bare/v", [south, north]],
    ["inherited/a/v", [north, south]],
    ["turned/v", [north, south]],
  ] as const)
    t.strictSame(cellsOf(await pictureOf(server, path), 2, 3), expected, path);
});

t.test("shows the middle time, and the slice that is asked for", async (t) => {
  const data = Uint8Array.from({ length: 5 * 2 * 4 }, (_, index) => index);
  const server = await serveArrays(t, {
    "/": [{ name: "v", data, shape: [5, 2, 2, 2], dims: ["time", "level", "y", "x"], chunks: [2, 1, 1, 2] }],
  });
  const at = async (query: string) => cellsOf(await pictureOf(server, "v", `${PLAIN}${query}`), 2, 2)[0]?.[0];
  t.equal(await at(""), 1 + 2 * 8);
  t.equal(await at("&index.time=0"), 1);
  t.equal(await at("&index.time=-1&index.level=1"), 1 + 4 * 8 + 4);
});

t.test(
  "missing values are transparent, and others have the colours of the scale that is asked for",
  async (t) => {
    const server = await serveArrays(t, {
      "/": [
        {
          ...{ name: "v", data: Int16Array.of(-99, 0, 100, 51), shape: [2, 2], dims: ["y", "x"] },
          attrs: { missing_value: -99, scale_factor: 0.01 },
        },
        { name: "empty", data: new Float32Array(4).fill(Number.NaN), shape: [2, 2] },
      ],
    });
    const png = await pictureOf(server, "v", "range=0,1&scale=greys&reversed=true&size=100");
    t.strictSame([png.width, png.height], [100, 100]);
    t.strictSame(cellsOf(png, 2, 2), [
      [0, 1],
      [255, 131],
    ]);
    t.strictSame(png.colourOf(0)[3], 0);
    t.strictSame(png.colourOf(255), [255, 255, 255, 255]);
    t.ok((await pictureOf(server, "empty", "")).indices.every((index) => index === 0));
  },
);

t.test("a variable of one dimension is a line", async (t) => {
  const data = Float32Array.of(1, 1, Number.NaN, 3);
  const server = await serveArrays(t, { "/": [{ name: "v", data, shape: [4], dims: ["station"] }] });
  const png = await pictureOf(server, "v", "size=64&range=0,4");
  t.strictSame([png.width, png.height], [64, 32]);
  const drawn = rowsOf(png).map((row) => row.map((index) => index > 0));
  const rowIn = (column: number) => drawn.findLastIndex((row) => row[column]);
  t.strictSame([rowIn(0), rowIn(20), rowIn(40), rowIn(60)], [23, 23, -1, 8]);
});

t.test("is found by its ETag, has a length for HEAD, and parts", async (t) => {
  const server = await serveArrays(t, { "/": [{ name: "v", ...SIX }] });
  const path = "/datasets/d/thumbnail/v.png";
  const answer = await server.get(path);
  const bytes = Buffer.from(await answer.arrayBuffer());
  t.equal(answer.headers.get("content-type"), "image/png");
  t.equal(answer.headers.get("cache-control"), "public, max-age=0, must-revalidate");
  const etag = answer.headers.get("etag") ?? "";
  t.match(etag, /^"[^"]+"$/);
  t.equal((await server.get(path, { "If-None-Match": etag })).status, 304);
  const head = await fetch(server.url + path, { method: "HEAD" });
  t.strictSame(
    ["content-length", "content-type", "etag"].map((name) => head.headers.get(name)),
    [String(bytes.length), "image/png", etag],
  );
  const part = await server.get(path, { Range: "bytes=0-7", "If-Range": etag });
  t.equal(part.status, 206);
  t.strictSame(Buffer.from(await part.arrayBuffer()), bytes.subarray(0, 8));
  const etags = new Set<string | null>([etag]);
  for (const query of ["size=100", "range=0,1", "scale=magma", "reversed=true"])
    etags.add((await server.get(`${path}?${query}`)).headers.get("etag"));
  t.equal(etags.size, 5, "each picture has another");
  t.equal((await server.get(`${path}?size=320`)).headers.get("etag"), etag, "but for what is the default");
});

t.test("answers what is wrong with a sentence", async (t) => {
  const server = await serveArrays(t, {
    "/": [
      { name: "v", ...SIX },
      { ...LAT, data: Float64Array.of(-10, 10) },
      { name: "series", data: Float32Array.of(1, 5, Number.NaN, 2), shape: [4], dims: ["station"] },
      { name: "cube", data: new Uint8Array(12), shape: [3, 2, 2], dims: ["time", "y", "x"] },
      { name: "text", data: new Uint8Array(8), dtype: "|S2", shape: [2, 2] },
      { name: "flags", data: new Uint8Array(4), shape: [2, 2], attrs: { flag_values: [0, 1] } },
    ],
  });
  for (const [path, detail] of [
    ["lat", /'lat' of dataset 'd' has no picture: it is the coordinate/],
    ["text", /no numbers/],
    ["nope", /Variable 'nope' not found in dataset 'd'/],
    ["", /Variable '' not found/],
  ] as const) {
    const answer = await server.get(`/datasets/d/thumbnail/${path}.png`);
    t.equal(answer.status, 404, path);
    t.match(await answer.json(), { detail }, path);
  }
  t.equal((await server.get("/datasets/d/thumbnail/v")).status, 404);
  t.match(await server.json("/datasets/nope/thumbnail/v.png"), { detail: "Dataset 'nope' not found" });
  for (const [path, query, loc, msg] of [
    ["v", "size=9", "size", "Expected an integer from 64 to 1024, received '9'"],
    [
      "v",
      "index.lat=0",
      "index.lat",
      "Expected no index, since the picture shows all dimensions, received 'lat'",
    ],
    ["cube", "index.time=3", "index.time", "Expected an index from -3 to 2, received '3'"],
    ["cube", "index.time=-4", "index.time", "Expected an index from -3 to 2, received '-4'"],
    ["cube", "index.y=0", "index.y", "Expected an index of time, received 'y'"],
    ["cube", "index.nope=0", "index.nope", "Expected an index of time, received 'nope'"],
    ["series", "scale=magma", "scale", "Expected no scale, since the picture is a line, received 'magma'"],
    ["flags", "range=0,1", "range", "Expected no range, since values are categories, received '0,1'"],
    ["flags", "scale=magma", "scale", "Expected no scale, since values are categories, received 'magma'"],
  ] as const) {
    const answer = await server.get(`/datasets/d/thumbnail/${path}.png?${query}`);
    t.equal(answer.status, 422, query);
    t.match(await answer.json(), { detail: [{ loc: ["query", loc], msg }] }, query);
  }
});

/** Files of a store with `v` of 4 × 4 bytes in chunks of 2 × 2, of which 1.1 is absent, and latitudes. */
const FILES = {
  ".zgroup": zgroup,
  "v/.zarray": { ...zarray, shape: [4, 4], chunks: [2, 2], fill_value: 99 },
  "v/.zattrs": { _ARRAY_DIMENSIONS: ["lat", "lon"] },
  "v/0.0": Uint8Array.of(1, 2, 5, 6),
  "v/0.1": Uint8Array.of(3, 4, 7, 8),
  "v/1.0": Uint8Array.of(9, 10, 13, 14),
  "lat/.zarray": { ...zarray, shape: [4], chunks: [4], fill_value: null },
  "lat/.zattrs": { _ARRAY_DIMENSIONS: ["lat"] },
  "lat/0": Uint8Array.of(1, 2, 3, 4),
};

const ROWS = [
  [2, 3, 4, 5],
  [6, 7, 8, 9],
  [10, 11, 0, 0],
  [14, 15, 0, 0],
].toReversed();

async function serveFiles(t: Test) {
  const directory = await makeDirectory(t);
  const location = join(directory, "store");
  await writeFiles(location, FILES);
  const server = await startServer(t, {
    cache: { directory: join(directory, "cache"), maxBytes: 2 ** 22 },
    datasets: [{ id: "d", location, immutable: false, encoding: {}, variables: {} }],
  });
  return { location, server };
}

t.test("is cached, and made again when a stored chunk is rewritten or appears", async (t) => {
  const { location, server } = await serveFiles(t);
  const path = `/datasets/d/thumbnail/v.png?${PLAIN}`;
  const seen = new Set<string>();
  const look = async () => {
    const answer = await server.get(path);
    t.equal(answer.status, 200);
    const etag = answer.headers.get("etag") ?? "";
    const isNew = !seen.has(etag);
    seen.add(etag);
    t.equal(answer.headers.get("x-cache"), isNew ? "MISS" : "HIT");
    return cellsOf(decodePng(new Uint8Array(await answer.arrayBuffer())), 4, 4);
  };
  t.strictSame(await look(), ROWS);
  t.strictSame(await look(), ROWS);
  await writeFile(join(location, "v/0.0"), Uint8Array.of(101, 2, 5, 6));
  t.equal((await look())[3]?.[0], 102);
  await writeFile(join(location, "v/1.1"), Uint8Array.of(11, 12, 15, 16));
  t.strictSame((await look())[0], [14, 15, 16, 17]);
  t.equal(seen.size, 3);
  t.strictSame(await look(), [
    [14, 15, 16, 17],
    [10, 11, 12, 13],
    [6, 7, 8, 9],
    [102, 3, 4, 5],
  ]);
});

t.test("a chunk that is damaged is a failure, not a hole", async (t) => {
  const { location, server } = await serveFiles(t);
  await truncate(join(location, "v/0.1"), 3);
  await makeOld(join(location, "v/0.1"));
  const answer = await server.get("/datasets/d/thumbnail/v.png");
  t.equal(answer.status, 500);
  t.match(await answer.json(), { detail: "The stored data is corrupt" });
});

t.test("a coordinate that cannot be read is a failure, since north would be anywhere", async (t) => {
  const { location, server } = await serveFiles(t);
  await truncate(join(location, "lat/0"), 3);
  await makeOld(join(location, "lat/0"));
  t.equal((await server.get("/datasets/d/thumbnail/v.png")).status, 500);
  await writeFile(join(location, "lat/0"), Uint8Array.of(1, 2, 3, 4));
  t.strictSame(cellsOf(await pictureOf(server, "v"), 4, 4), ROWS, "is read again");
});

t.test("is made of a remote store too, whose failure is not a hole either", async (t) => {
  const documents = Object.entries(FILES).filter(([name]) => /\.z/.test(name));
  const chunks = Object.entries(FILES).filter(([name]) => /\d$/.test(name)) as [string, Uint8Array][];
  const origin = await startFaultyOrigin(t, { objects: Object.fromEntries(chunks) });
  origin.put(
    ".zmetadata",
    JSON.stringify({ zarr_consolidated_format: 1, metadata: Object.fromEntries(documents) }),
  );
  const source = await openSource(`${origin.url}/`, { freshness: "always" });
  const server = await startServer(t, { datasets: [datasetOf("d", source)] });
  t.strictSame(cellsOf(await pictureOf(server, "v"), 4, 4), ROWS);
  origin.put("v/1.1", Uint8Array.of(11, 12, 15, 16));
  t.strictSame(cellsOf(await pictureOf(server, "v"), 4, 4)[0], [14, 15, 16, 17]);
  origin.setFault(({ key }) => (key === "v/0.1" ? { status: 403 } : undefined));
  t.equal((await server.get("/datasets/d/thumbnail/v.png?size=65")).status, 500);
});

/** Values of a plane of 64 × 64 in chunks of 8 × 8: four rows of 1, four of 9, then 16 more each. */
function manyChunks(): Record<string, Uint8Array> {
  const chunks: Record<string, Uint8Array> = {};
  for (let row = 0; row < 8; row++) {
    for (let column = 0; column < 8; column++) {
      chunks[`v/${row}.${column}`] = Uint8Array.from(
        { length: 64 },
        (_, index) => 16 * row + (index < 32 ? 1 : 9),
      );
    }
  }
  return chunks;
}

t.test("a large plane is shown by its overviews if it has some, else by its centre", async (t) => {
  const location = join(await makeDirectory(t), "store");
  const metadata = { ...zarray, shape: [64, 64], chunks: [8, 8], fill_value: null };
  const attrs = { _ARRAY_DIMENSIONS: ["y", "x"] };
  await writeFiles(location, {
    ".zgroup": zgroup,
    "v/.zarray": metadata,
    "v/.zattrs": attrs,
    ...manyChunks(),
  });
  const dataset = { location, immutable: false, encoding: {}, variables: {} };
  const server = await startServer(t, {
    datasets: [
      { ...dataset, id: "d" },
      { ...dataset, id: "levels", overviews: { levels: 2, method: "mean" } },
    ],
  });
  const column = (png: DecodedPng, rows: number) => cellsOf(png, rows, 1).flat();
  const rows = Array.from({ length: 16 }, (_, row) => 2 + 8 * row);
  t.strictSame(column(await pictureOf(server, "v"), 8), rows.slice(8), "four by four chunks");
  const answer = await server.get(`/datasets/levels/thumbnail/v.png?${PLAIN}`);
  const png = decodePng(new Uint8Array(await answer.arrayBuffer()));
  t.strictSame(column(png, 16), rows, "the second level");
  const first = answer.headers.get("etag");
  await writeFile(join(location, "v/7.7"), new Uint8Array(64).fill(200));
  const rewritten = await server.get(`/datasets/levels/thumbnail/v.png?${PLAIN}`);
  t.not(rewritten.headers.get("etag"), first);
  t.equal(decodePng(new Uint8Array(await rewritten.arrayBuffer())).indices.at(-1), 201);
});
