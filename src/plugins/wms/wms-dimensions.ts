import {
  type CoordinateAxis,
  indexOf,
  labelText,
  type MapPlace,
  periodText,
  wrongParameter,
} from "../../plugin-api.js";
import type { WmsParameters } from "./parse-wms-query.js";

/**
 * Lists the dimensions of a layer besides those on the Earth: their names in capabilities, the parameters of requests, and the step that is
 * shown by default. The first axis of times is its time, the first vertical one its elevation; others have the name of their dimension.
 */
export function dimensionsOf({ axes, y, x, position }: MapPlace) {
  const others = axes.flatMap((axis, at) => (at === y || at === x ? [] : [{ axis, index: position[at]! }]));
  const firstOf = (role: CoordinateAxis["role"]) => others.find(({ axis }) => axis.role === role);
  const [time, elevation] = [firstOf("T"), firstOf("Z")];
  return others.map((each) => {
    if (each === time) return { ...each, name: "time", parameter: "TIME" };
    if (each === elevation) return { ...each, name: "elevation", parameter: "ELEVATION" };
    const { dim } = each.axis;
    return { ...each, name: dim, parameter: `DIM_${dim.toUpperCase()}` };
  });
}

/** Values of a dimension that capabilities list one by one, at most, if they are numbers or times. */
const MAX_LISTED = 1_000;

/** What capabilities say about the values of an axis. */
interface WmsExtent {
  /** A list of values, or `first/last/period`. A period of 0 stands for any values, of which the nearest step is shown. */
  readonly text: string;
  readonly isNearest: boolean;
}

const extents = new WeakMap<CoordinateAxis, WmsExtent>();

/** Describes the values of an axis. */
export function extentOf(axis: CoordinateAxis): WmsExtent {
  const known = extents.get(axis) ?? writeExtent(axis);
  extents.set(axis, known);
  return known;
}

function writeExtent(axis: CoordinateAxis): WmsExtent {
  const { length } = axis;
  const period = periodText(axis);
  const isNearest = period === undefined && length > MAX_LISTED && isAscending(axis);
  if (period === undefined && !isNearest)
    return { text: Array.from({ length }, (_, index) => wmsLabel(axis, index)).join(), isNearest };
  return { text: `${wmsLabel(axis, 0)}/${wmsLabel(axis, length - 1)}/${period ?? 0}`, isNearest };
}

/** Tells whether labels are numbers or times that ascend. */
function isAscending({ values, length }: CoordinateAxis): boolean {
  if (values === undefined || typeof values[0] === "string") return values === undefined;
  return Array.from({ length: length - 1 }).every((_, index) => values[index]! < values[index + 1]!);
}

/** Writes the label of a step as capabilities and requests have it. */
export function wmsLabel(axis: CoordinateAxis, index: number): string {
  const text = labelText(axis, index);
  return axis.calendar === undefined || text === "NaT" ? text : `${text}Z`;
}

/**
 * Reads which steps a map shows. TIME and ELEVATION are ignored by layers that have none: programs set them for all layers.
 * @returns Steps as maps take them; their values by names of dimensions; and what is to be said of values that were chosen because none was
 * asked for, or none that a step has: `Default value used: time=2020-01-01T00:00:00Z`
 * @throws ZpublishError `invalid-query` if there is no such dimension. Other values are checked when the map is drawn.
 */
export function parseSteps(parameters: WmsParameters, place: MapPlace) {
  const dimensions = dimensionsOf(place);
  const known = dimensions.map(({ parameter }) => parameter);
  for (const name of parameters.names) {
    if (!name.startsWith("DIM_") || known.includes(name)) continue;
    const expected = known.length === 0 ? "no dimension" : `one of ${known.join(", ")}`;
    throw wrongParameter(name, "InvalidDimensionValue", expected, name);
  }
  const steps = new Map<string, number | string>();
  const shown: Record<string, string> = {};
  const warnings: string[] = [];
  for (const { name, parameter, axis, index } of dimensions) {
    const asked = parameters.get(parameter);
    const isDefault = asked === undefined || (name === "time" && asked.toLowerCase() === "current");
    const isNearest = !isDefault && extentOf(axis).isNearest;
    const step = isDefault ? index : isNearest ? indexOf(axis, asked, "nearest") : undefined;
    const text = step === undefined ? asked! : wmsLabel(axis, step);
    steps.set(axis.dim, step ?? text);
    shown[name] = text;
    if (asked === undefined) warnings.push(`Default value used: ${name}=${text}`);
    else if (isNearest && text !== asked) warnings.push(`Nearest value used: ${name}=${text}`);
  }
  return { steps, shown, warnings };
}
