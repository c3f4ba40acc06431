import { join } from "node:path";
import t, { type Test } from "tap";
import { askPython } from "../support/clients/ask-python.js";
import { clientMissing } from "../support/clients/require-client.js";
import { decodePng } from "../support/codec/decode-png.js";
import { type RunningServer, startServer } from "../support/servers/start-server.js";

t.setTimeout(600_000);

/**
 * Writes grids of each kind, chooses random tiles of each, and says which colour GDAL's warper, or a search through all cells, gives to every
 * pixel. Index 0 is missing.
 */
const SCRIPT = `
import base64, json, math, random, sys
import netCDF4, numpy as np
from osgeo import gdal, osr
gdal.UseExceptions()
gdal.SetConfigOption("CPL_LOG", "/dev/null")
directory, views = sys.argv[1], int(sys.argv[2])
EDGE = math.pi * 6378137
LOW, HIGH = -40.0, 60.0

def values(rows, columns, seed):
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:rows, 0:columns]
    v = 40 * np.sin(y / 9.0) * np.cos(x / 13.0) + 10 + rng.normal(0, 4, (rows, columns))
    v[rng.random(v.shape) < 0.03] = np.nan
    return v.astype("f4")

def write(name, v, coordinates, attributes, mapping=None):
    with netCDF4.Dataset(f"{directory}/{name}.nc", "w") as f:
        dims = ["y", "x"] if attributes is None else [c[0] for c in coordinates]
        for dim, length in zip(dims, v.shape): f.createDimension(dim, length)
        data = f.createVariable("v", "f4", dims, zlib=True, chunksizes=[max(1, -(-n // 3)) for n in v.shape], fill_value=np.float32(np.nan))
        data[:] = v
        for at, (dim, centres) in enumerate(coordinates):
            c = f.createVariable(dim, "f8", (dim,) if attributes is not None else dims)
            c[:] = centres
            c.setncatts(attributes[at] if attributes is not None else [{"units": "degrees_north"}, {"units": "degrees_east"}][at])
        if attributes is None: data.coordinates = "lat lon"
        if mapping:
            m = f.createVariable("crs", "i4", ())
            m.setncatts(mapping)
            data.grid_mapping = "crs"

def raster(v, ys, xs, wkt):
    ds = gdal.GetDriverByName("MEM").Create("", v.shape[1], v.shape[0], 1, gdal.GDT_Float32)
    dy, dx = (ys[-1] - ys[0]) / (len(ys) - 1), (xs[-1] - xs[0]) / (len(xs) - 1)
    ds.SetGeoTransform([xs[0] - dx / 2, dx, 0, ys[0] - dy / 2, 0, dy])
    ds.SetProjection(wkt)
    ds.GetRasterBand(1).WriteArray(v)
    ds.GetRasterBand(1).SetNoDataValue(float("nan"))
    return ds

def tile_near(rng, lon, lat, zooms):
    z = rng.randint(*zooms)
    n = 2 ** z
    x = int(((lon + 180) % 360) / 360 * n) % n
    y = int((1 - math.asinh(math.tan(math.radians(min(85, max(-85, lat))))) / math.pi) / 2 * n)
    return z, x, min(max(y, 0), n - 1)

def box(z, x, y):
    side = 2 * EDGE / 2 ** z
    return [x * side - EDGE, EDGE - (y + 1) * side, (x + 1) * side - EDGE, EDGE - y * side]

def indices(v):
    place = np.floor((v.astype("f8") - LOW) / (HIGH - LOW) * 255)
    return np.where(np.isnan(v), 0, 1 + np.clip(np.nan_to_num(place), 0, 254)).astype("u1")

def answer(name, tile, found, frame=None):
    print(json.dumps({"name": name, "tile": tile, "frame": frame, "indices": base64.b64encode(indices(found).tobytes()).decode()}))

def warp(name, ds, places, zooms):
    rng = random.Random(name)
    for view in range(views):
        tile = tile_near(rng, *places(rng), zooms)
        out = gdal.Warp("", ds, format="MEM", dstSRS="EPSG:3857", outputBounds=box(*tile), width=256, height=256,
            resampleAlg="near", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=float("nan"))
        answer(name, tile, out.GetRasterBand(1).ReadAsArray())

def boxes(name, ds, places, limits=(-180, -85, 180, 85)):
    # Boxes of any size and proportion, as WMS asks for them; of longitudes and latitudes within the grid, since GDAL does not turn them.
    rng = random.Random(name + " boxes")
    for view in range(max(2, views // 5)):
        lon, lat = places(rng)
        width, height, size, crs = rng.randint(40, 400), rng.randint(40, 400), rng.uniform(2, 60), ["EPSG:4326", "EPSG:3857"][view % 2]
        if crs == "EPSG:4326":
            frame = [max(lon - size, limits[0]), max(lat - size, limits[1]), min(lon + size, limits[2]), min(lat + size, limits[3])]
        else:
            x, y = math.radians((lon + 180) % 360 - 180) * 6378137, math.asinh(math.tan(math.radians(max(-85, min(85, lat))))) * 6378137
            frame = [max(x - size * 1e5, -EDGE), y - size * 1e5, min(x + size * 1e5, EDGE), y + size * 1e5]
        out = gdal.Warp("", ds, format="MEM", dstSRS=crs, outputBounds=frame, width=width, height=height,
            resampleAlg="near", errorThreshold=0, outputType=gdal.GDT_Float32, dstNodata=float("nan"))
        turned = [frame[1], frame[0], frame[3], frame[2]] if crs == "EPSG:4326" else frame
        answer(name, None, out.GetRasterBand(1).ReadAsArray(), {"CRS": crs, "BBOX": ",".join(map(repr, turned)), "WIDTH": str(width), "HEIGHT": str(height)})

LAT, LON = {"units": "degrees_north", "standard_name": "latitude"}, {"units": "degrees_east", "standard_name": "longitude"}
wgs84 = osr.SpatialReference()
wgs84.ImportFromEPSG(4326)

def degrees(name, ys, xs, zooms):
    v = values(len(ys), len(xs), len(name))
    write(name, v, [("lat", ys), ("lon", xs)], [LAT, LON])
    ds, places = raster(v, ys, xs, wgs84.ExportToWkt()), lambda rng: (rng.uniform(min(xs), max(xs)), rng.uniform(min(ys), max(ys)))
    warp(name, ds, places, zooms)
    boxes(name, ds, places, (min(xs), min(ys), max(xs), max(ys)))

degrees("ascending", np.arange(241) * 0.25 - 20, np.arange(361) * 0.25 - 30, (2, 9))
degrees("descending", 90 - np.arange(361) * 0.5, np.arange(720) * 0.5 - 180, (0, 8))
degrees("turned", 90 - np.arange(181) * 1.0, np.arange(360) * 1.0, (0, 7))
degrees("seam", 30 - np.arange(120) * 0.5, 150 + np.arange(120) * 0.5, (3, 8))

def projected(name, ys, xs, epsg, mapping):
    v = values(len(ys), len(xs), len(name))
    srs = osr.SpatialReference()
    srs.ImportFromEPSG(epsg)
    metres = [{"units": "m", "standard_name": f"projection_{axis}_coordinate"} for axis in "yx"]
    write(name, v, [("y", ys), ("x", xs)], metres, mapping or {"spatial_ref": srs.ExportToWkt()})
    wgs84.SetAxisMappingStrategy(osr.OAMS_TRADITIONAL_GIS_ORDER)
    back = osr.CoordinateTransformation(srs, wgs84)
    place = lambda rng: back.TransformPoint(rng.uniform(min(xs), max(xs)), rng.uniform(min(ys), max(ys)))[:2]
    ds = raster(v, ys, xs, srs.ExportToWkt())
    warp(name, ds, place, (2, 9))
    boxes(name, ds, place)

projected("polar", 5837500 - np.arange(448) * 25000.0, -3837500 + np.arange(304) * 25000.0, 3413, {
    "grid_mapping_name": "polar_stereographic", "straight_vertical_longitude_from_pole": -45.0,
    "latitude_of_projection_origin": 90.0, "standard_parallel": 70.0, "semi_major_axis": 6378137.0, "inverse_flattening": 298.257223563})
projected("europe", 1500000 + np.arange(200) * 15000.0, 2500000 + np.arange(220) * 15000.0, 3035, None)
projected("zone", 5800000 - np.arange(150) * 2000.0, 300000 + np.arange(150) * 2000.0, 32632, None)

def points(lat, lon):
    lat, lon = np.radians(lat), np.radians(lon)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], -1)

def cells(name, lat, lon, zooms):
    v = values(*lat.shape, len(name))
    write(name, v, [("lat", lat), ("lon", lon)], None)
    cell = points(lat, lon)
    rows, columns = lat.shape
    rng = random.Random(name)
    real = cell.reshape(-1, 3)
    def thought(at, down, across):
        # The neighbour that a cell at the edge would have, unless another cell is there.
        row, column = at[0] - down, at[1] - across
        if 0 <= at[0] + down < rows and 0 <= at[1] + across < columns: return None
        point = 2 * cell[at] - cell[row, column]
        step = ((cell[at] - cell[row, column]) ** 2).sum()
        return None if ((real - point) ** 2).sum(-1).min() < step / 4 else point
    for view in range(views):
        row, column = rng.randrange(rows), rng.randrange(columns)
        tile = tile_near(rng, lon[row, column], lat[row, column], zooms)
        west, south, east, north = box(*tile)
        xs = west + (np.arange(256) + 0.5) * (east - west) / 256
        ys = north - (np.arange(256) + 0.5) * (north - south) / 256
        lats, lons = np.degrees(np.arctan(np.sinh(ys / 6378137))), np.degrees(xs / 6378137)
        found = np.full((64, 64), np.nan, "f4")
        p = points(*np.meshgrid(lats[1::4], lons[1::4], indexing="ij"))
        # As near as the largest scalar product.
        nearest = (p.reshape(-1, 3) @ real.T).argmax(1).reshape(64, 64)
        for cell_at in np.unique(nearest):
            at = (int(cell_at) // columns, int(cell_at) % columns)
            shown = nearest == cell_at
            if at[0] in (0, rows - 1) or at[1] in (0, columns - 1):
                own = ((cell[at] - p) ** 2).sum(-1)
                for side in [(-1, 0), (1, 0), (0, -1), (0, 1)]:
                    other = thought(at, *side)
                    if other is not None: shown &= ((other - p) ** 2).sum(-1) >= own
            found[shown] = v[at]
        answer(name, tile, found)

y, x = np.mgrid[0:60, 0:80]
cells("bent", 30 + 0.4 * y + 3 * np.sin(x / 25), -10 + 0.5 * x + 2 * np.sin(y / 15), (3, 8))
y, x = np.mgrid[0:50, 0:120]
cells("round", np.clip(-75 + 3.2 * y + 2 * np.sin(x / 120 * 4 * np.pi), -89, 89), (x * 3.0 + y * 0.3) % 360, (0, 6))
`;

/** A tile or a box, and the index of the palette that each pixel should have; of some tiles every fourth pixel. */
interface Expected {
  readonly name: string;
  /** Null if it is a box. */
  readonly tile: readonly number[] | null;
  /** Parameters of WMS 1.3.0; null if it is a tile. */
  readonly frame: Readonly<Record<string, string>> | null;
  readonly indices: string;
}

/** Tiles of each grid. */
const VIEWS = 30;
/** Share of pixels of projected grids that may differ: places on the edge of a cell, which proj4 and PROJ round differently. */
const ROUNDING = 2e-5;

async function differingPixels(
  { get }: RunningServer,
  { name, tile, frame, indices }: Expected,
): Promise<number> {
  const wms = { VERSION: "1.3.0", REQUEST: "GetMap", LAYERS: "v", TRANSPARENT: "TRUE", ...frame };
  const path =
    tile === null
      ? `wms?${new URLSearchParams({ ...wms, COLORSCALERANGE: "-40,60" })}`
      : `tiles/v/${tile.join("/")}.png?range=-40,60`;
  const answer = await get(`/datasets/${name}/${path}`);
  if (answer.status !== 200) throw new Error(`${name} ${path}: ${answer.status} ${await answer.text()}`);
  const png = decodePng(new Uint8Array(await answer.arrayBuffer()));
  const expected = Buffer.from(indices, "base64");
  if (tile === null) return expected.filter((index, pixel) => png.indices[pixel] !== index).length;
  const side = Math.sqrt(expected.length);
  const [first, step] = side === 256 ? [0, 1] : [1, 4];
  return expected.filter((index, pixel) => {
    const [row, column] = [Math.floor(pixel / side), pixel % side];
    return png.indices[256 * (first + row * step) + first + column * step] !== index;
  }).length;
}

t.test(
  "pixels of tiles and of boxes are those of GDAL's nearest warp, and of the nearest cell",
  { skip: clientMissing("gdal", "netcdf4") },
  async (t: Test) => {
    const directory = t.testdir({});
    const lines = askPython(SCRIPT, null, [directory, String(VIEWS)])
      .trim()
      .split("\n");
    const expected = lines.map((line) => JSON.parse(line) as Expected);
    const names = [...new Set(expected.map(({ name }) => name))];
    const server = await startServer(t, {
      datasets: names.map((id) => ({
        ...{ id, location: join(directory, `${id}.nc`) },
        ...{ immutable: false, encoding: {}, variables: {} },
      })),
    });
    for (const name of names) {
      let [differing, shown, tiles, boxes] = [0, 0, 0, 0];
      for (const each of expected.filter((other) => other.name === name)) {
        differing += await differingPixels(server, each);
        shown += Buffer.from(each.indices, "base64").filter((index) => index > 0).length;
        if (each.tile === null) boxes++;
        else tiles++;
      }
      t.equal(boxes, ["bent", "round"].includes(name) ? 0 : Math.max(2, Math.floor(VIEWS / 5)));
      t.equal(tiles, VIEWS);
      t.ok(shown > 64 * 64 * 3, `${name}: tiles show ${shown} pixels`);
      const allowed = ["polar", "europe", "zone"].includes(name) ? Math.ceil(shown * ROUNDING) : 0;
      t.ok(differing <= allowed, `${name}: ${differing} pixels of ${shown} differ`);
    }
  },
);
