import { flagColoursOf, flagValuesOf } from "../../../cf/packing.js";
import { categoryColours } from "../../../colour/colour-scales.js";
import { FIRST, LAST, type ShownRange, type VariableDescription } from "../../protocol.js";
import { cssColour, tableIndexOf } from "../map/frame-painter.js";

/** Categories of a variable (CF section 3.5) and their colours, those that thumbnails have. */
export interface Categories {
  readonly range: ShownRange;
  readonly names: readonly string[];
  /** Byte of each category: those of the same colour may share one. */
  readonly bytes: readonly number[];
  /** 256 × 3 bytes: those of a category are at the place of its byte. */
  readonly table: Uint8Array;
}

/** Channels of values that are no category. */
const OTHER = 102;

/** Returns the categories of a variable; undefined if it has none, or flags that may occur together. */
export function categoriesOf(variable: VariableDescription): Categories | undefined {
  const { attrs, dataType, isCategorical } = variable;
  const listed = isCategorical && attrs.flag_masks === undefined ? flagValuesOf(attrs) : [];
  const isBoolean = listed.length === 0 && dataType.kind === "b";
  const values = isBoolean ? [0, 1] : listed;
  if (values.length === 0) return undefined;
  const meanings = typeof attrs.flag_meanings === "string" ? attrs.flag_meanings.trim().split(/\s+/) : [];
  const names = isBoolean
    ? ["false", "true"]
    : values.map((value, index) => meanings[index] || String(value));
  const named = flagColoursOf(attrs, values.length);
  const colours = named ?? categoryColours(values.length);
  const table = new Uint8Array(256 * 3).fill(OTHER);
  const known: Uint8Array[] = [];
  const bytes = values.map((_, index) => {
    const colour = colours.subarray(3 * index, 3 * index + 3);
    let place = named === undefined ? known.length : known.findIndex((each) => distance(each, colour) === 0);
    if (place === -1) place = known.length;
    // The last byte has the colour of other values. Categories beyond the others take the nearest colour.
    if (place >= LAST - FIRST) place = nearest(known, colour);
    if (place === known.length) known.push(colour);
    table.set(known[place]!, tableIndexOf(FIRST + place) * 3);
    return FIRST + place;
  });
  const categories = values.map((value, index) => [value, bytes[index]!] as const);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  return { range: { low, high, isLog: false, categories }, names, bytes, table };
}

function distance(one: Uint8Array, other: Uint8Array): number {
  return one.reduce((sum, channel, part) => sum + Math.abs(channel - other[part]!), 0);
}

function nearest(known: readonly Uint8Array[], colour: Uint8Array): number {
  const distances = known.map((each) => distance(each, colour));
  return distances.indexOf(Math.min(...distances));
}

/** Returns the CSS colour of a byte of categories; of what is none if it is undefined. */
export function categoryColour({ table }: Categories, byte: number | undefined): string {
  if (byte === undefined) return `rgb(${OTHER},${OTHER},${OTHER})`;
  return cssColour(table, tableIndexOf(byte));
}
