import {
  boundsOf,
  type ClientCode,
  type CodeAxis,
  type CodeVariable,
  labelOf,
  quoted,
} from "./selection-code.js";

/** Formats for which there is code. */
export type SelectedFormat = "NetCDF" | "CSV";

/** What is known of the values in a file. */
interface FileBytes {
  /** Bytes of a stored value. */
  readonly item: number;
  /** Bytes of all coordinates as they are stored. Default: 8 for each label. */
  readonly labels?: number;
  /** Bytes of a row of the table in memory. Default: 8 for each column. */
  readonly row?: number;
}

/** A file with a selection, which the server makes when it is asked for. */
export interface SelectionFile {
  readonly format: SelectedFormat;
  readonly url: string;
  /** Bytes of the file: values and coordinates of NetCDF, without its header; of CSV a guess. */
  readonly byteLength: number;
  /** Bytes that `--max-selection` is about: of CSV the table in memory. */
  readonly selectedBytes: number;
  /** Code that reads it. */
  readonly code: ClientCode;
}

/** Parameters that are no dimensions; a dimension of such a name is selected by index. */
const FIXED = /^(?:var|f|decode|method|tolerance|token|isel\..*|step\..*)$/s;
/** Bytes of most labels. */
const LABEL_BYTES = 8;
/** Characters of a date, of another label and of a value in CSV, with what separates them. */
const CSV_CHARS = { date: 20, label: 7, value: 10 };

/**
 * Describes the file of a selection: the cells that `selectionCode` reads, by the same labels, which stay right if a dataset grows.
 *
 * @param url That of the plugin `select`: `https://data.example/datasets/air/select`.
 * @param variable Its path is that in the dataset.
 */
export function selectionFile(
  format: SelectedFormat,
  url: string,
  { path, axes }: CodeVariable,
  bytes: FileBytes,
): SelectionFile {
  const ending = format === "NetCDF" ? "nc" : "csv";
  const parameters = [["var", path], ...axes.flatMap(parametersOf), ["f", ending]];
  const query = parameters.map((pair) => pair.map((text) => encodedText(text!)).join("=")).join("&");
  const counts = axes.map(({ part, length }) => {
    if (part === "all") return length;
    return typeof part === "number" ? 1 : part.reduce((sum, [begin, end]) => sum + end - begin, 0);
  });
  const items = counts.reduce((product, count) => product * count, 1);
  const whole = `${url}?${query}`;
  if (format === "CSV") {
    const columns = axes.map(({ isTime }) => (isTime ? CSV_CHARS.date : CSV_CHARS.label));
    return {
      ...{ format, url: whole, code: { client: format, language: "python", code: csvCode(whole) } },
      byteLength: items * columns.reduce((sum, chars) => sum + chars, CSV_CHARS.value),
      selectedBytes: items * (bytes.row ?? (axes.length + 1) * LABEL_BYTES),
    };
  }
  const labels = bytes.labels ?? counts.reduce((sum, count) => sum + count, 0) * LABEL_BYTES;
  const byteLength = items * bytes.item + labels;
  const name = `${path.replace(/[^A-Za-z0-9]+/g, "_")}.nc`;
  const code = { client: format, language: "python", code: netcdfCode(whole, name) } as const;
  return { format, url: whole, code, byteLength, selectedBytes: byteLength };
}

/** `xr.open_dataset` takes a URL for one of OPeNDAP. */
function netcdfCode(url: string, name: string): string {
  return `from urllib.request import urlretrieve
import xarray as xr

urlretrieve(${quoted(url)}, ${quoted(name)})
ds = xr.open_dataset(${quoted(name)})`;
}

function csvCode(url: string): string {
  return `import pandas as pd

df = pd.read_csv(${quoted(url)})`;
}

/** Returns the parameters by which an axis is selected; none if that is all of it. */
export function parametersOf(axis: CodeAxis): (readonly [name: string, value: string])[] {
  const { dim, part, coordinate } = axis;
  if (part === "all") return [];
  const hasLabels = coordinate !== undefined && !FIXED.test(dim);
  if (typeof part === "number") {
    const label = hasLabels ? labelOf(axis, part) : undefined;
    return [label === undefined ? [`isel.${dim}`, String(part)] : [dim, `nearest::${label}`]];
  }
  const [first, last = first] = part;
  if (first === undefined || last === undefined || first[0] >= first[1]) return [[`isel.${dim}`, "0:0"]];
  // A range across the seam of longitudes goes from its first label to its last one, which is lower.
  if (hasLabels && (first === last || isRising(coordinate)))
    return [[dim, `${boundsOf(axis, first)[0]}/${boundsOf(axis, last)[1]}`]];
  if (first === last) return [[`isel.${dim}`, `${first[0]}:${first[1]}`]];
  return part.flatMap(([begin, end]) =>
    Array.from({ length: end - begin }, (_, index) => [`isel.${dim}`, String(begin + index)] as const),
  );
}

function isRising(coordinate: NonNullable<CodeAxis["coordinate"]>): boolean {
  return (
    "numbers" in coordinate && coordinate.numbers[0]! < coordinate.numbers[coordinate.numbers.length - 1]!
  );
}

/** Encodes a text of a query; colons, commas and slashes stay, so that people can read it. */
export function encodedText(text: string): string {
  return encodeURIComponent(text).replace(/%(?:3A|2C|2F)/g, decodeURIComponent);
}
