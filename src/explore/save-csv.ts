/** A column of a CSV file. */
export interface CsvColumn {
  readonly name: string;
  /** UDUNITS text, which the header shows in brackets; undefined for dates, texts and plain numbers. */
  readonly units?: string | undefined;
  /** One per row: NaN and undefined are missing. One value alone is repeated in every row. */
  readonly values: ArrayLike<number | string | undefined> | { readonly constant: string };
  /** Whether numbers have the precision of 32 bits. */
  readonly isFloat32?: boolean;
}

/**
 * Writes a CSV file (RFC 4180): a header with units, then a row per value. Missing values are empty.
 * @param length Number of rows.
 */
export function csvText(columns: readonly CsvColumn[], length: number): string {
  const header = columns.map(({ name, units }) => fieldOf(units === undefined ? name : `${name} [${units}]`));
  const lines = [header.join(",")];
  for (let row = 0; row < length; row++) lines.push(columns.map((column) => cellOf(column, row)).join(","));
  return lines.map((line) => `${line}\r\n`).join("");
}

/**
 * Writes a number with the fewest digits that are read back as the same one: `281.3` for a 32-bit number that is 281.29998779296875 in
 * 64 bits.
 */
export function numberText(value: number, isFloat32 = false): string {
  if (!isFloat32 || !Number.isFinite(value) || Math.fround(value) !== value) return String(value);
  for (let digits = 1; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Math.fround(short) === value) return String(short);
  }
  return String(Number(value.toPrecision(9)));
}

function cellOf({ values, isFloat32 = false }: CsvColumn, row: number): string {
  const value = "constant" in values ? values.constant : values[row];
  if (value === undefined || Number.isNaN(value)) return "";
  return typeof value === "number" ? numberText(value, isFloat32) : fieldOf(value);
}

function fieldOf(text: string): string {
  return /[",\r\n]|^\s|\s$/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
