/** Returns 1 for ascending values, -1 for descending ones, undefined for others. If `isStrict`, equal neighbours are in no order. */
export function orderOf(values: ArrayLike<number | bigint | string>, isStrict: boolean): 1 | -1 | undefined {
  const { length } = values;
  const order = values[0]! > values[length - 1]! ? -1 : 1;
  for (let index = 0; index < length; index++) {
    const value = values[index]!;
    if (typeof value === "number" && !Number.isFinite(value)) return undefined;
    if (index === 0) continue;
    const before = values[index - 1]!;
    const isAfter = order === 1 ? value > before : value < before;
    // Equal values are neither above nor below each other.
    if (!isAfter && (isStrict || value > before || value < before)) return undefined;
  }
  return order;
}

/** Returns longitudes without the turn that some of them leave out: each is within half a turn of the one before. */
export function continuedLongitudes(longitudes: Float64Array): Float64Array {
  let turns = 0;
  return longitudes.map((longitude, index) => {
    if (index > 0) turns -= Math.round((longitude - longitudes[index - 1]!) / 360) * 360;
    return longitude + turns;
  });
}

/** An axis whose cells have one width. */
export interface RegularAxis {
  /** Centre of the first cell. */
  readonly first: number;
  /** Width of a cell; negative if values descend. */
  readonly step: number;
}

/** Greatest distance of a value from where it should be, in cells. */
const TOLERANCE = 1e-6;

/** Describes the values of a coordinate as a regular axis; undefined if they are none. */
export function regularAxis(values: readonly number[] | Float64Array): RegularAxis | undefined {
  const first = values[0];
  const last = values.at(-1);
  if (first === undefined || last === undefined || values.length < 2) return undefined;
  // Without the digits that are the rounding of the division.
  const step = Number(((last - first) / (values.length - 1)).toPrecision(12));
  if (step === 0 || !Number.isFinite(step)) return undefined;
  for (let index = 0; index < values.length; index++)
    if (!(Math.abs(values[index]! - first - index * step) <= TOLERANCE * Math.abs(step))) return undefined;
  return { first, step };
}

/** Returns the first index below a length of which a condition is true that is true of all after it; the length if there is none. */
export function firstIndex(length: number, isReached: (index: number) => boolean): number {
  let [low, high] = [0, length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (isReached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
