import {
  type ArrayView,
  type AxisSelection,
  type CoordinateAxis,
  type Coordinates,
  countOf,
  createSelectionPlan,
  type DatasetView,
  type DataType,
  type DimSelection,
  dimOf,
  type ExportedDataset,
  extentText,
  type Group,
  indexOf,
  indexRange,
  labelSelection,
  type Variable,
  wrongParameter,
} from "../../plugin-api.js";
import type { AxisParameter, AxisQuery, SelectionQuery } from "./parse-selection.js";

/** Names that a message lists at most. */
const MAX_SHOWN_NAMES = 12;

/** What a plan is made of besides the query: all that had to be read. */
export interface PlanContext {
  readonly snapshot: DatasetView;
  /** Coordinates of a variable; undefined if the query needs none of them. */
  readonly coordinatesOf: (variable: Variable) => Coordinates | undefined;
  /** Rows and columns of a curvilinear grid that answer its {@link GridQuestion}; undefined if the query asks none. */
  readonly cellsOf: (variable: Variable) => readonly [y: DimSelection, x: DimSelection] | undefined;
  /** Type of an array's values in the answer. */
  readonly dataTypeOf: (array: ArrayView) => DataType;
}

/** What a query asks of a curvilinear grid. */
export interface GridQuestion {
  readonly lat: AxisParameter;
  readonly lon: AxisParameter;
  /** Degrees: two bounds, or a point, of each. */
  readonly latitudes: readonly (number | undefined)[];
  readonly longitudes: readonly (number | undefined)[];
}

/**
 * Returns the variables that a query may be about: those that it names, by path or by group, or all data variables.
 * @throws ZpublishError `invalid-query` if there is none of that name.
 */
export function candidateVariables({ tree }: DatasetView, { variables }: SelectionQuery): Variable[] {
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

/** Returns the variables whose coordinates a plan needs. */
export function labelledVariables(variables: readonly Variable[], names: readonly string[]): Variable[] {
  // A name that is no dimension of all may be that of a coordinate.
  const isKnown = (name: string) =>
    roleOf(name) === undefined && variables.some(({ dims }) => dims.includes(name));
  if (!names.every(isKnown)) return [...variables];
  return variables.filter(({ dims }) => dims.some((dim) => names.includes(dim)));
}

/**
 * Plans a selection: which indexes are read of which variables, and what the answer is made of. Pure.
 * @param candidates Of {@link candidateVariables}.
 * @param points By key of dimensions, if there are points.
 * @throws ZpublishError `invalid-query`, with expected and received.
 */
export function planSelection(
  context: PlanContext,
  { variables, axes }: Pick<SelectionQuery, "variables" | "axes">,
  candidates: readonly Variable[],
  isDecoded: boolean,
  points?: ReadonlyMap<string, DimSelection>,
): ExportedDataset {
  const { snapshot, dataTypeOf } = context;
  const { selections, selected } = selectDims(context, axes, candidates);
  for (const [key, selection] of points ?? []) {
    const parameter = selections.get(key)?.parameter;
    const expected = `either it or the column '${selection.parameter}'`;
    if (parameter !== undefined) throw wrongParameter(parameter, "contradiction", expected, parameter);
    selections.set(key, selection);
  }
  const isDefault = variables.length === 0;
  const chosen = (isDefault && axes.size > 0 && points === undefined ? selected : candidates).filter(
    // Records and complex numbers, which no format has, are refused only if they are asked for.
    ({ dataType: { kind, zarr } }) => !isDefault || (kind !== "c" && typeof zarr === "string"),
  );
  const openDims = (variable: Variable) =>
    variable.dims.filter(
      (_, at) => !(selections.get(dimOf(snapshot, variable, at).key)?.isDropped ?? variable.shape[at] === 1),
    );
  const complete = chosen.filter((variable) => points === undefined || openDims(variable).length === 0);
  const open = chosen.find((variable) => !complete.includes(variable));
  if (open !== undefined && (!isDefault || complete.length === 0)) {
    const dims = openDims(open).join(", ");
    const expected = `a column, or one label or index, for ${dims} of '${open.path}'`;
    throw wrongParameter(dims, "missing", expected, "none");
  }
  if (complete.length === 0)
    throw wrongParameter("var", "missing", "a variable of numbers, texts or times", "none");
  return createSelectionPlan(snapshot, complete, selections, isDecoded, dataTypeOf);
}

/**
 * Finds what a query reads along dimensions. Pure.
 * @param variables Of {@link candidateVariables}.
 * @returns By key of dimensions, and the variables that have one of them.
 * @throws ZpublishError `invalid-query`, with expected and received.
 */
function selectDims(
  context: PlanContext,
  axes: SelectionQuery["axes"],
  variables: readonly Variable[],
): { readonly selections: Map<string, DimSelection>; readonly selected: Variable[] } {
  const selections = new Map<string, DimSelection>();
  const used = new Set<string>();
  const selected = variables.filter((variable) => {
    const { snapshot } = context;
    const coordinates = context.coordinatesOf(variable);
    let isSelected = false;
    const set = (at: number, parameter: string, select: () => Omit<DimSelection, "parameter">) => {
      const { key } = dimOf(snapshot, variable, at);
      isSelected = true;
      used.add(parameter);
      const other = selections.get(key);
      if (other === undefined) selections.set(key, { parameter, ...select() });
      else if (other.parameter !== parameter)
        throw wrongParameter(parameter, "contradiction", `either it or '${other.parameter}'`, parameter);
    };
    for (const [name, asked] of axes) {
      const at = axisNamed(name, variable, coordinates);
      if (at >= 0)
        set(at, asked.parameter, () => selectAxis(coordinates?.axes[at], variable.shape[at]!, asked));
    }
    const cells = context.cellsOf(variable);
    if (cells !== undefined && coordinates?.grid !== undefined) {
      const { y, x } = coordinates.grid;
      set(y, cells[0].parameter, () => cells[0]);
      set(x, cells[1].parameter, () => cells[1]);
    }
    return isSelected;
  });
  for (const { parameter } of axes.values()) {
    if (used.has(parameter)) continue;
    const dims = listed(new Set(variables.flatMap((variable) => variable.dims)));
    const expected = `var, f, decode, or a dimension: ${dims}`;
    throw wrongParameter(parameter, "unknown_dimension", expected, parameter);
  }
  return { selections, selected };
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
 * Returns the axis of a variable that a query names: by dimension, else `lat`, `lon` and `time` by what its coordinates are; -1 if there
 * is none.
 */
export function axisNamed(name: string, { dims }: Variable, coordinates: Coordinates | undefined): number {
  const at = dims.indexOf(name);
  const role = roleOf(name);
  if (at >= 0 || role === undefined || coordinates === undefined) return at;
  // Coordinates of a projection are no latitudes and longitudes, even if they are degrees: rotated poles.
  if (role !== "T" && coordinates.crs !== "degrees") return -1;
  return coordinates.axes.findIndex((axis) => axis.role === role && axis.variable !== undefined);
}

/** Returns which of the two coordinates of a curvilinear grid a query names; undefined if none. */
export function gridRole(name: string, coordinates: Coordinates | undefined): "Y" | "X" | undefined {
  const grid = coordinates?.grid;
  if (grid === undefined) return undefined;
  const isNamed = (path: string) => path === name || path.endsWith(`/${name}`);
  const role = isNamed(grid.latitude) ? "Y" : isNamed(grid.longitude) ? "X" : roleOf(name);
  return role === "T" ? undefined : role;
}

/** Returns the indexes of one axis that a query asks for. @throws ZpublishError `invalid-query` if there is none. */
function selectAxis(
  axis: CoordinateAxis | undefined,
  length: number,
  { parameter, query }: AxisParameter,
): Omit<DimSelection, "parameter"> {
  const empty = (expected: string, received: string) =>
    wrongParameter(parameter, "empty_selection", expected, received);
  if (query.kind === "indexes") {
    const indexes = query.indexes.map((index) => {
      if (index >= -length && index < length) return index < 0 ? index + length : index;
      throw wrongParameter(parameter, "index_error", `${-length} to ${length - 1}`, `${index}`);
    });
    return listOf(indexes);
  }
  if (query.kind === "slice") {
    const selection = sliceOf(query, length);
    if (countOf(selection) > 0) return { selection, isDropped: false };
    throw empty(`a slice with some of the indexes 0 to ${length - 1}`, query.text);
  }
  if (axis === undefined) throw wrongParameter(parameter, "no_labels", `isel.${parameter}`, parameter);
  if (query.kind === "range") {
    const range = indexRange(axis, query.from, query.to);
    if (countOf(range) > 0) return { selection: everyNth(range, query.step), isDropped: false };
    throw empty(`a range with labels of '${axis.dim}' (${extentText(axis)})`, query.text);
  }
  const [{ text, method } = { text: "", method: "exact" }] = query.labels;
  const found = query.labels.length === 1 && method === "exact" ? labelSelection(axis, text) : undefined;
  if (typeof found === "object") return { selection: found, isDropped: false };
  return listOf(
    query.labels.map((each) => {
      const index = found ?? indexOf(axis, each.text, each.method);
      if (index >= 0) return index;
      const side = each.method === "ffill" ? "from" : "up to";
      throw empty(`a label ${side} an end of ${extentText(axis)}`, each.text);
    }),
  );
}

function listOf(indexes: readonly number[]): Omit<DimSelection, "parameter"> {
  const [begin = 0] = indexes;
  if (indexes.length > 1) return { selection: { indexes }, isDropped: false };
  return { selection: { begin, count: 1, step: 1 }, isDropped: true };
}

/** Resolves a slice as Python's `slice.indices` does. */
function sliceOf({ begin, end, step }: Extract<AxisQuery, { kind: "slice" }>, length: number): AxisSelection {
  const [least, greatest] = step > 0 ? [0, length] : [-1, length - 1];
  const clip = (index: number) => Math.min(Math.max(index < 0 ? index + length : index, least), greatest);
  const first = begin === undefined ? (step > 0 ? least : greatest) : clip(begin);
  const last = end === undefined ? (step > 0 ? greatest : least) : clip(end);
  return { begin: first, count: Math.max(0, Math.ceil((last - first) / step)), step };
}

/** Takes every n-th index of a selection. */
export function everyNth(selection: AxisSelection, n: number): AxisSelection {
  if ("indexes" in selection)
    return { indexes: Array.from(selection.indexes).filter((_, index) => index % n === 0) };
  const { begin, count, step } = selection;
  return { begin, count: Math.ceil(count / n), step: step * n };
}

/**
 * Reads what a query asks of the curvilinear grid of a variable; undefined if it asks nothing.
 * @throws ZpublishError `invalid-query` unless it asks for two ranges, or for the cell nearest to a point
 */
export function gridQuestion(
  axes: SelectionQuery["axes"],
  variable: Variable,
  coordinates: Coordinates,
): GridQuestion | undefined {
  const asked: { Y?: AxisParameter; X?: AxisParameter } = {};
  for (const [name, parameter] of axes) {
    const role = axisNamed(name, variable, coordinates) < 0 ? gridRole(name, coordinates) : undefined;
    if (role !== undefined) asked[role] = parameter;
  }
  const { Y: lat, X: lon } = asked;
  const given = (lat ?? lon)?.parameter;
  if (given === undefined) return undefined;
  const wrong = (expected: string, received: string) => wrongParameter(given, "grid", expected, received);
  const number = (text: string) => {
    if (text.trim() !== "" && Number.isFinite(Number(text))) return Number(text);
    throw wrong("a number in degrees", text);
  };
  const numbersOf = (query: AxisQuery | undefined): (number | undefined)[] => {
    if (query?.kind === "range")
      return [query.from, query.to].map((text) => (text === undefined ? undefined : number(text)));
    const [label, ...others] = query?.kind === "labels" ? query.labels : [];
    return label?.method === "nearest" && others.length === 0 ? [number(label.text)] : [];
  };
  const [latitudes, longitudes] = [numbersOf(lat?.query), numbersOf(lon?.query)];
  if (lat && lon && latitudes.length > 0 && latitudes.length === longitudes.length)
    return { lat, lon, latitudes, longitudes };
  const expected = "both as range a/b or both as nearest::…, since the grid is curvilinear";
  const other = [lat?.parameter, lon?.parameter].filter(Boolean).join(" and ");
  throw wrong(`latitude and longitude, ${expected}`, other);
}
