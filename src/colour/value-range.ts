/** Range of values that a colour scale covers. */
export interface ValueRange {
  readonly low: number;
  readonly high: number;
  /** Whether the range is symmetric about zero, so that a diverging scale fits. */
  readonly isDiverging: boolean;
}

/** Greatest ratio of both sides of zero for which a range becomes symmetric. */
const MAX_ASYMMETRY = 4;

/**
 * Chooses the range of a colour scale from a sample of values: percentiles, stretched to round numbers. If there are values on both
 * sides of zero, and neither side is more than four times the other, the range is symmetric.
 * @param values Finite values in any order; sorted in place. Must not be empty.
 * @param percentiles Default 2 and 98.
 */
export function chooseRange(
  values: Float64Array,
  percentiles: readonly [number, number] = [2, 98],
): ValueRange {
  values.sort();
  const low = percentileOf(values, percentiles[0]);
  const high = percentileOf(values, percentiles[1]);
  if (low === high) {
    // One is lost in the rounding of large numbers.
    const margin = Math.max(1, Math.abs(low) / 1024);
    return { low: low - margin, high: high + margin, isDiverging: false };
  }
  const ratio = Math.abs(high / low);
  if (low < 0 && high > 0 && ratio <= MAX_ASYMMETRY && ratio >= 1 / MAX_ASYMMETRY) {
    const [, bound] = roundRange(0, Math.max(-low, high));
    return { low: -bound, high: bound, isDiverging: true };
  }
  const [roundLow, roundHigh] = roundRange(low, high);
  return { low: roundLow, high: roundHigh, isDiverging: false };
}

/** Returns a percentile, interpolated linearly between neighbours, as numpy does by default. @param sorted Ascending, not empty. */
export function percentileOf(sorted: Float64Array, percent: number): number {
  const position = ((sorted.length - 1) * percent) / 100;
  const index = Math.floor(position);
  const below = sorted[index]!;
  const above = sorted[Math.min(index + 1, sorted.length - 1)]!;
  return below + (above - below) * (position - index);
}

/** Stretches a range to multiples of a round step, of which it has 20 to 50. Returns it unchanged if steps vanish in rounding. */
export function roundRange(low: number, high: number): [low: number, high: number] {
  const raw = (high - low) / 20;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([5, 2, 1].find((factor) => factor * power <= raw * (1 + 1e-9)) ?? 1) * power;
  // Dividing by the inverse keeps decimal bounds short: 0.1 is no multiple of itself times 3.
  const inverse = 1 / step;
  const [begin, end] = [
    Math.floor(low * inverse + 1e-9) / inverse,
    Math.ceil(high * inverse - 1e-9) / inverse,
  ];
  return Number.isFinite(begin) && Number.isFinite(end) && begin < end ? [begin, end] : [low, high];
}
