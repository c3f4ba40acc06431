import {
  type CoordinateAxis,
  createSlice,
  type DatasetView,
  indexOf,
  indexRange,
  type PluginContext,
  type StepSelection,
  ZpublishError,
} from "../../plugin-api.js";
import { type CellMask, type CellMaskTask, eastOf } from "./cell-mask.js";
import { stepIndexes } from "./edr-query.js";
import { axisNamed, type GriddedVariable, type NamedAxis } from "./gridded-variable.js";
import { type DegreeBox, regionOf, type WktGeometry } from "./well-known-text.js";

/** A dataset, and what reads it. */
export interface PlaceSource {
  readonly context: Pick<PluginContext, "values">;
  readonly snapshot: DatasetView;
  readonly signal: AbortSignal;
}

/** Cells that a geometry selects. */
export interface SelectedPlaces {
  /**
   * By the name of the axis. Those of `x` and `y` are `steps` of a grid, `points`, of which each cell occurs once, or one `step`; so are those
   * of axes that points have steps of their own on.
   */
  readonly selections: ReadonlyMap<string, StepSelection>;
  /** Degrees of steps of a grid, or of points. Longitudes are within half a turn of those of the geometry, or eastward of its western end. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** 1 for the cells of a grid, in C order of y and x, that are inside; undefined if all are. */
  readonly mask?: Uint8Array;
}

/** Most cells that an answer lists. */
const MAX_POINTS = 2 ** 18;
/** Most cells of the box of rows and columns around an area. */
const MAX_CELLS = 2 ** 24;

type Cells = Awaited<ReturnType<typeof cellsOf>>;

/** Returns the cells of a parameter: on a grid, rows have latitudes and columns longitudes; else each cell has both, in C order, NaN if it has no place. */
async function cellsOf({ context, snapshot }: PlaceSource, variable: GriddedVariable) {
  const [y, x] = [axisNamed(variable, "y")!, axisNamed(variable, "x")!];
  const isGrid = variable.coordinates.grid === undefined;
  const { latitudes, longitudes } = isGrid
    ? { latitudes: y.values as Float64Array, longitudes: x.values as Float64Array }
    : await context.values.cellPlaces(snapshot, variable.array);
  return { isGrid, y, x, latitudes, longitudes };
}

/** A cell that is selected: its row, its column, and its steps on further axes. */
interface ListedCell {
  readonly steps: readonly number[];
  /** Longitude that its own one is the first east of. */
  readonly west: number;
}

/** Makes a list of cells. @param names Of the axes of its steps. @param kind `step` if there is but one. */
function listOf(
  { isGrid, x: columns, latitudes, longitudes }: Cells,
  cells: readonly ListedCell[],
  names: readonly string[],
  kind: "points" | "step",
): SelectedPlaces | undefined {
  if (cells.length === 0) return undefined;
  const placesOf = (list: Float64Array, axis: 0 | 1) =>
    Float64Array.from(
      cells,
      ({ steps }) => list[isGrid ? steps[axis]! : steps[0]! * columns.length + steps[1]!]!,
    );
  const x = placesOf(longitudes, 1).map((longitude, at) => eastOf(longitude, cells[at]!.west));
  const selections = names.map((name, axis): [string, StepSelection] => {
    const indexes = Int32Array.from(cells, ({ steps }) => steps[axis]!);
    const selection = kind === "points" ? { indexes } : { begin: indexes[0]!, count: 1, step: 1 };
    return [name, { kind, selection, labels: name === "x" && isGrid ? x : undefined }];
  });
  return { selections: new Map(selections), x, y: placesOf(latitudes, 0) };
}

/**
 * Finds the cells of points, or along lines: the nearest one to each position.
 * @param along Further axes that positions are on: `z`, `t`.
 * @returns undefined if there are none
 */
export async function selectNearest(
  source: PlaceSource,
  variable: GriddedVariable,
  geometry: WktGeometry,
  along: readonly NamedAxis[],
): Promise<SelectedPlaces | undefined> {
  const { type, stride, z, m, parts } = geometry;
  const cells = await cellsOf(source, variable);
  const gap = type.endsWith("POINT") ? 0 : await gapOf(source, variable, cells, regionOf(geometry));
  const positions = samplesOf(parts.flat(), stride, gap);
  const stepsOf = await finderOf(source, variable, cells, positions);
  const found = new Map<string, ListedCell>();
  const slice = createSlice();
  for (const [index, position] of positions.entries()) {
    if (slice.isOver()) await slice.next();
    const further = along.map(({ name, axis }) =>
      nearestStep(axis, name === "z" ? position[z]! : isoOf(position[m]!)),
    );
    const steps = [...stepsOf(index), ...further];
    if (steps.every((step) => step >= 0) && !found.has(steps.join()))
      found.set(steps.join(), { steps, west: position[0]! - 180 });
  }
  const names = ["y", "x", ...along.map(({ name }) => name)];
  return listOf(cells, [...found.values()], names, type === "POINT" ? "step" : "points");
}

/** Writes seconds since 1970 as a label of a time. */
function isoOf(seconds: number): string {
  return Math.abs(seconds) < 8.64e12 ? new Date(seconds * 1000).toISOString() : String(seconds);
}

/** Returns the nearest step to a label; -1 if that is half a step beyond the ends of the axis. @throws ZpublishError `invalid-query` */
function nearestStep(axis: CoordinateAxis, label: string | number): number {
  const found = indexOf(axis, label, "nearest");
  const valueAt = (index: number) => Number(axis.values?.[index] ?? index);
  const gaps = [found - 1, found + 1]
    .filter((index) => index >= 0 && index < axis.length)
    .map((index) => Math.abs(valueAt(index) - valueAt(found)) / 2);
  const isPlace = axis.role === "Y" || axis.role === "X";
  const tolerance = gaps.length === 0 ? (isPlace ? 0.5 : 0) : Math.max(...gaps) * (1 + 1e-6);
  return indexOf(axis, label, "nearest", tolerance);
}

/**
 * Returns a function that finds row and column of the nearest cell to one of some positions; negative ones if that is more than half a
 * cell away.
 */
async function finderOf(
  { context, snapshot }: PlaceSource,
  { array }: GriddedVariable,
  { isGrid, y, x, latitudes, longitudes }: Cells,
  positions: readonly (readonly number[])[],
): Promise<(index: number) => readonly [row: number, column: number]> {
  const places = positions.map(([longitude, latitude]) => [latitude!, longitude!] as const);
  if (isGrid) return (index) => [nearestStep(y, places[index]![0]), nearestStep(x, places[index]![1])];

  /** Returns metres between two cells, which are near to each other. */
  function distanceOf(one: number, other: number): number {
    const [y1, y2] = [latitudes[one]!, latitudes[other]!];
    const turn = Math.abs(((longitudes[other]! - longitudes[one]! + 540) % 360) - 180);
    return 111_195.08 * Math.hypot(y2 - y1, turn * Math.cos((((y1 + y2) / 2) * Math.PI) / 180));
  }
  const nearest = await context.values.nearestCells(snapshot, array, places);
  return (index) => {
    const { cell, distance } = nearest[index]!;
    const [row, column] = [Math.floor(cell / x.length), cell % x.length];
    const distanceTo = (at: number, along: number) =>
      at >= 0 && at < y.length && along >= 0 && along < x.length
        ? distanceOf(cell, at * x.length + along)
        : 0;
    // A cell reaches half of the way to the next row and column; to those before it if they have no place.
    const tall = distanceTo(row + 1, column) || distanceTo(row - 1, column) || 0;
    const wide = distanceTo(row, column + 1) || distanceTo(row, column - 1) || 0;
    return cell >= 0 && distance <= (Math.hypot(tall, wide) / 2) * (1 + 1e-3) ? [row, column] : [-1, -1];
  };
}

/** Returns the least degrees between rows or columns; on curvilinear grids the mean ones in a region. */
async function gapOf(
  { context, snapshot }: PlaceSource,
  { array }: GriddedVariable,
  { isGrid, latitudes, longitudes }: Cells,
  { west, south, east, north }: DegreeBox,
): Promise<number> {
  if (!isGrid) {
    const width = Math.min(360, east - west);
    const { y, x } = await context.values.cellBox(snapshot, array, [south, north], [west, west + width]);
    return Math.max(width, north - south) / Math.max(1, y.count, x.count) || 360;
  }
  const gaps = [latitudes, longitudes].flatMap((values) =>
    Array.from(values.subarray(1), (value, at) => Math.abs(value - values[at]!)),
  );
  return gaps.reduce((least, gap) => (gap > 0 && gap < least ? gap : least), 360);
}

/** Lists the positions of lines, and others between them, half a gap from each other; none between them if the gap is 0. */
function samplesOf(lines: readonly Float64Array[], stride: number, gap: number): number[][] {
  const samples: number[][] = [];
  for (const line of lines)
    for (let at = 0; at < line.length; at += stride) {
      const to = [...line.subarray(at, at + stride)];
      const from = at === 0 ? to : [...line.subarray(at - stride, at)];
      const length = Math.max(Math.abs(to[0]! - from[0]!), Math.abs(to[1]! - from[1]!));
      const count = gap === 0 ? 1 : Math.max(1, Math.ceil((2 * length) / gap));
      assertPoints(samples.length + count);
      for (let step = 1; step < count; step++)
        samples.push(from.map((begin, place) => begin + ((to[place]! - begin) * step) / count));
      samples.push(to);
    }
  return samples;
}

function assertPoints(count: number): void {
  if (count > MAX_POINTS) throw tooLarge(`at most ${MAX_POINTS} cells in a list`, `at least ${count}`);
}

function tooLarge(expected: string, received: string): ZpublishError {
  return new ZpublishError("too-large", `Expected ${expected}, received ${received}`);
}

/** Copies adjacent columns of some rows out of a list in C order. @param width Columns of the list. */
function boxOf(list: Float64Array, width: number, rows: readonly number[], columns: readonly number[]) {
  const box = new Float64Array(rows.length * columns.length);
  for (const [at, row] of rows.entries()) {
    const begin = row * width + columns[0]!;
    box.set(list.subarray(begin, begin + columns.length), at * columns.length);
  }
  return box;
}

/**
 * Finds the cells whose centres are in polygons.
 * @param isBox Whether the polygon is a box along longitudes and latitudes.
 * @param isListed Whether cells of regular grids are points, too.
 * @returns undefined if there are none
 */
export async function selectInside(
  source: PlaceSource,
  variable: GriddedVariable,
  polygons: WktGeometry,
  isBox: boolean,
  isListed: boolean,
): Promise<SelectedPlaces | undefined> {
  const cells = await cellsOf(source, variable);
  const { isGrid } = cells;
  const { west, south, east, north } = regionOf(polygons);
  const to = Math.min(east, west + 360);
  const { y, x } = isGrid
    ? { y: indexRange(cells.y, `${south}`, `${north}`), x: indexRange(cells.x, `${west}`, `${to}`) }
    : await source.context.values.cellBox(source.snapshot, variable.array, [south, north], [west, to]);
  const [rows, columns] = [stepIndexes(y), stepIndexes(x)];
  const size = rows.length * columns.length;
  if (size === 0) return undefined;
  if (!(isBox && isGrid) && size > MAX_CELLS)
    throw tooLarge(`an area of at most ${MAX_CELLS} cells`, `${size}`);
  const latitudes = isGrid
    ? Float64Array.from(rows, (row) => cells.latitudes[row]!)
    : boxOf(cells.latitudes, cells.x.length, rows, columns);
  const longitudes = isGrid
    ? Float64Array.from(columns, (column) => eastOf(cells.longitudes[column]!, west))
    : boxOf(cells.longitudes, cells.x.length, rows, columns);
  const selections = new Map<string, StepSelection>([
    ["y", { kind: "steps", selection: y }],
    ["x", { kind: "steps", selection: x, labels: longitudes }],
  ]);
  const grid = { x: longitudes, y: latitudes, selections };
  if (isBox && isGrid) return grid;
  const task: CellMaskTask = { polygons, latitudes, longitudes, isGrid };
  const module = new URL("./cell-mask.js", import.meta.url);
  const { mask, count } = await source.context.values.run<CellMask>(module, task, { signal: source.signal });
  if (count > 0 && isGrid && !isListed) return { ...grid, mask };
  assertPoints(count);
  const inside: ListedCell[] = [];
  for (let at = mask.indexOf(1); at >= 0; at = mask.indexOf(1, at + 1))
    inside.push({ steps: [rows[Math.floor(at / columns.length)]!, columns[at % columns.length]!], west });
  return listOf(cells, inside, ["y", "x"], "points");
}
