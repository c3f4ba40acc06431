const UNITS: Readonly<Record<string, number>> = {
  "": 1,
  b: 1,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
  kib: 2 ** 10,
  mib: 2 ** 20,
  gib: 2 ** 30,
  tib: 2 ** 40,
};

/** Parses `10GiB`, `512 MB`, `1.5TiB` or `1048576` into whole bytes; undefined if the text is none of these. */
export function parseByteSize(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim());
  if (match === null) return undefined;
  const unit = UNITS[(match[2] as string).toLowerCase()];
  if (unit === undefined) return undefined;
  const byteLength = Math.floor(Number(match[1]) * unit);
  return Number.isSafeInteger(byteLength) ? byteLength : undefined;
}

/** Writes a number of bytes for people: `0 B`, `512 B`, `1.5 KiB`, `10 GiB`. */
export function formatByteSize(byteLength: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let value = byteLength;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || Number.isInteger(value) ? value : value.toFixed(1)} ${units[unit]}`;
}
