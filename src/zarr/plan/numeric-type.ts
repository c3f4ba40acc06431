import type { JsonValue } from "../../json/json-value.js";

/** A number type of typed arrays, as filters name it. */
export interface NumericType {
  readonly kind: "i" | "u" | "f";
  readonly itemSize: 1 | 2 | 4 | 8;
  /** False for one-byte types. */
  readonly isBigEndian: boolean;
  /** Numpy's canonical name: `<i4`, `|u1`. */
  readonly name: string;
}

/**
 * Parses a filter's `dtype` or `astype`: `"<i4"`, `"|u1"`, or `"i4"`, which is little-endian. Undefined if it is another
 * type; typed arrays have no half floats.
 */
export function parseNumericType(text: JsonValue | undefined): NumericType | undefined {
  if (typeof text !== "string") return undefined;
  const match = /^([<>|=]?)([iuf])([1248])$/.exec(text);
  if (match === null) return undefined;
  const kind = match[2] as NumericType["kind"];
  const itemSize = Number(match[3]) as NumericType["itemSize"];
  if (kind === "f" && itemSize < 4) return undefined;
  if (match[1] === "|" && itemSize > 1) return undefined;
  const isBigEndian = match[1] === ">" && itemSize > 1;
  const order = itemSize === 1 ? "|" : isBigEndian ? ">" : "<";
  return { kind, itemSize, isBigEndian, name: `${order}${kind}${itemSize}` };
}
