import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import type { JsonValue } from "../../json/json-value.js";
import { pythonFloat } from "../../json/stringify-json.js";

/** GDAL's metadata of a file, as its own tag has them. Values are texts. */
export interface GdalMetadata {
  /** Those of the whole image, by name. */
  readonly image: ReadonlyMap<string, string>;
  /** Those of bands: by band from 0, then by name. */
  readonly bands: ReadonlyMap<number, ReadonlyMap<string, string>>;
  /** By role (`scale`, `offset`, `unittype`, `description`), then by band from 0. */
  readonly roles: ReadonlyMap<string, ReadonlyMap<number, string>>;
}

/** Lengths are bounded where a pattern would otherwise try all of a long text from each of its places. */
const ITEM = /<Item\s([^<>]{0,1000})>([^<]*)<\/Item>/g;
const ATTRIBUTE = /(\w+)\s*=\s*"([^"]*)"/g;
/** Longest text that may be a number. */
const MAX_NUMBER_LENGTH = 400;
const ROLES: ReadonlySet<string> = new Set(["scale", "offset", "unittype", "description"]);

/** Parses the tag GDAL_METADATA (GDAL, GTiff driver): items of XML, of which those of the default domain are kept. */
export function* parseGdalMetadata(xml: string): CooperativeTask<GdalMetadata> {
  const image = new Map<string, string>();
  const bands = new Map<number, Map<string, string>>();
  const roles = new Map<string, Map<number, string>>();
  for (const [, attributes = "", text = ""] of xml.matchAll(ITEM)) {
    yield;
    const found = new Map(
      [...attributes.matchAll(ATTRIBUTE)].map(([, key, value]) => [key, unescaped(value ?? "")]),
    );
    const name = found.get("name");
    if (name === undefined || (found.get("domain") ?? "") !== "") continue;
    const role = found.get("role") ?? "";
    const band = Number(found.get("sample") ?? Number.NaN);
    const value = unescaped(text);
    if (Number.isNaN(band)) image.set(name, value);
    else if (ROLES.has(role)) entryOf(roles, role).set(band, value);
    else if (role === "") entryOf(bands, band).set(name, value);
  }
  return { image, bands, roles };
}

/** Converts the text of a tag as rioxarray does: integers, floats, lists of floats in braces, other texts as they are. */
export function tagValue(text: string): JsonValue {
  if (!text.startsWith("{") || !text.endsWith("}")) return numberOrText(text);
  const items = text.slice(1, -1).split(",").map(parseFloatText);
  return items.every((item) => item !== undefined) ? items.map(pythonFloat) : text;
}

/** Parses a float as Python's `float` does; undefined if the text is none. */
export function parseFloatText(text: string): number | undefined {
  if (text.length > MAX_NUMBER_LENGTH) return undefined;
  const trimmed = text.trim().toLowerCase();
  const special = /^([+-]?)(?:inf(?:inity)?|nan)$/.exec(trimmed);
  if (special !== null) {
    if (trimmed.endsWith("nan")) return Number.NaN;
    return special[1] === "-" ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  return /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/.test(trimmed) ? Number(trimmed) : undefined;
}

function numberOrText(text: string): JsonValue {
  if (text.length > MAX_NUMBER_LENGTH) return text;
  const trimmed = text.trim();
  if (/^[+-]?\d+(?:_\d+)*$/.test(trimmed)) {
    const integer = BigInt(trimmed.replace(/^\+|_/g, ""));
    return Number.isSafeInteger(Number(integer)) ? Number(integer) : integer;
  }
  const float = parseFloatText(text);
  if (float === undefined) return text;
  return Number.isFinite(float) ? pythonFloat(float) : float;
}

function entryOf<K, V>(map: Map<K, Map<V, string>>, key: K): Map<V, string> {
  const found = map.get(key) ?? new Map<V, string>();
  map.set(key, found);
  return found;
}

/** Replaces entities, twice: GDAL writes `&amp;lt;` for `<`, and reads it so. */
function unescaped(text: string): string {
  return text.includes("&") ? withoutEntities(withoutEntities(text)) : text;
}

/** Replaces entities of XML, once. */
function withoutEntities(text: string): string {
  return text.replace(
    /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|(lt|gt|quot|apos|amp));/gi,
    (whole, hex, decimal, name) => {
      if (name !== undefined)
        return { lt: "<", gt: ">", quot: '"', apos: "'", amp: "&" }[name as "lt"] ?? whole;
      const code = hex === undefined ? Number(decimal) : Number.parseInt(hex, 16);
      return code <= 0x10ffff ? String.fromCodePoint(code) : whole;
    },
  );
}
