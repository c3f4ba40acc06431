import { TAG, type TiffDirectory } from "./tiff-directory.js";

/** GeoKeys by id: a short, a double, or a text without the bar at its end. */
export type GeoKeys = ReadonlyMap<number, number | string>;

/** Ids of GeoKeys (OGC 19-008r4, annex B) that the reader uses. */
export const GEO_KEY = {
  modelType: 1024,
  rasterType: 1025,
  citation: 1026,
  geodeticCrs: 2048,
  geodeticCitation: 2049,
  datum: 2050,
  primeMeridian: 2051,
  angularUnits: 2054,
  ellipsoid: 2056,
  semiMajorAxis: 2057,
  semiMinorAxis: 2058,
  inverseFlattening: 2059,
  primeMeridianLongitude: 2061,
  projectedCrs: 3072,
  projectedCitation: 3073,
  method: 3075,
  linearUnits: 3076,
  linearUnitSize: 3077,
  verticalCrs: 4096,
} as const;

/** "User-defined" as the value of a key: the keys around it say what is meant. */
export const USER_DEFINED = 32_767;

/** Most keys, and longest text of a key: the specification has fewer than 60 keys. */
const MAX_KEYS = 1000;
const MAX_TEXT_LENGTH = 16_384;

/** Reads the key directory (OGC 19-008r4, section 7.1). Keys whose values are not there are left out. */
export function readGeoKeys({ numbers, texts }: TiffDirectory): GeoKeys {
  const keys = new Map<number, number | string>();
  const directory = (numbers.get(TAG.geoKeyDirectory) ?? []).slice(0, 4 * (MAX_KEYS + 1));
  const doubles = numbers.get(TAG.geoDoubleParams) ?? [];
  const text = texts.get(TAG.geoAsciiParams) ?? "";
  for (let at = 4; at + 3 < directory.length; at += 4) {
    const [id, place, count, value] = directory.slice(at, at + 4) as [number, number, number, number];
    if (place === 0) keys.set(id, value);
    else if (place === TAG.geoAsciiParams) {
      keys.set(
        id,
        text
          .slice(value, value + Math.min(count, MAX_TEXT_LENGTH))
          .replace(/\|$/, "")
          .trim(),
      );
    } else if (place === TAG.geoDoubleParams && doubles[value] !== undefined) keys.set(id, doubles[value]);
  }
  return keys;
}

/** Returns the value of a key that is a number. */
export function numberKey(keys: GeoKeys, id: number): number | undefined {
  const value = keys.get(id);
  return typeof value === "number" ? value : undefined;
}

/** Returns the value of a key that is a text; undefined if it is empty. */
export function textKey(keys: GeoKeys, id: number): string | undefined {
  const value = keys.get(id);
  return typeof value === "string" && value !== "" ? value : undefined;
}
