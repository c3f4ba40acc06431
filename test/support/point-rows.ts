import { eachText, type PointTable } from "../../src/plugins/select/parse-points.js";

/** Returns the texts of a table of points row by row. */
export async function rowsOf({ names, columns }: PointTable) {
  const rows: string[][] = [];
  for (const [at, column] of columns.entries())
    await eachText(column, (text, row) => {
      rows[row] ??= [];
      rows[row][at] = text;
    });
  return { names, rows };
}
