import { type NumericArray, shortestFloat } from "../../plugin-api.js";

/** Items of a variable that are written as text, from the item with number `firstItem` on. Plain data: it goes to a worker. */
export interface AsciiTask {
  /** Text before them. */
  readonly before: string;
  readonly values: NumericArray | readonly string[];
  /** Bytes of a float; undefined for other types. */
  readonly floatBytes: number | undefined;
  readonly shape: readonly number[];
  readonly firstItem: number;
}

/**
 * Writes values in the layout of `.ascii`: a row per line, with the indexes of its other axes before it: `[0][3], 1.5, 2.5`. Runs in the
 * pool.
 */
export default function writeAscii({ before, values, floatBytes, shape, firstItem }: AsciiTask): Uint8Array {
  const rowLength = shape.at(-1) ?? 1;
  let text = before;
  for (let index = 0; index < values.length; index += 1) {
    const item = firstItem + index;
    text += item % rowLength === 0 ? rowBegin(shape, item / rowLength) : ", ";
    text += itemText(values[index]!, floatBytes);
    if ((item + 1) % rowLength === 0) text += "\n";
  }
  return new TextEncoder().encode(text);
}

function rowBegin(shape: readonly number[], row: number): string {
  if (shape.length < 2) return "";
  let rest = row;
  const indexes: number[] = [];
  for (const length of shape.slice(0, -1).toReversed()) {
    indexes.unshift(rest % length);
    rest = Math.floor(rest / length);
  }
  return `${indexes.map((index) => `[${index}]`).join("")}, `;
}

function itemText(value: number | bigint | string, floatBytes: number | undefined): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (floatBytes === undefined || typeof value === "bigint") return String(value);
  return Object.is(value, -0) ? "-0" : String(shortestFloat(value, floatBytes));
}
