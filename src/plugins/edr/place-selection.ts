import {
  type AxisSelection,
  type CooperativeTask,
  type DatasetView,
  indexRange,
  type PluginContext,
  runCooperatively,
  type StepSelection,
  ZpublishError,
} from "../../plugin-api.js";
import type { CellMask, CellMaskTask } from "./cell-mask.js";
import { nearestStep, stepIndexes } from "./edr-query.js";
import type { GriddedVariable } from "./gridded-variable.js";
import type { WktGeometry } from "./well-known-text.js";

/** Cells that a geometry selects. */
export interface SelectedPlaces {
  /**
   * `grid`: all of `x` and `y`. `points`: pairs of them, or of three or four axes; each cell once. `point`: one of them.
   */
  readonly kind: "grid" | "points" | "point";
  /** By the name of the axis. */
  readonly selections: ReadonlyMap<string, StepSelection>;
  /** Degrees of steps of a grid, or of points. Longitudes are within half a turn of those of the geometry, or eastward of its western end. */
  readonly x: Float64Array;
  readonly y: Float64Array;
  /** 1 for the cells of a grid, in C order of y and x, that are inside; undefined if all are. */
  readonly mask?: Uint8Array;
}

/** Most cells that an answer lists. */
const MAX_POINTS = 2 ** 18;
/** Most cells of the box around an area of which each is looked at. */
const MAX_CELLS = 2 ** 24;
/** As {@link MAX_CELLS}, of curvilinear grids, whose cells are sorted. */
const MAX_CURVED_CELLS = 2 ** 21;

/** A dataset, and what reads it. */
export interface PlaceSource {
  readonly context: Pick<PluginContext, "values">;
  readonly snapshot: DatasetView;
  readonly signal: AbortSignal;
}

/**
 * Finds the cells of points, or along lines: the nearest one to each position.
 * @param along Names of further axes that positions are on: `z`, `t`.
 * @returns undefined if there are none
 */
export async function selectNearest(
  source: PlaceSource,
  variable: GriddedVariable,
  geometry: WktGeometry,
  along: readonly ("z" | "t")[],
): Promise<SelectedPlaces | undefined> {
  const { type, stride, z, m } = geometry;
  const numbers = type.endsWith("POINT")
    ? geometry.parts.flatMap((part) => [...part[0]!])
    : await samples(source, variable, geometry);
  const at = (index: number, place: number) => numbers[index * stride + place]!;
  const cells = await nearestCells(source, variable, numbers, stride);
  const found = new Map<string, Pick<Cell, "x" | "y"> & { readonly steps: readonly number[] }>();
  const others = along.map((name) => variable.axes.find((each) => each.name === name)!.axis);
  await eachCooperatively(cells, (cell, index) => {
    if (cell === undefined) return;
    const further = others.map((axis, which) =>
      along[which] === "z" ? nearestStep(axis, at(index, z)) : nearestStep(axis, isoOf(at(index, m))),
    );
    const steps = [cell.row, cell.column, ...further];
    if (steps.every((step) => step >= 0) && !found.has(steps.join()))
      found.set(steps.join(), { steps, x: eastOf(cell.x, at(index, 0) - 180), y: cell.y });
  });
  if (found.size === 0) return undefined;
  const all = [...found.values()];
  const [x, y] = [Float64Array.from(all, (each) => each.x), Float64Array.from(all, (each) => each.y)];
  const selections = ["y", "x", ...along].map((name, axis): [string, StepSelection] => {
    const indexes = Int32Array.from(all, ({ steps }) => steps[axis]!);
    const labels = name === "x" ? x : undefined;
    const begin = indexes[0]!;
    return type === "POINT"
      ? [name, { kind: "step", selection: { begin, count: 1, step: 1 }, labels }]
      : [name, { kind: "points", selection: { indexes }, labels }];
  });
  return { kind: type === "POINT" ? "point" : "points", selections: new Map(selections), x, y };
}

/** Visits items, and lets other requests be answered in between. */
async function eachCooperatively<T>(
  items: readonly T[],
  visit: (item: T, index: number) => void,
): Promise<void> {
  function* steps(): CooperativeTask<void> {
    for (const [index, item] of items.entries()) {
      visit(item, index);
      if (index % 64 === 0) yield;
    }
  }
  await runCooperatively(steps());
}

/** Writes seconds since 1970 as a label of a time. */
function isoOf(seconds: number): string {
  return Math.abs(seconds) < 8.64e12 ? new Date(seconds * 1000).toISOString() : String(seconds);
}

/** Adds turns to a longitude, so that it is the first one east of another. */
function eastOf(longitude: number, west: number): number {
  const turns = Math.ceil((west - longitude) / 360 - 1e-9);
  // 350.2 becomes -9.8.
  return turns === 0 ? longitude : Number((longitude + 360 * turns).toFixed(9));
}

/** A cell, and where its centre is. */
interface Cell {
  readonly row: number;
  readonly column: number;
  readonly x: number;
  readonly y: number;
}

async function nearestCells(
  source: PlaceSource,
  { array, axes, coordinates: { grid } }: GriddedVariable,
  numbers: readonly number[],
  stride: number,
): Promise<(Cell | undefined)[]> {
  const count = numbers.length / stride;
  const places = Array.from(
    { length: count },
    (_, at) => [numbers[at * stride + 1]!, numbers[at * stride]!] as const,
  );
  if (grid === undefined) {
    const [x, y] = ["x", "y"].map((name) => axes.find((each) => each.name === name)!.axis);
    const found: (Cell | undefined)[] = [];
    await eachCooperatively(places, ([latitude, longitude]) => {
      const [row, column] = [nearestStep(y!, latitude), nearestStep(x!, longitude)];
      const valueAt = (values: unknown, index: number) => (values as Float64Array)[index]!;
      const isThere = row >= 0 && column >= 0;
      found.push(
        isThere ? { row, column, x: valueAt(x!.values, column), y: valueAt(y!.values, row) } : undefined,
      );
    });
    return found;
  }
  const { context, snapshot, signal } = source;
  const [height, width] = [array.variable.shape[grid.y]!, array.variable.shape[grid.x]!];
  const nearest = await context.values.nearestCells(snapshot, array, places);
  // Of each cell and its neighbours in the next row and column, which tell how far a cell reaches.
  const neighbour = (step: number, length: number) => (step + 1 < length ? step + 1 : Math.max(0, step - 1));
  const cells = nearest.flatMap(({ cell }) => {
    const [row, column] = [Math.floor(Math.max(0, cell) / width), Math.max(0, cell) % width];
    return [row, column, neighbour(row, height), column, row, neighbour(column, width)];
  });
  const [ys, xs] = await Promise.all(
    [grid.latitude, grid.longitude].map(async (path) => {
      const own = snapshot.arrays.get(path)!;
      const leading = new Array<number>(own.variable.shape.length - 2).fill(0);
      const rows = Array.from({ length: cells.length / 2 }, (_, at) => [
        ...leading,
        cells[2 * at]!,
        cells[2 * at + 1]!,
      ]);
      return (await context.values.readPoints(snapshot, own, rows.flat(), { decode: true, signal }))
        .values as Float64Array;
    }),
  );
  return nearest.map(({ cell, distance }, index) => {
    const at = 3 * index;
    const reach = [at + 1, at + 2].map(
      (other) => distanceOf(ys![at]!, xs![at]!, ys![other]!, xs![other]!) / 2,
    );
    if (cell < 0 || !(distance <= Math.hypot(...reach) * (1 + 1e-3))) return undefined;
    return { row: cells[2 * at]!, column: cells[2 * at + 1]!, x: Number(xs![at]), y: Number(ys![at]) };
  });
}

/** Returns metres between two places, which are near to each other. */
function distanceOf(y1: number, x1: number, y2: number, x2: number): number {
  const turn = Math.abs(((x2 - x1 + 540) % 360) - 180);
  return 111_195.08 * Math.hypot(y2 - y1, turn * Math.cos((((y1 + y2) / 2) * Math.PI) / 180));
}

/** Returns positions along lines, near enough to each other that no row or column of cells is left out. */
async function samples(
  source: PlaceSource,
  variable: GriddedVariable,
  { parts, stride }: WktGeometry,
): Promise<number[]> {
  const lines = parts.flat();
  const gap = await gapOf(source, variable, lines, stride);
  const numbers: number[] = [];
  for (const line of lines)
    for (let at = 0; at < line.length; at += stride) {
      const from = line.subarray(Math.max(0, at - stride), at || stride);
      const to = line.subarray(at, at + stride);
      const length = Math.max(Math.abs(to[0]! - from[0]!), Math.abs(to[1]! - from[1]!));
      const count = Math.max(1, Math.ceil((2 * length) / gap));
      assertPoints(numbers.length / stride + count);
      for (let step = at === 0 ? count : 1; step <= count; step++)
        for (let place = 0; place < stride; place++)
          numbers.push(
            step === count ? to[place]! : from[place]! + ((to[place]! - from[place]!) * step) / count,
          );
    }
  return numbers;
}

/** Returns the least degrees between rows or columns; on curvilinear grids the mean ones around lines. */
async function gapOf(
  { context, snapshot }: PlaceSource,
  { array, axes, coordinates: { grid } }: GriddedVariable,
  lines: readonly Float64Array[],
  stride: number,
): Promise<number> {
  if (grid === undefined) {
    const values = axes.flatMap(({ name, axis }) =>
      /^[xy]$/.test(name) ? [axis.values as Float64Array] : [],
    );
    const gaps = values.flatMap((each) =>
      Array.from(each.subarray(1), (value, at) => Math.abs(value - each[at]!)),
    );
    return gaps.reduce((least, gap) => (gap > 0 && gap < least ? gap : least), 360);
  }
  const { west, south, east, north } = boundsOf(lines, stride);
  const { y, x } = await context.values.cellBox(snapshot, array, [south, north], [west, east]);
  return Math.max(east - west, north - south) / Math.max(1, y.count, x.count) || 360;
}

function assertPoints(count: number): void {
  if (count <= MAX_POINTS) return;
  throw new ZpublishError(
    "too-large",
    `Expected at most ${MAX_POINTS} cells in a list, received at least ${count}`,
  );
}

function boundsOf(rings: readonly Float64Array[], stride: number) {
  const bounds = { west: 720, south: 90, east: -720, north: -90 };
  for (const ring of rings)
    for (let at = 0; at < ring.length; at += stride) {
      bounds.west = Math.min(bounds.west, ring[at]!);
      bounds.east = Math.max(bounds.east, ring[at]!);
      bounds.south = Math.min(bounds.south, ring[at + 1]!);
      bounds.north = Math.max(bounds.north, ring[at + 1]!);
    }
  return bounds;
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
  const bounds = boundsOf(polygons.parts.flat(), polygons.stride);
  const { context, signal } = source;
  const box = await boxOfCells(source, variable, bounds);
  const [height, width] = [box.rows.length, box.columns.length];
  if (height * width === 0) return undefined;
  const limit = box.isGrid ? MAX_CELLS : MAX_CURVED_CELLS;
  if (!(isBox && box.isGrid) && height * width > limit)
    throw new ZpublishError(
      "too-large",
      `Expected an area of at most ${limit} cells, received ${height * width}`,
    );
  const grid: SelectedPlaces = {
    ...{ kind: "grid" as const, x: box.longitudes, y: box.latitudes },
    selections: new Map<string, StepSelection>([
      ["y", { kind: "steps", selection: box.y }],
      ["x", { kind: "steps", selection: box.x, labels: box.longitudes }],
    ]),
  };
  if (box.isGrid && isBox) return grid;
  const { latitudes, longitudes, isGrid } = box;
  const task: CellMaskTask = { polygons, latitudes, longitudes, isGrid };
  const module = new URL("./cell-mask.js", import.meta.url);
  const { mask, count } = await context.values.run<CellMask>(module, task, { signal });
  if (count === 0) return undefined;
  if (box.isGrid && !isListed) return { ...grid, mask };
  assertPoints(count);
  const cells: number[] = [];
  for (let cell = mask.indexOf(1); cell >= 0; cell = mask.indexOf(1, cell + 1)) cells.push(cell);
  const rows = cells.map((cell) => Math.floor(cell / width));
  const columns = cells.map((cell) => cell % width);
  const x = Float64Array.from(isGrid ? columns : cells, (at) => longitudes[at]!);
  const y = Float64Array.from(isGrid ? rows : cells, (at) => latitudes[at]!);
  const points = (
    steps: readonly number[],
    all: readonly number[],
    labels?: Float64Array,
  ): StepSelection => ({
    ...{ kind: "points", labels },
    selection: { indexes: Int32Array.from(steps, (step) => all[step]!) },
  });
  const selections = new Map([
    ["y", points(rows, box.rows)],
    ["x", points(columns, box.columns, isGrid ? x : undefined)],
  ]);
  return { kind: "points", selections, x, y };
}

/** Rows and columns around a region, and degrees: of rows and columns if it is a grid, else of each cell. */
interface CellsAround {
  readonly isGrid: boolean;
  readonly y: AxisSelection;
  readonly x: AxisSelection;
  readonly rows: readonly number[];
  readonly columns: readonly number[];
  readonly latitudes: Float64Array;
  readonly longitudes: Float64Array;
}

async function boxOfCells(
  { context, snapshot, signal }: PlaceSource,
  { array, axes, coordinates: { grid } }: GriddedVariable,
  { west, south, east, north }: ReturnType<typeof boundsOf>,
): Promise<CellsAround> {
  const east360 = Math.min(east, west + 360);
  if (grid === undefined) {
    const [axisX, axisY] = ["x", "y"].map((name) => axes.find((each) => each.name === name)!.axis);
    const [x, y] = [
      indexRange(axisX!, String(west), String(east360)),
      indexRange(axisY!, String(south), String(north)),
    ];
    const [columns, rows] = [stepIndexes(x), stepIndexes(y)];
    const valuesOf = (axis: typeof axisX, steps: readonly number[]) =>
      Float64Array.from(steps, (step) => (axis!.values as Float64Array)[step]!);
    const longitudes = valuesOf(axisX, columns).map((each) => eastOf(each, west));
    return { isGrid: true, y, x, rows, columns, latitudes: valuesOf(axisY, rows), longitudes };
  }
  const { y, x } = await context.values.cellBox(snapshot, array, [south, north], [west, east360]);
  const [rows, columns] = [stepIndexes(y), stepIndexes(x)];
  const read = async (path: string) => {
    const own = snapshot.arrays.get(path)!;
    const leading = own.variable.shape.slice(2).map(() => ({ begin: 0, count: 1, step: 1 }));
    const { values } = await context.values.read(snapshot, own, [...leading, y, x], { decode: true, signal });
    return Float64Array.from(values as ArrayLike<number>, (each) => (Number.isFinite(each) ? each : 1_000));
  };
  if (rows.length * columns.length > MAX_CURVED_CELLS || rows.length * columns.length === 0)
    return {
      isGrid: false,
      y,
      x,
      rows,
      columns,
      latitudes: new Float64Array(),
      longitudes: new Float64Array(),
    };
  const [latitudes, longitudes] = await Promise.all([read(grid.latitude), read(grid.longitude)]);
  return {
    isGrid: false,
    y,
    x,
    rows,
    columns,
    latitudes,
    longitudes: longitudes.map((each) => eastOf(each, west)),
  };
}
