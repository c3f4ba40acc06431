/** Writes a half-precision float, rounded to nearest even; infinite if the number is too large. */
export function writeHalf(view: DataView, value: number, littleEndian: boolean): void {
  view.setUint16(0, halfBits(value), littleEndian);
}

/** Reads a half-precision float. */
export function readHalf(view: DataView, littleEndian: boolean): number {
  const bits = view.getUint16(0, littleEndian);
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

function halfBits(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  // 65520 is halfway between the largest finite half and the next power of two.
  if (magnitude >= 65520) return sign | 0x7c00;
  const exponent = Math.max(-14, Math.min(15, binaryExponent(magnitude)));
  // In units of the last place. If it rounds up to 2048, it carries into the exponent by itself.
  const units = roundHalfToEven(magnitude / 2 ** (exponent - 10));
  return sign | ((exponent + 14) * 1024 + units);
}

function roundHalfToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** `e` such that 2^e ≤ magnitude < 2^(e+1), exactly. */
function binaryExponent(magnitude: number): number {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, magnitude);
  return ((view.getUint16(0) >> 4) & 0x7ff) - 1023;
}

/** Exponent bias of the x87 format; that of a double is 1023. */
const extendedBias = 16383;

/** Writes a number as the long double of x86-64: 80 bits with an explicit leading bit, padded to 16 bytes. */
export function writeLongDouble(item: Uint8Array, value: number, littleEndian: boolean): void {
  const view = new DataView(new ArrayBuffer(16));
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  if (Number.isNaN(value)) {
    view.setBigUint64(0, 0xc000000000000000n, true);
    view.setUint16(8, 0x7fff, true);
  } else if (magnitude === Number.POSITIVE_INFINITY) {
    view.setBigUint64(0, 0x8000000000000000n, true);
    view.setUint16(8, sign | 0x7fff, true);
  } else if (magnitude === 0) {
    view.setUint16(8, sign, true);
  } else {
    // A subnormal double is normal here: scaled up first, its digits are all kept.
    const scale = magnitude < 2 ** -1022 ? 64 : 0;
    const scaled = magnitude * 2 ** scale;
    const exponent = binaryExponent(scaled);
    const mantissa = BigInt((scaled / 2 ** exponent) * 2 ** 52) << 11n;
    view.setBigUint64(0, mantissa, true);
    view.setUint16(8, sign | (exponent - scale + extendedBias), true);
  }
  const bytes = new Uint8Array(view.buffer);
  item.set(littleEndian ? bytes : bytes.reverse());
}

/** Reads a long double of x86-64 as the nearest double. */
export function readLongDouble(item: Uint8Array, littleEndian: boolean): number {
  const bytes = littleEndian ? item.slice() : item.slice().reverse();
  const view = new DataView(bytes.buffer, bytes.byteOffset, 16);
  const mantissa = view.getBigUint64(0, true);
  const head = view.getUint16(8, true);
  const sign = head & 0x8000 ? -1 : 1;
  const exponent = (head & 0x7fff) - extendedBias;
  if (exponent === 0x7fff - extendedBias) {
    return mantissa << 1n === 1n << 64n ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  }
  if (mantissa === 0n) return sign * 0;
  // In two steps: 2^exponent alone may be out of a double's range even if the product is not.
  const half = Math.trunc(exponent / 2);
  return sign * (Number(mantissa) / 2 ** 63) * 2 ** half * 2 ** (exponent - half);
}
