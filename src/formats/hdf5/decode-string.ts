import type { Hdf5Type } from "./hdf5-model.js";

const NUL = 0x00;
const SPACE = 0x20;

/**
 * Decodes a string without its padding. Bytes that are no UTF-8 become U+FFFD, as in netCDF4-python.
 * @param start Its first byte in `bytes`.
 * @param end The byte behind it.
 */
export function decodeString(
  bytes: Buffer,
  start: number,
  end: number,
  padding: Extract<Hdf5Type, { kind: "string" }>["padding"],
): string {
  return bytes.toString("utf8", start, endOf(bytes, start, end, padding));
}

function endOf(bytes: Uint8Array, start: number, end: number, padding: string): number {
  let last = end;
  if (padding === "null-terminated") {
    last = start;
    while (last < end && bytes[last] !== NUL) last++;
    return last;
  }
  const pad = padding === "space-padded" ? SPACE : NUL;
  while (last > start && bytes[last - 1] === pad) last--;
  return last;
}
