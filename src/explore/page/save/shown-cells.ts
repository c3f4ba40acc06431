import type { AxisPart, CellRun, CodeAxis, CodeVariable } from "../../../usage/selection-code.js";
import { type Axis, createAxis } from "../../axis.js";
import type { AxisDescription, AxisValues, Box, VariableDescription } from "../../protocol.js";
import { cellEdges } from "../axis-ticks.js";
import type { ResolvedView } from "../page-state.js";

/** Returns what code reads to have the cells of a picture that are visible; all of a curvilinear grid, or without a picture. */
export function pictureVariable(
  { variable, axes, at, values, places, bands }: ResolvedView,
  box: Box | undefined,
  isCurved: boolean,
): CodeVariable {
  return codeVariable(variable, values, (index) => {
    if (axes === undefined || box === undefined || index === bands?.axis) return "all";
    if (index !== axes.x && index !== axes.y) return at[index] ?? 0;
    if (isCurved) return "all";
    const [from, to] = index === axes.x ? [box.left, box.right] : [box.bottom, box.top];
    return visibleCells(places[index]!, from, to);
  });
}

/** Returns what code reads to have a series: all cells along one axis, at one index of the others. */
export function seriesVariable(
  variable: VariableDescription,
  values: readonly AxisValues[],
  at: readonly number[],
  along: number,
): CodeVariable {
  return codeVariable(variable, values, (index) => (index === along ? "all" : (at[index] ?? 0)));
}

/**
 * Returns the cells of an axis of which a part lies between two coordinates. Longitudes repeat: a part across the seam is two runs, the
 * one before the seam first.
 */
export function visibleCells(axis: Axis, from: number, to: number): AxisPart {
  const [low, high] = from <= to ? [from, to] : [to, from];
  const runs: [number, number][] = [];
  for (let index = 0; index < axis.length; index++) {
    const [begin, end] = cellEdges(axis, index);
    // Longitudes repeat: this is the first repetition that ends behind the lower bound.
    const turns = axis.period === undefined ? 0 : Math.floor((low - end) / axis.period) + 1;
    const shift = turns * (axis.period ?? 0);
    if (begin + shift >= high || end + shift <= low) continue;
    const last = runs.at(-1);
    if (last !== undefined && last[1] === index) last[1] = index + 1;
    else runs.push([index, index + 1]);
  }
  const [first] = runs;
  if (first === undefined) return [[0, 0]];
  if (first[0] === 0 && first[1] === axis.length) return "all";
  const crossesSeam = runs.length === 2 && first[0] === 0 && runs[1]?.[1] === axis.length;
  return crossesSeam ? (runs.toReversed() as CellRun[]) : runs;
}

function codeVariable(
  variable: VariableDescription,
  values: readonly AxisValues[],
  partOf: (index: number) => AxisPart,
): CodeVariable {
  const { path, axes, packing, dataType } = variable;
  const { missing, scale, offset } = packing;
  const isPacked = missing.length > 0 || scale !== 1 || offset !== 0;
  return {
    path,
    axes: axes.map((axis, index): CodeAxis => {
      const coordinate = values[index] && codeCoordinate(variable, axis, values[index]);
      const isTime = values[index]?.calendar !== undefined;
      return { dim: axis.dim, length: axis.length, part: partOf(index), coordinate, isTime };
    }),
    packing: isPacked ? { missing, scale, offset } : undefined,
    isBigInt: /^[iu]8$/.test(`${dataType.kind}${dataType.itemSize}`),
  };
}

const DURATION_UNITS =
  /^(?:days?|d|hours?|hrs?|h|minutes?|mins?|seconds?|secs?|s|(?:milli|micro|nano)seconds?|ms|us|ns)$/i;
/** Calendars whose dates xarray reads as `datetime64`, if they are within the years that nanoseconds reach. */
const NUMPY_CALENDARS = new Set(["standard", "gregorian", "proleptic_gregorian"]);

/** Returns the values by which xarray finds cells of an axis; undefined if an index is safer. */
function codeCoordinate(
  { path, name }: VariableDescription,
  { dim, length, coordinate }: AxisDescription,
  values: AxisValues,
): CodeAxis["coordinate"] {
  // xarray finds cells by the coordinate that is named as the dimension, in the same group.
  if (coordinate !== `${path.slice(0, path.length - name.length)}${dim}`) return undefined;
  const { numbers, texts, calendar, units = "" } = values;
  const isOrdered = createAxis(length, { ...values, bounds: undefined }).centres !== undefined;
  if (numbers === undefined || !isOrdered) return undefined;
  // xarray makes durations of these.
  if (calendar === undefined)
    return DURATION_UNITS.test(units) || texts !== undefined ? undefined : { numbers };
  if (texts === undefined || !NUMPY_CALENDARS.has(calendar)) return undefined;
  const isNumpyDate = (date = ""): boolean => date >= "1678" && date < "2262" && /^\d{4}-/.test(date);
  return isNumpyDate(texts[0]) && isNumpyDate(texts.at(-1)) ? { dates: texts } : undefined;
}
