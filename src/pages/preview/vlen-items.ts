import { pythonString } from "../../json/python-text.js";
import { pythonBytes } from "./python-bytes.js";

const TEXT = new TextDecoder();

/** By the filter's id: how one item of its bytes is written. */
const FORMATTERS: Readonly<Record<string, (bytes: Uint8Array) => string>> = {
  "vlen-utf8": (bytes) => pythonString(TEXT.decode(bytes)),
  "vlen-bytes": pythonBytes,
};

/** Whether items behind this filter can be looked at. */
export function isVlenFilter(id: string | undefined): id is string {
  return id !== undefined && Object.hasOwn(FORMATTERS, id);
}

/**
 * The first items of a chunk that numcodecs' `vlen-utf8` or `vlen-bytes` wrote: a count, then every item behind its
 * length (uint32, little-endian).
 * @param count Items wanted at most.
 * @returns Undefined where the bytes end too early.
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
