import {
  type CoordinateAxis,
  indexOf,
  labelText,
  type MapPlace,
  type MapSteps,
  periodText,
} from "../../plugin-api.js";
import { type WmsParameters, wmsError } from "./parse-wms-query.js";

/** A dimension of a layer besides those on the Earth. */
export interface WmsDimension {
  /** In capabilities: `time`, `elevation`, or the name of the dimension. */
  readonly name: string;
  /** In requests: `TIME`, `ELEVATION`, or `DIM_` and the name. */
  readonly parameter: string;
  readonly axis: CoordinateAxis;
  /** Step that is shown by default. */
  readonly index: number;
}

/** Lists the dimensions of a layer. The first axis of times is its time, the first vertical one its elevation. */
export function dimensionsOf({ axes, y, x, position }: MapPlace): readonly WmsDimension[] {
  const others = axes.flatMap((axis, at) => (at === y || at === x ? [] : [{ axis, index: position[at]! }]));
  const firstOf = (role: CoordinateAxis["role"]) => others.find(({ axis }) => axis.role === role);
  const [time, elevation] = [firstOf("T"), firstOf("Z")];
  return others.map((each): WmsDimension => {
    if (each === time) return { ...each, name: "time", parameter: "TIME" };
    if (each === elevation) return { ...each, name: "elevation", parameter: "ELEVATION" };
    const { dim } = each.axis;
    return { ...each, name: dim, parameter: `DIM_${dim.toUpperCase()}` };
  });
}

/** Values of a dimension that capabilities list one by one, at most, if they are numbers or times. */
const MAX_LISTED = 1_000;

/** What capabilities say about the values of a dimension. */
interface DimensionExtent {
  readonly default: string;
  /** A list of values, or `first/last/period`. A period of 0 stands for any values, of which the nearest step is shown. */
  readonly text: string;
  readonly isNearest: boolean;
}

const extents = new WeakMap<CoordinateAxis, Omit<DimensionExtent, "default">>();

/** Describes the values of a dimension. */
export function extentOfDimension({ axis, index }: Pick<WmsDimension, "axis" | "index">): DimensionExtent {
  const known = extents.get(axis) ?? writeExtent(axis);
  extents.set(axis, known);
  return { ...known, default: stepText(axis, index) };
}

function writeExtent(axis: CoordinateAxis): Omit<DimensionExtent, "default"> {
  const { length } = axis;
  const period = periodText(axis);
  const range = (step: string) => `${stepText(axis, 0)}/${stepText(axis, length - 1)}/${step}`;
  if (period !== undefined) return { text: range(period), isNearest: false };
  if (length > MAX_LISTED && isAscending(axis)) return { text: range("0"), isNearest: true };
  return { text: Array.from({ length }, (_, index) => stepText(axis, index)).join(), isNearest: false };
}

function isAscending({ values }: CoordinateAxis): boolean {
  if (values === undefined) return true;
  for (let index = 1; index < values.length; index++)
    if (!(values[index]! > values[index - 1]!)) return false;
  return typeof values[0] !== "string";
}

function stepText(axis: CoordinateAxis, index: number): string {
  const text = labelText(axis, index);
  return axis.calendar === undefined || text === "NaT" ? text : `${text}Z`;
}

/** The steps that a map shows. */
interface WmsSteps {
  /** As maps take them. */
  readonly steps: MapSteps;
  /** Values by names of dimensions, as they were asked for. */
  readonly shown: ReadonlyMap<string, string>;
  /** Values that were chosen because none was asked for, or none that a step has: `Default value used: time=2020-01-01T00:00:00Z`. */
  readonly warnings: readonly string[];
}

/**
 * Reads which steps a map shows. TIME and ELEVATION are ignored by layers that have none: programs set them for all layers.
 * @throws ZpublishError `invalid-query` if there is no such dimension. Other values are checked when the map is drawn.
 */
export function parseSteps(parameters: WmsParameters, place: MapPlace): WmsSteps {
  const dimensions = dimensionsOf(place);
  for (const name of parameters.names) {
    if (!name.startsWith("DIM_") || dimensions.some(({ parameter }) => parameter === name)) continue;
    const known = dimensions.map(({ parameter }) => parameter).join(", ");
    throw wmsError(name, "InvalidDimensionValue", known === "" ? "no dimension" : `one of ${known}`, name);
  }
  const steps = new Map<string, { readonly label: string } | { readonly index: number }>();
  const shown = new Map<string, string>();
  const warnings: string[] = [];
  for (const dimension of dimensions) {
    const { name, parameter, axis } = dimension;
    const { default: byDefault, isNearest } = extentOfDimension(dimension);
    const asked = parameters.get(parameter);
    if (asked === undefined || (name === "time" && asked.toLowerCase() === "current")) {
      shown.set(name, byDefault);
      if (asked === undefined) warnings.push(`Default value used: ${name}=${byDefault}`);
      continue;
    }
    const index = isNearest ? indexOf(axis, asked, "nearest") : undefined;
    const text = index === undefined ? asked : stepText(axis, index);
    if (text !== asked) warnings.push(`Nearest value used: ${name}=${text}`);
    steps.set(axis.dim, index === undefined ? { label: asked } : { index });
    shown.set(name, text);
  }
  return { steps, shown, warnings };
}
