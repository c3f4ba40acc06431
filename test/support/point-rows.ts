import { eachText, type PointTable } from "../../src/plugins/select/parse-points.js";

/** Returns the texts of a table of points row by row. */
export async function rowsOf(table: PointTable) {
  const rows: string[][] = [];
  for (const column of table.names.keys())
    await eachText(table, column, (text, row) => {
      rows[row] ??= [];
      rows[row][column] = text;
    });
  return { names: table.names, rows };
}
