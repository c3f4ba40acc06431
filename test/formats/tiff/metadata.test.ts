import t from "tap";
import { runNow } from "../../../src/event-loop/cooperative-task.js";
import { crsAttributes, GEO_KEY } from "../../../src/formats/tiff/crs.js";
import type { TiffImage } from "../../../src/formats/tiff/image.js";
import { nodataOf, parseFloatText, parseGdalMetadata, tagValue } from "../../../src/formats/tiff/metadata.js";
import { stringifyJson } from "../../../src/json/stringify-json.js";

t.test("items belong to the image, to a band, or have a role", async (t) => {
  const xml = `<GDALMetadata>
  <Item name="a">x &amp;lt; y</Item>
  <Item name="b" sample="1">2</Item>
  <Item name="SCALE" sample="0" role="scale">0.5</Item>
  <Item name="hidden" domain="other">1</Item>
  <Item name="COLORINTERP" sample="0" role="colorinterp">Red</Item>
  <Item>nameless</Item>
</GDALMetadata>`;
  const { image, bands, roles } = runNow(parseGdalMetadata(xml));
  t.same([...image], [["a", "x < y"]]);
  t.same([...(bands.get(1) ?? [])], [["b", "2"]]);
  t.same([...roles.keys()], ["scale"]);
  t.equal(bands.size, 1);
});

t.test("texts become the values that rioxarray makes of them", async (t) => {
  const cases: Record<string, string> = {
    "12": "12",
    " 7 ": "7",
    "1_000": "1000",
    "+5": "5",
    "123456789012345678901": "123456789012345678901",
    "1.50": "1.5",
    "2.": "2.0",
    "-1e5": "-100000.0",
    "0x10": '"0x10"',
    "": '""',
    "{1,2.5}": "[1.0,2.5]",
    "{a,1}": '"{a,1}"',
    "2020:01:01": '"2020:01:01"',
  };
  for (const [text, json] of Object.entries(cases)) t.equal(stringifyJson(tagValue(text)), json, text);
  t.equal(parseFloatText("-inf"), Number.NEGATIVE_INFINITY);
  t.equal(parseFloatText("1".repeat(1000)), undefined);
});

t.test("a missing-value mark is an item of the image's type, or none", async (t) => {
  const image = (kind: TiffImage["kind"], itemSize: number, isBigEndian = false) =>
    ({ kind, itemSize, isBigEndian }) as TiffImage;
  const of = (text: string, type: TiffImage) => {
    const found = nodataOf(text, type);
    return found && [stringifyJson(found.json), Buffer.from(found.item).toString("hex")];
  };
  t.same(of("-9999", image("i", 2)), ["-9999", "f1d8"]);
  t.same(of("-9999", image("i", 2, true)), ["-9999", "d8f1"]);
  t.same(of("255.0", image("u", 1)), ["255", "ff"]);
  t.same(of("18446744073709551615", image("u", 8)), ["18446744073709551615", "f".repeat(16)]);
  t.same(of("nan", image("f", 4)), ['"NaN"', "0000c07f"]);
  t.same(of("0.1", image("f", 4)), ["0.10000000149011612", "cdcccc3d"]);
  t.same(of("-inf", image("f", 8)), ['"-Infinity"', "000000000000f0ff"]);
  for (const [text, type] of [
    ["-1", image("u", 1)],
    ["256", image("u", 1)],
    ["1.5", image("u", 2)],
    ["nan", image("i", 2)],
    ["1e300", image("f", 4)],
    ["abc", image("f", 8)],
    ["0", image("c", 8)],
  ] as const) {
    t.equal(nodataOf(text, type), undefined, text);
  }
});

/** Attributes as JSON, and warnings. */
function read(entries: readonly (readonly [number, number | string])[]) {
  const warnings: string[] = [];
  const attrs = crsAttributes(new Map(entries), (warning) => warnings.push(warning));
  return { attrs, warnings, json: stringifyJson(attrs) };
}

const projected = (code: number) =>
  read([
    [GEO_KEY.modelType, 1],
    [GEO_KEY.projectedCrs, code],
  ]);

t.test("a file without keys has no system, and no warning", async (t) => {
  t.same(read([]), { attrs: {}, warnings: [], json: "{}" });
  t.same(read([[GEO_KEY.rasterType, 1]]).warnings, []);
});

t.test("frequent systems are written as GDAL and pyproj write them", async (t) => {
  const { attrs, json } = projected(32733);
  // As rasterio 1.3.5 and rioxarray 0.13.3 with PROJ 9.1 have it.
  t.equal(
    attrs.crs_wkt,
    'PROJCS["WGS 84 / UTM zone 33S",GEOGCS["WGS 84",DATUM["WGS_1984",SPHEROID["WGS 84",6378137,298.257223563,AUTHORITY["EPSG","7030"]],AUTHORITY["EPSG","6326"]],PRIMEM["Greenwich",0,AUTHORITY["EPSG","8901"]],UNIT["degree",0.0174532925199433,AUTHORITY["EPSG","9122"]],AUTHORITY["EPSG","4326"]],PROJECTION["Transverse_Mercator"],PARAMETER["latitude_of_origin",0],PARAMETER["central_meridian",15],PARAMETER["scale_factor",0.9996],PARAMETER["false_easting",500000],PARAMETER["false_northing",10000000],UNIT["metre",1,AUTHORITY["EPSG","9001"]],AXIS["Easting",EAST],AXIS["Northing",NORTH],AUTHORITY["EPSG","32733"]]',
  );
  t.equal(attrs.spatial_ref, attrs.crs_wkt);
  t.match(json, /"semi_major_axis":6378137\.0,"semi_minor_axis":6356752\.314245179,/);
  t.match(json, /"horizontal_datum_name":"World Geodetic System 1984"/);
  t.match(json, /"false_northing":10000000\.0/);
  t.match(projected(5070).json, /"standard_parallel":\[29\.5,45\.5\]/);
  t.notOk("grid_mapping_name" in projected(3857).attrs, "CF has no name for it");
  const geographic = read([
    [GEO_KEY.modelType, 2],
    [GEO_KEY.geodeticCrs, 4326],
  ]);
  t.match(geographic.attrs, { grid_mapping_name: "latitude_longitude", crs_wkt: /^GEOGCS\["WGS 84"/ });
});

t.test("zones that do not exist, and all other systems, are named by their code", async (t) => {
  for (const code of [32600, 32661, 25838, 2056, 27700]) {
    t.same(projected(code), {
      attrs: { crs_wkt: `EPSG:${code}`, spatial_ref: `EPSG:${code}` },
      warnings: [],
      json: `{"crs_wkt":"EPSG:${code}","spatial_ref":"EPSG:${code}"}`,
    });
  }
});

const SINUSOIDAL = [
  [GEO_KEY.modelType, 1],
  [GEO_KEY.citation, "MODIS"],
  [GEO_KEY.geodeticCrs, 32767],
  [GEO_KEY.geodeticCitation, 'GCS Name = sphere "S"|Datum = D|Ellipsoid = E|'],
  [GEO_KEY.semiMajorAxis, 6371007.181],
  [GEO_KEY.semiMinorAxis, 6371007.181],
  [GEO_KEY.projectedCrs, 32767],
  [GEO_KEY.method, 24],
  [GEO_KEY.linearUnits, 9001],
  [3088, 10],
] as const;

t.test("systems that keys define are written with the keys' values", async (t) => {
  const { attrs, warnings } = read(SINUSOIDAL);
  t.same(warnings, []);
  t.match(attrs, {
    grid_mapping_name: "sinusoidal",
    projected_crs_name: "MODIS",
    geographic_crs_name: 'sphere "S"',
  });
  t.match(attrs.crs_wkt, /^PROJCS\["MODIS",GEOGCS\["sphere 'S'",DATUM\["D",SPHEROID\["E",6371007\.181,0\]\]/);
  t.match(attrs.crs_wkt, /PROJECTION\["Sinusoidal"\],PARAMETER\["longitude_of_center",10\]/);
});

t.test("a citation may hold the system itself", async (t) => {
  const { attrs } = read([
    [GEO_KEY.modelType, 32767],
    [GEO_KEY.projectedCitation, 'ESRI PE String = PROJCS["x"]'],
  ]);
  t.same(attrs, { crs_wkt: 'PROJCS["x"]', spatial_ref: 'PROJCS["x"]' });
});

t.test("what cannot be written is left out, with its keys in a warning", async (t) => {
  const replaced = (...others: readonly (readonly [number, number])[]) => read([...SINUSOIDAL, ...others]);
  for (const [result, reason] of [
    [replaced([GEO_KEY.method, 27]), /projection method 27; GeoKeys: 1024=1,/],
    [replaced([GEO_KEY.linearUnits, 9035]), /linear unit 9035/],
    [replaced([GEO_KEY.angularUnits, 9105]), /angular unit 9105/],
    [replaced([GEO_KEY.primeMeridianLongitude, 2.3]), /prime meridian/],
    [replaced([GEO_KEY.geodeticCrs, 4289]), /EPSG:4289/],
    [replaced([GEO_KEY.semiMajorAxis, -1]), /ellipsoid/],
    [read([[GEO_KEY.modelType, 3]]), /model of type 3/],
  ] as const) {
    t.same(result.attrs, {});
    t.match(result.warnings, [reason]);
  }
});
