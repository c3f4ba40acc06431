import { format } from "d3-format";
import { cfTimeFormatter } from "../../../cf/cf-time.js";
import type { AxisValues, VariableDescription } from "../../dataset-description.js";
import { MISSING_TEXT, unpackedText } from "../../value-text.js";
import { stepText } from "../axis-cells.js";
import { degreesText } from "../axis-ticks.js";
import type { SeriesPlace } from "./plot-axis.js";

const count = format(",");

/** Returns a value with its units, with as many digits as its type has; `missing` for NaN and null. */
export function valueText(value: number | null | undefined, variable: VariableDescription): string {
  const text = unpackedText(variable, value ?? Number.NaN);
  return variable.units === undefined || text === MISSING_TEXT ? text : `${text} ${variable.units}`;
}

/** Returns where a series is, along all axes but its own: `40°N, 115°W, 850 hPa`. */
export function placeText({ variable, values, at, along, onGrid }: SeriesPlace): string {
  const places = axesBesides(variable, along).map((axis) => cellText(variable, values, axis, at[axis] ?? 0));
  if (onGrid === undefined) return places.join(", ");
  const { latitude, longitude } = onGrid;
  return [...places, degreesText(latitude, "latitude", 3), degreesText(longitude, "longitude", 3)].join(", ");
}

/** Returns a value with its units, and no more digits than a description needs. */
function roundText(value: number, variable: VariableDescription): string {
  return valueText(isTime(variable) ? value : Number(value.toPrecision(5)), variable);
}

/** Tells whether values of a variable are dates. */
export function isTime({ dataType, attrs }: VariableDescription): boolean {
  return dataType.kind === "M" || cfTimeFormatter(attrs) !== undefined;
}

/** Describes the values of a series for those who do not see the plot. */
export function seriesSummary(variable: VariableDescription, values: readonly (number | null)[]): string {
  const present = values.filter((value) => value !== null);
  if (present.length === 0) return `${count(values.length)} values, all missing`;
  let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of present) {
    if (value < least) least = value;
    if (value > greatest) greatest = value;
  }
  const missing = values.length - present.length;
  const missingText = missing === 0 ? "" : `, ${count(missing)} missing`;
  return `${count(values.length)} values from ${roundText(least, variable)} to ${roundText(greatest, variable)}${missingText}`;
}

/** Returns the axes of a variable but one. */
export function axesBesides({ axes }: VariableDescription, along: number): number[] {
  return axes.map((_, index) => index).filter((index) => index !== along);
}

function cellText(
  variable: VariableDescription,
  values: readonly AxisValues[],
  index: number,
  cell: number,
): string {
  const axis = variable.axes[index];
  const own = values[index] as AxisValues;
  const number = own.numbers?.[cell];
  if (number !== undefined && (axis?.isLatitude === true || axis?.isLongitude === true)) {
    const degrees = Number(number.toPrecision(7));
    const decimals = Math.min(4, (String(Math.abs(degrees)).split(".")[1] ?? "").length);
    return degreesText(degrees, axis.isLatitude ? "latitude" : "longitude", decimals);
  }
  const text = stepText(own, cell);
  return own.texts === undefined && own.units === undefined ? `${axis?.dim} ${text}` : text;
}
