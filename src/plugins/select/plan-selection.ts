import {
  type AxisSelection,
  type CoordinateAxis,
  type Coordinates,
  createSelectionPlan,
  type DatasetView,
  type DimSelection,
  dimOf,
  type ExportedDataset,
  extentText,
  type Group,
  indexOf,
  indexRange,
  indexWithin,
  labelSelection,
  pickedLength,
  type StepSelection,
  sliceOfAxis,
  type Values,
  type Variable,
  wrongParameter,
} from "../../plugin-api.js";
import { type PointTable, wrongBody } from "./parse-points.js";
import type { AxisParameter, AxisQuery, SelectionQuery } from "./parse-selection.js";
import { carriedColumns, mapTexts, selectCells } from "./plan-points.js";

/** Names that a message lists at most. */
const MAX_SHOWN_NAMES = 12;

/** What is asked of values to plan a selection. */
export type PlanValues = Pick<Values, "coordinates" | "cellBox" | "nearestCells" | "dataType">;

/** How values are answered. */
interface AnswerForm {
  readonly isDecoded: boolean;
  /** Whether columns that are carried along stay texts; else those of numbers become numbers. */
  readonly keepsTexts: boolean;
}

/**
 * Plans a selection: which indexes are read of which variables, and what the answer is made of. Nothing but coordinates is read.
 * @param points Take the place of dimensions; the other columns go with them.
 * @throws ZpublishError `invalid-query`, with expected and received; what reading coordinates throws
 */
export async function planSelection(
  values: PlanValues,
  snapshot: DatasetView,
  query: SelectionQuery,
  { isDecoded, keepsTexts }: AnswerForm,
  points?: PointTable,
): Promise<ExportedDataset> {
  const candidates = candidateVariables(snapshot, query);
  const axes = withColumns(query, points);
  const { selections, selected, used } = await selectDims(values, snapshot, axes, candidates);
  const isDefault = query.variables.length === 0;
  const chosen = (isDefault && axes.size > 0 ? selected : candidates).filter(
    // Records and complex numbers, which no format has, are refused only if they are asked for.
    ({ dataType: { kind, zarr } }) => !isDefault || (kind !== "c" && typeof zarr === "string"),
  );
  if (chosen.length === 0)
    throw wrongParameter("var", "missing", "a variable of numbers, texts or times", "none");
  const plan = createSelectionPlan(snapshot, chosen, selections, isDecoded, (array) =>
    values.dataType(array, isDecoded),
  );
  if (points === undefined) return plan;
  const isCarried = (name: string) => !used.has(axes.get(name)!);
  return {
    ...plan,
    variables: [...(await carriedColumns(plan, points, isCarried, keepsTexts)), ...plan.variables],
  };
}

/** Adds the columns of points to what a query says about axes. @throws ZpublishError `invalid-query` if it names one of them */
function withColumns(
  { axes, method, tolerance }: SelectionQuery,
  points: PointTable | undefined,
): SelectionQuery["axes"] {
  const all = new Map(axes);
  for (const [at, name] of points?.names.entries() ?? []) {
    const parameter = all.get(name)?.parameter;
    if (parameter !== undefined)
      throw wrongParameter(parameter, "contradiction", `either it or the column '${name}'`, parameter);
    const query = { kind: "points", points: points!, column: at, method, tolerance } as const;
    all.set(name, { parameter: name, query });
  }
  return all;
}

/** What a query reads along dimensions. */
interface SelectedDims {
  /** By key of dimensions. */
  readonly selections: Map<string, DimSelection>;
  /** Variables that have one of them. */
  readonly selected: Variable[];
  /** What says it; other columns only go with their points. */
  readonly used: ReadonlySet<AxisParameter>;
}

/**
 * Finds what a query reads along dimensions. A curvilinear grid is asked once for all its variables.
 * @throws ZpublishError `invalid-query`, with expected and received
 */
async function selectDims(
  values: PlanValues,
  snapshot: DatasetView,
  axes: SelectionQuery["axes"],
  variables: readonly Variable[],
): Promise<SelectedDims> {
  const selections = new Map<string, DimSelection>();
  const used = new Set<AxisParameter>();
  const selected = new Set<Variable>();
  const grids = new Map<string, ReturnType<typeof selectCells>>();
  const isLabelled = labelTest(axes, variables);

  async function set(
    variable: Variable,
    at: number,
    asked: AxisParameter,
    select: () => Promise<StepSelection> | StepSelection,
  ): Promise<void> {
    const { key } = dimOf(snapshot, variable, at);
    const other = selections.get(key);
    if (other !== undefined && other.parameter !== asked.parameter) {
      // A second column for one dimension only goes with the points.
      if (asked.query.kind === "points" && other.kind === "points") return;
      const expected = `either it or '${other.parameter}'`;
      throw wrongParameter(asked.parameter, "contradiction", expected, asked.parameter);
    }
    if (other === undefined) selections.set(key, { parameter: asked.parameter, ...(await select()) });
    used.add(asked);
    selected.add(variable);
  }

  for (const variable of variables) {
    const array = snapshot.arrays.get(variable.path)!;
    const coordinates = isLabelled(variable) ? await values.coordinates(snapshot, array) : undefined;
    const ofGrid: { Y?: AxisParameter; X?: AxisParameter } = {};
    for (const [name, asked] of axes) {
      const at = axisNamed(name, asked.query, variable, coordinates);
      if (typeof at === "string") ofGrid[at] ??= asked;
      else if (at >= 0)
        await set(variable, at, asked, () => selectAxis(coordinates?.axes[at], variable.shape[at]!, asked));
    }
    const { Y: lat, X: lon } = ofGrid;
    const grid = coordinates?.grid;
    const given = lat ?? lon;
    // One of the two columns only goes with the points.
    const isCarried = given?.query.kind === "points" && (lat === undefined || lon === undefined);
    if (grid === undefined || given === undefined || isCarried) continue;
    const key = `${grid.latitude} ${grid.longitude}`;
    const cells = grids.get(key) ?? selectCells(values, snapshot, array, grid, lat, lon);
    grids.set(key, cells);
    const { y, x } = await cells;
    await set(variable, grid.y, lat!, () => y);
    await set(variable, grid.x, lon!, () => x);
  }
  assertUsed(axes, used, variables);
  return { selections, selected: [...selected], used };
}

/** @throws ZpublishError `invalid-query` if a parameter, or all columns of points, are about no dimension */
function assertUsed(
  axes: SelectionQuery["axes"],
  used: ReadonlySet<AxisParameter>,
  variables: readonly Variable[],
): void {
  const all = [...axes.values()];
  const unknown = all.find((asked) => asked.query.kind !== "points" && !used.has(asked))?.parameter;
  if (unknown !== undefined) {
    const dims = listed(new Set(variables.flatMap((variable) => variable.dims)));
    throw wrongParameter(unknown, "unknown_dimension", `var, f, decode, or a dimension: ${dims}`, unknown);
  }
  const columns = all.filter(({ query }) => query.kind === "points");
  if (columns.length > 0 && !columns.some((asked) => used.has(asked))) {
    const names = columns.map(({ parameter }) => parameter).join(", ");
    throw wrongBody("unknown_dimension", "a column named after a dimension or coordinate", names);
  }
}

/** Returns a test for the variables whose coordinates tell what a query asks for: reading those of all may take long. */
function labelTest(
  axes: SelectionQuery["axes"],
  variables: readonly Variable[],
): (variable: Variable) => boolean {
  const names = [...axes].filter(([, { query }]) => !isByIndex(query)).map(([name]) => name);
  const dims = new Set(variables.flatMap((variable) => variable.dims));
  // A name that is no dimension of all may be that of a coordinate.
  const isOfAll = names.some((name) => roleOf(name) !== undefined || !dims.has(name));
  return (variable) => isOfAll || variable.dims.some((dim) => names.includes(dim));
}

function isByIndex({ kind }: AxisQuery): boolean {
  return kind === "indexes" || kind === "slice";
}

/**
 * Returns the variables that a query may be about: those that it names, by path or by group, or all data variables.
 * @throws ZpublishError `invalid-query` if there is none of that name.
 */
function candidateVariables({ tree }: DatasetView, { variables }: SelectionQuery): Variable[] {
  const groups = [...tree.groups.values()];
  const dataOf = ({ variables: all, coordinateNames }: Group) =>
    [...all.values()].filter(({ name }) => !coordinateNames.has(name));
  const all = groups.flatMap((group) => [...group.variables.values()]);
  if (variables.length === 0) {
    const data = groups.flatMap(dataOf);
    return data.length > 0 ? data : all;
  }
  const found = variables.flatMap((text) => {
    const path = text.split("/").filter(Boolean).join("/");
    const group = tree.groups.get(`/${path}`);
    const named = all.filter((variable) => variable.path === path);
    const members = named.length > 0 || group === undefined || text === "" ? named : dataOf(group);
    if (members.length > 0) return members;
    const expected = `a variable: ${listed(all.map((each) => each.path))}`;
    throw wrongParameter("var", "unknown_variable", expected, text);
  });
  return [...new Set(found)];
}

function listed(names: Iterable<string>): string {
  const all = [...names];
  return all.slice(0, MAX_SHOWN_NAMES).join(", ") + (all.length > MAX_SHOWN_NAMES ? ", …" : "");
}

/** What a name means whatever the names of a dataset are. */
function roleOf(name: string): "Y" | "X" | "T" | undefined {
  if (name === "time") return "T";
  return /^lat(?:itude)?$/.test(name) ? "Y" : /^lon(?:gitude)?$/.test(name) ? "X" : undefined;
}

/**
 * Returns the axis of a variable that a query names: by dimension, else `lat`, `lon` and `time` by what its coordinates are; `Y` or `X` for
 * latitudes or longitudes of the cells of a curvilinear grid; -1 if there is none.
 */
function axisNamed(
  name: string,
  query: AxisQuery,
  { dims }: Variable,
  coordinates: Coordinates | undefined,
): number | "Y" | "X" {
  const at = dims.indexOf(name);
  if (coordinates === undefined || isByIndex(query)) return at;
  const { axes, grid, crs } = coordinates;
  // Also a dimension without labels, of which cells have latitudes or longitudes of its name.
  if (axes[at]?.variable !== undefined || (at >= 0 && grid === undefined)) return at;
  const isNamed = (path: string) => path === name || path.endsWith(`/${name}`);
  const role = grid && isNamed(grid.latitude) ? "Y" : grid && isNamed(grid.longitude) ? "X" : roleOf(name);
  if (role === undefined || (at >= 0 && role === "T")) return at;
  if (role !== "T" && grid !== undefined) return role;
  // Coordinates of a projection are no latitudes and longitudes, even if they are degrees: rotated poles.
  if (role !== "T" && crs !== "degrees") return -1;
  return axes.findIndex((axis) => axis.role === role && axis.variable !== undefined);
}

/** Returns the indexes of one axis that a query asks for. @throws ZpublishError `invalid-query` if there is none. */
async function selectAxis(
  axis: CoordinateAxis | undefined,
  length: number,
  { parameter, query }: AxisParameter,
): Promise<StepSelection> {
  const empty = (expected: string, received: string) =>
    wrongParameter(parameter, "empty_selection", expected, received);
  if (query.kind === "indexes")
    return listOf(query.indexes.map((index) => indexWithin(parameter, index, length)));
  if (query.kind === "slice") {
    const selection = sliceOf(query, length);
    if (pickedLength(selection) > 0) return { selection, kind: "steps" };
    throw empty(`a slice with some of the indexes 0 to ${length - 1}`, query.text);
  }
  if (axis === undefined) throw wrongParameter(parameter, "no_labels", `isel.${parameter}`, parameter);
  if (query.kind === "points") {
    const find = (text: string) => indexOf(axis, text, query.method, query.tolerance);
    return {
      selection: { indexes: Int32Array.from(await mapTexts(query.points, query.column, find)) },
      kind: "points",
    };
  }
  if (query.kind === "range") {
    const range = indexRange(axis, query.from, query.to);
    const count = Math.ceil(pickedLength(range) / query.step);
    if (count > 0) {
      const selection = sliceOfAxis(range, 0, count, query.step);
      return { selection, kind: "steps", labels: longitudesAcrossSeam(axis, selection, query.from) };
    }
    throw empty(`a range with labels of '${axis.dim}' (${extentText(axis)})`, query.text);
  }
  const [{ text, method } = { text: "", method: "exact" }] = query.labels;
  const found = query.labels.length === 1 && method === "exact" ? labelSelection(axis, text) : undefined;
  if (typeof found === "object") return { selection: found, kind: "steps" };
  return listOf(
    query.labels.map((each) => {
      const index = found ?? indexOf(axis, each.text, each.method);
      if (index >= 0) return index;
      const side = each.method === "ffill" ? "before" : "after";
      throw empty(`a label with a step of '${axis.dim}' ${side} it (${extentText(axis)})`, each.text);
    }),
  );
}

/** Returns longitudes that ascend from the bound of a range across the seam: 350, 0 and 10 are -10, 0 and 10 from -20 on; undefined for other ranges. */
function longitudesAcrossSeam(
  { values }: CoordinateAxis,
  selection: AxisSelection,
  from: string | undefined,
): Float64Array | undefined {
  if (!("indexes" in selection)) return undefined;
  let last = Number(from);
  return Float64Array.from(selection.indexes, (index) => {
    const stored = values![index] as number;
    // Rounding of a label that is the bound adds no turn.
    last = stored + 360 * Math.ceil((last - stored) / 360 - 1e-9);
    return last;
  });
}

function listOf(indexes: readonly number[]): StepSelection {
  const [begin = 0] = indexes;
  if (indexes.length > 1) return { selection: { indexes }, kind: "steps" };
  return { selection: { begin, count: 1, step: 1 }, kind: "step" };
}

/** Resolves a slice as Python's `slice.indices` does. */
function sliceOf({ begin, end, step }: Extract<AxisQuery, { kind: "slice" }>, length: number): AxisSelection {
  const [least, greatest] = step > 0 ? [0, length] : [-1, length - 1];
  const clip = (index: number) => Math.min(Math.max(index < 0 ? index + length : index, least), greatest);
  const first = begin === undefined ? (step > 0 ? least : greatest) : clip(begin);
  const last = end === undefined ? (step > 0 ? greatest : least) : clip(end);
  return { begin: first, count: Math.max(0, Math.ceil((last - first) / step)), step };
}
