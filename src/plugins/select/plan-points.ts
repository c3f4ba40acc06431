import {
  type ArrayView,
  type DimSelection,
  dimOf,
  type ExportedDataset,
  type ExportedVariable,
  indexOf,
  POINT,
  parseDataType,
  TEXT_TYPE,
  type ValueBlock,
  type Values,
  type Variable,
  wrongParameter,
} from "../../plugin-api.js";
import { eachText, type PointTable, wrongBody } from "./parse-points.js";
import type { SelectionQuery } from "./parse-selection.js";
import { axisNamed, gridRole, type PlanContext } from "./plan-selection.js";

/** Metres of a degree on the sphere of `nearestCells`. */
const METRES_OF_DEGREE = 111_195.08;
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
  points: PointTable,
): Promise<PlacedPoints> {
  const { names } = points;
  const selections = new Map<string, DimSelection>();
  const columns = new Set<string>();
  const add = (key: string, parameter: string, indexes: Int32Array) =>
    selections.set(key, {
      parameter,
      points: indexes,
      selection: { begin: 0, count: 1, step: 1 },
      isDropped: true,
    });
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
      const find = (text: string) => indexOf(axis, text, method, tolerance);
      add(keyOf(at), name, Int32Array.from(await mapTexts(points, column, find)));
    }
    const { Y: lat, X: lon } = ofGrid;
    const grid = coordinates?.grid;
    if (grid === undefined || lat === undefined || lon === undefined) continue;
    for (const column of [lat, lon]) columns.add(names[column]!);
    if (selections.has(keyOf(grid.y))) continue;
    if (method !== "nearest")
      throw wrongParameter("method", "grid", "nearest, since the grid is curvilinear", method);
    const longitudes = await mapTexts(points, lon, degrees);
    const latitudes = await mapTexts(points, lat, degrees);
    const places = latitudes.map((latitude, row) => [latitude, longitudes[row]!] as const);
    const cells = await values.nearestCells(snapshot, snapshot.arrays.get(variable.path)!, places);
    const most = tolerance === undefined ? Number.POSITIVE_INFINITY : Number(tolerance || Number.NaN);
    if (!(most >= 0)) throw wrongParameter("tolerance", "float_parsing", "degrees", tolerance ?? "");
    const isNear = (distance: number) => distance <= most * METRES_OF_DEGREE;
    const found = Int32Array.from(cells, ({ cell, distance }) => (isNear(distance) ? cell : -1));
    const width = variable.shape[grid.x]!;
    const inRow = (cell: number) => (cell < 0 ? -1 : cell % width);
    const rowOf = (cell: number) => Math.floor(cell / width);
    add(keyOf(grid.y), names[lat]!, found.map(rowOf));
    add(keyOf(grid.x), names[lon]!, found.map(inRow));
  }
  if (selections.size > 0) return { selections, columns };
  throw wrongBody("unknown_dimension", "a column named after a dimension or coordinate", names.join(", "));
}

/**
 * Makes integers without a fill value doubles if a point is outside, since nothing else says that it is missing, as xarray's `reindex`
 * does.
 */
function withMissing(
  block: ValueBlock,
  { variable, document }: ArrayView,
  points: Int32Array,
  isDecoded: boolean,
): ValueBlock {
  const hasMark = !isDecoded && document.fill_value !== null;
  if (hasMark || !"iub".includes(block.dataType.kind) || !points.some((index) => index < 0)) return block;
  const rank = variable.shape.length;
  const values = Float64Array.from(block.values as ArrayLike<number | bigint>, Number);
  for (const [at, index] of points.entries()) if (index < 0) values[Math.floor(at / rank)] = Number.NaN;
  return { ...block, dataType: parseDataType("<f8"), values, bytes: new Uint8Array(values.buffer) };
}

/** Calls a function once for each distinct text of a column. */
async function mapTexts<T>(points: PointTable, column: number, make: (text: string) => T): Promise<T[]> {
  const known = new Map<string, T>();
  const made: T[] = [];
  await eachText(points, column, (text) => {
    const value = known.get(text) ?? make(text);
    known.set(text, value);
    made.push(value);
  });
  return made;
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
  plan: ExportedDataset,
  points: PointTable,
  columns: ReadonlySet<string>,
  areTexts: boolean,
  read: { readonly values: Values; readonly signal: AbortSignal },
): Promise<ExportedDataset> {
  const { snapshot, isDecoded } = plan;
  const variables: ExportedVariable[] = [];
  for (const variable of plan.variables) {
    const { source } = variable;
    if (!("points" in source)) variables.push(variable);
    else {
      const options = { decode: isDecoded, signal: read.signal };
      const { points } = source;
      const block = await read.values.readPoints(snapshot, source.array, points, options);
      const marked = withMissing(block, source.array, points, isDecoded);
      variables.push({ ...variable, dataType: marked.dataType, source: { block: marked } });
    }
  }
  const taken = new Set(variables.map(({ name }) => name));
  const carried: ExportedVariable[] = [];
  for (const [column, title] of points.names.entries()) {
    if (columns.has(title)) continue;
    const name = title.replaceAll("/", "_");
    if (taken.has(name) || name === POINT)
      throw wrongBody("repeated_column", "a column named unlike the variables of the answer", title);
    taken.add(name);
    const own: string[] = [];
    const numbers: number[] = [];
    await eachText(points, column, (text) => {
      own.push(text);
      if (areTexts || numbers.length < own.length - 1) return;
      const number = text === "" ? Number.NaN : Number(text);
      // Longer integers are no doubles.
      if (text === "" || (PLAIN_NUMBER.test(text) && Math.abs(number) <= Number.MAX_SAFE_INTEGER))
        numbers.push(number);
    });
    const isNumber = numbers.length === own.length;
    const doubles = Float64Array.from(isNumber ? numbers : []);
    const bytes = new Uint8Array(doubles.buffer);
    const [shape, dataType] = [[own.length], isNumber ? parseDataType("<f8") : TEXT_TYPE];
    const source = { block: { shape, dataType, bytes, values: isNumber ? doubles : own } };
    carried.push({ name, isCoordinate: true, dims: [POINT], shape, dataType, attrs: {}, source });
  }
  return { ...plan, variables: [...carried, ...variables] };
}
