import { shortestFloat } from "../../../json/stringify-json.js";
import type { AxisValues, RangeAnswer, VariableDescription } from "../../protocol.js";
import { unpackedText } from "../../value-text.js";
import { axesBesides, type SeriesPlace } from "./plot-axis.js";

/** A column of a CSV file. */
interface CsvColumn {
  readonly name: string;
  /** UDUNITS text, which the header shows in brackets; undefined for dates, texts and plain numbers. */
  readonly units?: string | undefined;
  /** One per row: NaN and undefined are missing. A text is repeated in every row. */
  readonly values: ArrayLike<number | string | undefined> | string;
}

/** Writes a CSV file (RFC 4180): a header with units, then a row per value. Missing values are empty. */
export function csvText(columns: readonly CsvColumn[], length: number): string {
  const header = columns.map(({ name, units }) => fieldOf(units === undefined ? name : `${name} [${units}]`));
  const lines = [header.join(",")];
  for (let row = 0; row < length; row++) lines.push(columns.map((column) => cellOf(column, row)).join(","));
  return lines.map((line) => `${line}\r\n`).join("");
}

function cellOf({ values }: CsvColumn, row: number): string {
  const value = typeof values === "string" ? values : values[row];
  if (value === undefined || Number.isNaN(value)) return "";
  return typeof value === "number" ? String(value) : fieldOf(value);
}

function fieldOf(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Returns the CSV file of a series: its axis with dates in its calendar, values, and where it is. */
export function seriesCsv(place: SeriesPlace, series: ArrayLike<number>): string {
  const { variable, values, at, along, axis, onGrid } = place;
  const { length } = axis.positions;
  const { texts } = values[along]!;
  const positions: CsvColumn = {
    name: axis.dim,
    units: unitsOf(values[along]!),
    values: Array.from({ length }, (_, cell) =>
      texts?.[cell] === "NaT" ? undefined : cellText(values[along]!, cell),
    ),
  };
  const places = axesBesides(variable, along).map((index): CsvColumn => {
    const text = cellText(values[index]!, at[index] ?? 0) ?? "";
    return { name: variable.dims[index]!, units: unitsOf(values[index]!), values: text };
  });
  const column: CsvColumn = {
    name: variable.name,
    units: variable.units,
    values: Array.from(series, (value) => (Number.isNaN(value) ? undefined : unpackedText(variable, value))),
  };
  if (onGrid !== undefined) {
    const { latitude, longitude } = onGrid;
    places.push({ name: "latitude", units: "degrees_north", values: String(latitude) });
    places.push({ name: "longitude", units: "degrees_east", values: String(longitude) });
  }
  return csvText([positions, column, ...places], length);
}

function unitsOf({ texts, numbers, units }: AxisValues): string | undefined {
  return texts === undefined && numbers !== undefined ? units : undefined;
}

/**
 * Returns the text, number or index of a cell; undefined if it is missing. A number has the fewest digits that are read back as the same
 * one: `0.1` if it is the 32-bit number next to that.
 */
function cellText({ texts, numbers }: AxisValues, cell: number): string | undefined {
  if (texts !== undefined) return texts[cell];
  const number = numbers === undefined ? cell : numbers[cell]!;
  if (Number.isNaN(number)) return undefined;
  return String(Math.fround(number) === number ? shortestFloat(number, 4) : number);
}

/** Returns the CSV file of a histogram: the bounds of each bin, and how many values it has. */
export function histogramCsv(variable: VariableDescription, { bins, least, greatest }: RangeAnswer): string {
  const width = (greatest - least) / bins.length;
  const bounds = (offset: number) =>
    bins.map((_, index) => Number((least + width * (index + offset)).toPrecision(12)));
  const { name, units } = variable;
  const columns: CsvColumn[] = [
    { name: `${name} from`, units, values: bounds(0) },
    { name: `${name} to`, units, values: bounds(1) },
    { name: "count", values: bins },
  ];
  return csvText(columns, bins.length);
}
