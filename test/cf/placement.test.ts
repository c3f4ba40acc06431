import t from "tap";
import { type CfVariable, createPlacer, stepCoordinate } from "../../src/cf/placement.js";
import type { JsonObject } from "../../src/json/json-value.js";

type Declared = readonly [dims: string, attrs?: JsonObject];

const LENGTHS: Readonly<Record<string, number>> = {
  Time: 3,
  time: 3,
  one: 1,
  band: 2,
  lines: 40,
  pixels: 50,
};

function declared(variables: Record<string, Declared>): Map<string, CfVariable> {
  return new Map(
    Object.entries(variables).map(([path, [text, attrs = {}]]): [string, CfVariable] => {
      const dims = text === "" ? [] : text.split(" ");
      return [path, { path, dims, shape: dims.map((dim) => LENGTHS[dim] ?? 10), attrs }];
    }),
  );
}

/** Returns where `path` lies in a dataset: names of latitudes and longitudes, else what else is known; then its plane. */
function placed(variables: Record<string, Declared>, path: string, attrs: JsonObject = {}): string {
  const all = declared(variables);
  const variable = all.get(path) as CfVariable;
  const found = createPlacer({ variables: all, attrs })(variable);
  const { plane, grid, projection, isDegrees, isImage } = found ?? {};
  const what =
    (grid && `${grid.latitude.path} ${grid.longitude.path}`) ??
    projection?.definition.slice(0, 11) ??
    (isDegrees ? "degrees" : isImage ? "image" : "axes");
  return `${what}; ${plane && variable.dims[plane.y]} ${plane && variable.dims[plane.x]}`;
}

const NORTH = { units: "degrees_north" };
const EAST = { units: "degrees_east" };
const POLAR = { grid_mapping_name: "polar_stereographic", standard_parallel: 70 };

t.test("latitudes and longitudes of cells are found where files have them", async (t) => {
  const wrf: Record<string, Declared> = {
    XLAT: ["Time south_north west_east", { units: "degree_north" }],
    XLONG: ["Time south_north west_east", { units: "degree_east" }],
    XLAT_U: ["Time south_north west_east_stag", { units: "degree_north" }],
    XLONG_U: ["Time south_north west_east_stag", { units: "degree_east" }],
    XLAT_V: ["Time south_north_stag west_east", { units: "degree_north" }],
    XLONG_V: ["Time south_north_stag west_east", { units: "degree_east" }],
    T2: ["Time south_north west_east"],
    U: ["Time bottom_top south_north west_east_stag", { coordinates: "XLONG_U XLAT_U XTIME" }],
    V: ["Time bottom_top south_north_stag west_east"],
    W: ["Time bottom_top_stag south_north west_east", { coordinates: "XLONG XLAT XTIME" }],
  };
  t.equal(placed(wrf, "T2"), "XLAT XLONG; south_north west_east");
  t.equal(placed(wrf, "U"), "XLAT_U XLONG_U; south_north west_east_stag");
  t.equal(placed(wrf, "V"), "XLAT_V XLONG_V; south_north_stag west_east");
  t.equal(placed(wrf, "W"), "XLAT XLONG; south_north west_east");
  const roms: Record<string, Declared> = {};
  for (const at of ["rho", "u", "v", "psi"]) {
    roms[`lat_${at}`] = [`eta_${at} xi_${at}`, { units: "degree_north" }];
    roms[`lon_${at}`] = [`eta_${at} xi_${at}`, { units: "degree_east" }];
    roms[`field_${at}`] = [`time s_rho eta_${at} xi_${at}`];
  }
  for (const at of ["rho", "u", "v", "psi"])
    t.equal(placed(roms, `field_${at}`), `lat_${at} lon_${at}; eta_${at} xi_${at}`);
  const pop: Record<string, Declared> = {
    TLAT: ["nlat nlon", NORTH],
    TLONG: ["nlat nlon", EAST],
    ULAT: ["nlat nlon", NORTH],
    ULONG: ["nlat nlon", EAST],
    SST: ["time nlat nlon", { coordinates: "TLONG TLAT time" }],
    UVEL: ["time nlat nlon", { coordinates: "ULONG ULAT time" }],
  };
  t.equal(placed(pop, "SST"), "TLAT TLONG; nlat nlon");
  t.equal(placed(pop, "UVEL"), "ULAT ULONG; nlat nlon");
  const nemo: Record<string, Declared> = { nav_lat: ["y x"], nav_lon: ["y x"], sst: ["time y x"] };
  t.equal(placed(nemo, "sst"), "nav_lat nav_lon; y x", "by name alone");
  const widths: Record<string, Declared> = { dlat: ["y x"], dlon: ["y x"], v: ["y x"] };
  t.equal(placed(widths, "v"), "axes; y x", "widths of cells are no places");
  const both: Record<string, Declared> = { ...nemo, north: ["y x", NORTH], east: ["y x", EAST] };
  t.equal(placed(both, "sst"), "north east; y x", "by attributes before names");
});

t.test("steps without a coordinate are called by a time that the variable names", (t) => {
  const since = { units: "minutes since 2000-01-24 12:00:00" };
  const named = { coordinates: "XLONG XLAT XTIME" };
  const wrf: Record<string, Declared> = {
    XLAT: ["Time y x"],
    XLONG: ["Time y x"],
    XTIME: ["Time", since],
    T2: ["Time y x", named],
    "group/U": ["Time y x", named],
  };
  const cases: [Record<string, Declared>, string | undefined][] = [
    [wrf, "XTIME"],
    [{ ...wrf, Time: ["Time"] }, "Time"],
    [{ ...wrf, XTIME: ["Time", { units: "minutes" }] }, undefined],
    [{ ...wrf, XTIME: ["time", since] }, undefined],
    [{ ...wrf, T2: ["Time y x"], "group/U": ["Time y x"] }, undefined],
    [{ ...wrf, XLAT: ["Time"], XLONG: ["Time"] }, undefined],
  ];
  for (const [variables, expected] of cases)
    for (const path of ["T2", "group/U"]) {
      const all = declared(variables);
      t.equal(stepCoordinate(all, all.get(path)!, "Time")?.path, expected);
    }
  t.end();
});

t.test("a swath has its places in another group, or with a time of one step", async (t) => {
  const swath: Record<string, Declared> = {
    "navigation_data/latitude": ["lines pixels", NORTH],
    "navigation_data/longitude": ["lines pixels", EAST],
    "geophysical_data/chlor_a": ["lines pixels"],
    "geophysical_data/Rrs": ["lines pixels band"],
    "geophysical_data/other": ["lines band"],
  };
  const places = "navigation_data/latitude navigation_data/longitude; lines pixels";
  t.equal(placed(swath, "geophysical_data/chlor_a"), places);
  t.equal(placed(swath, "geophysical_data/Rrs"), places, "the plane is theirs");
  t.equal(placed(swath, "geophysical_data/other"), "axes; lines band");
  const tropomi: Record<string, Declared> = {
    "PRODUCT/latitude": ["one lines pixels", NORTH],
    "PRODUCT/longitude": ["one lines pixels", EAST],
    "PRODUCT/no2": ["one lines pixels", { coordinates: "longitude latitude" }],
    "PRODUCT/SUPPORT/cloud": ["one lines pixels", { coordinates: "/PRODUCT/longitude /PRODUCT/latitude" }],
  };
  for (const path of ["PRODUCT/no2", "PRODUCT/SUPPORT/cloud"])
    t.equal(placed(tropomi, path), "PRODUCT/latitude PRODUCT/longitude; lines pixels");
});

t.test("coordinates with attributes come first, then projections, cells, and unnamed degrees", async (t) => {
  const axes: Record<string, Declared> = {
    y: ["y", { units: "m", standard_name: "projection_y_coordinate" }],
    x: ["x", { units: "m", standard_name: "projection_x_coordinate" }],
    v: ["time y x", { grid_mapping: "crs" }],
    crs: ["", POLAR],
  };
  const cells: Record<string, Declared> = { lat: ["y x", NORTH], lon: ["y x", EAST] };
  t.equal(placed(axes, "v"), "+proj=stere; y x");
  t.equal(placed({ ...axes, ...cells }, "v"), "+proj=stere; y x");
  t.equal(placed({ ...axes, ...cells, crs: ["", { grid_mapping_name: "healpix" }] }, "v"), "lat lon; y x");
  t.equal(
    placed({ ...axes, v: ["time y x", { grid_mapping: "no: lat lon crs: x y" }] }, "v"),
    "+proj=stere; y x",
  );
  t.equal(placed({ ...axes, v: ["time y x"] }, "v"), "+proj=stere; y x", "of the usual name");
  t.equal(
    placed({ ...axes, v: ["time y x"], crs: [""] }, "v", { crs: "EPSG:3413" }),
    "+x_0=0 +y_0; y x".replace("+x_0=0 +y_0", "+y_0=0 +x_0"),
  );
  const image: Record<string, Declared> = {
    y: ["y"],
    x: ["x"],
    v: ["band y x", { grid_mapping: "spatial_ref" }],
  };
  const reference = (attrs: JsonObject): Record<string, Declared> => ({ ...image, spatial_ref: ["", attrs] });
  t.equal(placed(reference({ GeoTransform: "0.0 1.0 0.0 0.0 0.0 1.0" }), "v"), "image; y x");
  t.equal(placed(reference({ grid_mapping_name: "latitude_longitude" }), "v"), "degrees; y x");
  t.equal(placed({ ...reference({ crs_wkt: "GEOGCS[]" }), ...cells }, "v"), "lat lon; y x");
  t.equal(placed(reference({}), "v"), "axes; y x");
  const regular: Record<string, Declared> = { lat: ["lat", NORTH], lon: ["lon", EAST], v: ["lat lon"] };
  t.equal(placed({ ...regular, TLAT: ["lat lon", NORTH], TLONG: ["lat lon", EAST] }, "v"), "axes; lat lon");
});
