import type { Axis } from "../../axis.js";
import type { ShowRequest } from "../../protocol.js";
import { chunksFromCentre, type Resolution } from "../array-reader.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader, CellsUnderPixels, CurvilinearReader } from "../read-axis.js";
import { listOf, type RunList, runOf, runsByChunk, type ScreenTable, screenTable } from "./paint-loops.js";
import { type PicturePlan, type PlannedChunk, placesOfPlane } from "./picture.js";
import { type ChunkChoice, type ChunksInView, middleOf, settleReading, standInOf } from "./picture-budget.js";

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
  const densities = { x: columns.density, y: rows.density };
  const settled = settleReading(session, request, densities, (resolution) => {
    const table = (axis: Axis, begin: number, end: number, pixels: number, nearest: ScreenTable) =>
      isMeanOf(resolution) ? screenTable(axis, begin, end, pixels, true) : nearest;
    return chunksInView(
      session,
      request,
      resolution,
      { nearest: rows, shown: table(yAxis, box.top, box.bottom, height, rows) },
      { nearest: columns, shown: table(xAxis, box.left, box.right, width, columns) },
    );
  });
  return {
    ...settled,
    grid: { rows: rows.from, columns: columns.from },
    cells: distinct(rows.from) * distinct(columns.from),
    isMean: isMeanOf(settled.resolution),
  };
}

/** Tables of one axis: of the cells that pixels show, and of those under their middles. */
interface AxisTables {
  readonly nearest: ScreenTable;
  readonly shown: ScreenTable;
}

function chunksInView(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  rowTables: AxisTables,
  columnTables: AxisTables,
): ChunksInView {
  const { x, y } = request.axes;
  const { factors, chunkShape, shape } = resolution;
  const { strides } = session.documentOf(resolution);
  const runsOf = (axis: number, { nearest, shown }: AxisTables, every: number) => {
    const [factor, length, stride] = [factors[axis]!, chunkShape[axis]!, strides[axis]!];
    if (every === 1) return runsByChunk(shown, factor, length, stride);
    const standIn = standInOf(shape[axis]!, length, every);
    const from = nearest.from.map((cell) => (cell === -1 ? -1 : standIn(Math.floor(cell / factor))));
    return runsByChunk({ from, to: from.map((cell) => cell + 1) }, 1, length, stride);
  };
  const [rows, columns] = [runsOf(y, rowTables, 1), runsOf(x, columnTables, 1)];
  const places = placesOfPlane(session, request, resolution);
  const pixelsOf = (axis: number, { nearest: { density } }: AxisTables) =>
    (chunkShape[axis]! * factors[axis]!) / density;
  return {
    rows: rows.size,
    columns: columns.size,
    height: pixelsOf(y, rowTables),
    width: pixelsOf(x, columnTables),
    depth: places.length,
    plan({ everyRow, everyColumn, maxRows, maxColumns }) {
      const rowRuns = runsOf(y, rowTables, everyRow);
      const columnRuns = runsOf(x, columnTables, everyColumn);
      const [shownRows, shownColumns] = [
        middleOf([...rowRuns.keys()], maxRows),
        middleOf([...columnRuns.keys()], maxColumns),
      ];
      return chunksFromCentre(shownRows, shownColumns).flatMap(({ row, column }) =>
        places.map(({ coords, ...place }) => ({
          job: session.job(resolution, coords.with(y, row).with(x, column)),
          place: { ...place, rows: rowRuns.get(row)!, columns: columnRuns.get(column)! },
        })),
      );
    },
  };
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
  const found = await reader.cells(request);
  const { cells, pixels } = countCells(found);
  const density = Math.sqrt(cells / Math.max(1, pixels));
  const settled = settleReading(session, request, { x: density, y: density }, (resolution) =>
    curvilinearChunks(session, request, resolution, found, density),
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

/** Pixels from one place of a list to the next in the array. */
const FAR = 1e9;

/** Returns the chunks of a curvilinear grid that are in view: of the box round those under pixels. */
function curvilinearChunks(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  { cells, columns: gridColumns }: CellsUnderPixels,
  density: number,
): ChunksInView {
  const { x, y } = request.axes;
  const { factors, chunkShape } = resolution;
  const [rowLength, columnLength] = [chunkShape[y]! * factors[y]!, chunkShape[x]! * factors[x]!];
  const [rows, columns] = [new Set<number>(), new Set<number>()];
  for (const cell of cells) {
    if (cell === -1) continue;
    const row = Math.floor(cell / gridColumns);
    rows.add(Math.floor(row / rowLength));
    columns.add(Math.floor((cell - row * gridColumns) / columnLength));
  }
  // Nothing stands for other places of a list, as if it were far away from them.
  const isList = session.variable(request.selection.variable).curvilinear?.list !== undefined;
  const perCell = isList ? FAR : 1 / Math.max(density, Number.MIN_VALUE);
  return {
    rows: rows.size,
    columns: columns.size,
    height: rowLength * perCell,
    width: columnLength * perCell,
    depth: placesOfPlane(session, request, resolution).length,
    plan: (choice) =>
      planCurvilinearChunks(session, request, resolution, { cells, columns: gridColumns }, choice),
  };
}

function planCurvilinearChunks(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  { cells, columns }: CellsUnderPixels,
  { everyRow, everyColumn }: ChunkChoice,
): PlannedChunk[] {
  const { x, y } = request.axes;
  const { factors, chunkShape, shape } = resolution;
  const { strides } = session.documentOf(resolution);
  const places = placesOfPlane(session, request, resolution);
  // A list of cells has rows only.
  const width = x === y ? 1 : shape[x]!;
  const chunkColumns = Math.ceil(width / chunkShape[x]!);
  const seen = new Uint8Array(shape[y]! * width);
  const standInRow = standInOf(shape[y]!, chunkShape[y]!, everyRow);
  const standInColumn = standInOf(width, chunkShape[x]!, everyColumn);
  const lists = new Map<number, RunList>();
  for (let pixel = 0; pixel < cells.length; pixel++) {
    const cell = cells[pixel]!;
    if (cell === -1) continue;
    const row = standInRow(Math.floor(Math.floor(cell / columns) / factors[y]!));
    const column = standInColumn(Math.floor((cell % columns) / factors[x]!));
    const [chunkRow, chunkColumn] = [Math.floor(row / chunkShape[y]!), Math.floor(column / chunkShape[x]!)];
    const list = listOf(lists, chunkRow * chunkColumns + chunkColumn);
    list.pixels.push(pixel);
    list.offsets.push(
      (row - chunkRow * chunkShape[y]!) * strides[y]! + (column - chunkColumn * chunkShape[x]!) * strides[x]!,
    );
    const place = row * width + column;
    list.first.push(seen[place] === 0 ? 1 : 0);
    seen[place] = 1;
  }
  const chunks = Array.from(lists, ([key, list]) => ({
    row: Math.floor(key / chunkColumns),
    column: key % chunkColumns,
    columns: runOf(list),
  }));
  // Those that fill most of the picture first.
  chunks.sort((one, other) => other.columns.pixels.length - one.columns.pixels.length);
  return chunks.flatMap(({ row, column, columns }) =>
    places.map(({ coords, ...place }) => ({
      job: session.job(resolution, coords.with(x, column).with(y, row)),
      place: { ...place, rows: ONE_ROW, columns },
    })),
  );
}
