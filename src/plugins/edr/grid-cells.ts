import {
  type AxisSelection,
  type CoordinateAxis,
  type DatasetView,
  indexRange,
  type PluginContext,
} from "../../plugin-api.js";
import { nearestStep } from "./edr-query.js";
import { axisNamed, type GriddedVariable } from "./gridded-variable.js";

/** A dataset, and what reads it. */
export interface PlaceSource {
  readonly context: Pick<PluginContext, "values">;
  readonly snapshot: DatasetView;
  readonly signal: AbortSignal;
}

/** A region in degrees, at most one turn wide. */
export interface DegreeBox {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/** The cells of a parameter. */
export interface Cells {
  /** Whether rows have latitudes, and columns longitudes; else each cell has both, in C order, NaN if it has no place. */
  readonly isGrid: boolean;
  readonly columns: number;
  readonly latitudes: Float64Array;
  readonly longitudes: Float64Array;
  /** Finds the rows and columns around a region. There may be none. */
  around(box: DegreeBox): Promise<Readonly<Record<"y" | "x", AxisSelection>>>;
  /**
   * Returns a function that finds row and column of the nearest cell to one of some positions; negative ones if that is more than half a
   * cell away.
   */
  finder(positions: readonly (readonly number[])[]): Promise<(index: number) => readonly [number, number]>;
  /** Returns the least degrees between rows or columns; on curvilinear grids the mean ones in a region. */
  gap(box: DegreeBox): Promise<number>;
}

/** Returns the cells of a parameter. */
export async function cellsOf(source: PlaceSource, variable: GriddedVariable): Promise<Cells> {
  if (variable.coordinates.grid !== undefined) return createCurvedCells(source, variable);
  return createAxisCells(axisNamed(variable, "y")!, axisNamed(variable, "x")!);
}

function createAxisCells(y: CoordinateAxis, x: CoordinateAxis): Cells {
  const latitudes = y.values as Float64Array;
  const longitudes = x.values as Float64Array;
  return {
    ...{ isGrid: true, columns: x.length, latitudes, longitudes },
    around: async ({ west, south, east, north }) => ({
      y: indexRange(y, `${south}`, `${north}`),
      x: indexRange(x, `${west}`, `${east}`),
    }),
    finder: async (positions) => (index) => {
      const [longitude, latitude] = positions[index] as [number, number];
      return [nearestStep(y, latitude), nearestStep(x, longitude)];
    },
    async gap() {
      const gaps = [latitudes, longitudes].flatMap((values) =>
        Array.from(values.subarray(1), (value, at) => Math.abs(value - values[at]!)),
      );
      return gaps.reduce((least, gap) => (gap > 0 && gap < least ? gap : least), 360);
    },
  };
}

async function createCurvedCells(
  { context: { values }, snapshot }: PlaceSource,
  { array }: GriddedVariable,
): Promise<Cells> {
  const { rows, columns, latitudes, longitudes } = await values.cellPlaces(snapshot, array);
  const around = ({ west, south, east, north }: DegreeBox) =>
    values.cellBox(snapshot, array, [south, north], [west, east]);

  /** Returns metres between two cells, which are near to each other. */
  function distanceOf(one: number, other: number): number {
    const [y1, y2] = [latitudes[one]!, latitudes[other]!];
    const turn = Math.abs(((longitudes[other]! - longitudes[one]! + 540) % 360) - 180);
    return 111_195.08 * Math.hypot(y2 - y1, turn * Math.cos((((y1 + y2) / 2) * Math.PI) / 180));
  }

  return {
    ...{ isGrid: false, columns, latitudes, longitudes, around },
    async finder(positions) {
      const places = positions.map(([longitude, latitude]) => [latitude!, longitude!] as const);
      const nearest = await values.nearestCells(snapshot, array, places);
      return (index) => {
        const { cell, distance } = nearest[index]!;
        const [row, column] = [Math.floor(cell / columns), cell % columns];
        // A cell reaches half of the way to the next row and column.
        const below = row + 1 < rows ? row + 1 : Math.max(0, row - 1);
        const beside = column + 1 < columns ? column + 1 : Math.max(0, column - 1);
        const [down, across] = [below * columns + column, row * columns + beside];
        const reach = Math.hypot(distanceOf(cell, down), distanceOf(cell, across)) / 2;
        return cell >= 0 && distance <= reach * (1 + 1e-3) ? [row, column] : [-1, -1];
      };
    },
    async gap(box) {
      const { y, x } = await around(box);
      return Math.max(box.east - box.west, box.north - box.south) / Math.max(1, y.count, x.count) || 360;
    },
  };
}
