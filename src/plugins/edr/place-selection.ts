import { createSlice, type StepSelection, ZpublishError } from "../../plugin-api.js";
import type { CellMask, CellMaskTask } from "./cell-mask.js";
import { nearestStep, stepIndexes } from "./edr-query.js";
import { type Cells, cellsOf, type DegreeBox, type PlaceSource } from "./grid-cells.js";
import type { GriddedVariable, NamedAxis } from "./gridded-variable.js";
import type { WktGeometry } from "./well-known-text.js";

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
/** Most cells of the box around an area of which each is looked at. */
const MAX_CELLS = 2 ** 24;
/** As {@link MAX_CELLS}, of curvilinear grids, whose cells are sorted. */
const MAX_CURVED_CELLS = 2 ** 21;

/** A cell that is selected. */
interface ListedCell {
  /** Row, column, and those of further axes. */
  readonly steps: readonly number[];
  /** Longitude in the turn of the geometry. */
  readonly x: number;
}

/** Makes a list of cells. @param names Of the axes of its steps. @param kind `step` if there is but one. */
function listOf(
  { isGrid, columns, latitudes }: Cells,
  cells: readonly ListedCell[],
  names: readonly string[],
  kind: "points" | "step",
): SelectedPlaces {
  const x = Float64Array.from(cells, (cell) => cell.x);
  const y = Float64Array.from(
    cells,
    ({ steps: [row, column] }) => latitudes[isGrid ? row! : row! * columns + column!]!,
  );
  const selections = names.map((name, axis): [string, StepSelection] => {
    const indexes = Int32Array.from(cells, ({ steps }) => steps[axis]!);
    const selection = kind === "points" ? { indexes } : { begin: indexes[0]!, count: 1, step: 1 };
    return [name, { kind, selection, labels: name === "x" && isGrid ? x : undefined }];
  });
  return { selections: new Map(selections), x, y };
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
  const gap = type.endsWith("POINT") ? 0 : await cells.gap(boundsOf(geometry));
  const positions = samplesOf(parts.flat(), stride, gap);
  const stepsOf = await cells.finder(positions);
  const found = new Map<string, ListedCell>();
  const slice = createSlice();
  for (const [index, position] of positions.entries()) {
    if (slice.isOver()) await slice.next();
    const further = along.map(({ name, axis }) =>
      nearestStep(axis, name === "z" ? position[z]! : isoOf(position[m]!)),
    );
    const steps = [...stepsOf(index), ...further];
    const [row, column] = steps as [number, number];
    const longitude = cells.longitudes[cells.isGrid ? column : row * cells.columns + column]!;
    if (steps.every((step) => step >= 0) && !found.has(steps.join()))
      found.set(steps.join(), { steps, x: eastOf(longitude, position[0]! - 180) });
  }
  const names = ["y", "x", ...along.map(({ name }) => name)];
  if (found.size === 0) return undefined;
  return listOf(cells, [...found.values()], names, type === "POINT" ? "step" : "points");
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

function boundsOf({ parts, stride }: WktGeometry): DegreeBox {
  let [west, south, east, north] = [720, 90, -720, -90];
  for (const ring of parts.flat())
    for (let at = 0; at < ring.length; at += stride) {
      [west, east] = [Math.min(west, ring[at]!), Math.max(east, ring[at]!)];
      [south, north] = [Math.min(south, ring[at + 1]!), Math.max(north, ring[at + 1]!)];
    }
  return { west, south, east: Math.min(east, west + 360), north };
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
  const bounds = boundsOf(polygons);
  const { y, x } = await cells.around(bounds);
  const [rows, columns] = [stepIndexes(y), stepIndexes(x)];
  const size = rows.length * columns.length;
  if (size === 0) return undefined;
  const limit = isGrid ? MAX_CELLS : MAX_CURVED_CELLS;
  const isWhole = isBox && isGrid;
  if (!isWhole && size > limit) throw tooLarge(`an area of at most ${limit} cells`, `${size}`);
  const box = isGrid
    ? undefined
    : rows.flatMap((row) => columns.map((column) => row * cells.columns + column));
  const latitudes = Float64Array.from(box ?? rows, (at) => cells.latitudes[at]!);
  const longitudes = Float64Array.from(box ?? columns, (at) => eastOf(cells.longitudes[at]!, bounds.west));
  const grid: SelectedPlaces = {
    ...{ x: longitudes, y: latitudes },
    selections: new Map<string, StepSelection>([
      ["y", { kind: "steps", selection: y }],
      ["x", { kind: "steps", selection: x, labels: longitudes }],
    ]),
  };
  if (isWhole) return grid;
  const task: CellMaskTask = { polygons, latitudes, longitudes, isGrid };
  const module = new URL("./cell-mask.js", import.meta.url);
  const { mask, count } = await source.context.values.run<CellMask>(module, task, { signal: source.signal });
  if (count === 0) return undefined;
  if (isGrid && !isListed) return { ...grid, mask };
  assertPoints(count);
  const inside: ListedCell[] = [];
  for (let at = mask.indexOf(1); at >= 0; at = mask.indexOf(1, at + 1)) {
    const [row, column] = [Math.floor(at / columns.length), at % columns.length];
    inside.push({ steps: [rows[row]!, columns[column]!], x: longitudes[isGrid ? column : at]! });
  }
  return listOf(cells, inside, ["y", "x"], "points");
}
