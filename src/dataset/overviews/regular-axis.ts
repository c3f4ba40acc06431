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
export function regularAxis(values: readonly number[]): RegularAxis | undefined {
  const [first] = values;
  const last = values.at(-1);
  if (first === undefined || last === undefined || values.length < 2) return undefined;
  // Without the digits that are the rounding of the division.
  const step = Number(((last - first) / (values.length - 1)).toPrecision(12));
  if (step === 0 || !Number.isFinite(step)) return undefined;
  const isRegular = values.every(
    (value, index) => Math.abs(value - first - index * step) <= TOLERANCE * Math.abs(step),
  );
  return isRegular ? { first, step } : undefined;
}
