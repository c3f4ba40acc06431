import {
  COLOUR_SCALES,
  type ColourScaleName,
  type MapFrame,
  type MapStyle,
  parseColourRange,
  readInteger,
  wrongParameter,
} from "../../plugin-api.js";

/** Versions of WMS that are answered. */
export type WmsVersion = "1.3.0" | "1.1.1";

/** The parameters of a request. */
export type WmsParameters = ReturnType<typeof parseWmsQuery>;

/** Finds the version of a query; that of the answer even if the query is wrong. */
export function wmsVersion(query: string): WmsVersion {
  const values = new Map(parametersOf(query));
  const version = values.get("VERSION") || values.get("WMTVER");
  // A lower version than 1.3.0 is answered with the highest one below (OGC 06-042, section 6.2.4).
  if (version) return /^1\.[0-2](?:\.|$)/.test(version) ? "1.1.1" : "1.3.0";
  return values.has("SRS") ? "1.1.1" : "1.3.0";
}

function parametersOf(query: string): (readonly [name: string, value: string])[] {
  return [...new URLSearchParams(query)].map(([name, value]) => [name.toUpperCase(), value]);
}

/**
 * Parses a query. Parameters that no version has are ignored.
 * @returns What reads parameters by their names in upper case; `get` returns undefined if one is not there, or empty.
 * @throws ZpublishError `invalid-query` if a parameter has two values; `need` also if it is not there
 */
export function parseWmsQuery(query: string) {
  const parameters = parametersOf(query);
  const values = new Map(parameters);
  for (const [name, value] of parameters)
    if (values.get(name) !== value)
      throw wrongParameter(name, "repeated_parameter", "one value of a parameter", value);
  const get = (name: string) => values.get(name) || undefined;
  const need = (name: string) => {
    const value = get(name);
    if (value !== undefined) return value;
    throw wrongParameter(name, "missing", `the parameter ${name}`, "");
  };
  return { version: wmsVersion(query), get, need, names: [...values.keys()] };
}

/** Coordinate systems by their names in capabilities. Version 1.1.1 has no CRS:84: its EPSG:4326 is the same. */
export const CRS_NAMES = {
  "1.3.0": ["EPSG:4326", "CRS:84", "EPSG:3857"],
  "1.1.1": ["EPSG:4326", "EPSG:3857"],
} as const;

/** Pixels along the sides of a map, at most. */
export const MAX_PIXELS = 4096;

const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

/** Reads which part of the Earth a map shows. @throws ZpublishError `invalid-query` */
export function parseFrame(parameters: WmsParameters): MapFrame {
  const { version, need } = parameters;
  const parameter = version === "1.3.0" ? "CRS" : "SRS";
  const name = need(parameter);
  const crs = CRS_NAMES["1.3.0"].find((each) => each === name.toUpperCase());
  if (crs === undefined)
    throw wrongParameter(parameter, `Invalid${parameter}`, `one of ${CRS_NAMES[version].join(", ")}`, name);
  const text = need("BBOX");
  const box = text.split(",").map((part) => (NUMBER.test(part) ? Number(part) : Number.NaN));
  const [a, b, c, d] = box as [number, number, number, number];
  // Version 1.3.0 has the axes of EPSG:4326 in the order of its definition: latitude first.
  const [west, south, east, north] = crs === "EPSG:4326" && version === "1.3.0" ? [b, a, d, c] : [a, b, c, d];
  const isBox = box.length === 4 && west < east && south < north;
  if (!isBox || !Number.isFinite(east - west) || !Number.isFinite(north - south))
    throw wrongParameter("BBOX", "bbox", "four numbers, least values before greatest ones", text);
  return {
    crs: crs === "EPSG:3857" ? crs : "CRS:84",
    bbox: [west, south, east, north],
    width: parsePixels(parameters, "WIDTH"),
    height: parsePixels(parameters, "HEIGHT"),
  };
}

/** Reads a number of pixels. @param otherwise Default if the parameter may be missing. @throws ZpublishError `invalid-query` */
export function parsePixels({ get, need }: WmsParameters, name: string, otherwise?: number): number {
  return readInteger(name, get(name) ?? otherwise?.toString() ?? need(name), 1, MAX_PIXELS);
}

/** Reads the pixel of a map that is asked about, which is a map of its own. @throws ZpublishError `invalid-query` */
export function parsePixel({ version, need }: WmsParameters, frame: MapFrame): MapFrame {
  const { crs, bbox, width, height } = frame;
  const [west, south, east, north] = bbox;
  const [i, j] = version === "1.3.0" ? (["I", "J"] as const) : (["X", "Y"] as const);
  const [across, down] = [(east - west) / width, (south - north) / height];
  const left = west + readInteger(i, need(i), 0, width - 1) * across;
  const top = north + readInteger(j, need(j), 0, height - 1) * down;
  return { crs, bbox: [left, top + down, left + across, top], width: 1, height: 1 };
}

/** The style of each layer that has the colours that are chosen by its values. */
export const DEFAULT_STYLE = "default";
const REVERSED = "-inv";

/** Further styles of layers whose values are no categories. */
export const SCALE_STYLES = Object.keys(COLOUR_SCALES) as readonly ColourScaleName[];

/**
 * Reads how values become colours. A style is the name of a scale, with `-inv` if it is reversed; `COLORSCALERANGE`, as ncWMS has it, are the
 * values of the first and the last colour.
 * @throws ZpublishError `invalid-query`
 */
export function parseStyle(
  { get }: WmsParameters,
  parameter: "STYLES" | "STYLE",
  isCategorical: boolean,
): MapStyle {
  const name = get(parameter) ?? DEFAULT_STYLE;
  const scales = isCategorical ? [] : SCALE_STYLES;
  const isReversed = name.endsWith(REVERSED);
  const scale = scales.find((each) => each === (isReversed ? name.slice(0, -REVERSED.length) : name));
  if (scale === undefined && name !== DEFAULT_STYLE) {
    const known = [DEFAULT_STYLE, ...scales].join(", ");
    throw wrongParameter(parameter, "StyleNotDefined", `one of ${known}`, name);
  }
  const range = isCategorical ? undefined : get("COLORSCALERANGE")?.replaceAll(" ", "");
  return {
    scale,
    isReversed,
    range: range === "auto" ? undefined : parseColourRange(range, "COLORSCALERANGE"),
  };
}

/** Reads the colour of what has no value; undefined if that is transparent. @throws ZpublishError `invalid-query` */
export function parseBackground({ get }: WmsParameters): string | undefined {
  const transparent = get("TRANSPARENT") ?? "FALSE";
  if (!/^(?:true|false)$/i.test(transparent))
    throw wrongParameter("TRANSPARENT", "enum", "TRUE or FALSE", transparent);
  const colour = get("BGCOLOR") ?? "0xFFFFFF";
  if (!/^0x[0-9a-f]{6}$/i.test(colour))
    throw wrongParameter("BGCOLOR", "colour", "a colour as 0xRRGGBB", colour);
  return /^true$/i.test(transparent) ? undefined : `#${colour.slice(2)}`;
}

/** Refuses formats other than those that are made. @throws ZpublishError `invalid-query` */
export function parseFormat<Format extends string>(
  { get }: WmsParameters,
  name: "FORMAT" | "INFO_FORMAT",
  formats: readonly [Format, ...Format[]],
): Format {
  const text = get(name) ?? formats[0];
  const found = formats.find((each) => each === text.toLowerCase());
  if (found !== undefined) return found;
  throw wrongParameter(name, "InvalidFormat", `one of ${formats.join(", ")}`, text);
}
