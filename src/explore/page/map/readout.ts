import type { Axis } from "../../axis.js";
import type { AxisDescription, AxisValues } from "../../dataset-description.js";
import type { ProbeAnswer } from "../../protocol.js";
import { cellEdges, stepText } from "../axis-cells.js";
import { degreesText } from "../axis-ticks.js";
import type { ResolvedView } from "../resolve-view.js";

/** Texts about a cell. */
export interface Readout {
  readonly place: string;
  readonly value: string;
  /** Edges of the cell; empty if the cell has none that differ from its index. */
  readonly bounds: string;
}

/**
 * Puts a cell and its value into words: centre, value with units, edges.
 * @param isCurved Whether the answer's place is a longitude and latitude of a curvilinear grid.
 */
export function readoutOf(resolved: ResolvedView, answer: ProbeAnswer, isCurved: boolean): Readout {
  const { variable, axes, values, places } = resolved;
  const hasUnits = answer.value !== undefined && variable.units !== undefined;
  const value = hasUnits ? `${answer.text} ${variable.units}` : answer.text;
  if (axes === undefined || answer.cell === undefined) return { place: "", value, bounds: "" };
  const parts = [axes.y, axes.x].map((index) => {
    const axis = variable.axes[index] as AxisDescription;
    return placeOf(axis, values[index] as AxisValues, places[index] as Axis, answer.cell?.[index] as number);
  });
  const place = parts.map(({ text }) => text);
  if (isCurved) place.unshift(degreesText(answer.y, "latitude", 2), degreesText(answer.x, "longitude", 2));
  const bounds = parts.map((part) => part.bounds).filter((text) => text !== "");
  return { place: place.join(" "), value, bounds: bounds.join(" · ") };
}

/** Returns the text of a place on one axis, and of the edges of its cell. */
function placeOf(
  axis: AxisDescription,
  values: AxisValues,
  places: Axis,
  index: number,
): { text: string; bounds: string } {
  const { numbers, texts } = values;
  if (numbers === undefined || texts !== undefined)
    return { text: `${axis.dim} ${stepText(values, index)}`, bounds: "" };
  const [low, high] = cellEdges(places, index);
  const decimals = decimalsFor(high - low);
  const kind = axis.isLatitude ? "latitude" : axis.isLongitude ? "longitude" : undefined;
  const write = (number: number, digits: number): string =>
    kind === undefined ? `${Number(number.toFixed(digits))}` : degreesText(number, kind, digits);
  const text = write(numbers[index] as number, decimals);
  return {
    text: kind === undefined ? `${axis.dim} ${text}` : text,
    bounds: places.edges === undefined ? "" : `${write(low, decimals + 1)}–${write(high, decimals + 1)}`,
  };
}

/** Returns how many decimals tell the cells of an axis apart. */
function decimalsFor(cell: number): number {
  return Math.max(0, Math.min(8, 1 - Math.floor(Math.log10(cell) + 1e-9)));
}
