/** Ways of rounding, by the names of Zarr v3's registry. */
export type Rounding =
  | "nearest-even"
  | "nearest-away"
  | "towards-zero"
  | "towards-positive"
  | "towards-negative";

/** Floats of IEEE 754: binary digits with the leading one, exponent of the least number with all digits, and greatest number, by bytes. */
const FORMATS: Readonly<Record<number, readonly [digits: number, leastExponent: number, greatest: number]>> =
  {
    2: [11, -14, 65504],
    4: [24, -126, 2 ** 128 - 2 ** 104],
    8: [53, -1022, Number.MAX_VALUE],
  };

/**
 * Rounds a number to a float of so many bytes. Zeros keep their sign, and what is not finite stays.
 * @returns Undefined if the rounded number is greater than the greatest float.
 */
export function roundToFloat(
  value: number | bigint,
  itemSize: number,
  rounding: Rounding,
): number | undefined {
  if (typeof value === "number" && (itemSize === 8 || !Number.isFinite(value))) return value;
  const [digits, leastExponent, greatest] = FORMATS[itemSize]!;
  const rounded = typeof value === "bigint" ? roundWide(value, digits, rounding) : roundDouble(value);
  return Math.abs(rounded) <= greatest ? rounded : undefined;

  function roundDouble(double: number): number {
    const unit = 2 ** (Math.max(exponentOf(double), leastExponent) - digits + 1);
    return roundInteger(double / unit, rounding) * unit;
  }
}

/** Rounds to an integer. Zeros keep their sign, and what is not finite stays. */
export function roundInteger(value: number, rounding: Rounding): number {
  const size = Math.abs(value);
  const floor = Math.floor(size);
  const rest = size - floor;
  // NaN for infinities.
  if (!(rest > 0)) return value;
  const whole = roundsUp(rest, floor % 2 === 1, value < 0, rounding) ? floor + 1 : floor;
  return value < 0 ? -whole : whole;
}

function roundWide(value: bigint, digits: number, rounding: Rounding): number {
  const size = value < 0n ? -value : value;
  const unit = 1n << BigInt(Math.max(0, size.toString(2).length - digits));
  const [floor, rest] = [size / unit, size % unit];
  const share = 2n * rest === unit ? 0.5 : 2n * rest < unit ? 0.25 : 0.75;
  const isUp = rest !== 0n && roundsUp(share, floor % 2n === 1n, value < 0n, rounding);
  const rounded = Number((isUp ? floor + 1n : floor) * unit);
  return value < 0n ? -rounded : rounded;
}

/** Whether a magnitude is rounded up. @param rest Share of a unit that it is above the lower neighbour, between 0 and 1. */
function roundsUp(rest: number, isOdd: boolean, isNegative: boolean, rounding: Rounding): boolean {
  if (rounding === "nearest-even") return rest > 0.5 || (rest === 0.5 && isOdd);
  if (rounding === "nearest-away") return rest >= 0.5;
  return rounding === (isNegative ? "towards-negative" : "towards-positive");
}

const bits = new DataView(new ArrayBuffer(8));

/** Exponent of the leading digit; -1023 for subnormal doubles and zeros. */
function exponentOf(value: number): number {
  bits.setFloat64(0, value);
  return ((bits.getUint16(0) >> 4) & 0x7ff) - 1023;
}
