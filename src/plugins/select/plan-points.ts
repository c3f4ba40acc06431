import { setImmediate } from "node:timers/promises";
import { indexOf, type Values, type Variable, wrongParameter } from "../../plugin-api.js";
import { type PointTable, wrongBody } from "./parse-points.js";
import type { SelectionQuery } from "./parse-selection.js";
import { axisNamed, gridRole, type PlanContext } from "./plan-selection.js";
import {
  type DimSelection,
  dimOf,
  POINT,
  type SelectedVariable,
  type SelectionPlan,
  TEXT_TYPE,
} from "./selection-plan.js";
import { FLOAT_TYPE } from "./table.js";

/** Labels that are looked up before other requests are answered. */
const LABELS_PER_TURN = 2_000;
/** A number as JSON has it: `007` is a name. */
const PLAIN_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[+-]?\d+)?$/i;

/** Points by the key of dimensions, and the columns that say where they are. */
export interface PlacedPoints {
  readonly selections: ReadonlyMap<string, DimSelection>;
  readonly columns: ReadonlySet<string>;
}

/**
 * Finds the indexes of points along the dimensions of variables.
 * @throws ZpublishError `invalid-query` if a label is none of its axis, or no column is that of a dimension or coordinate
 */
export async function placePoints(
  { snapshot, coordinatesOf }: Pick<PlanContext, "snapshot" | "coordinatesOf">,
  values: Pick<Values, "nearestCells">,
  { method, tolerance }: Pick<SelectionQuery, "method" | "tolerance">,
  variables: readonly Variable[],
  { names, rows }: PointTable,
): Promise<PlacedPoints> {
  const selections = new Map<string, DimSelection>();
  const columns = new Set<string>();
  const add = (key: string, parameter: string, points: Int32Array) =>
    selections.set(key, { parameter, points, selection: { begin: 0, count: 1, step: 1 }, isDropped: true });
  for (const variable of variables) {
    const coordinates = coordinatesOf(variable);
    const keyOf = (axis: number) => dimOf(snapshot, variable, axis).key;
    const ofGrid: { Y?: number; X?: number } = {};
    for (const [column, name] of names.entries()) {
      const at = axisNamed(name, variable, coordinates);
      const role = gridRole(name, coordinates);
      if (at < 0 && role !== undefined) ofGrid[role] = column;
      if (at < 0) continue;
      columns.add(name);
      const axis = coordinates?.axes[at];
      if (axis === undefined || selections.has(keyOf(at))) continue;
      const find = ([text = ""]: readonly string[]) => indexOf(axis, text, method, tolerance);
      add(keyOf(at), name, await indexPoints(rows, [column], find));
    }
    const { Y: lat, X: lon } = ofGrid;
    const grid = coordinates?.grid;
    if (grid === undefined || lat === undefined || lon === undefined) continue;
    for (const column of [lat, lon]) columns.add(names[column]!);
    if (selections.has(keyOf(grid.y))) continue;
    if (method !== "nearest")
      throw wrongParameter("method", "grid", "nearest, since the grid is curvilinear", method);
    const places = rows.map((row): [number, number] => [degrees(row[lat]!), degrees(row[lon]!)]);
    const cells = await values.nearestCells(snapshot, snapshot.arrays.get(variable.path)!, places);
    const isNear = (distance: number) => tolerance === undefined || distance <= Number(tolerance);
    const found = Int32Array.from(cells, ({ cell, distance }) => (isNear(distance) ? cell : -1));
    const width = variable.shape[grid.x]!;
    const indexes = (indexOfCell: (cell: number) => number) =>
      found.map((cell) => (cell < 0 ? -1 : indexOfCell(cell)));
    add(
      keyOf(grid.y),
      names[lat]!,
      indexes((cell) => Math.floor(cell / width)),
    );
    add(
      keyOf(grid.x),
      names[lon]!,
      indexes((cell) => cell % width),
    );
  }
  if (selections.size > 0) return { selections, columns };
  throw wrongBody("unknown_dimension", "a column named after a dimension or coordinate", names.join(", "));
}

async function indexPoints(
  rows: PointTable["rows"],
  columns: readonly number[],
  find: (texts: readonly string[]) => number,
): Promise<Int32Array> {
  const found = new Int32Array(rows.length);
  for (const [point, row] of rows.entries()) {
    if (point % LABELS_PER_TURN === LABELS_PER_TURN - 1) await setImmediate();
    found[point] = find(columns.map((column) => row[column]!));
  }
  return found;
}

function degrees(text: string): number {
  if (text !== "" && Number.isFinite(Number(text))) return Number(text);
  throw wrongBody("float_parsing", "a number in degrees", text);
}

/**
 * Reads the values of a plan at its points, and adds the columns that only go with them.
 * @param areTexts Whether columns stay texts; else those of numbers become numbers.
 */
export async function readPointPlan(
  plan: SelectionPlan,
  { names, rows }: PointTable,
  columns: ReadonlySet<string>,
  areTexts: boolean,
  read: { readonly values: Values; readonly signal: AbortSignal },
): Promise<SelectionPlan> {
  const { snapshot, isDecoded } = plan;
  const variables: SelectedVariable[] = [];
  for (const variable of plan.variables) {
    const { source } = variable;
    if (!("points" in source)) variables.push(variable);
    else {
      const options = { decode: isDecoded, signal: read.signal };
      const block = await read.values.readPoints(snapshot, source.array, source.points, options);
      variables.push({ ...variable, source: { block } });
    }
  }
  const taken = new Set(variables.map(({ name }) => name));
  const carried = names.flatMap((name, column): SelectedVariable[] => {
    if (columns.has(name)) return [];
    if (taken.has(name) || name === POINT)
      throw wrongBody("repeated_column", "a column named unlike the variables of the answer", name);
    const texts = rows.map((row) => row[column]!);
    const isNumber = !areTexts && texts.every((text) => text === "" || PLAIN_NUMBER.test(text));
    const shape = [rows.length];
    const numbers = isNumber
      ? Float64Array.from(texts, (text) => (text === "" ? Number.NaN : Number(text)))
      : undefined;
    const dataType = isNumber ? FLOAT_TYPE : TEXT_TYPE;
    const bytes = new Uint8Array(numbers?.buffer ?? new ArrayBuffer(0));
    const block = { shape, dataType, bytes, values: numbers ?? texts };
    const rest = {
      path: name,
      isCoordinate: true,
      dims: [POINT],
      shape,
      dataType,
      attrs: {},
      fillValue: null,
    };
    return [{ name, ...rest, source: { block } }];
  });
  return { ...plan, variables: [...carried, ...variables] };
}
