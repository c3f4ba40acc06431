import type { ShowRequest } from "../../protocol.js";
import { chunksFromCentre, type Resolution } from "../array-reader.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader, CellsUnderPixels, CurvilinearReader } from "../read-axis.js";
import {
  type ChunkRun,
  listOf,
  type RunList,
  runOf,
  runsByChunk,
  type ScreenTable,
  screenTable,
} from "./paint-loops.js";
import { type PicturePlan, type PlannedChunk, placesOfPlane } from "./picture.js";
import {
  type ChunkChoice,
  type ChunksInView,
  FAR,
  middleOf,
  settleReading,
  standInOf,
} from "./picture-budget.js";

/** Settles which chunks a picture needs whose rows and columns are cells of two axes. @throws ReadFailure */
export async function planGrid(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const { box, width, height, inCells } = request.viewport;
  const variable = session.variable(request.selection.variable);
  const [xAxis, yAxis] = await axes.plane(variable, request.axes, inCells);
  const tables = (isMean: boolean): ScreenTables => ({
    x: screenTable(xAxis, box.left, box.right, width, isMean),
    y: screenTable(yAxis, box.top, box.bottom, height, isMean),
  });
  const nearest = tables(false);
  const densities = { x: nearest.x.density, y: nearest.y.density };
  const mayBeMean = Math.max(densities.x, densities.y) > 2 && !request.isMoving && !variable.isCategorical;
  const isMeanOf = ({ level }: Resolution) => mayBeMean && level === 0;
  const settled = settleReading(session, request, densities, (resolution) =>
    chunksInView(session, request, resolution, nearest, isMeanOf(resolution) ? tables(true) : nearest),
  );
  const grid = { rows: nearest.y.from, columns: nearest.x.from };
  const cells = distinct(grid.rows) * distinct(grid.columns);
  return { ...settled, grid, cells, isMean: isMeanOf(settled.resolution) };
}

/** Cells under the columns and rows of pixels. */
type ScreenTables = Readonly<Record<"x" | "y", ScreenTable>>;

/** Returns the chunks under pixels. @param nearest Cells under their middles. @param shown Those that they show. */
function chunksInView(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  nearest: ScreenTables,
  shown: ScreenTables,
): ChunksInView {
  const { factors, chunkShape, shape } = resolution;
  const { strides } = session.documentOf(resolution);
  const runsOf = (key: "x" | "y", every: number) => {
    const axis = request.axes[key];
    const [factor, length, stride] = [factors[axis]!, chunkShape[axis]!, strides[axis]!];
    if (every === 1) return runsByChunk(shown[key], factor, length, stride);
    const standIn = standInOf(shape[axis]!, length, every);
    const from = nearest[key].from.map((cell) => (cell === -1 ? -1 : standIn(Math.floor(cell / factor))));
    return runsByChunk({ from, to: from.map((cell) => cell + 1) }, 1, length, stride);
  };
  const place = createPlacing(session, request, resolution);
  const pixelsOf = (key: "x" | "y") => {
    const axis = request.axes[key];
    return (chunkShape[axis]! * factors[axis]!) / nearest[key].density;
  };
  return {
    rows: runsOf("y", 1).size,
    columns: runsOf("x", 1).size,
    height: pixelsOf("y"),
    width: pixelsOf("x"),
    depth: place.depth,
    plan({ everyRow, everyColumn, maxRows, maxColumns }) {
      const [rowRuns, columnRuns] = [runsOf("y", everyRow), runsOf("x", everyColumn)];
      const rows = middleOf([...rowRuns.keys()], maxRows);
      const columns = middleOf([...columnRuns.keys()], maxColumns);
      return chunksFromCentre(rows, columns).flatMap(({ row, column }) =>
        place.chunks(row, column, rowRuns.get(row)!, columnRuns.get(column)!),
      );
    },
  };
}

/** Puts chunks by their row and column into a picture: one, or several if its bands lie in chunks of their own. */
function createPlacing(session: DatasetSession, request: ShowRequest, resolution: Resolution) {
  const { x, y } = request.axes;
  const places = placesOfPlane(session, request, resolution);
  return {
    depth: places.length,
    chunks: (row: number, column: number, rows: ChunkRun, columns: ChunkRun): PlannedChunk[] =>
      places.map(({ coords, ...place }) => ({
        job: session.job(resolution, coords.with(x, column).with(y, row)),
        place: { ...place, rows, columns },
      })),
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
function countCells({ cells, columns }: CellsUnderPixels) {
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
  const isList = session.variable(request.selection.variable).curvilinear?.list !== undefined;
  const perCell = isList ? FAR : 1 / Math.max(density, Number.MIN_VALUE);
  const place = createPlacing(session, request, resolution);
  return {
    rows: rows.size,
    columns: columns.size,
    height: rowLength * perCell,
    width: columnLength * perCell,
    depth: place.depth,
    plan(choice) {
      const chunks = runsOfCells(session, request, resolution, { cells, columns: gridColumns }, choice);
      return chunks.flatMap(({ row, column, run }) => place.chunks(row, column, ONE_ROW, run));
    },
  };
}

/** Returns the chunks that hold cells under pixels, with these pixels as one row: those first that fill most of the picture. */
function runsOfCells(
  session: DatasetSession,
  request: ShowRequest,
  resolution: Resolution,
  { cells, columns }: CellsUnderPixels,
  { everyRow, everyColumn }: ChunkChoice,
) {
  const { x, y } = request.axes;
  const { factors, chunkShape, shape } = resolution;
  const { strides } = session.documentOf(resolution);
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
    run: runOf(list),
  }));
  return chunks.sort((one, other) => other.run.pixels.length - one.run.pixels.length);
}
