import t from "tap";
import type { DatasetConfig } from "../../../src/config/config.js";
import type { DatasetSnapshot, OverviewLevels } from "../../../src/dataset/dataset.js";
import { isGeographic, listGrids } from "../../../src/dataset/overviews/level-grids.js";
import {
  geoMetadata,
  omeMultiscales,
  type RegularAxes,
} from "../../../src/dataset/overviews/level-metadata.js";
import { createSnapshot } from "../../../src/dataset/snapshot.js";
import { type FakeGroup, fakeSnapshot } from "../../support/datasets/fake-snapshot.js";
import { storedArray, storedTree } from "../../support/datasets/fake-source.js";

const CONFIG: DatasetConfig = {
  id: "d",
  location: "here",
  immutable: false,
  encoding: {},
  variables: {},
  overviews: { levels: 2, method: "nearest" },
};
const PLANE = { shape: [8, 8], dimNames: ["y", "x"] };
const TREE = storedTree(
  [
    {
      path: "/",
      attrs: {},
      arrays: [
        storedArray("plane", PLANE),
        // Passed through, but never decoded.
        storedArray("secret", { ...PLANE, codecs: [{ id: "mystery" }] }),
        storedArray("time", { shape: [3], dimNames: ["time"] }),
      ],
    },
    { path: "/g", attrs: {}, arrays: [storedArray("g/plane", PLANE)] },
  ],
  { refused: [{ path: "odd", reason: "no such type" }] },
);

function overviewsOf({ overviews }: DatasetSnapshot): DatasetSnapshot {
  if (overviews === undefined) throw new Error("expected overviews");
  return overviews;
}

t.test(
  "level arrays are made when they are asked for; what cannot be coarsened is left out by name",
  async (t) => {
    const dataset = createSnapshot(CONFIG, TREE, "");
    const overviews = overviewsOf(dataset);
    const own = () => overviews.refused.filter(({ path }) => !path.endsWith("/odd"));
    t.match(overviews.refused[1], { path: "1/odd", reason: "no such type" });
    t.same(own(), [], "none is made yet");
    t.equal(overviews.arrays.get("1/secret"), undefined);
    t.match(own(), [{ path: "1/secret", reason: /mystery/ }]);
    t.same([...overviews.tree.groups.keys()].sort(), ["/", "/0", "/0/g", "/1", "/1/g", "/2", "/2/g"]);
    t.same([...(overviews.tree.groups.get("/2")?.variables.keys() ?? [])], ["plane", "time"]);
    t.match(overviews.tree.groups.get("/2")?.variables.get("plane"), { path: "2/plane", shape: [2, 2] });
    t.equal(overviews.arrays.get("2/g/plane"), overviews.arrays.get("2/g/plane"));
    t.same(
      overviews.tree.groups.get("/2/g")?.dims,
      new Map([
        ["y", 2],
        ["x", 2],
      ]),
    );
  },
);

const LAT = { dims: ["lat"], shape: [8], attrs: { units: "degrees_north" } };
const LON = { dims: ["lon"], shape: [12], attrs: { units: "degrees_east" } };
const T2M = { dims: ["time", "lat", "lon"], shape: [2, 8, 12] };
const AXES: RegularAxes = { y: { first: 35, step: -10 }, x: { first: 0, step: 30 } };

function levelsOf(root: FakeGroup, count = 2): OverviewLevels {
  const dataset = fakeSnapshot("d", root);
  return { dataset, count, horizontal: new Set(["lat", "lon", "y", "x"]), method: "mean", metadata: "geo" };
}

function geo(root: FakeGroup, axes: RegularAxes, count = 2) {
  const levels = levelsOf(root, count);
  return geoMetadata(levels, listGrids(levels.dataset.tree, levels.horizontal)[0], axes);
}

function namesOf({ zarr_conventions }: ReturnType<typeof geoMetadata>): readonly string[] {
  return (zarr_conventions as unknown as readonly { name: string }[]).map(({ name }) => name);
}

t.test("GeoZarr places regular grids by corners, and each level by the one below", async (t) => {
  const found = geo({ variables: { lat: LAT, lon: LON, t2m: T2M } }, AXES);
  t.same(namesOf(found), ["multiscales", "spatial", "proj"]);
  const { zarr_conventions: _registered, ...rest } = found;
  const transform = { scale: [2, 2], translation: [0, 0] };
  const spatial = (shape: number[], matrix: number[]) => ({
    "spatial:shape": shape,
    "spatial:transform": matrix,
  });
  t.same(rest, {
    multiscales: {
      layout: [
        // x = 30 * column - 15, y = -10 * row + 40 ("spatial:transform", "Coordinate convention").
        { asset: "0", transform: { scale: [1, 1] }, ...spatial([8, 12], [30, 0, -15, 0, -10, 40]) },
        { asset: "1", derived_from: "0", transform, ...spatial([4, 6], [60, 0, -15, 0, -20, 40]) },
        { asset: "2", derived_from: "1", transform, ...spatial([2, 3], [120, 0, -15, 0, -40, 40]) },
      ],
      resampling_method: "average",
    },
    "spatial:dimensions": ["lat", "lon"],
    "spatial:bbox": [-15, -40, 345, 40],
    "proj:code": "EPSG:4326",
  });
});

t.test("a level whose last cell is narrower has no transform", async (t) => {
  const t2m = { dims: ["lat", "lon"], shape: [7, 12] };
  const { multiscales } = geo({ variables: { lat: { ...LAT, shape: [7] }, lon: LON, t2m } }, AXES);
  const { layout } = multiscales as unknown as { layout: readonly Readonly<Record<string, unknown>>[] };
  t.same(
    layout.map((level) => [level["spatial:shape"], "spatial:transform" in level]),
    [
      [[7, 12], true],
      [[4, 6], false],
      [[2, 3], false],
    ],
  );
});

t.test("irregular axes are told by coordinates only, and a grid in a group by its path", async (t) => {
  const found = geo(
    { variables: { lat: LAT, lon: LON }, groups: { surface: { variables: { t2m: T2M } } } },
    undefined,
    1,
  );
  t.same(namesOf(found), ["multiscales", "proj"]);
  t.match(found.multiscales, {
    layout: [{ asset: "0/surface" }, { asset: "1/surface", derived_from: "0/surface" }],
  });
  t.notOk(Object.keys(found).some((key) => key.startsWith("spatial:")));
});

t.test("the reference system is that of the grid mapping, by code or as WKT 2, or none", async (t) => {
  const projOf = (attrs: Readonly<Record<string, string>>, name = "crs: x y") => {
    const band = { dims: ["y", "x"], shape: [8, 12], attrs: { grid_mapping: name } };
    const found = geo({ variables: { band, crs: { dims: [], shape: [], attrs } } }, AXES);
    const proj = Object.entries(found).filter(([key]) => key.startsWith("proj:"));
    t.equal(namesOf(found).includes("proj"), proj.length > 0);
    return Object.fromEntries(proj);
  };
  const inner = 'GEOGCS["WGS 84",AUTHORITY["EPSG","4326"]]';
  t.same(projOf({ crs_wkt: `PROJCS["UTM",${inner},AUTHORITY["EPSG","32633"]]` }), {
    "proj:code": "EPSG:32633",
  });
  t.same(projOf({ spatial_ref: 'PROJCRS["UTM",ID["EPSG",32633]]' }), { "proj:code": "EPSG:32633" });
  t.same(projOf({ crs_wkt: "EPSG:3035" }), { "proj:code": "EPSG:3035" });
  const own = `PROJCRS["mine",BASEGEOGCRS["WGS 84",ID["EPSG",4326]],CS[Cartesian,2]]`;
  t.same(projOf({ crs_wkt: own }), { "proj:wkt2": own });
  t.same(projOf({ crs_wkt: `PROJCS["mine",${inner}]` }), {}, "WKT 1 without a code");
  t.same(projOf({ grid_mapping_name: "rotated_latitude_longitude" }), {});
  t.same(projOf({}, "missing"), {});
});

t.test("places on the earth are known by latitudes and longitudes, or by a grid mapping", async (t) => {
  const isGeo = (root: FakeGroup) => isGeographic(fakeSnapshot("d", root).tree);
  t.ok(isGeo({ variables: { lat: LAT, lon: LON } }));
  t.notOk(isGeo({ variables: { lat: LAT } }));
  t.ok(isGeo({ variables: { v: { dims: [], shape: [], attrs: { grid_mapping_name: "mercator" } } } }));
  t.notOk(isGeo({ variables: { img: { dims: ["y", "x"], shape: [4, 4] } } }));
});

t.test("OME-Zarr has an entry per variable, with centres of cells in units spelled out", async (t) => {
  const um = { units: "um" };
  const levels = levelsOf({
    variables: {
      img: { dims: ["c", "y", "x"], shape: [3, 8, 12] },
      volume: { dims: ["time", "c", "z", "y", "x"], shape: [2, 3, 4, 8, 12] },
      y: { dims: ["y"], shape: [8], attrs: um },
      x: { dims: ["x"], shape: [12], attrs: um },
      // What it cannot describe: another order of axes, two channels, six axes.
      last: { dims: ["y", "x", "c"], shape: [8, 12, 3] },
      turned: { dims: ["x", "y"], shape: [12, 8] },
      two: { dims: ["c", "d", "y", "x"], shape: [2, 2, 8, 12] },
      row: { dims: ["x"], shape: [12] },
    },
  });
  const grids = listGrids(levels.dataset.tree, levels.horizontal);
  const axes: RegularAxes = { y: { first: 0, step: -0.5 }, x: { first: 0, step: 2 } };
  const entries = omeMultiscales(levels, grids, axes, "0.4");
  t.same(entries.map(({ name }) => name).sort(), ["img", "volume"]);
  const img = entries.find(({ name }) => name === "img");
  const placed = (scale: number[], translation: number[]) => [
    { type: "scale", scale },
    { type: "translation", translation },
  ];
  // "axes" metadata: time, channel, space; "datasets": finest first; a scale, then a translation.
  t.same(img, {
    version: "0.4",
    name: "img",
    axes: [
      { name: "c", type: "channel" },
      { name: "y", type: "space", unit: "micrometer" },
      { name: "x", type: "space", unit: "micrometer" },
    ],
    datasets: [
      { path: "0/img", coordinateTransformations: [{ type: "scale", scale: [1, 0.5, 2] }] },
      { path: "1/img", coordinateTransformations: placed([1, 1, 4], [0, 0.25, 1]) },
      { path: "2/img", coordinateTransformations: placed([1, 2, 8], [0, 0.75, 3]) },
    ],
  });
  const [first] = omeMultiscales(levels, grids, undefined, "0.5");
  t.notOk(first && "version" in first, "in 0.5 the version stands beside the list");
  t.match(first, { axes: [{}, {}, {}, { name: "y", unit: undefined }, {}] });
});
