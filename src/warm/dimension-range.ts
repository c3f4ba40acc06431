/** A range of a dimension, as an operator writes it. */
export type DimensionRange = IndexRange | ValueRange;

/** A range of indices: `time=0:100`. The end is not part of it; negative numbers count from the end. */
export interface IndexRange {
  readonly by: "index";
  readonly dim: string;
  /** Undefined for the beginning. */
  readonly begin: number | undefined;
  /** Undefined for the end of the dimension. */
  readonly end: number | undefined;
}

/** A range of coordinate values, both ends included: `time=2013-01:2013-02`, `lat=30:50`. */
export interface ValueRange {
  readonly by: "value";
  readonly dim: string;
  /** A number or a date as text. Undefined if there is no bound. */
  readonly low: string | undefined;
  readonly high: string | undefined;
}

/** Indices from `begin` up to but not including `end`. */
export interface Run {
  readonly begin: number;
  readonly end: number;
}

/** Coordinate values of one dimension, in its order. */
export type AxisValues =
  /** Missing ones are NaN. */
  | { readonly kind: "numbers"; readonly values: readonly number[] }
  /** ISO dates of the coordinate's own calendar, with years of four digits and with seconds. Other texts are in no range. */
  | { readonly kind: "dates"; readonly values: readonly string[] };

const INDEX = /^([^=]+)=(-?\d{1,15})?(:(-?\d{1,15})?)?$/;
const DATE = String.raw`\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d(?::\d\d(?::\d\d(?:\.\d{1,9})?)?)?Z?)?)?)?`;
const NUMBER = String.raw`[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?`;
const VALUES = new RegExp(`^([^=]+)=(${DATE}|${NUMBER})?(:(${DATE}|${NUMBER})?)?$`, "i");
const ISO_DATE = new RegExp(`^(?:${DATE})$`);

/** Parses `DIM=BEGIN:END` or `DIM=INDEX`; undefined if the text is neither. */
export function parseIndexRange(text: string): IndexRange | undefined {
  const match = INDEX.exec(text);
  const [, dim, first, rest, last] = match ?? [];
  if (dim === undefined || (first === undefined && rest === undefined)) return undefined;
  const begin = first === undefined ? undefined : Number(first);
  if (rest !== undefined)
    return { by: "index", dim, begin, end: last === undefined ? undefined : Number(last) };
  // The last index is followed by the end, not by index 0.
  return { by: "index", dim, begin, end: begin === -1 ? undefined : Number(begin) + 1 };
}

/** Parses `DIM=LOW:HIGH` or `DIM=VALUE` of numbers or ISO dates, which may be years or months; undefined if the text is neither. */
export function parseValueRange(text: string): ValueRange | undefined {
  const match = VALUES.exec(text);
  const [, dim, first, rest, last] = match ?? [];
  if (dim === undefined || (first === undefined && rest === undefined)) return undefined;
  const low = first && normalise(first);
  return { by: "value", dim, low, high: rest === undefined ? low : last && normalise(last) };
}

function normalise(text: string): string {
  return ISO_DATE.test(text) ? text.replace(" ", "T").replace(/Z$/i, "") : text;
}

/** Returns the indices of a range in a dimension of this length. */
export function runOfIndices({ begin = 0, end }: IndexRange, length: number): Run {
  const from = (index: number): number => Math.min(Math.max(index < 0 ? length + index : index, 0), length);
  const first = from(begin);
  return { begin: first, end: Math.max(first, end === undefined ? length : from(end)) };
}

/** Returns the runs in a coarser dimension whose indices each stand for `factor` indices of the finer one. */
export function coarserRuns(runs: readonly Run[], factor: number): readonly Run[] {
  return runs.map(({ begin, end }) => ({ begin: Math.floor(begin / factor), end: Math.ceil(end / factor) }));
}

/**
 * Returns the runs of indices whose values are in a range, in any order of the values. Both bounds are included; a date without a day
 * or time stands for all of its month or day, as in xarray.
 * @returns A text with the problem if the range is of dates and the values are numbers, or the reverse.
 */
export function runsOfValues(range: ValueRange, axis: AxisValues): readonly Run[] | string {
  if (axis.kind === "dates") {
    const { low = "", high = "9" } = range;
    const wrong = [range.low, range.high].find((text) => text !== undefined && !ISO_DATE.test(text));
    if (wrong !== undefined) return `expected dates such as 2013-01-31, received ${wrong}`;
    const [least, greatest] = low <= high.padEnd(low.length, "9") ? [low, high] : [high, low];
    return runsOf(
      axis.values,
      (text) => /^\d{4}-/.test(text) && text >= least && text.slice(0, greatest.length) <= greatest,
    );
  }
  const low = Number(range.low ?? Number.NEGATIVE_INFINITY);
  const high = Number(range.high ?? Number.POSITIVE_INFINITY);
  if (Number.isNaN(low) || Number.isNaN(high))
    return `expected numbers, received ${Number.isNaN(low) ? range.low : range.high}`;
  return runsOf(axis.values, (value) => value >= Math.min(low, high) && value <= Math.max(low, high));
}

function runsOf<T>(values: readonly T[], isIn: (value: T) => boolean): readonly Run[] {
  const runs: Run[] = [];
  let begin = -1;
  for (let index = 0; index <= values.length; index++) {
    const isInside = index < values.length && isIn(values[index] as T);
    if (isInside && begin < 0) begin = index;
    if (isInside || begin < 0) continue;
    runs.push({ begin, end: index });
    begin = -1;
  }
  return runs;
}

/** Returns the chunks of an axis that hold any of these indices, ascending. */
export function chunksOfRuns(runs: readonly Run[], chunkLength: number): number[] {
  const chunks = new Set<number>();
  for (const { begin, end } of runs) {
    if (begin === end) continue;
    const last = Math.floor((end - 1) / chunkLength);
    for (let chunk = Math.floor(begin / chunkLength); chunk <= last; chunk++) chunks.add(chunk);
  }
  return [...chunks].sort((a, b) => a - b);
}
