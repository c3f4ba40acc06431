const BYTE_UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "ZiB", "YiB"] as const;

/** Formats bytes in binary units with three significant digits: `0 B`, `999 B`, `1.50 KiB`, `14.8 MiB`, `512 GiB`. */
export function formatByteLength(byteLength: number): string {
  let value = byteLength;
  let unit = 0;
  // 1023.5 would round to 1024 of a unit instead of 1.00 of the next.
  while (value >= (unit === 0 ? 1024 : 1023.5) && unit < BYTE_UNITS.length - 1) {
    value /= 1024;
    unit++;
  }
  if (unit === 0) return `${value} B`;
  const digits = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${BYTE_UNITS[unit] as string}`;
}

const THOUSANDS = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });

/** Formats a whole number with commas between thousands: `2,920`. */
export function formatCount(count: number): string {
  return THOUSANDS.format(count);
}

/** Formats a count and its noun: `1 chunk`, `2 chunks`. */
export function formatCounted(count: number, noun: string, plural = `${noun}s`): string {
  return `${formatCount(count)} ${count === 1 ? noun : plural}`;
}
