/** The part of a dataset that code reads. Plain data. */
export interface CodeSelection {
  /** URL of the Zarr store, or of a group in it, without a slash at its end. */
  readonly url: string;
  /** Zarr format of the store. */
  readonly version: 2 | 3;
  /** Undefined if the dataset has no variable to read. */
  readonly variable: CodeVariable | undefined;
}

/** A variable, and the part of it that is read. */
export interface CodeVariable {
  /** Below {@link CodeSelection.url}: `t2m`, or `a/b/t2m`. */
  readonly path: string;
  readonly axes: readonly CodeAxis[];
  /** Undefined if stored numbers are the values. */
  readonly packing?: CodePacking | undefined;
  /** Whether JavaScript reads its numbers as `bigint`. */
  readonly isBigInt?: boolean;
}

/** An axis of a variable, and the part of it that is read. */
export interface CodeAxis {
  readonly dim: string;
  readonly length: number;
  /** Cells of the axis. */
  readonly part: AxisPart;
  /** Undefined if cells are selected by index. */
  readonly coordinate?: CodeCoordinate | undefined;
}

/** All cells, one cell, or runs of cells: two if a map crosses the seam between the last longitude and the first. */
export type AxisPart = "all" | number | readonly CellRun[];

/** Cells from `begin` to before `end`. */
export type CellRun = readonly [begin: number, end: number];

/**
 * Values of an axis by which xarray finds its cells: numbers, or ISO dates that xarray reads as `datetime64`. Strictly ascending or
 * descending, without missing ones.
 */
export type CodeCoordinate = { readonly numbers: ArrayLike<number> } | { readonly dates: readonly string[] };

/** How stored numbers become values: `stored * scale + offset`, unless they mean a missing value. */
export interface CodePacking {
  readonly missing: readonly number[];
  readonly scale: number;
  readonly offset: number;
}

/** Control characters and others that a page or a terminal does not show as they are. */
const UNSEEN = /[\p{Cc}\p{Bidi_Control}\u2028\u2029\ufdd0-\ufdef\ufeff\ufffe\uffff]/gu;

/** Writes a text as a string of Python and of JavaScript. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    UNSEEN,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** Writes a text as one word of a POSIX shell. What a terminal does not show becomes U+FFFD. */
export function shellWord(text: string): string {
  return `'${text.replace(UNSEEN, "\ufffd").replaceAll("'", "'\\''")}'`;
}

/** Returns the lists of runs that one read each can give: the product of the axes' runs, in order. */
export function rectanglesOf(axes: readonly CodeAxis[]): ("all" | number | CellRun)[][] {
  let rectangles: ("all" | number | CellRun)[][] = [[]];
  for (const { part } of axes) {
    const choices = part === "all" || typeof part === "number" ? [part] : part;
    rectangles = rectangles.flatMap((rectangle) => choices.map((choice) => [...rectangle, choice]));
  }
  return rectangles;
}
