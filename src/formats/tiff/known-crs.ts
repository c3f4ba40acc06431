import type { Crs, Ellipsoid, GeographicCrs, ProjectedCrs } from "./crs.js";
import { PROJECTIONS, type Projection } from "./projections.js";

/** Ellipsoids by EPSG's code: name, semi-major axis, inverse flattening. */
const ELLIPSOIDS: Readonly<Record<number, readonly [string, number, number]>> = {
  7001: ["Airy 1830", 6377563.396, 299.3249646],
  7004: ["Bessel 1841", 6377397.155, 299.1528128],
  7008: ["Clarke 1866", 6378206.4, 294.978698213898],
  7019: ["GRS 1980", 6378137, 298.257222101],
  7022: ["International 1924", 6378388, 297],
  7024: ["Krassowsky 1940", 6378245, 298.3],
  7030: ["WGS 84", 6378137, 298.257223563],
  7043: ["WGS 72", 6378135, 298.26],
};

/** Geographic systems by EPSG's code: name, datum, its code, code of the ellipsoid. */
const GEOGRAPHIC: Readonly<Record<number, readonly [string, string, number, number]>> = {
  4258: ["ETRS89", "European_Terrestrial_Reference_System_1989", 6258, 7019],
  4267: ["NAD27", "North_American_Datum_1927", 6267, 7008],
  4269: ["NAD83", "North_American_Datum_1983", 6269, 7019],
  4322: ["WGS 72", "World_Geodetic_System_1972", 6322, 7043],
  4326: ["WGS 84", "WGS_1984", 6326, 7030],
};

/** Systems of UTM zones: code of zone 0, code of the geographic system, first and last zone, hemisphere. */
const UTM: readonly (readonly [number, number, number, number, "N" | "S"])[] = [
  [25_800, 4258, 28, 37, "N"],
  [26_700, 4267, 1, 22, "N"],
  [26_900, 4269, 1, 23, "N"],
  [32_200, 4322, 1, 60, "N"],
  [32_600, 4326, 1, 60, "N"],
  [32_700, 4326, 1, 60, "S"],
];

const METRE = { name: "metre", metres: 1, code: 9001 };
const SOUTHWARDS = 'AXIS["Easting",SOUTH],AXIS["Northing",SOUTH]';
const NORTHWARDS = 'AXIS["Easting",NORTH],AXIS["Northing",NORTH]';

type Known = readonly [
  string,
  number,
  Projection,
  readonly number[],
  { readonly axes?: string; readonly extension?: string }?,
];

/** Projected systems that many images have, by EPSG's code: name, geographic system, projection and its values. */
const PROJECTED: Readonly<Record<number, Known>> = {
  3031: [
    "WGS 84 / Antarctic Polar Stereographic",
    4326,
    PROJECTIONS.polarStereographicB,
    [-71, 0, 0, 0],
    { axes: NORTHWARDS },
  ],
  3035: [
    "ETRS89-extended / LAEA Europe",
    4258,
    PROJECTIONS.lambertAzimuthal,
    [52, 10, 4321000, 3210000],
    { axes: 'AXIS["Northing",NORTH],AXIS["Easting",EAST]' },
  ],
  3395: ["WGS 84 / World Mercator", 4326, PROJECTIONS.mercator1, [0, 1, 0, 0]],
  3413: [
    "WGS 84 / NSIDC Sea Ice Polar Stereographic North",
    4326,
    PROJECTIONS.polarStereographicB,
    [70, -45, 0, 0],
    { axes: SOUTHWARDS },
  ],
  3857: [
    "WGS 84 / Pseudo-Mercator",
    4326,
    PROJECTIONS.mercator1,
    [0, 1, 0, 0],
    {
      extension:
        'EXTENSION["PROJ4","+proj=merc +a=6378137 +b=6378137 +lat_ts=0 +lon_0=0 +x_0=0 +y_0=0 +k=1 +units=m +nadgrids=@null +wktext +no_defs"]',
    },
  ],
  5070: ["NAD83 / Conus Albers", 4269, PROJECTIONS.albers, [23, -96, 29.5, 45.5, 0, 0]],
  6933: ["WGS 84 / NSIDC EASE-Grid 2.0 Global", 4326, PROJECTIONS.cylindricalEqualArea, [30, 0, 0, 0]],
};

/** Returns an ellipsoid by EPSG's code; undefined if it is not known here. */
export function knownEllipsoid(code: number): Ellipsoid | undefined {
  const found = ELLIPSOIDS[code];
  if (found === undefined) return undefined;
  const [name, semiMajorAxis, inverseFlattening] = found;
  return { name, semiMajorAxis, inverseFlattening, code };
}

/** Returns a geographic system by EPSG's code; undefined if it is not known here. */
export function knownGeographic(code: number): GeographicCrs | undefined {
  const found = GEOGRAPHIC[code];
  if (found === undefined) return undefined;
  const [name, datum, datumCode, ellipsoid] = found;
  return {
    kind: "geographic",
    name,
    datum,
    datumCode,
    ellipsoid: knownEllipsoid(ellipsoid) as Ellipsoid,
    code,
  };
}

/** Returns a system by EPSG's code, if it is one of the few hundred that most images have. */
export function knownCrs(code: number): Crs | undefined {
  return knownGeographic(code) ?? utmZone(code) ?? knownProjected(code);
}

function utmZone(code: number): ProjectedCrs | undefined {
  for (const [zero, geographic, first, last, hemisphere] of UTM) {
    const zone = code - zero;
    if (zone < first || zone > last) continue;
    const base = knownGeographic(geographic) as GeographicCrs;
    return {
      kind: "projected",
      name: `${base.name} / UTM zone ${zone}${hemisphere}`,
      base,
      projection: PROJECTIONS.transverseMercator,
      values: [0, 6 * zone - 183, 0.9996, 500_000, hemisphere === "N" ? 0 : 10_000_000],
      unit: METRE,
      code,
    };
  }
  return undefined;
}

function knownProjected(code: number): ProjectedCrs | undefined {
  const found = PROJECTED[code];
  if (found === undefined) return undefined;
  const [name, geographic, projection, values, rest] = found;
  const base = knownGeographic(geographic) as GeographicCrs;
  return { kind: "projected", name, base, projection, values, unit: METRE, ...rest, code };
}
