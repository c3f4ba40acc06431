/** What stands where there is no number. */
export const NONE = "–";

/** Three digits at least, with commas for thousands. */
export function formatNumber(value: number | undefined): string {
  if (value === undefined || Number.isNaN(value)) return NONE;
  const size = Math.abs(value);
  if (size >= 100) return Math.round(value).toLocaleString("en-US");
  return size >= 10 ? value.toFixed(1) : value.toFixed(2);
}

/** As a count is: without decimals where it has none. */
export function formatCell(value: string | number | undefined): string {
  if (typeof value === "string") return value;
  return Number.isInteger(value) ? value!.toLocaleString("en-US") : formatNumber(value);
}

/** A table in Markdown, its first column to the left and the others to the right. */
export function markdownTable(
  columns: readonly string[],
  rows: readonly (readonly (string | number | undefined)[])[],
): string[] {
  const rule = columns.map((_, i) => (i === 0 ? "---" : "--:"));
  return [columns, rule, ...rows.map((row) => row.map(formatCell))].map(
    (cells) => `| ${cells.join(" | ")} |`,
  );
}
