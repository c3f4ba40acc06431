import type { Axis } from "../../axis.js";
import type { ShowRequest, VariableDescription } from "../../protocol.js";
import { chooseResolution, chunksFromCentre, type Resolution, resolutionsOf } from "../array-reader.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader, CurvilinearCells, CurvilinearReader } from "../read-axis.js";
import { listOf, type RunList, runOf, runsByChunk, type ScreenTable, screenTable } from "./paint-loops.js";
import { type LevelPlan, type PicturePlan, type PlannedChunk, placeOfPlane, settleLevel } from "./picture.js";

/** Settles which chunks a picture needs whose rows and columns are cells of two axes. @throws ReadFailure */
export async function planGrid(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const { selection, viewport, isMoving, isConfirmed } = request;
  const variable = session.variable(selection.variable);
  const { box, width, height, inCells } = viewport;
  const [xAxis, yAxis] = await axes.plane(variable, request.axes, inCells);
  const columns = screenTable(xAxis, box.left, box.right, width, false);
  const rows = screenTable(yAxis, box.top, box.bottom, height, false);
  const resolutions = resolutionsOf(variable);
  const chosen = chooseResolution(resolutions, request.axes, { x: columns.density, y: rows.density });

  const isMeanOf = ({ level }: Resolution) =>
    level === 0 && Math.max(columns.density, rows.density) > 2 && !isMoving && !variable.isCategorical;
  const plan = (resolution: Resolution) => {
    const table = (axis: Axis, begin: number, end: number, pixels: number, nearest: ScreenTable) =>
      isMeanOf(resolution) ? screenTable(axis, begin, end, pixels, true) : nearest;
    return planLevel(session, variable, request, resolution, {
      rows: table(yAxis, box.top, box.bottom, height, rows),
      columns: table(xAxis, box.left, box.right, width, columns),
    });
  };
  const { fine, cost, coarser } = settleLevel(session, variable, isConfirmed, resolutions, chosen, plan);
  return {
    variable,
    grid: { rows: rows.from, columns: columns.from },
    cells: distinct(rows.from) * distinct(columns.from),
    fine,
    coarse: coarser.map(plan).reverse(),
    isMean: isMeanOf(fine.resolution),
    cost,
  };
}

function planLevel(
  session: DatasetSession,
  variable: VariableDescription,
  request: ShowRequest,
  resolution: Resolution,
  tables: { readonly rows: ScreenTable; readonly columns: ScreenTable },
): LevelPlan {
  const { x, y } = request.axes;
  const { factors, chunkShape } = resolution;
  const { strides } = session.documentOf(resolution);
  const rows = runsByChunk(tables.rows, factors[y]!, chunkShape[y]!, strides[y]!);
  const columns = runsByChunk(tables.columns, factors[x]!, chunkShape[x]!, strides[x]!);
  const { coords, base, scale } = placeOfPlane(session, variable, request, resolution);
  const chunks = chunksFromCentre(rows.keys(), columns.keys()).map(({ row, column }) => ({
    job: session.job(resolution, coords.with(y, row).with(x, column)),
    place: { rows: rows.get(row)!, columns: columns.get(column)!, base, scale },
  }));
  return { resolution, chunks };
}

function distinct(cells: Int32Array): number {
  let count = 0;
  let before = -1;
  for (const cell of cells) {
    if (cell !== -1 && cell !== before) count++;
    before = cell;
  }
  return count;
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
  const variable = session.variable(request.selection.variable);
  const found = await reader.cells(variable, request.viewport);
  const { x, y } = request.axes;
  const { cells, count } = countCells(found);
  // Resolutions finer than the grid whose places are known cannot be placed.
  const known = found.grid.resolution.factors;
  const resolutions = resolutionsOf(variable).filter(
    ({ factors }) => factors[y]! >= known[0]! && factors[x]! >= known[1]!,
  );
  const density = Math.sqrt(cells / Math.max(1, count));
  const fitting = resolutions.filter(
    ({ factors }) => density / Math.max(factors[x]! / known[1]!, factors[y]! / known[0]!) >= 1,
  );
  const chosen = fitting.at(-1) ?? resolutions[0]!;
  const plan = (resolution: Resolution) =>
    planCurvilinearLevel(session, variable, request, resolution, found);
  const { fine, cost, coarser } = settleLevel(
    session,
    variable,
    request.isConfirmed,
    resolutions,
    chosen,
    plan,
  );
  return {
    variable,
    grid: undefined,
    cells,
    fine,
    coarse: coarser.map(plan).reverse(),
    isMean: false,
    cost,
  };
}

/** Counts the pixels with data, and the cells between the outermost visible ones: those in view, though some are under no pixel. */
function countCells({ cells, grid }: CurvilinearCells): { readonly cells: number; readonly count: number } {
  const { columns } = grid.centres;
  let [count, top, bottom, left, right] = [0, Infinity, -1, Infinity, -1];
  for (const cell of cells) {
    if (cell === -1) continue;
    count++;
    const row = Math.floor(cell / columns);
    const column = cell - row * columns;
    top = Math.min(top, row);
    bottom = Math.max(bottom, row);
    left = Math.min(left, column);
    right = Math.max(right, column);
  }
  return { cells: count === 0 ? 0 : (bottom - top + 1) * (right - left + 1), count };
}

function planCurvilinearLevel(
  session: DatasetSession,
  variable: VariableDescription,
  request: ShowRequest,
  resolution: Resolution,
  { cells, grid }: CurvilinearCells,
): LevelPlan {
  const { x, y } = request.axes;
  const { factors, chunkShape, shape } = resolution;
  const { strides } = session.documentOf(resolution);
  const { coords, base, scale } = placeOfPlane(session, variable, request, resolution);
  const [factorY, factorX] = [
    factors[y]! / grid.resolution.factors[0]!,
    factors[x]! / grid.resolution.factors[1]!,
  ];
  const { columns } = grid.centres;
  const chunkColumns = Math.ceil(shape[x]! / chunkShape[x]!);
  const seen = new Uint8Array(shape[y]! * shape[x]!);
  const lists = new Map<number, RunList>();
  for (let pixel = 0; pixel < cells.length; pixel++) {
    const cell = cells[pixel]!;
    if (cell === -1) continue;
    const row = Math.floor(Math.floor(cell / columns) / factorY);
    const column = Math.floor((cell % columns) / factorX);
    const [chunkRow, chunkColumn] = [Math.floor(row / chunkShape[y]!), Math.floor(column / chunkShape[x]!)];
    const key = chunkRow * chunkColumns + chunkColumn;
    const list = listOf(lists, key);
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
  return { resolution, chunks: chunks.sort((one, other) => other.size - one.size) };
}
