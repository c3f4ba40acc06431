import {
  COLOUR_SCALES,
  type ColourScaleName,
  type MapOptions,
  type MapSteps,
  parseQuery,
  type QueryParameter,
  readInteger,
  wrongParameter,
} from "../../plugin-api.js";

/** A query of tiles. */
export interface TileQuery extends MapOptions {
  readonly steps: MapSteps;
}

const SCALE_NAMES = Object.keys(COLOUR_SCALES) as ColourScaleName[];
const INDEX = "isel.";

/** Parameters of tiles for the API description. */
export const TILE_QUERY: Readonly<Record<string, QueryParameter>> = {
  "{dim}": {
    description:
      "Label of a dimension: a value, `nearest::8.6`, `ffill::…`, `bfill::…`; times are ISO 8601, and `time` is the axis of times whatever its name. Default: the last time, and the first step of other dimensions",
    schema: { type: "string", examples: ["2020-01-01T06:00"] },
  },
  "isel.{dim}": {
    description: "Index of a dimension, from the end if it is negative",
    schema: { type: "integer" },
  },
  range: {
    description:
      "Values of the first and the last colour: `240,310`. Default: by some values of the variable",
    schema: { type: "string", examples: ["240,310"] },
  },
  scale: {
    description: "Colour scale. Default: a sequential one, or a diverging one if the range is symmetric",
    schema: { type: "string", enum: SCALE_NAMES },
  },
  reversed: {
    description: "Whether the scale begins with the colour of its greatest value",
    schema: { type: "string", enum: ["true", "false"], default: "false" },
  },
  interpolate: {
    description: "Whether a pixel has the value of its cell, or one between the centres of cells",
    schema: { type: "string", enum: ["nearest", "linear"], default: "nearest" },
  },
};

/** Parameters that are not about a dimension. */
const STYLE = ["range", "scale", "reversed", "interpolate"];

/** Parses the query of tiles. Names of dimensions are not checked. @throws ZpublishError `invalid-query` */
export function parseTileQuery(query: string): TileQuery {
  const values = parseQuery(query, { once: ["{dim}"] });
  const steps = new Map<string, { readonly label: string } | { readonly index: number }>();
  for (const [parameter, [text = ""]] of values) {
    if (STYLE.includes(parameter)) continue;
    const isIndex = parameter.startsWith(INDEX);
    const name = isIndex ? parameter.slice(INDEX.length) : parameter;
    if (steps.has(name))
      throw wrongParameter(parameter, "contradiction", `either it or 'isel.${name}'`, text);
    const index = () => readInteger(parameter, text, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER);
    steps.set(name, isIndex ? { index: index() } : { label: text });
  }
  const one = <T extends string>(name: string, allowed: readonly T[]): T | undefined => {
    const text = values.get(name)?.[0];
    if (text === undefined || allowed.includes(text as T)) return text as T | undefined;
    throw wrongParameter(name, "enum", `one of ${allowed.join(", ")}`, text);
  };
  return {
    steps,
    range: rangeOf(values.get("range")?.[0]),
    scale: one("scale", SCALE_NAMES),
    isReversed: one("reversed", ["true", "false"]) === "true",
    isLinear: one("interpolate", ["nearest", "linear"]) === "linear",
  };
}

const NUMBER = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i;

function rangeOf(text: string | undefined): readonly [number, number] | undefined {
  if (text === undefined) return undefined;
  const parts = text.split(",");
  const [low = Number.NaN, high = Number.NaN] = parts.map((part) =>
    NUMBER.test(part) ? Number(part) : Number.NaN,
  );
  if (parts.length === 2 && low < high && Number.isFinite(high - low)) return [low, high];
  throw wrongParameter("range", "range", "two numbers 'low,high', the first less than the second", text);
}
