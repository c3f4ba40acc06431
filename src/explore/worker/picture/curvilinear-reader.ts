import type { VariableDescription } from "../../dataset-description.js";
import type { Viewport } from "../../protocol.js";
import { type Resolution, resolutionsOf } from "../chunk-plan.js";
import type { DatasetSession } from "../dataset-session.js";
import { ReadFailure } from "../fetch-bytes.js";
import { readWhole } from "../read-whole.js";
import {
  type CurvilinearGrid,
  cellAt,
  cellsUnderPixels,
  cornersOf,
  type GridCorners,
} from "./curvilinear.js";

/** Most cells of a grid: its corners take 64 MiB. */
const MAX_CELLS = 2 ** 22;

/** Wider grids go all the way round. */
const MAX_REGION_DEGREES = 350;

/** Cells of a curvilinear grid, at one resolution. */
export interface CurvilinearCells {
  /** Cell under each pixel, in C order of the grid; -1 for none. */
  readonly cells: Int32Array;
  readonly grid: GridOnMap;
}

/** A curvilinear grid with its corners. */
export interface GridOnMap {
  readonly resolution: Resolution;
  readonly centres: CurvilinearGrid;
  readonly corners: GridCorners;
}

/** A cell of a picture, and its centre. */
export interface FoundCell {
  readonly row: number;
  readonly column: number;
  readonly x: number;
  readonly y: number;
}

/** Reads curvilinear grids, each once, and finds the cells under pixels. */
export class CurvilinearReader {
  readonly #session: DatasetSession;
  readonly #grids = new Map<string, Promise<GridOnMap>>();
  /** Cells of the last viewport: while playing, it stays. */
  #last: { readonly key: string; readonly found: CurvilinearCells } | undefined;

  constructor(session: DatasetSession) {
    this.#session = session;
  }

  /** Returns the cells under the pixels of a viewport. @throws ReadFailure */
  async cells(variable: VariableDescription, { box, width, height }: Viewport): Promise<CurvilinearCells> {
    const grid = await this.grid(variable);
    const key = JSON.stringify([variable.curvilinear, box, width, height]);
    if (this.#last?.key !== key)
      this.#last = { key, found: { cells: cellsUnderPixels(grid.corners, { ...box, width, height }), grid } };
    return this.#last.found;
  }

  /** Returns the row and column of the cell at a place, and its centre; undefined if there is none. @throws ReadFailure */
  async cellAt(variable: VariableDescription, x: number, y: number): Promise<FoundCell | undefined> {
    const { corners, centres, resolution } = await this.grid(variable);
    if (resolution.level !== 0)
      throw new ReadFailure("This grid is too large for single cells to be found on a map.");
    const cell = cellAt(corners, x, y);
    if (cell === -1) return undefined;
    const row = Math.floor(cell / centres.columns);
    const column = cell % centres.columns;
    return { row, column, x: centres.longitudes[cell]!, y: centres.latitudes[cell]! };
  }

  /** Returns the least and the greatest longitude or latitude of a variable's cells. @throws ReadFailure */
  async extent(variable: VariableDescription, axis: number): Promise<readonly [number, number]> {
    const { corners } = await this.grid(variable);
    if (axis === variable.plane?.y) return extentOf(corners.y, (latitude) => latitude);
    const [about0, about180] = [0, 180].map((middle) =>
      extentOf(corners.x, (longitude) => longitude - 360 * Math.floor((longitude - middle + 180) / 360)),
    ) as [readonly [number, number], readonly [number, number]];
    const narrower = about180[1] - about180[0] < about0[1] - about0[0] ? about180 : about0;
    return narrower[1] - narrower[0] > MAX_REGION_DEGREES ? [-180, 180] : narrower;
  }

  /** Returns the grid of a variable, at the finest resolution that is not too large. @throws ReadFailure */
  async grid({ curvilinear }: VariableDescription): Promise<GridOnMap> {
    const { latitude, longitude } = curvilinear!;
    const key = `${latitude} ${longitude}`;
    let grid = this.#grids.get(key);
    if (grid === undefined) {
      grid = this.#read(latitude, longitude);
      this.#grids.set(key, grid);
      grid.catch(() => this.#grids.delete(key));
    }
    return grid;
  }

  async #read(latitudePath: string, longitudePath: string): Promise<GridOnMap> {
    const latitude = this.#session.variable(latitudePath);
    const longitude = this.#session.variable(longitudePath);
    const longitudes = resolutionsOf(longitude);
    const resolution = resolutionsOf(latitude).find(
      ({ shape }, index) => shape[0]! * shape[1]! <= MAX_CELLS && longitudes[index] !== undefined,
    );
    if (resolution === undefined)
      throw new ReadFailure("This grid is too large to be placed on a map; it can be shown as an image.");
    const [y, x] = await Promise.all([
      readWhole(this.#session, latitude, resolution),
      readWhole(
        this.#session,
        longitude,
        longitudes.find(({ level }) => level === resolution.level),
      ),
    ]);
    const [rows, columns] = resolution.shape as [number, number];
    const centres = { latitudes: y.numbers!, longitudes: x.numbers!, rows, columns };
    return { resolution, centres, corners: cornersOf(centres) };
  }
}

function extentOf(values: Float64Array, convert: (value: number) => number): readonly [number, number] {
  let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const value of values) {
    if (Number.isNaN(value)) continue;
    const converted = convert(value);
    least = Math.min(least, converted);
    greatest = Math.max(greatest, converted);
  }
  return [least, greatest];
}
