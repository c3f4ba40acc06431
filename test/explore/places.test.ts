import fc from "fast-check";
import t from "tap";
import { mapProjectionOf } from "../../src/cf/projection.js";
import { MISSING, type ShowRequest, UNREAD, type VariableDescription } from "../../src/explore/protocol.js";
import {
  centresOf,
  createPolygonFinder,
  dotsUnderPixels,
  nearestPlace,
  type Polygons,
} from "../../src/explore/worker/picture/cells-on-map.js";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { type ExploreClient, openExplore } from "../support/explore/explore-client.js";
import { makeDirectory } from "../support/write-store.js";

/** Writes files as people have them, each with one variable whose values are the indices of its cells, unless said otherwise. */
const WRITE = `
import sys, numpy as np, netCDF4
directory = sys.argv[1]
def file(name, sizes, **attrs):
    ds = netCDF4.Dataset(f"{directory}/{name}.nc", "w")
    ds.setncatts(attrs)
    for dim, size in sizes.items(): ds.createDimension(dim, size)
    return ds
def put(ds, name, dims, values, dtype="f8", fill=None, **attrs):
    v = ds.createVariable(name, dtype, dims, fill_value=fill)
    v.setncatts(attrs)
    v[...] = values
NORTH, EAST = {"units": "degrees_north", "standard_name": "latitude"}, {"units": "degrees_east", "standard_name": "longitude"}
lat, lon = [47.4, 46.9, 46.2, 46.0], [8.5, 7.4, 6.1, 8.9]

ds = file("stations", {"time": 3, "station": 4, "strlen": 8}, featureType="timeSeries")
put(ds, "lat", ("station",), lat, **NORTH)
put(ds, "lon", ("station",), lon, **EAST)
put(ds, "time", ("time",), [0, 1, 2], units="days since 2020-01-01")
put(ds, "station_name", ("station", "strlen"), np.array([list(name.encode().ljust(8, b"\\0")) for name in ("Zürich", "Bern", "Genève", "Lugano")], "u1").view("S1"), "S1", cf_role="timeseries_id")
put(ds, "t", ("time", "station"), np.ma.masked_equal(np.arange(12).reshape(3, 4), 6), fill=-9.0, units="degC", coordinates="lat lon")
put(ds, "t_by_station", ("station", "time"), np.arange(12).reshape(3, 4).T)
ds.close()

ds = file("nowhere", {"time": 3, "station": 40})
put(ds, "time", ("time",), [0, 1, 2], units="days since 2020-01-01")
put(ds, "t", ("time", "station"), np.arange(120).reshape(3, 40))
ds.close()

ds = file("track", {"obs": 5}, featureType="trajectory")
put(ds, "lat", ("obs",), [0, 1, 2, 3, 4], **NORTH)
put(ds, "lon", ("obs",), [178, 179, 180, -179, -178], **EAST)
put(ds, "time", ("obs",), [0, 1, 2, 3, 4], units="days since 2020-01-01")
put(ds, "t", ("obs",), np.arange(5), coordinates="time lat lon")
ds.close()

ds = file("tracks", {"trajectory": 2, "obs": 3}, featureType="trajectory")
put(ds, "lat", ("trajectory", "obs"), np.ma.masked_invalid([[10, 20, 30], [-10, -20, np.nan]]), fill=-999.0, **NORTH)
put(ds, "lon", ("trajectory", "obs"), [[0, 5, 10], [0, 5, 10]], **EAST)
names = ds.createVariable("drifter", str, ("trajectory",)); names.cf_role = "trajectory_id"
names[:] = np.array(["A7", "B8"], dtype=object)
put(ds, "t", ("trajectory", "obs"), np.arange(6).reshape(2, 3))
ds.close()

# Two quadrilaterals and a triangle; one of them crosses the date line.
ds = file("ugrid", {"time": 2, "node": 8, "face": 3, "four": 4, "edge": 2, "two": 2})
put(ds, "mesh", (), 0, "i4", cf_role="mesh_topology", topology_dimension=2, node_coordinates="node_x node_y", face_node_connectivity="faces", edge_node_connectivity="edges")
put(ds, "node_x", ("node",), [170, 180, -170, 170, 180, -170, 175, 185], units="degrees_east")
put(ds, "node_y", ("node",), [0, 0, 0, 10, 10, 10, 20, 20], units="degrees_north")
put(ds, "faces", ("face", "four"), np.ma.masked_equal([[1, 2, 5, 4], [2, 3, 6, 5], [4, 5, 7, -1]], -1), "i4", -999, start_index=1, cf_role="face_node_connectivity")
put(ds, "edges", ("edge", "two"), [[0, 1], [1, 2]], "i8", start_index=0)
put(ds, "depth", ("face",), [0, 1, 2], mesh="mesh", location="face")
put(ds, "level", ("time", "node"), np.arange(16).reshape(2, 8), mesh="mesh", location="node")
put(ds, "flux", ("time", "edge"), [[0, 1], [2, 3]], mesh="mesh", location="edge")
ds.close()

# The same two kinds of ragged arrays: rows of stations one after the other, and cells with the number of their station.
for name in ("contiguous", "indexed"):
    ds = file(name, {"station": 4, "obs": 6}, featureType="timeSeries")
    put(ds, "lat", ("station",), lat, **NORTH); put(ds, "lon", ("station",), lon, **EAST)
    if name == "contiguous": put(ds, "row_size", ("station",), [2, 0, 3, 1], "i4", sample_dimension="obs")
    else: put(ds, "station_index", ("obs",), [2, 0, 3, 2, 0, 2], "i4", instance_dimension="station")
    put(ds, "time", ("obs",), np.arange(6), units="days since 2020-01-01")
    put(ds, "t", ("obs",), np.arange(6), coordinates="time lat lon")
    ds.close()

# Two squares of a kilometre in a zone of UTM.
ds = file("utm-mesh", {"node": 6, "face": 2, "four": 4})
put(ds, "mesh", (), 0, "i4", cf_role="mesh_topology", topology_dimension=2, node_coordinates="node_x node_y", face_node_connectivity="faces")
put(ds, "utm", (), 0, "i4", grid_mapping_name="transverse_mercator", longitude_of_central_meridian=9.0, latitude_of_projection_origin=0.0, scale_factor_at_central_meridian=0.9996, false_easting=500000.0, false_northing=0.0)
put(ds, "node_x", ("node",), [500, 501, 502, 500, 501, 502], units="km", standard_name="projection_x_coordinate")
put(ds, "node_y", ("node",), [5300, 5300, 5300, 5301, 5301, 5301], units="km", standard_name="projection_y_coordinate")
put(ds, "faces", ("face", "four"), [[0, 1, 4, 3], [1, 2, 5, 4]], "i4", start_index=0)
put(ds, "depth", ("face",), [3, 4], mesh="mesh", location="face", grid_mapping="utm")
ds.close()

# A hexagon round the pole with a ring of four cells, in radians.
ds = file("icon", {"time": 1, "ncells": 5, "nv": 6})
ring = np.radians([[88.0] * 6] + [[88, 88, 60, 60, 60, 60]] * 4)
east = np.radians([[0, 60, 120, 180, 240, 300]] + [[a, a + 90, a + 90, a, a, a] for a in (0, 90, 180, 270)])
put(ds, "clat", ("ncells",), np.radians([90, 75, 75, 75, 75]), standard_name="latitude", units="radian", bounds="clat_vertices")
put(ds, "clon", ("ncells",), np.radians([0, 45, 135, 225, 315]), standard_name="longitude", units="radian", bounds="clon_vertices")
put(ds, "clat_vertices", ("ncells", "nv"), ring)
put(ds, "clon_vertices", ("ncells", "nv"), east)
put(ds, "t", ("time", "ncells"), [[0, 1, 2, 3, 4]], coordinates="clat clon")
ds.close()

ds = file("mpas", {"nCells": 2, "nVertices": 6, "maxEdges": 5})
put(ds, "latCell", ("nCells",), np.radians([5, 5])); put(ds, "lonCell", ("nCells",), np.radians([5, 15]))
put(ds, "latVertex", ("nVertices",), np.radians([0, 0, 0, 10, 10, 10])); put(ds, "lonVertex", ("nVertices",), np.radians([0, 10, 20, 0, 10, 20]))
put(ds, "verticesOnCell", ("nCells", "maxEdges"), [[1, 2, 5, 4, 0], [2, 3, 6, 5, 0]], "i4")
put(ds, "t", ("nCells",), [0, 1])
ds.close()

# A curtain along a track, and a section: their axes are worth a picture.
ds = file("curtain", {"time": 4, "height": 30})
put(ds, "lat", ("time",), [0, 1, 2, 3], **NORTH); put(ds, "lon", ("time",), [0, 1, 2, 3], **EAST)
put(ds, "time", ("time",), [0, 1, 2, 3], units="seconds since 2020-01-01")
put(ds, "dbz", ("time", "height"), np.arange(120).reshape(4, 30))
ds.close()
`;

t.test("cells are put where files say that they are", { skip: clientMissing("netcdf4") }, async (t) => {
  const directory = await makeDirectory(t);
  askPython(WRITE, null, [directory]);
  const names = [
    "stations",
    "nowhere",
    "track",
    "tracks",
    "ugrid",
    "icon",
    "mpas",
    "curtain",
    "contiguous",
    "indexed",
    "utm-mesh",
  ];
  const datasets = names.map((name) => ({
    id: name,
    location: `${directory}/${name}.nc`,
    immutable: false,
    encoding: {},
    variables: {},
  }));

  const openFile = async (name: string) => {
    const { client, opened } = await openExplore(t, { datasets }, name);
    const variables = new Map(opened.dataset.variables.map((variable) => [variable.path, variable]));
    return { client, variable: (path: string) => variables.get(path)! };
  };

  t.test("stations are dots with names, and their series run along time", async (t) => {
    const { client, variable } = await openFile("stations");
    t.match(variable("t"), { form: "image", plane: { x: 1, y: 1 }, curvilinear: { latitude: "lat" } });
    const places = [47.4, 46.9, 46.2, 46.0].map((latitude, index) => ({
      x: [8.5, 7.4, 6.1, 8.9][index]!,
      y: latitude,
    }));
    t.same(await bytesAt(client, variable("t"), [1, 0], places), [4, 5, "missing", 7]);
    t.same(await bytesAt(client, variable("t_by_station"), [0, 2], places), [8, 9, 10, 11]);
    t.same(await bytesAt(client, variable("t"), [0, 0], [{ x: 7.4, y: 46.3 }]), ["outside"], "between dots");
    const probe = probeOf(variable("t"), [2, 0], { x: 7.45, y: 46.95 });
    t.match(await client.ask({ ...probe, reach: 0.1 }, "value"), {
      cell: [2, 1],
      x: 7.4,
      y: 46.9,
      value: 9,
      name: "Bern",
    });
    t.equal((await client.ask({ ...probe, reach: 0.05 }, "value")).cell, undefined, "out of reach");
    t.same((await client.ask({ ...probe, towards: [1, 0] }, "value")).cell, [2, 0], "the next one eastwards");
    const { extent } = await client.ask({ kind: "axis", variable: "t", axis: 1 }, "axis");
    t.ok(extent!.west < 6.1 && extent!.east > 8.9 && extent!.south < 46 && extent!.north > 47.4, "with room");
  });

  t.test("a list without places is a plot, and a curtain a picture", async (t) => {
    const nowhere = await openFile("nowhere");
    t.match(nowhere.variable("t"), { form: "plot", plane: undefined, curvilinear: undefined });
    const curtain = await openFile("curtain");
    t.match(curtain.variable("dbz"), { form: "image", plane: { y: 1, x: 0 }, curvilinear: undefined });
    const ugrid = await openFile("ugrid");
    t.match(ugrid.variable("faces"), { form: "plot", isCoordinate: true });
  });

  t.test("tracks are dots along their observations", async (t) => {
    const one = await openFile("track");
    const extent = (await one.client.ask({ kind: "axis", variable: "t", axis: 0 }, "axis")).extent!;
    t.ok(extent.west > 170 && extent.east < 190, "in one piece across the date line");
    t.same(await bytesAt(one.client, one.variable("t"), [0], [{ x: -179, y: 3 }]), [3]);
    const found = await one.client.ask(probeOf(one.variable("t"), [0], { x: 181, y: 3 }), "value");
    t.match(found, { cell: [3], name: "2020-01-04T00:00:00" });
    const many = await openFile("tracks");
    t.match(many.variable("t"), { plane: { y: 0, x: 1 }, curvilinear: { list: { shape: "dots" } } });
    const places = [
      { x: 5, y: 20 },
      { x: 0, y: -10 },
    ];
    t.same(await bytesAt(many.client, many.variable("t"), [0, 0], places), [1, 3]);
    const named = await many.client.ask(probeOf(many.variable("t"), [0, 0], places[1]!), "value");
    t.match(named, { cell: [1, 0], value: 3, name: "B8" });
  });

  t.test("faces are polygons, nodes the parts of faces next to them, edges dots", async (t) => {
    const { client, variable } = await openFile("ugrid");
    t.match(variable("depth"), { plane: { y: 0, x: 0 }, curvilinear: { list: { shape: "faces" } } });
    t.match(variable("node_x"), { isCoordinate: true });
    const places = [
      { x: 171, y: 1 },
      { x: -171, y: 9 },
      { x: 189, y: 9 },
      { x: 175, y: 15 },
      { x: 0, y: 5 },
    ];
    t.same(await bytesAt(client, variable("depth"), [0], places), [0, 1, 1, 2, "outside"]);
    t.same(await bytesAt(client, variable("level"), [0, 0], places), [0, 5, 5, 6, "outside"]);
    const edges = [
      { x: 175, y: 0 },
      { x: -175, y: 0 },
    ];
    t.same(await bytesAt(client, variable("flux"), [1, 0], edges), [2, 3]);
    t.match(await client.ask(probeOf(variable("depth"), [0], places[1]!), "value"), {
      cell: [1],
      x: 185,
      y: 5,
    });
  });

  t.test("the last cell of each place of a ragged array is a dot there", async (t) => {
    const places = [47.4, 46.9, 46.2, 46.0].map((y, index) => ({ x: [8.5, 7.4, 6.1, 8.9][index]!, y }));
    for (const [name, expected] of [
      ["contiguous", [1, "outside", 4, 5]],
      ["indexed", [4, "outside", 5, 2]],
    ] as const) {
      const { client, variable } = await openFile(name);
      t.match(variable("t"), {
        plane: { y: 0, x: 0 },
        unplaced: "Each dot shows the last value of its place.",
      });
      t.same(await bytesAt(client, variable("t"), [0], places), expected, name);
      t.match(await client.ask(probeOf(variable("t"), [0], places[0]!), "value"), { value: expected[0] });
    }
  });

  t.test("a mesh with coordinates of a projection is drawn in a plane of it", async (t) => {
    const { client, variable } = await openFile("utm-mesh");
    const { projection } = variable("depth");
    t.match(projection?.definition, /\+proj=tmerc/);
    const probe = (longitude: number, latitude: number) => {
      const place = mapProjectionOf(projection!)!.toPlane(longitude, latitude)!;
      return client.ask(probeOf(variable("depth"), [0], place), "value");
    };
    // By PROJ: the faces are from 9 to 9.0136 and to 9.0271 degrees east.
    t.match(await probe(9.005, 47.854), { value: 3 });
    t.match(await probe(9.02, 47.854), { value: 4 });
    t.match(await probe(9.03, 47.854), { cell: undefined });
  });

  t.test("bounds and vertices are corners of polygons", async (t) => {
    const icon = await openFile("icon");
    const ring = [30, 100, 200, 300].map((x) => ({ x, y: 70 }));
    const pole = [10, 130, 250].map((x) => ({ x, y: 89 }));
    t.same(await bytesAt(icon.client, icon.variable("t"), [0, 0], [...ring, ...pole]), [1, 2, 3, 4, 0, 0, 0]);
    const mpas = await openFile("mpas");
    const cells = [
      { x: 2, y: 9 },
      { x: 19, y: 1 },
    ];
    t.same(await bytesAt(mpas.client, mpas.variable("t"), [0], cells), [0, 1]);
  });
});

t.test(
  "a pixel shows the polygon that its middle is in, whichever turn of longitudes it is counted by",
  async () => {
    const corner = fc.record({
      angle: fc.double({ min: 0, max: 6.28, noNaN: true }),
      size: fc.double({ min: 1, max: 8, noNaN: true }),
    });
    fc.assert(
      fc.property(
        fc.array(corner, { minLength: 3, maxLength: 9 }),
        fc.integer({ min: -200, max: 200 }),
        fc.constantFrom(-360, 0, 360),
        (corners, middle, turn) => {
          const sorted = [...corners].sort((one, other) => one.angle - other.angle);
          const points = sorted.map(
            ({ angle, size }) => [middle + size * Math.cos(angle), size * Math.sin(angle)] as const,
          );
          const polygons: Polygons = {
            count: 1,
            // Each corner by another turn.
            x: Float64Array.from(points, ([x], index) => x + (index % 2) * turn),
            y: Float64Array.from(points, ([, y]) => y),
            perCell: points.length,
            cornerOf: (_, index) => index,
            isGrid: false,
          };
          const map = { left: middle - 10, right: middle + 10, bottom: -10, top: 10, width: 40, height: 40 };
          const cells = createPolygonFinder(polygons)(map);
          return cells.every((cell, pixel) => {
            const [x, y] = [
              map.left + ((pixel % 40) + 0.5) / 2,
              map.top - (Math.floor(pixel / 40) + 0.5) / 2,
            ];
            return (cell === 0) === isInside(points, x, y) || isNearSide(points, x, y);
          });
        },
      ),
    );
  },
);

t.test("a corner at a pole has no longitude, and wide polygons are none", async (t) => {
  const world = { left: -180, right: 180, bottom: -90, top: 90, width: 36, height: 18 };
  const cap: Polygons = {
    count: 2,
    x: Float64Array.of(100, 140, 0, Number.NaN, 0, 100, 190, 100),
    y: Float64Array.of(60, 60, 90, 0, 0, 10, 20, -5),
    perCell: 4,
    cornerOf: (cell, index) => 4 * cell + index,
    isGrid: false,
  };
  const cells = createPolygonFinder(cap)(world);
  const rowOf = (row: number) =>
    [...cells.subarray(row * 36, row * 36 + 36).entries()].filter(([, cell]) => cell === 0);
  t.same(
    rowOf(0).map(([column]) => column),
    [28, 29, 30, 31],
    "as wide at the pole as at its other side",
  );
  t.notOk(cells.includes(1), "no stripe from 0 to 190");
  const { longitudes, latitudes } = centresOf(cap);
  t.same([longitudes[0], latitudes[0]], [120, 75]);
});

t.test("dots are larger the fewer there are, apart where they meet, and found by direction", async (t) => {
  const map = { left: 0, right: 10, bottom: 0, top: 10, width: 200, height: 200, ratio: 1 };
  const places = (count: number) => ({
    longitudes: Float64Array.from({ length: count }, (_, index) => 360 + ((5 + index * 7.31) % 10)),
    latitudes: Float64Array.from({ length: count }, (_, index) => (5 + index * 3.17) % 10),
  });
  const areas = [1, 100, 10_000].map((count) => {
    const cells = dotsUnderPixels(places(count), map);
    return cells.filter((cell) => cell === 0).length;
  });
  t.ok(areas[0]! > 120 && areas[1]! > 20 && areas[1]! < areas[0]! && areas[2]! < 10, `${areas}`);
  const two = { longitudes: Float64Array.of(5, 5.5), latitudes: Float64Array.of(5, 5) };
  const row = [...dotsUnderPixels(two, map).subarray(99 * 200, 100 * 200)];
  t.match(row.join(","), /0,-1,1/, "a gap between them");
  const cross = { longitudes: Float64Array.of(0, 1, -1, 0, 0), latitudes: Float64Array.of(0, 0, 0, 1, -1) };
  const next = (right: number, up: number) => nearestPlace(cross, 0, 0, 99, [right, up]);
  t.same([next(1, 0), next(-1, 0), next(0, 1), next(0, -1)], [1, 2, 3, 4]);
});

type Points = readonly (readonly [number, number])[];

function isInside(points: Points, x: number, y: number): boolean {
  let inside = false;
  points.forEach(([ax, ay], index) => {
    const [bx, by] = points[(index + 1) % points.length]!;
    if (ay > y !== by > y && x < ax + ((y - ay) / (by - ay)) * (bx - ax)) inside = !inside;
  });
  return inside;
}

function isNearSide(points: Points, x: number, y: number): boolean {
  return points.some(([ax, ay], index) => {
    const [bx, by] = points[(index + 1) % points.length]!;
    const length = (bx - ax) ** 2 + (by - ay) ** 2;
    const share =
      length === 0 ? 0 : Math.max(0, Math.min(1, ((x - ax) * (bx - ax) + (y - ay) * (by - ay)) / length));
    return Math.hypot(x - ax - share * (bx - ax), y - ay - share * (by - ay)) < 1e-6;
  });
}

interface Place {
  readonly x: number;
  readonly y: number;
}

/** Asks for a small picture about each place, and returns the values of the pixels in their middles. */
async function bytesAt(
  client: ExploreClient,
  { path, plane }: VariableDescription,
  at: readonly number[],
  places: readonly Place[],
): Promise<(number | string)[]> {
  const values: (number | string)[] = [];
  for (const { x, y } of places) {
    const box = { left: x - 0.5, right: x + 0.5, bottom: y - 0.5, top: y + 0.5 };
    const request: ShowRequest = {
      kind: "show",
      selection: { variable: path, at },
      axes: plane!,
      viewport: { box, width: 101, height: 101, inCells: false },
      range: { low: 0, high: 251, isLog: false },
      isMoving: false,
      isConfirmed: false,
    };
    const byte = (await client.ask(request, "frame")).pixels[50 * 101 + 50]!;
    values.push(byte === UNREAD ? "outside" : byte === MISSING ? "missing" : byte - 2);
  }
  return values;
}

function probeOf({ path, plane }: VariableDescription, at: readonly number[], { x, y }: Place) {
  const selection = { variable: path, at };
  return { kind: "probe", selection, axes: plane!, x, y, inCells: false } as const;
}
