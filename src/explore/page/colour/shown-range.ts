import type { ColourScaleName } from "../../../colour/colour-scales.js";
import type { RangeAnswer, ShownRange } from "../../protocol.js";
import type { ColourChoice } from "../../view.js";

/** How far below its greatest value a logarithmic range begins if its least value is not positive. */
const LOG_DECADES = 3;

/**
 * Returns the range of the colours: by hand, else as it was found; symmetric or logarithmic if that was chosen.
 * @returns Undefined as long as it is not found.
 */
export function shownRangeOf(choice: ColourChoice, found: RangeAnswer | undefined): ShownRange | undefined {
  const byHand = choice.range !== undefined && "low" in choice.range ? choice.range : undefined;
  if (byHand === undefined && found === undefined) return undefined;
  let { low, high } = byHand ?? found?.range ?? { low: 0, high: 1 };
  if (choice.isLog) {
    if (high <= 0) return { low: 10 ** -LOG_DECADES, high: 1, isLog: true };
    return { low: low > 0 ? low : high / 10 ** LOG_DECADES, high, isLog: true };
  }
  if (choice.isSymmetric) {
    high = Math.max(Math.abs(low), Math.abs(high));
    low = -high;
  }
  return { low, high, isLog: false };
}

/** Returns the chosen colour scale, else a diverging one if the range is symmetric about zero, else viridis. */
export function scaleOf(choice: ColourChoice, range: ShownRange | undefined): ColourScaleName {
  if (choice.scale !== undefined) return choice.scale;
  return range !== undefined && !range.isLog && range.low === -range.high ? "rdbu" : "viridis";
}

/** Returns where a value lies in a range: 0 at its low end, 1 at its high end, beyond that outside of it. */
export function positionInRange(range: ShownRange, value: number): number {
  if (!range.isLog) return (value - range.low) / (range.high - range.low);
  return Math.log(value / range.low) / Math.log(range.high / range.low);
}

/** Returns the value at a position of a range: the reverse of {@link positionInRange}. */
export function valueInRange(range: ShownRange, position: number): number {
  if (!range.isLog) return range.low + (range.high - range.low) * position;
  return range.low * (range.high / range.low) ** position;
}

/** Rounds a value to the digits that matter beside the length of a range. */
export function roundToRange(value: number, range: ShownRange): number {
  const length = range.isLog ? Math.abs(value) / 10 : range.high - range.low;
  const digits = 2 - Math.floor(Math.log10(length));
  return Number.isFinite(digits) ? Number(value.toFixed(Math.max(0, Math.min(20, digits)))) : value;
}

/** Characters of a number beyond which its exponent is shorter. */
const MAX_PLAIN = 8;

/** Writes an end of a range, with the digits that matter beside its length. */
export function rangeText(value: number, range: ShownRange): string {
  const rounded = roundToRange(value, range);
  const plain = String(rounded);
  if (plain.length <= MAX_PLAIN || rounded === 0) return plain;
  const length = range.isLog ? Math.abs(value) / 10 : range.high - range.low;
  const digits = 2 + Math.max(0, Math.ceil(Math.log10(Math.abs(rounded) / length)));
  const short = rounded.toExponential(Math.min(15, digits)).replace(/\.?0*e\+?/, "e");
  return short.length < plain.length ? short : plain;
}
