import type { Axis } from "../../axis.js";
import type { ShowRequest } from "../../protocol.js";
import { chunksFromCentre, type Resolution } from "../array-reader.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader, CurvilinearReader } from "../read-axis.js";
import type { CellsUnderPixels } from "./curvilinear.js";
import { listOf, type RunList, runOf, runsByChunk, type ScreenTable, screenTable } from "./paint-loops.js";
import { type PicturePlan, type PlannedChunk, placeOfPlane, settleLevel } from "./picture.js";

/** Settles which chunks a picture needs whose rows and columns are cells of two axes. @throws ReadFailure */
export async function planGrid(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const { selection, viewport, isMoving } = request;
  const variable = session.variable(selection.variable);
  const { box, width, height, inCells } = viewport;
  const [xAxis, yAxis] = await axes.plane(variable, request.axes, inCells);
  const columns = screenTable(xAxis, box.left, box.right, width, false);
  const rows = screenTable(yAxis, box.top, box.bottom, height, false);
  const isMeanOf = ({ level }: Resolution) =>
    level === 0 && Math.max(columns.density, rows.density) > 2 && !isMoving && !variable.isCategorical;
  const settled = settleLevel(session, request, { x: columns.density, y: rows.density }, (resolution) => {
    const table = (axis: Axis, begin: number, end: number, pixels: number, nearest: ScreenTable) =>
      isMeanOf(resolution) ? screenTable(axis, begin, end, pixels, true) : nearest;
    return planChunks(session, request, resolution, {
      rows: table(yAxis, box.top, box.bottom, height, rows),
      columns: table(xAxis, box.left, box.right, width, columns),
    });
  });
  return {
    ...settled,
    grid: { rows: rows.from, columns: columns.from },
    cells: distinct(rows.from) * distinct(columns.from),
    isMean: isMeanOf(settled.resolution),
  };
}

function planChunks(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  tables: { readonly rows: ScreenTable; readonly columns: ScreenTable },
): PlannedChunk[] {
  const { x, y } = request.axes;
  const { factors, chunkShape } = resolution;
  const { strides } = session.documentOf(resolution);
  const rows = runsByChunk(tables.rows, factors[y]!, chunkShape[y]!, strides[y]!);
  const columns = runsByChunk(tables.columns, factors[x]!, chunkShape[x]!, strides[x]!);
  const { coords, base, scale } = placeOfPlane(session, request, resolution);
  return chunksFromCentre(rows.keys(), columns.keys()).map(({ row, column }) => ({
    job: session.job(resolution, coords.with(y, row).with(x, column)),
    place: { rows: rows.get(row)!, columns: columns.get(column)!, base, scale },
  }));
}

function distinct(cells: Int32Array): number {
  return cells.filter((cell, index) => cell !== -1 && cell !== cells[index - 1]).length;
}

/** The one row of a picture whose pixels are listed one by one. */
const ONE_ROW = Object.freeze({
  pixels: Int32Array.of(0),
  offsets: Int32Array.of(0),
  isFirst: Uint8Array.of(1),
  cells: 1,
});

/** Settles which chunks a map of a curvilinear grid needs. @throws ReadFailure */
export async function planCurvilinear(
  session: DatasetSession,
  reader: CurvilinearReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const found = await reader.cells(session.variable(request.selection.variable), request.viewport);
  const { cells, pixels } = countCells(found);
  const density = Math.sqrt(cells / Math.max(1, pixels));
  const settled = settleLevel(session, request, { x: density, y: density }, (resolution) =>
    planCurvilinearChunks(session, request, resolution, found),
  );
  return { ...settled, grid: undefined, cells, isMean: false };
}

/** Counts the pixels with data, and the cells between the outermost visible ones: those in view, though some are under no pixel. */
function countCells({ cells, columns }: CellsUnderPixels): {
  readonly cells: number;
  readonly pixels: number;
} {
  let [pixels, top, bottom, left, right] = [0, Infinity, -1, Infinity, -1];
  for (const cell of cells) {
    if (cell === -1) continue;
    pixels++;
    const row = Math.floor(cell / columns);
    const column = cell - row * columns;
    top = Math.min(top, row);
    bottom = Math.max(bottom, row);
    left = Math.min(left, column);
    right = Math.max(right, column);
  }
  return { cells: pixels === 0 ? 0 : (bottom - top + 1) * (right - left + 1), pixels };
}

function planCurvilinearChunks(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  { cells, columns }: CellsUnderPixels,
): PlannedChunk[] {
  const { x, y } = request.axes;
  const { factors, chunkShape, shape } = resolution;
  const { strides } = session.documentOf(resolution);
  const { coords, base, scale } = placeOfPlane(session, request, resolution);
  const chunkColumns = Math.ceil(shape[x]! / chunkShape[x]!);
  const seen = new Uint8Array(shape[y]! * shape[x]!);
  const lists = new Map<number, RunList>();
  for (let pixel = 0; pixel < cells.length; pixel++) {
    const cell = cells[pixel]!;
    if (cell === -1) continue;
    const row = Math.floor(Math.floor(cell / columns) / factors[y]!);
    const column = Math.floor((cell % columns) / factors[x]!);
    const [chunkRow, chunkColumn] = [Math.floor(row / chunkShape[y]!), Math.floor(column / chunkShape[x]!)];
    const list = listOf(lists, chunkRow * chunkColumns + chunkColumn);
    list.pixels.push(pixel);
    list.offsets.push(
      (row - chunkRow * chunkShape[y]!) * strides[y]! + (column - chunkColumn * chunkShape[x]!) * strides[x]!,
    );
    const place = row * shape[x]! + column;
    list.first.push(seen[place] === 0 ? 1 : 0);
    seen[place] = 1;
  }
  const chunks = Array.from(lists, ([key, list]): PlannedChunk & { size: number } => ({
    size: list.pixels.length,
    job: session.job(resolution, coords.with(y, Math.floor(key / chunkColumns)).with(x, key % chunkColumns)),
    place: { rows: ONE_ROW, columns: runOf(list), base, scale },
  }));
  // Those that fill most of the picture first.
  return chunks.sort((one, other) => other.size - one.size);
}
