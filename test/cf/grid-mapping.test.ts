import t, { type Test } from "tap";
import { type GridProjection, gridReferenceOf } from "../../src/cf/grid-mapping.js";
import { mapProjectionOf } from "../../src/cf/projection.js";
import type { JsonObject } from "../../src/json/json-value.js";
import { parseJson } from "../../src/json/parse-json.js";

const WGS84 = '"semi_major_axis": 6378137.0, "inverse_flattening": 298.257223563';

type Row = readonly [
  name: string,
  attrs: string,
  degrees: readonly [number, number],
  plane: readonly number[],
];

// Positions by pyproj 3.4 with PROJ 9.1:
// Transformer.from_crs(CRS.from_cf(attrs).geodetic_crs, CRS.from_cf(attrs), always_xy=True).transform(longitude, latitude)
const CF: readonly Row[] = [
  [
    "polar_stereographic",
    '"latitude_of_projection_origin": 90, "straight_vertical_longitude_from_pole": -45, "standard_parallel": 70, "semi_major_axis": 6378273, "semi_minor_axis": 6356889.449',
    [-60, 75],
    [-422888.0, -1578239.7],
  ],
  [
    "polar_stereographic",
    `"latitude_of_projection_origin": -90, "straight_vertical_longitude_from_pole": 0, "scale_factor_at_projection_origin": 0.994, "false_easting": 2e6, "false_northing": 2e6, ${WGS84}`,
    [20, -75],
    [2572729.9, 3573562.5],
  ],
  [
    "geostationary",
    '"perspective_point_height": 35786023, "longitude_of_projection_origin": -75, "sweep_angle_axis": "x", "semi_major_axis": 6378137, "semi_minor_axis": 6356752.31414',
    [-100, 40],
    [-1947935.1, 3852931.2],
  ],
  [
    "geostationary",
    '"perspective_point_height": 35785831, "longitude_of_projection_origin": 0, "fixed_angle_axis": "x", "semi_major_axis": 6378169, "semi_minor_axis": 6356583.8',
    [10, 50],
    [669609.6, 4539725.6],
  ],
  [
    "lambert_conformal_conic",
    '"standard_parallel": [33.0, 45.0], "latitude_of_projection_origin": 40, "longitude_of_central_meridian": -97, "earth_radius": 6370000',
    [-100, 40.5],
    [-252261.2, 59459.8],
  ],
  [
    "lambert_conformal_conic",
    '"standard_parallel": 25, "latitude_of_projection_origin": 25, "longitude_of_central_meridian": -95, "earth_radius": 6371229',
    [-100, 40],
    [-441546.9, 1696174.1],
  ],
  [
    "lambert_azimuthal_equal_area",
    '"latitude_of_projection_origin": 52, "longitude_of_projection_origin": 10, "false_easting": 4321000, "false_northing": 3210000, "semi_major_axis": 6378137, "inverse_flattening": 298.257222101',
    [2, 47],
    [3713381.6, 2686876.9],
  ],
  [
    "transverse_mercator",
    '"latitude_of_projection_origin": 49, "longitude_of_central_meridian": -2, "scale_factor_at_central_meridian": 0.9996012717, "false_easting": 400000, "false_northing": -100000, "semi_major_axis": 6377563.396, "inverse_flattening": 299.3249646',
    [-3, 55],
    [336038.8, 567734.9],
  ],
  [
    "transverse_mercator",
    '"latitude_of_projection_origin": 45, "longitude_of_central_meridian": 9, "scale_factor_at_central_meridian": 0.9996, "earth_radius": 6371000',
    [10, 40],
    [85146.9, -555274.6],
  ],
  [
    "mercator",
    `"longitude_of_projection_origin": 10, "standard_parallel": 30, ${WGS84}`,
    [2, 47],
    [-771890.2, 5123200.2],
  ],
  [
    "mercator",
    `"longitude_of_projection_origin": 110, "scale_factor_at_projection_origin": 0.997, ${WGS84}`,
    [115, -5],
    [554927.7, -551923.1],
  ],
  [
    "albers_conical_equal_area",
    `"standard_parallel": [29.5, 45.5], "latitude_of_projection_origin": 23, "longitude_of_central_meridian": -96, ${WGS84}`,
    [-100, 40],
    [-338390.6, 1894100.1],
  ],
  [
    "sinusoidal",
    '"longitude_of_projection_origin": 0, "earth_radius": 6371007.181',
    [-70, -30],
    [-6740841.8, -3335851.6],
  ],
  [
    "lambert_cylindrical_equal_area",
    `"longitude_of_central_meridian": 0, "standard_parallel": 30, ${WGS84}`,
    [10, 50],
    [964862.8, 5614050.1],
  ],
  [
    "azimuthal_equidistant",
    `"latitude_of_projection_origin": 53, "longitude_of_projection_origin": 24, ${WGS84}`,
    [10, 50],
    [-998063.5, -237191.0],
  ],
  [
    "orthographic",
    '"latitude_of_projection_origin": 40, "longitude_of_projection_origin": 10, "earth_radius": 6371000',
    [2, 47],
    [-604708.7, 803610.1],
  ],
  [
    "stereographic",
    '"latitude_of_projection_origin": 52, "longitude_of_projection_origin": 10, "scale_factor_at_projection_origin": 0.9996, "earth_radius": 6371000',
    [2, 47],
    [-606861.4, -523806.0],
  ],
  [
    "rotated_latitude_longitude",
    '"grid_north_pole_latitude": 39.25, "grid_north_pole_longitude": -162',
    [2, 47],
    [-10.8462619, -2.5759746],
  ],
  [
    "rotated_latitude_longitude",
    '"grid_north_pole_latitude": 5, "grid_north_pole_longitude": 20, "north_pole_grid_longitude": 10',
    [30, -75],
    [-167.3861098, 9.7721849],
  ],
];

t.test("places of CF's grid mappings are those of PROJ, both ways", async (t) => {
  for (const [name, attrs, degrees, plane] of CF) {
    const isRotated = name.startsWith("rotated");
    const mapping = parseJson(`{"grid_mapping_name": "${name}", ${attrs}}`) as JsonObject;
    checkPlace(t, `${name} ${attrs}`, mapping, isRotated ? "degrees" : "m", degrees, plane);
  }
});

const GRS80 =
  'GEOGCS["NAD83",DATUM["North_American_Datum_1983",SPHEROID["GRS 1980",6378137,298.257222101]],PRIMEM["Greenwich",0],UNIT["degree",0.0174532925199433]]';
const LONG_ISLAND = `PROJCS["NAD83 / New York Long Island (ftUS)",${GRS80},PROJECTION["Lambert_Conformal_Conic_2SP"],PARAMETER["latitude_of_origin",40.1666666666667],PARAMETER["central_meridian",-74],PARAMETER["standard_parallel_1",41.0333333333333],PARAMETER["standard_parallel_2",40.6666666666667],PARAMETER["false_easting",984250],PARAMETER["false_northing",0],UNIT["US survey foot",0.304800609601219],AXIS["Easting",EAST],AXIS["Northing",NORTH]]`;
const ARCTIC =
  'PROJCRS["WGS 84 / NSIDC Sea Ice Polar Stereographic North",BASEGEOGCRS["WGS 84",DATUM["World Geodetic System 1984",ELLIPSOID["WGS 84",6378137,298.257223563,LENGTHUNIT["metre",1]]],PRIMEM["Greenwich",0,ANGLEUNIT["degree",0.0174532925199433]]],CONVERSION["US NSIDC Sea Ice polar stereographic north",METHOD["Polar Stereographic (variant B)",ID["EPSG",9829]],PARAMETER["Latitude of standard parallel",70,ANGLEUNIT["degree",0.0174532925199433]],PARAMETER["Longitude of origin",-45,ANGLEUNIT["degree",0.0174532925199433]],PARAMETER["False easting",0,LENGTHUNIT["metre",1]],PARAMETER["False northing",0,LENGTHUNIT["metre",1]]],CS[Cartesian,2],AXIS["easting (X)",south,ORDER[1],LENGTHUNIT["metre",1]],AXIS["northing (Y)",south,ORDER[2],LENGTHUNIT["metre",1]],ID["EPSG",3413]]';

// Positions by osgeo.osr (GDAL 3.6): CoordinateTransformation(system.CloneGeogCS(), system) in traditional axis order.
t.test("places of other definitions are those of PROJ, in the units of the coordinates", async (t) => {
  for (const [attrs, units, degrees, plane] of [
    [{ crs_wkt: LONG_ISLAND }, undefined, [-74, 40.7], [984250.0, 194305.3]],
    [{ spatial_ref: LONG_ISLAND }, "m", [-74, 40.7], [300000.0, 59224.4]],
    [{ spatial_ref: ARCTIC }, undefined, [-60, 75], [-422879.1, -1578206.4]],
    [{ spatial_ref: ARCTIC }, "km", [-60, 75], [-422.8791, -1578.2064]],
    [{ epsg_code: "EPSG:3413" }, "m", [-60, 75], [-422879.1, -1578206.4]],
    [{ spatial_epsg: 3031 }, undefined, [20, -75], [560496.9, 1539952.5]],
    [{ crs: "EPSG:32633" }, undefined, [10, 50], [141743.6, 5550619.4]],
    [{ crs: "urn:ogc:def:crs:EPSG::32719" }, undefined, [-70, -30], [403549.8, 6680793.8]],
    [{ "proj:code": "EPSG:3857" }, undefined, [10, 50], [1113194.9, 6446275.8]],
    [{ "proj:epsg": 3035 }, "metre", [10, 50], [4321000.0, 2987510.6]],
    [{ crs: "+init=epsg:5070" }, undefined, [-100, 40], [-338390.6, 1894100.1]],
    [{ crs: "epsg:6933" }, undefined, [10, 50], [964862.8, 5614050.1]],
    [{ proj4: "+proj=sinu +lon_0=0 +R=6371007.181 +units=km" }, undefined, [10, 50], [714.748, 5559.7526]],
    [{ proj4: "+proj=sinu +lon_0=0 +R=6371007.181" }, "100 km", [10, 50], [7.14748, 55.597526]],
  ] as [JsonObject, string | undefined, [number, number], [number, number]][])
    checkPlace(t, JSON.stringify(attrs).slice(0, 60), attrs, units, degrees, plane);
  const goes = {
    grid_mapping_name: "geostationary",
    perspective_point_height: 35786023,
    sweep_angle_axis: "x",
  };
  const radians = gridReferenceOf(goes, "rad") as GridProjection;
  t.equal(radians.scale, 35786023, "angles of the instrument");
});

t.test("degrees, images and unknown systems are told apart", async (t) => {
  const wgs84 = GRS80.replace("NAD83", "WGS 84");
  for (const [attrs, units, expected] of [
    [{ grid_mapping_name: "latitude_longitude" }, undefined, "degrees"],
    [{ grid_mapping_name: "latitude_longitude" }, "degrees_east", "degrees"],
    // The datum of latitudes and longitudes elsewhere.
    [{ grid_mapping_name: "latitude_longitude" }, "m", undefined],
    [{ crs_wkt: wgs84 }, undefined, "degrees"],
    [{ crs: "EPSG:4326" }, undefined, "degrees"],
    [{ proj4: "+proj=longlat +datum=WGS84" }, undefined, "degrees"],
    [{ GeoTransform: "0.0 1.0 0.0 0.0 0.0 1.0" }, undefined, "pixels"],
    [{ GeoTransform: "0.0 1.0 0.0 0.0 0.0 1.0", crs_wkt: wgs84 }, undefined, "degrees"],
    [{ GeoTransform: "500000 10 0 4600000 0 -10" }, undefined, undefined],
    [{ grid_mapping_name: "geostationary" }, "rad", undefined],
    [{ grid_mapping_name: "lambert_conformal_conic", standard_parallel: 30 }, "1", undefined],
    [{ grid_mapping_name: "healpix" }, undefined, undefined],
    [{ crs: "EPSG:2056" }, undefined, undefined],
    [{ crs_wkt: 'ENGCRS["of a machine"]' }, undefined, undefined],
    [{}, undefined, undefined],
  ] as [JsonObject, string | undefined, string | undefined][])
    t.equal(gridReferenceOf(attrs, units), expected, JSON.stringify(attrs));
  t.equal(mapProjectionOf({ definition: "+proj=nothing", scale: 1 }), undefined);
});

/** Checks a place in both directions, to a tenth of the last digit that is written. */
function checkPlace(
  t: Test,
  name: string,
  attrs: JsonObject,
  units: string | undefined,
  [longitude, latitude]: readonly [number, number],
  [x = 0, y = 0]: readonly number[],
): void {
  const projection = mapProjectionOf(gridReferenceOf(attrs, units) as GridProjection);
  const place = projection?.toPlane(longitude, latitude);
  const tolerance = Math.max(Math.hypot(x, y) * 2e-7, 1e-7);
  t.ok(place && Math.hypot(place.x - x, place.y - y) < tolerance, `${name}: ${JSON.stringify(place)}`);
  const back = projection?.toDegrees(x, y);
  t.ok(
    back && Math.hypot(back.longitude - longitude, back.latitude - latitude) < 1e-4,
    `${name}: ${JSON.stringify(back)}`,
  );
}
