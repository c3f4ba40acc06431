import { rm } from "node:fs/promises";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import t, { type Test } from "tap";
import { FetchStore, open, get as readArray, root } from "zarrita";
import { createServer, type DatasetOptions, type Plugin, type PluginContext } from "../../src/index.js";
import type { AxisSelection } from "../../src/values/values.js";
import { makeDirectory, writeFiles, zgroup } from "../support/write-store.js";

const DAYS = 24;
const SHAPE = [DAYS, 8, 10] as const;
const SERIES = { chunks: { time: -1, lat: 2, lon: 2 }, compressor: { id: "zstd", level: 1 } };
const ENCODINGS = {
  map: { chunks: { time: 1 } },
  series: SERIES,
  packed: { compressor: { id: "zstd", level: 1 } },
};

const valueAt = (day: number, lat: number, lon: number) => day * 1000 + lat * 10 + lon;

function mapOf(day: number, change = 0): Buffer {
  const plane = Int32Array.from(
    { length: 80 },
    (_, at) => valueAt(day, Math.floor(at / 10), at % 10) + change,
  );
  return deflateSync(plane);
}

/** Maps of sixty days, in chunks of a day, and their times. */
async function writeStore(t: Test): Promise<string> {
  const location = join(await makeDirectory(t), "air.zarr");
  const document = (shape: readonly number[], chunks: readonly number[]) => ({
    ...{ zarr_format: 2, shape, chunks, dtype: "<i4", fill_value: null, order: "C", filters: null },
    compressor: { id: "zlib", level: 1 },
  });
  await writeFiles(location, {
    ".zgroup": zgroup,
    "air/.zarray": document(SHAPE, [1, 8, 10]),
    "air/.zattrs": { _ARRAY_DIMENSIONS: ["time", "lat", "lon"], units: "K" },
    ...Object.fromEntries(Array.from({ length: DAYS }, (_, day) => [`air/${day}.0.0`, mapOf(day)])),
    "time/.zarray": document([DAYS], [DAYS]),
    "time/.zattrs": { _ARRAY_DIMENSIONS: ["time"], units: "days since 2000-01-01" },
    "time/0": deflateSync(Int32Array.from({ length: DAYS }, (_, day) => day)),
  });
  return location;
}

/** Starts a server with a cache, and a plugin that hands out what plugins get. */
async function start(t: Test, options: Partial<DatasetOptions> & { readonly isCached?: boolean } = {}) {
  const { isCached = true, ...dataset } = options;
  const source = await writeStore(t);
  let context: PluginContext | undefined;
  const plugin: Plugin = {
    name: "test",
    version: "1",
    path: "test",
    routes(given) {
      context = given;
      return [];
    },
  };
  const server = await createServer({
    ...{ port: 0, workers: 1, refresh: 0 },
    datasets: { air: { source, encodings: ENCODINGS, ...dataset } },
    plugins: ["dataset_info", "zarr", "zarr3", plugin],
    ...(isCached && { cache: { directory: await makeDirectory(t) } }),
  });
  t.teardown(() => server.close());
  const { url } = await server.listen();
  const { values, datasets } = context!;
  return {
    ...{ url, source, values },
    get: (path: string) => fetch(url + path, { redirect: "manual" }),
    array: () => {
      const snapshot = datasets.get("air");
      return { snapshot, array: snapshot.arrays.get("air")! };
    },
  };
}

const range = (begin: number, count: number, step = 1): AxisSelection => ({ begin, count, step });

t.test("each encoding is a store of both formats with the values of the dataset", async (t) => {
  const { url, get } = await start(t);
  const read = async (path: string, version: "v2" | "v3") => {
    const store = root(new FetchStore(`${url}/datasets/air/${path}`));
    const where = store.resolve("air");
    const array = await (version === "v2"
      ? open.v2(where, { kind: "array" })
      : open.v3(where, { kind: "array" }));
    const { data } = await readArray(array as Parameters<typeof readArray>[0]);
    return { chunks: array.chunks, data: Array.from(data as Int32Array) };
  };
  const { data } = await read("zarr", "v2");
  t.equal(data.length, DAYS * 80);
  for (const [name, chunks] of [
    ["map", [1, 8, 10]],
    ["series", [DAYS, 2, 2]],
    ["packed", [1, 8, 10]],
  ] as const) {
    for (const [plugin, version] of [
      ["zarr", "v2"],
      ["zarr3", "v3"],
    ] as const)
      t.strictSame(await read(`encodings/${name}/${plugin}`, version), { chunks, data }, `${name} ${plugin}`);
  }

  const same = "air/5.0.0";
  const own = await get(`/datasets/air/zarr/${same}`);
  const other = await get(`/datasets/air/encodings/map/zarr/${same}`);
  t.equal(other.headers.get("etag"), own.headers.get("etag"), "chunks that are the same have one ETag");
  const packed = await get(`/datasets/air/encodings/packed/zarr/${same}`);
  t.not(packed.headers.get("etag"), own.headers.get("etag"));

  const info = (await (await get("/datasets/air/info")).json()) as { encodings: unknown };
  t.strictSame(info.encodings, {
    map: { chunks: { air: [1, 8, 10], time: [DAYS] } },
    series: { chunks: { air: [DAYS, 2, 2], time: [DAYS] } },
    packed: { chunks: { air: [1, 8, 10], time: [DAYS] } },
  });
  const page = await (await get("/datasets/air/")).text();
  t.match(page, "datasets/air/encodings/series/zarr");
  t.match(page, `time: ${DAYS}, lat: 2, lon: 2`);
  t.equal((await get("/datasets/air/encodings/series")).status, 301);
  t.match(await (await get("/datasets/air/encodings/series/")).text(), 'href="zarr3/"');
  t.match(
    await (await get("/datasets/air/encodings/series/zarr/")).text(),
    "datasets/air/encodings/series/zarr/",
  );
});

t.test("what is not there is answered 404 by name", async (t) => {
  const { get } = await start(t);
  for (const path of ["zarr/.zgroup", "zarr3/zarr.json", "zarr/air/0.0.0", "zarr", ""]) {
    const answer = await get(`/datasets/air/encodings/none/${path}`);
    t.equal(answer.status, 404, path);
    t.strictSame(await answer.json(), { detail: "Encoding 'none' not found in dataset 'air'" });
  }
  t.equal((await get("/datasets/air/encodings/series/zarr/air/0.4.0")).status, 404);
  t.equal((await get("/datasets/air/encodings/series/zarr/wind/.zarray")).status, 404);
});

t.test("an encoding that cannot be is refused by name", async (t) => {
  const refused = (encodings: unknown) =>
    t.rejects(start(t, { encodings } as DatasetOptions).then(() => undefined));
  for (const [encodings, message] of [
    [{ series: { chunk: { time: -1 } } }, /encodings\.series: unknown key "chunk".*chunks/],
    [{ "a/b": {} }, /encodings: expected names of encodings, of at most 64 letters/],
    [
      { series: { chunks: { times: -1 } } },
      /encodings\.series\.chunks: expected a dimension .*received 'times'/,
    ],
  ] as const)
    t.match(await refused(encodings).catch(String), message);
});

t.test("an array that cannot be cut so is left out of the encoding alone", async (t) => {
  const { get } = await start(t, { encodings: { series: { chunks: [DAYS, 2] } } });
  t.equal((await get("/datasets/air/encodings/series/zarr/time/.zarray")).status, 200);
  t.equal((await get("/datasets/air/encodings/series/zarr/air/.zarray")).status, 404);
  t.equal((await get("/datasets/air/zarr/air/.zarray")).status, 200);
});

t.test("a named encoding wins over encoding and variables", async (t) => {
  const { get } = await start(t, {
    encoding: { compressor: { id: "gzip", level: 1 } },
    variables: { air: { chunks: { time: 10 }, filters: [{ id: "shuffle", elementsize: 4 }] } },
    encodings: { series: { chunks: { time: -1 } } },
  });
  const document = await (await get("/datasets/air/encodings/series/zarr/air/.zarray")).json();
  t.match(document, { chunks: [DAYS, 8, 10], compressor: { id: "gzip" }, filters: [{ id: "shuffle" }] });
});

t.test("values are read from the cut that suits them, whose chunks stay in the cache", async (t) => {
  const { get, values, array } = await start(t);
  const cached = async (key: string) => {
    const { headers } = await get(`/datasets/air/encodings/series/zarr/air/${key}`);
    return headers.get("x-cache");
  };
  const read = async (...selection: AxisSelection[]) => {
    const { snapshot, array: air } = array();
    return Array.from((await values.read(snapshot, air, selection)).values as Int32Array);
  };
  t.strictSame(
    await read(range(0, DAYS), range(3, 1), range(5, 1)),
    Array.from({ length: DAYS }, (_, day) => valueAt(day, 3, 5)),
  );
  t.equal(await cached("0.1.2"), "HIT", "a series comes from one chunk, which is kept");
  t.strictSame(await read(range(7, 1), range(0, 1), range(0, 2)), [7000, 7001]);
  t.equal(await cached("0.0.0"), "MISS", "a few values of a day come from its map");
});

t.test(
  "part of a series is read from a chunk that is cached, though it would not be made for it",
  async (t) => {
    const { values, array, source } = await start(t, { immutable: true });
    const read = async (days: number, lat: number) => {
      const { snapshot, array: air } = array();
      const { values: found } = await values.read(snapshot, air, [
        range(4, days),
        range(lat, 1),
        range(0, 1),
      ]);
      return Array.from(found as Int32Array);
    };
    t.equal((await read(20, 0)).length, 20);
    await Promise.all(Array.from({ length: DAYS }, (_, day) => rm(join(source, `air/${day}.0.0`))));
    t.strictSame(await read(2, 0), [4000, 5000], "from the series");
    t.strictSame(await read(2, 7), [0, 0], "from the maps, which are gone");
  },
);

t.test("values are equal, whichever cut they are read from", async (t) => {
  const started = [await start(t), await start(t, { isCached: false }), await start(t, { encodings: {} })];
  let seed = 1;
  const random = (below: number) => {
    seed = (seed * 48_271) % 2_147_483_647;
    return seed % below;
  };
  const pick = (length: number): AxisSelection => {
    if (random(3) === 0) return { indexes: Array.from({ length: 1 + random(4) }, () => random(length)) };
    const [first, last] = [random(length), random(length)];
    const step = (1 + random(3)) * (first <= last ? 1 : -1);
    return range(first, Math.floor((last - first) / step) + 1, step);
  };
  const indexesOf = (axis: AxisSelection) =>
    "indexes" in axis
      ? Array.from(axis.indexes)
      : Array.from({ length: axis.count }, (_, at) => axis.begin + at * axis.step);
  for (let turn = 0; turn < 12; turn++) {
    const selection =
      turn % 2 === 0 ? SHAPE.map(pick) : [range(0, DAYS), range(random(8), 1), range(random(10), 1)];
    const [days, rows, columns] = selection.map(indexesOf) as [number[], number[], number[]];
    const cells = days.flatMap((day) =>
      rows.flatMap((row) => columns.map((column) => [day, row, column] as const)),
    );
    const expected = cells.map((cell) => valueAt(...cell));
    const points = Array.from({ length: 30 }, (_, at) => cells[(at * 7) % cells.length]!);
    for (const { values, array } of started) {
      const { snapshot, array: air } = array();
      t.strictSame([...((await values.read(snapshot, air, selection)).values as Int32Array)], expected);
      const pieces: number[] = [];
      const reserved: number[] = [];
      const reserve = (bytes: number) => void reserved.push(bytes);
      for await (const piece of values.stream(snapshot, air, selection, { pieceBytes: 64, reserve }))
        pieces.push(...(piece.values as Int32Array));
      t.strictSame(pieces, expected);
      t.equal(reserved.length, 1, "its memory is reserved whichever cut is read");
      const found = await values.readPoints(snapshot, air, points.flat());
      t.strictSame(
        [...(found.values as Int32Array)],
        points.map((cell) => valueAt(...cell)),
      );
    }
  }
});

t.test(
  "a map that is rewritten changes the series, and one that cannot be read spoils no others",
  async (t) => {
    const { get, values, array, source } = await start(t);
    const key = "/datasets/air/encodings/series/zarr/air/0.0.0";
    const before = await get(key);
    const series = async (begin: number, count: number) => {
      const { snapshot, array: air } = array();
      const { values: found } = await values.read(snapshot, air, [
        range(begin, count),
        range(0, 1),
        range(0, 1),
      ]);
      return Array.from(found as Int32Array);
    };
    t.equal((await series(0, DAYS))[9], 9000);
    await writeFiles(source, { "air/9.0.0": mapOf(9, 5) });
    t.equal((await series(0, DAYS))[9], 9005);
    const after = await get(key);
    t.not(after.headers.get("etag"), before.headers.get("etag"));
    await writeFiles(source, { "air/9.0.0": Buffer.from("no stream of deflate") });
    t.equal((await get(key)).status, 500);
    t.strictSame((await series(10, 12))[0], 10_000);
    await t.rejects(series(0, DAYS), { message: /air.*9\.0\.0/ });
  },
);
