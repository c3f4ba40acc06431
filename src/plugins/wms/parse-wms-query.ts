import {
  COLOUR_SCALES,
  type ColourScaleName,
  type MapFrame,
  type MapOptions,
  ZpublishError,
} from "../../plugin-api.js";

/** Versions of WMS that are answered. */
export type WmsVersion = "1.3.0" | "1.1.1";

/** The parameters of a request, whose names have no case. */
export interface WmsParameters {
  readonly version: WmsVersion;
  /** Returns a parameter; undefined if it is not there, or empty. */
  get(name: string): string | undefined;
  /** Returns a parameter. @throws ZpublishError `invalid-query` if it is not there */
  need(name: string): string;
  /** In upper case. */
  readonly names: Iterable<string>;
}

/** Codes of exceptions (OGC 06-042, table E.1), which errors have as their type. */
export const WMS_CODES = [
  ...(["InvalidFormat", "InvalidCRS", "LayerNotDefined", "StyleNotDefined"] as const),
  ...(["InvalidPoint", "InvalidDimensionValue", "OperationNotSupported"] as const),
];
/** One of {@link WMS_CODES}. */
type WmsCode = (typeof WMS_CODES)[number];

const MAX_SHOWN = 100;

/** Creates the error of a parameter. @param code Of the exception; undefined if WMS has none. */
export function wmsError(
  parameter: string,
  code: WmsCode | undefined,
  expected: string,
  received: string,
): ZpublishError {
  const input = received.length > MAX_SHOWN ? `${received.slice(0, MAX_SHOWN)}…` : received;
  return new ZpublishError("invalid-query", `expected ${expected}, received '${input}'`, {
    details: { parameter: parameter.slice(0, MAX_SHOWN), type: code ?? "value_error", input },
  });
}

/** Finds the version of a query; that of the answer even if the query is wrong. */
export function wmsVersion(query: string): WmsVersion {
  const values = [...new URLSearchParams(query)].map(([name, value]) => [name.toUpperCase(), value] as const);
  const named = (wanted: string) => values.find(([name]) => name === wanted)?.[1];
  const version = named("VERSION") ?? named("WMTVER");
  // A lower version than 1.3.0 is answered with the highest one below (OGC 06-042, section 6.2.4).
  if (version !== undefined && version !== "") return /^1\.[0-2](?:\.|$)/.test(version) ? "1.1.1" : "1.3.0";
  return named("SRS") === undefined ? "1.3.0" : "1.1.1";
}

/** Parses a query. Parameters that no version has are ignored. @throws ZpublishError `invalid-query` if one has two values */
export function parseWmsQuery(query: string): WmsParameters {
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(query)) {
    const key = name.toUpperCase();
    const before = values.get(key);
    if (before !== undefined && before !== value)
      throw wmsError(name, undefined, "one value of a parameter", value);
    values.set(key, value);
  }
  const get = (name: string) => values.get(name) || undefined;
  return {
    version: wmsVersion(query),
    get,
    need: (name) => get(name) ?? refuse(name),
    names: values.keys(),
  };
}

function refuse(name: string): never {
  throw wmsError(name, undefined, `the parameter ${name}`, "");
}

/** Coordinate systems by their names in capabilities. */
export const CRS_NAMES = ["EPSG:4326", "CRS:84", "EPSG:3857"] as const;

/** Pixels along the sides of a map, at most. */
export const MAX_PIXELS = 4096;

/** Reads which part of the Earth a map shows. @throws ZpublishError `invalid-query` */
export function parseFrame(parameters: WmsParameters): MapFrame {
  const { version, need } = parameters;
  const parameter = version === "1.3.0" ? "CRS" : "SRS";
  const name = need(parameter);
  const crs = CRS_NAMES.find((each) => each === name.toUpperCase());
  if (crs === undefined) throw wmsError(parameter, "InvalidCRS", `one of ${CRS_NAMES.join(", ")}`, name);
  const text = need("BBOX");
  const box = text.split(",").map(numberOf) as [number, number, number, number];
  // Version 1.3.0 has the axes of EPSG:4326 in the order of its definition: latitude first.
  const isTurned = crs === "EPSG:4326" && version === "1.3.0";
  const [west, south, east, north] = isTurned ? [box[1], box[0], box[3], box[2]] : box;
  const isBox = box.length === 4 && west < east && south < north;
  if (!isBox || !Number.isFinite(east - west) || !Number.isFinite(north - south))
    throw wmsError("BBOX", undefined, "four numbers, least values before greatest ones", text);
  return {
    crs: crs === "EPSG:3857" ? crs : "CRS:84",
    bbox: [west, south, east, north],
    width: readPixels(parameters, "WIDTH"),
    height: readPixels(parameters, "HEIGHT"),
  };
}

const NUMBER = /^\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?\s*$/i;

function numberOf(text: string): number {
  return NUMBER.test(text) ? Number(text) : Number.NaN;
}

/** Reads a number of pixels. @param otherwise Default if the parameter may be missing. @throws ZpublishError `invalid-query` */
export function readPixels({ get, need }: WmsParameters, name: string, otherwise?: number): number {
  const text = otherwise === undefined ? need(name) : get(name);
  const value = text === undefined ? otherwise! : /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (value >= 1 && value <= MAX_PIXELS) return value;
  throw wmsError(name, undefined, `an integer from 1 to ${MAX_PIXELS}`, text ?? "");
}

/** Reads the pixel of a map that is asked about. @throws ZpublishError `invalid-query` */
export function parsePixel(
  { version, need }: WmsParameters,
  { width, height }: MapFrame,
): readonly [number, number] {
  const names = version === "1.3.0" ? (["I", "J"] as const) : (["X", "Y"] as const);
  const [column, row] = names.map((name, axis) => {
    const text = need(name);
    const length = axis === 0 ? width : height;
    if (/^\d{1,6}$/.test(text) && Number(text) < length) return Number(text);
    throw wmsError(name, "InvalidPoint", `an integer from 0 to ${length - 1}`, text);
  });
  return [column!, row!];
}

const DEFAULT_STYLE = "default";
const REVERSED = "-inv";

/** Names of styles: those of a variable whose values are categories, or of any other. */
export const STYLE_NAMES: Readonly<Record<"categories" | "numbers", readonly string[]>> = {
  categories: [DEFAULT_STYLE],
  numbers: [DEFAULT_STYLE, ...Object.keys(COLOUR_SCALES)],
};

/**
 * Reads how values become colours. A style is the name of a scale, with `-inv` if it is reversed; `COLORSCALERANGE`, as ncWMS has it, are the
 * values of the first and the last colour.
 * @throws ZpublishError `invalid-query`
 */
export function parseStyle(
  { get }: WmsParameters,
  parameter: "STYLES" | "STYLE",
  isCategorical: boolean,
): Pick<MapOptions, "scale" | "isReversed" | "range"> {
  const name = get(parameter) ?? DEFAULT_STYLE;
  const isReversed = name.endsWith(REVERSED);
  const scale = isReversed ? name.slice(0, -REVERSED.length) : name;
  const known = STYLE_NAMES[isCategorical ? "categories" : "numbers"];
  if (name !== DEFAULT_STYLE && (scale === DEFAULT_STYLE || !known.includes(scale)))
    throw wmsError(parameter, "StyleNotDefined", `one of ${known.join(", ")}`, name);
  const text = isCategorical ? "auto" : (get("COLORSCALERANGE") ?? "auto");
  const [low = Number.NaN, high = Number.NaN, ...more] = text.split(",").map(numberOf);
  if (text !== "auto" && !(more.length === 0 && low < high && Number.isFinite(high - low)))
    throw wmsError("COLORSCALERANGE", undefined, "two numbers 'low,high', or 'auto'", text);
  return {
    scale: scale === DEFAULT_STYLE ? undefined : (scale as ColourScaleName),
    isReversed,
    range: text === "auto" ? undefined : [low, high],
  };
}

/** Reads the colour of what has no value; undefined if that is transparent. @throws ZpublishError `invalid-query` */
export function parseBackground({ get }: WmsParameters): string | undefined {
  const transparent = get("TRANSPARENT") ?? "FALSE";
  if (!/^(?:true|false)$/i.test(transparent))
    throw wmsError("TRANSPARENT", undefined, "TRUE or FALSE", transparent);
  const colour = get("BGCOLOR") ?? "0xFFFFFF";
  if (!/^0x[0-9a-f]{6}$/i.test(colour)) throw wmsError("BGCOLOR", undefined, "a colour as 0xRRGGBB", colour);
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
  throw wmsError(name, "InvalidFormat", `one of ${formats.join(", ")}`, text);
}
