import t from "tap";
import { FetchStore, open, get as readArray, root } from "zarrita";
import { createMemorySource } from "../../src/open/memory-source.js";
import { datasetOf } from "../support/datasets/sample-tree.js";
import { startServer } from "../support/servers/start-server.js";

const STORE = "/datasets/map/overviews/zarr";

/** A map of 6 × 9 cells in chunks of 2 × 2, a scalar, times, bounds, categories and texts; below it a group that shares the coordinates. */
function mapSource() {
  const lat = Float64Array.from({ length: 6 }, (_, index) => 25 - index * 10);
  const latBounds = Float64Array.from([...lat].flatMap((value) => [value - 5, value + 5]));
  const lon = Float64Array.from({ length: 9 }, (_, index) => index * 20);
  return createMemorySource({
    location: "map",
    groups: [
      {
        path: "/",
        attrs: { title: "map" },
        arrays: [
          {
            name: "t",
            data: Int16Array.from({ length: 108 }, (_, index) => (index % 13 === 0 ? -1 : index)),
            shape: [2, 6, 9],
            dims: ["time", "lat", "lon"],
            chunks: [1, 2, 2],
            fillValue: -1,
            attrs: { units: "K", scale_factor: 0.5, add_offset: 10, coordinates: "place area" },
          },
          {
            name: "lat",
            data: lat,
            shape: [6],
            dims: ["lat"],
            attrs: { units: "degrees_north", bounds: "lat_bnds" },
          },
          { name: "lon", data: lon, shape: [9], dims: ["lon"], attrs: { units: "degrees_east" } },
          { name: "lat_bnds", data: latBounds, shape: [6, 2], dims: ["lat", "nv"] },
          {
            name: "time",
            data: Int32Array.of(0, 1),
            shape: [2],
            dims: ["time"],
            attrs: { units: "days since 2000-01-01" },
          },
          {
            name: "kind",
            data: Uint8Array.from({ length: 54 }, (_, index) => index % 3),
            shape: [6, 9],
            dims: ["lat", "lon"],
            attrs: { flag_values: [0, 1, 2], bounds: "corners" },
          },
          { name: "place", data: Buffer.from("abcdefghi"), dtype: "|S1", shape: [9], dims: ["lon"] },
          { name: "corners", data: new Uint8Array(216), shape: [6, 9, 4], dims: ["lat", "lon", "corner"] },
          { name: "crs", data: Int32Array.of(7), shape: [], attrs: { GeoTransform: "0 20 0 30 0 -10" } },
          {
            name: "area",
            data: Float32Array.from({ length: 54 }, (_, index) => index),
            shape: [6, 9],
            dims: ["lat", "lon"],
          },
        ],
      },
      {
        path: "/below",
        attrs: { deep: true },
        arrays: [
          {
            name: "u",
            data: Float64Array.from({ length: 54 }, (_, index) => index),
            shape: [6, 9],
            dims: ["lat", "lon"],
            chunks: [3, 9],
          },
        ],
      },
    ],
  });
}

const ASKED = { overviews: { levels: "auto", method: "mean" } } as const;

const published = await startServer(t, {
  datasets: [datasetOf("map", mapSource(), ASKED), datasetOf("plain", mapSource())],
});

interface Consolidated {
  readonly metadata: Readonly<
    Record<string, { readonly shape?: readonly number[]; readonly [key: string]: unknown }>
  >;
}

/** Coarsens a plane by two as xarray's `coarsen(boundary="pad").mean()`. NaN is missing. */
function coarsened({ data, shape }: Plane): Plane {
  const [height, width] = shape;
  const out: Plane = { data: [], shape: [Math.ceil(height / 2), Math.ceil(width / 2)] };
  for (let y = 0; y < height; y += 2) {
    for (let x = 0; x < width; x += 2) {
      const cells = [0, 1].flatMap((j) => [0, 1].map((i) => [y + j, x + i] as const));
      const values = cells
        .filter(([j, i]) => j < height && i < width)
        .map(([j, i]) => data[j * width + i] as number)
        .filter((value) => !Number.isNaN(value));
      out.data.push(values.reduce((sum, value) => sum + value, 0) / values.length);
    }
  }
  return out;
}

interface Plane {
  readonly data: number[];
  readonly shape: [number, number];
}

async function readAll(url: string, path: string): Promise<{ data: number[]; shape: readonly number[] }> {
  const array = await open(root(new FetchStore(url)).resolve(path), { kind: "array" });
  const { data, shape } = await readArray(array as Parameters<typeof readArray>[0]);
  return { data: Array.from(data as ArrayLike<number | bigint>, Number), shape };
}

t.test("levels are groups beside the dataset itself, each a tree like it", async (t) => {
  const { json, get } = published;
  const { metadata } = (await json(`${STORE}/.zmetadata`)) as Consolidated;
  const shapes = (level: number) =>
    Object.fromEntries(
      Object.entries(metadata)
        .filter(([key]) => key.startsWith(`${level}/`) && key.endsWith("/.zarray"))
        .map(([key, { shape }]) => [key.slice(2, -8), shape]),
    );
  const own = {
    lat: [6],
    lon: [9],
    time: [2],
    crs: [],
    t: [2, 6, 9],
    area: [6, 9],
    kind: [6, 9],
    place: [9],
    "below/u": [6, 9],
  };
  t.same(shapes(0), { ...own, lat_bnds: [6, 2], corners: [6, 9, 4] });
  t.same(shapes(1), {
    lat: [3],
    lat_bnds: [3, 2],
    lon: [5],
    time: [2],
    crs: [],
    t: [2, 3, 5],
    area: [3, 5],
    kind: [3, 5],
    place: [5],
    "below/u": [3, 5],
  });
  t.same(shapes(3), {
    lat: [1],
    lat_bnds: [1, 2],
    lon: [2],
    time: [2],
    crs: [],
    t: [2, 1, 2],
    area: [1, 2],
    kind: [1, 2],
    place: [2],
    "below/u": [1, 2],
  });
  t.notOk(
    Object.keys(metadata).some((key) => key.startsWith("4/")),
    "auto ends when a plane is one chunk",
  );
  t.same(metadata["1/.zattrs"], { title: "map" });
  t.same(metadata["1/lat/.zattrs"], {
    units: "degrees_north",
    bounds: "lat_bnds",
    _ARRAY_DIMENSIONS: ["lat"],
  });
  t.match(metadata["0/kind/.zattrs"], { bounds: "corners" });
  t.same(
    metadata["1/kind/.zattrs"],
    { flag_values: [0, 1, 2], _ARRAY_DIMENSIONS: ["lat", "lon"] },
    "no bounds that are not there",
  );
  t.same(
    metadata["1/crs/.zattrs"],
    { _ARRAY_DIMENSIONS: [] },
    "the transform of the dataset holds for level 0",
  );
  t.match(metadata["0/crs/.zattrs"], { GeoTransform: "0 20 0 30 0 -10" });
  t.match(metadata["1/t/.zarray"], { dtype: "<f4", fill_value: "NaN", chunks: [1, 2, 2] });
  for (const key of ["1/t/.zarray", "1/.zattrs", "2/below/.zgroup", ".zattrs", ".zgroup"])
    t.same(await json(`${STORE}/${key}`), metadata[key], key);
  const below = (await json(`${STORE}/2/below/.zmetadata`)) as Consolidated;
  t.same(below.metadata["u/.zarray"], metadata["2/below/u/.zarray"]);
  const listing = await (await get(`${STORE}/`)).text();
  t.same([...listing.matchAll(/<a href="([^"]+)">/g)].map(([, link]) => link).slice(1), [
    ...[".zattrs", ".zgroup", ".zmetadata"],
    ...["0/", "1/", "2/", "3/"],
  ]);
  t.match(await (await get(`${STORE}/1/t/`)).text(), 'href="1.1.2"');
  for (const path of ["", "/1", "/1/t", "/2/below"]) {
    const { status, headers } = await get(`${STORE}${path}`);
    t.same([status, headers.get("location")], [301, `${STORE}${path}/`]);
  }
});

t.test("values are the chain of means, in v2 and v3", async (t) => {
  const { url } = published;
  let plane: Plane = { data: [], shape: [6, 9] };
  for (let index = 0; index < 54; index++) plane.data.push(index % 13 === 0 ? Number.NaN : index * 0.5 + 10);
  let lat: Plane = { data: Array.from({ length: 6 }, (_, index) => 25 - index * 10), shape: [1, 6] };
  const bounds = [
    [20, 30, 10, 20, 0, 10, -10, 0, -20, -10, -30, -20],
    [10, 30, -10, 10, -30, -10],
    [-10, 30, -30, -10],
    [-30, 30],
  ];
  for (const level of [1, 2, 3]) {
    const means = coarsened(plane);
    // Levels are single floats, of which the next ones are made.
    plane = { ...means, data: means.data.map(Math.fround) };
    lat = coarsened({ data: lat.data, shape: [1, lat.data.length] });
    for (const prefix of ["zarr", "zarr3"]) {
      const store = `${url}/datasets/map/overviews/${prefix}`;
      const found = await readAll(store, `${level}/t`);
      t.same(found.shape, [2, ...plane.shape]);
      t.same(found.data.slice(0, plane.data.length), plane.data, `${prefix} ${level}/t`);
      t.same((await readAll(store, `${level}/lat`)).data, lat.data);
      t.same((await readAll(store, `${level}/lat_bnds`)).data, bounds[level]);
      t.same((await readAll(store, `${level}/time`)).data, [0, 1], "no horizontal axis: as it is");
    }
  }
});

t.test("level 0 and arrays without horizontal axes are the dataset's own chunks", async (t) => {
  const { get, url } = published;
  const etagOf = async (path: string) => {
    const response = await get(`/datasets/map/${path}`);
    t.equal(response.status, 200, path);
    await response.arrayBuffer();
    return response.headers.get("etag");
  };
  // Whichever is asked for first.
  t.equal(await etagOf("overviews/zarr/0/t/0.0.1"), await etagOf("zarr/t/0.0.1"));
  t.equal(await etagOf("zarr3/t/c/0/0/1"), await etagOf("overviews/zarr3/0/t/c/0/0/1"));
  t.equal(await etagOf("overviews/zarr/2/time/0"), await etagOf("zarr/time/0"));
  t.equal(await etagOf("overviews/zarr/0/t/.zarray"), await etagOf("zarr/t/.zarray"));
  t.not(await etagOf("overviews/zarr/1/t/0.0.1"), await etagOf("zarr/t/0.0.1"));
  const etag = await etagOf("overviews/zarr/1/t/0.0.0");
  t.equal(
    (await get("/datasets/map/overviews/zarr/1/t/0.0.0", { "if-none-match": etag as string })).status,
    304,
  );
  const head = await fetch(`${url}/datasets/map/overviews/zarr/1/t/0.0.0`, { method: "HEAD" });
  t.equal(head.headers.get("etag"), etag);
});

t.test("the cache has one entry for a chunk of the dataset and of level 0", async (t) => {
  const cache = { directory: t.testdir(), maxBytes: 2 ** 26 };
  const encoding = { compressor: { id: "zlib", level: 1 } };
  const { get } = await startServer(t, {
    cache,
    datasets: [datasetOf("map", mapSource(), { ...ASKED, encoding })],
  });
  const originOf = async (path: string) => {
    const response = await get(`/datasets/map/${path}`);
    await response.arrayBuffer();
    return response.headers.get("x-cache");
  };
  t.equal(await originOf("overviews/zarr/0/t/0.1.1"), "MISS");
  t.equal(await originOf("zarr/t/0.1.1"), "HIT");
  t.equal(await originOf("overviews/zarr3/0/t/c/0/1/1"), "HIT");
  t.equal(await originOf("overviews/zarr/2/t/0.0.0"), "MISS");
  t.equal(await originOf("overviews/zarr/2/t/0.0.0"), "HIT");
  t.equal(await originOf("overviews/zarr/1/t/0.0.0"), "HIT", "made on the way");
});

t.test("what is not there is 404, with a sentence", async (t) => {
  const { get, json } = published;
  for (const path of [
    "4/t/0.0.0",
    "4/",
    "01/t/0.0.0",
    "1/t/0.0.3",
    "1/corners/.zarray",
    "t/0.0.0",
    "1/no/.zarray",
    "-1/.zgroup",
  ]) {
    const response = await get(`${STORE}/${path}`);
    t.equal(response.status, 404, path);
    t.match(await response.json(), { detail: / not found in / }, path);
  }
  const none = { detail: "Dataset 'plain' has no overviews: its configuration does not ask for them" };
  for (const path of [
    "overviews",
    "overviews/",
    "overviews/zarr",
    "overviews/zarr/.zmetadata",
    "overviews/zarr3/zarr.json",
  ]) {
    t.equal((await get(`/datasets/plain/${path}`)).status, 404, path);
    t.same(await json(`/datasets/plain/${path}`), none, path);
  }
  t.equal((await get("/datasets/map/overviews")).headers.get("location"), "/datasets/map/overviews/");
  t.match(await (await get("/datasets/map/overviews/")).text(), /href="zarr\/".*href="zarr3\/"/s);
});
