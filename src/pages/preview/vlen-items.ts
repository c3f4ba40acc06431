import { pythonString } from "../../json/stringify-json.js";
import { pythonBytes } from "./python-bytes.js";

const TEXT = new TextDecoder();

/** Formatters of an item's bytes, by the filter's id. */
const FORMATTERS: Readonly<Record<string, (bytes: Uint8Array) => string>> = {
  "vlen-utf8": (bytes) => pythonString(TEXT.decode(bytes)),
  "vlen-bytes": pythonBytes,
};

/** Tells whether {@link formatVlenItems} can format items of this filter. */
export function isVlenFilter(id: string | undefined): id is string {
  return id !== undefined && Object.hasOwn(FORMATTERS, id);
}

/**
 * Formats the first items of a chunk of numcodecs' `vlen-utf8` or `vlen-bytes`: a count, then each item after its length
 * (uint32, little-endian).
 * @param count Maximum of items.
 * @returns Undefined if the bytes end too early.
 */
export function formatVlenItems(id: string, bytes: Uint8Array, count: number): string[] | undefined {
  const format = FORMATTERS[id];
  if (format === undefined || bytes.length < 4) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const items = Math.min(count, view.getUint32(0, true));
  const texts: string[] = [];
  let position = 4;
  for (let index = 0; index < items; index++) {
    if (position + 4 > bytes.length) return undefined;
    const end = position + 4 + view.getUint32(position, true);
    if (end > bytes.length) return undefined;
    texts.push(format(bytes.subarray(position + 4, end)));
    position = end;
  }
  return texts;
}
