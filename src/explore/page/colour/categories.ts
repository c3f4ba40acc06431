import { flagValuesOf } from "../../../cf/packing.js";
import { categoryColours } from "../../../colour/colour-scales.js";
import { FIRST, type ShownRange, type VariableDescription } from "../../protocol.js";
import { cssColour, tableIndexOf } from "../map/frame-painter.js";

/** Categories of a variable (CF section 3.5) and their colours, those that thumbnails have. */
export interface Categories {
  readonly range: ShownRange;
  readonly names: readonly string[];
  /** 256 × 3 bytes: those of a category are at the place of its byte. */
  readonly table: Uint8Array;
}

/** Most categories that have bytes of their own. */
const MAX_CATEGORIES = 250;
/** Channels of values that are no category. */
const OTHER = 102;

/** Returns the categories of a variable; undefined if it has none, or flags that may occur together. */
export function categoriesOf({ attrs, isCategorical }: VariableDescription): Categories | undefined {
  const listed = isCategorical && attrs.flag_masks === undefined ? flagValuesOf(attrs) : [];
  if (listed.length === 0) return undefined;
  const values = listed.slice(0, MAX_CATEGORIES);
  const meanings = typeof attrs.flag_meanings === "string" ? attrs.flag_meanings.trim().split(/\s+/) : [];
  const colours = categoryColours(listed.length);
  const table = new Uint8Array(256 * 3).fill(OTHER);
  values.forEach((_, index) => {
    table.set(colours.subarray(3 * index, 3 * index + 3), tableIndexOf(FIRST + index) * 3);
  });
  return {
    range: { low: Math.min(...values), high: Math.max(...values), isLog: false, categories: values },
    names: values.map((value, index) => meanings[index] || String(value)),
    table,
  };
}

/** Returns the CSS colour of a category; of what is none if the index is undefined. */
export function categoryColour({ table }: Categories, index: number | undefined): string {
  if (index === undefined) return `rgb(${OTHER},${OTHER},${OTHER})`;
  return cssColour(table, tableIndexOf(FIRST + index));
}
