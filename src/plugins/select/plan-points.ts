import { setImmediate } from "node:timers/promises";
import {
  type ArrayView,
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
import { type PointTable, wrongBody } from "./parse-points.js";
import type { SelectionQuery } from "./parse-selection.js";
import { axisNamed, gridRole, type PlanContext } from "./plan-selection.js";
import { type DimSelection, dimOf, type SelectionPlan } from "./selection-plan.js";

/** Labels that are looked up before other requests are answered. */
const LABELS_PER_TURN = 2_000;
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
      const texts = rows.map((row) => row[column]!);
      add(keyOf(at), name, await indexPoints(texts, (text) => indexOf(axis, text, method, tolerance)));
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

async function indexPoints(texts: readonly string[], find: (text: string) => number): Promise<Int32Array> {
  const found = new Int32Array(texts.length);
  for (const [point, text] of texts.entries()) {
    if (point % LABELS_PER_TURN === LABELS_PER_TURN - 1) await setImmediate();
    found[point] = find(text);
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
  const carried = names.flatMap((name, column): ExportedVariable[] => {
    if (columns.has(name)) return [];
    if (taken.has(name) || name === POINT)
      throw wrongBody("repeated_column", "a column named unlike the variables of the answer", name);
    const texts = rows.map((row) => row[column]!);
    // Longer integers are no doubles.
    const isPlain = (text: string) =>
      PLAIN_NUMBER.test(text) && Math.abs(Number(text)) <= Number.MAX_SAFE_INTEGER;
    const isNumber = !areTexts && texts.every((text) => text === "" || isPlain(text));
    const shape = [rows.length];
    const numbers = Float64Array.from(isNumber ? texts : [], (text) =>
      text === "" ? Number.NaN : Number(text),
    );
    const dataType = isNumber ? parseDataType("<f8") : TEXT_TYPE;
    const bytes = new Uint8Array(numbers.buffer);
    const source = { block: { shape, dataType, bytes, values: isNumber ? numbers : texts } };
    return [{ name, isCoordinate: true, dims: [POINT], shape, dataType, attrs: {}, source }];
  });
  return { ...plan, variables: [...carried, ...variables] };
}
