/** Types of numbers by numpy's names without byte order: `i2`, `u8`, `f4`. */
export type NumberName = "i1" | "i2" | "i4" | "i8" | "u1" | "u2" | "u4" | "u8" | "f2" | "f4" | "f8";

export const NUMBER_NAMES = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"] as const;
export const ROUNDINGS = [
  "nearest-even",
  "nearest-away",
  "towards-zero",
  "towards-positive",
  "towards-negative",
] as const;
export type RoundingName = (typeof ROUNDINGS)[number];

/** Names of Zarr v3. */
export const V3_NAMES: Readonly<Record<NumberName, string>> = {
  ...{
    i1: "int8",
    i2: "int16",
    i4: "int32",
    i8: "int64",
    u1: "uint8",
    u2: "uint16",
    u4: "uint32",
    u8: "uint64",
  },
  ...{ f2: "float16", f4: "float32", f8: "float64" },
};

/** A number as a fraction, whose denominator is positive. */
type Fraction = readonly [numerator: bigint, denominator: bigint];

/** Digits with the leading one, exponent of the least normal number, greatest exponent. */
const FLOATS: Readonly<Record<string, readonly [number, number, number]>> = {
  f2: [11, -14, 15],
  f4: [24, -126, 127],
  f8: [53, -1022, 1023],
};

function fractionOf(value: number | bigint): Fraction {
  if (typeof value === "bigint") return [value, 1n];
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, value);
  const bits = view.getBigUint64(0);
  const exponent = Number((bits >> 52n) & 0x7ffn);
  const digits = (bits & (2n ** 52n - 1n)) | (exponent === 0 ? 0n : 2n ** 52n);
  const signed = value < 0 ? -digits : digits;
  const power = Math.max(exponent, 1) - 1075;
  return power >= 0 ? [signed << BigInt(power), 1n] : [signed, 1n << BigInt(-power)];
}

function quotient([a, b]: Fraction, [c, d]: Fraction): Fraction {
  return c < 0n ? [-a * d, b * -c] : [a * d, b * c];
}

function sum([a, b]: Fraction, [c, d]: Fraction): Fraction {
  return [a * d + c * b, b * d];
}

function roundFraction([a, b]: Fraction, rounding: RoundingName): bigint {
  const floor = a >= 0n ? a / b : -((-a + b - 1n) / b);
  const rest = a - floor * b;
  if (rest === 0n) return floor;
  const isPastHalf = 2n * rest > b;
  switch (rounding) {
    case "towards-negative":
      return floor;
    case "towards-positive":
      return floor + 1n;
    case "towards-zero":
      return a < 0n ? floor + 1n : floor;
    case "nearest-even":
      return isPastHalf || (2n * rest === b && floor % 2n !== 0n) ? floor + 1n : floor;
    case "nearest-away":
      return isPastHalf || (2n * rest === b && a > 0n) ? floor + 1n : floor;
  }
}

/** Rounds a fraction other than 0 to a float; undefined if it is out of range. */
function floatOfFraction(fraction: Fraction, type: string, rounding: RoundingName): number | undefined {
  const [digits, least, greatest] = FLOATS[type]!;
  const [a, b] = fraction;
  const size = a < 0n ? -a : a;
  let exponent = size.toString(2).length - b.toString(2).length;
  if (exponent >= 0 ? size < b << BigInt(exponent) : size << BigInt(-exponent) < b) exponent--;
  const power = Math.max(exponent, least) - digits + 1;
  const units = roundFraction(power >= 0 ? [a, b << BigInt(power)] : [a << BigInt(-power), b], rounding);
  // In two steps, each exact: the power alone may be less than any double.
  const half = Math.trunc(power / 2);
  const value = Number(units) * 2 ** half * 2 ** (power - half);
  const max = (2 - 2 ** (1 - digits)) * 2 ** greatest;
  if (Math.abs(value) > max) return undefined;
  return value === 0 && a < 0n ? -0 : value;
}

function boundsOf(type: string): [bigint, bigint] {
  const span = 2n ** BigInt(8 * Number(type[1]));
  return type[0] === "u" ? [0n, span - 1n] : [-span / 2n, span / 2n - 1n];
}

/** Decodes a number as the registry prescribes for `scale_offset`, with fractions. Undefined if that is an error. */
export function exactlyUnscaled(
  value: number | bigint,
  type: NumberName,
  scale: number | bigint,
  offset: number | bigint,
): number | bigint | undefined {
  if (type[0] === "f") {
    const divided = unscaledFloat(quotient, Number(value), Number(scale), type);
    return unscaledFloat(sum, divided, Number(offset), type);
  }
  const [a, b] = sum(quotient([BigInt(value), 1n], [BigInt(scale), 1n]), [BigInt(offset), 1n]);
  const [least, greatest] = boundsOf(type);
  return a % b === 0n && a / b >= least && a / b <= greatest ? a / b : undefined;
}

function unscaledFloat(operation: typeof quotient, a: number, b: number, type: string): number {
  const plain = operation === quotient ? a / b : a + b;
  if (!Number.isFinite(a) || !Number.isFinite(b)) return plain;
  const fraction = operation(fractionOf(a), fractionOf(b));
  if (fraction[0] === 0n) return plain;
  return floatOfFraction(fraction, type, "nearest-even") ?? (fraction[0] < 0n ? -1 / 0 : 1 / 0);
}

/** Casts a number as the registry prescribes for `cast_value`, with fractions. Undefined if that is an error. */
export function exactlyCast(
  value: number | bigint,
  to: NumberName,
  rounding: RoundingName,
  outOfRange: string | undefined,
): number | bigint | undefined {
  const isNumber = typeof value === "bigint" || Number.isFinite(value);
  if (to[0] === "f") {
    if (!isNumber || value === 0) return value;
    const rounded = value === 0n ? 0 : floatOfFraction(fractionOf(value), to, rounding);
    return rounded ?? (outOfRange === "clamp" ? (value < 0 ? -1 / 0 : 1 / 0) : undefined);
  }
  if (!isNumber) return undefined;
  const whole = roundFraction(fractionOf(value), rounding);
  const [least, greatest] = boundsOf(to);
  if (whole >= least && whole <= greatest) return whole;
  if (outOfRange === "clamp") return whole < least ? least : greatest;
  const span = greatest - least + 1n;
  return outOfRange === "wrap" ? ((((whole - least) % span) + span) % span) + least : undefined;
}
