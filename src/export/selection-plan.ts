import type { ArrayView, DatasetView } from "../dataset/dataset.js";
import { wrongParameter } from "../http/query.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { nodeName, parentPath, type Variable } from "../model/data-tree.js";
import type { DataType } from "../model/data-type.js";
import type { AxisSelection } from "../values/values.js";
import { type ExportedDataset, type ExportedVariable, POINT, TEXT_TYPE } from "./exported-dataset.js";

/** A variable, and where it is stored. */
interface PlannedVariable extends ExportedVariable {
  readonly path: string;
}

/** What is read along one dimension. */
export interface DimSelection {
  /** Parameter or column that says it. */
  readonly parameter: string;
  readonly selection: AxisSelection;
  /** True if one index was asked for: the answer does not have the dimension. */
  readonly isDropped: boolean;
  /** An index per point, in place of `selection`; negative for a point that is outside. */
  readonly points?: Int32Array;
}

/** One dimension of a group, which it may share with other groups. */
interface Dim {
  readonly key: string;
  readonly name: string;
  /** The variable of the same name that holds its labels, of the group or the nearest one above. */
  readonly owner: Variable | undefined;
}

/** Returns the path of a group that holds a variable: `/a/b` for `a/b/t2m`. */
function groupPathOf({ path }: { readonly path: string }): string {
  return parentPath(`/${path}`);
}

/** Finds the dimension of an axis: groups share one if they see the same variable of its labels. */
export function dimOf({ tree }: DatasetView, variable: Variable, at: number): Dim {
  const name = variable.dims[at]!;
  const length = variable.shape[at]!;
  for (let path = groupPathOf(variable); ; path = parentPath(path)) {
    const owner = tree.groups.get(path)?.variables.get(name);
    if (owner?.dims.length === 1 && owner.dims[0] === name && owner.shape[0] === length)
      return { key: owner.path, name, owner };
    if (path === "/") return { key: `/${name}/${length}`, name, owner: undefined };
  }
}

/**
 * Plans what a piece of a dataset is made of, before any value is read: variables and their coordinates, which come first. Names are paths
 * with `_` in place of `/`. Attributes are the stored ones, with the `_FillValue` that xarray makes of a Zarr array's `fill_value`; if
 * decoded, those that xarray's `decode_cf` leaves, and the units of times.
 * @param chosen Variables that are asked for; their coordinates are added.
 * @param selections By key of dimensions; of others, all is read.
 * @param dataTypeOf Returns the type of a variable's values in the answer.
 */
export function createSelectionPlan(
  snapshot: DatasetView,
  chosen: readonly Variable[],
  selections: ReadonlyMap<string, DimSelection>,
  isDecoded: boolean,
  dataTypeOf: (array: ArrayView) => DataType,
): ExportedDataset {
  const nameOf = createDimNames();
  const dims = new Map<string, number>();
  const pointCount = [...selections.values()].find(({ points }) => points !== undefined)?.points?.length ?? 0;
  // Of texts that are characters along an axis, a point would have the first one only.
  const isWhole = (variable: Variable) =>
    pointCount === 0 ||
    variable.dataType.numpyName !== "bytes8" ||
    variable.dims.every((_, at) => selections.has(dimOf(snapshot, variable, at).key));
  const coordinates = coordinatesOf(snapshot, chosen).filter(isWhole);

  function describe(variable: Variable): PlannedVariable {
    const { path, shape } = variable;
    const array = snapshot.arrays.get(path)!;
    const axes = variable.dims.map((_, at) => dimOf(snapshot, variable, at));
    const found = axes.map(({ key }) => selections.get(key));
    const isOfPoints = found.some((each) => each?.points !== undefined);
    const isText =
      isDecoded && !isOfPoints && variable.dataType.numpyName === "bytes8" && found.at(-1) === undefined;
    const textLength = isText ? shape.at(-1) : undefined;
    const isKept = (at: number) =>
      found[at]?.isDropped !== true && (textLength === undefined || at < shape.length - 1);
    const kept = [...axes.keys()].filter(isKept);
    const selection = found.map((each, at) => each?.selection ?? { begin: 0, count: shape[at]!, step: 1 });
    const own = kept.map((at): [string, number] => [nameOf(axes[at]!), countOf(selection[at]!)]);
    if (isOfPoints) own.unshift([POINT, pointCount]);
    for (const [name, length] of own) dims.set(name, length);
    return {
      name: path.replaceAll("/", "_"),
      path,
      isCoordinate: snapshot.tree.groups.get(groupPathOf(variable))!.coordinateNames.has(variable.name),
      dims: own.map(([name]) => name),
      shape: own.map(([, length]) => length),
      dataType: textLength === undefined ? dataTypeOf(array) : TEXT_TYPE,
      attrs: isDecoded ? decodedAttrs(variable.attrs) : storedAttrs(array),
      source: isOfPoints
        ? {
            array,
            get points() {
              return pointRows(found, pointCount);
            },
          }
        : { array, selection, kept, textLength },
    };
  }

  // Data variables first: the table has their order of dimensions.
  const data = chosen.map(describe);
  const all = [...coordinates.map((each) => ({ ...describe(each), isCoordinate: true })), ...data];
  assertNames(all);
  return {
    ...{ snapshot, isDecoded, dims, attrs: attrsOf(snapshot, chosen) },
    variables: all.map((variable) => withReferences(variable, all)),
  };
}

/** @throws ZpublishError `invalid-query` if two variables have one name without slashes */
function assertNames(variables: readonly PlannedVariable[]): void {
  const names = new Set<string>();
  for (const { name, path } of variables) {
    if (names.has(name))
      throw wrongParameter("var", "ambiguous_name", `one variable that is '${name}' without slashes`, path);
    names.add(name);
  }
}

/** Interleaves the indexes of axes: a row per point. */
function pointRows(axes: readonly (DimSelection | undefined)[], count: number): Int32Array {
  const rows = new Int32Array(count * axes.length);
  for (const [axis, each] of axes.entries()) {
    const fixed = each !== undefined && "begin" in each.selection ? each.selection.begin : 0;
    for (let point = 0; point < count; point += 1)
      rows[point * axes.length + axis] = each?.points === undefined ? fixed : each.points[point]!;
  }
  return rows;
}

/** Returns the number of indexes of a selection. */
export function countOf(selection: AxisSelection): number {
  return "indexes" in selection ? selection.indexes.length : selection.count;
}

/** Returns the coordinates that go with variables: all of their groups whose dimensions these have, as in `dataset[names]` of xarray. */
function coordinatesOf(snapshot: DatasetView, chosen: readonly Variable[]): Variable[] {
  const found = new Set<Variable>();
  // Characters along the last axis are one text to xarray.
  const isText = ({ dataType, dims }: Variable) => dataType.numpyName === "bytes8" && dims.length > 0;
  const dimsOf = (variable: Variable) =>
    variable.dims.slice(0, isText(variable) ? -1 : undefined).map((_, at) => dimOf(snapshot, variable, at));
  for (const path of new Set(chosen.map(groupPathOf))) {
    const own = chosen.filter((variable) => groupPathOf(variable) === path).flatMap(dimsOf);
    const keys = new Set(own.map(({ key }) => key));
    for (const { owner } of own) if (owner !== undefined) found.add(owner);
    const { variables, coordinateNames } = snapshot.tree.groups.get(path)!;
    for (const name of coordinateNames) {
      const variable = variables.get(name);
      if (variable !== undefined && dimsOf(variable).every(({ key }) => keys.has(key))) found.add(variable);
    }
  }
  return [...found].filter((variable) => !chosen.includes(variable));
}

/** Creates the function that names dimensions in an answer, after the variables of their labels: no two alike. */
function createDimNames(): (dim: Dim) => string {
  const keys = new Map<string, string>();
  return ({ key, name, owner }) => {
    let text = owner === undefined ? name : owner.path.replaceAll("/", "_");
    for (let count = 1; (keys.get(text) ?? key) !== key; count += 1) text = `${name}_${count}`;
    keys.set(text, key);
    return text;
  };
}

/** Returns the attributes of the root, and those of the group if all variables are of one. */
function attrsOf({ tree }: DatasetView, chosen: readonly Variable[]): JsonObject {
  const [path = "/", ...others] = new Set(chosen.map(groupPathOf));
  return { ...tree.root.attrs, ...(others.length === 0 ? tree.groups.get(path)?.attrs : {}) };
}

const DECODED = /^(?:_FillValue|missing_value|scale_factor|add_offset|_Unsigned|coordinates|_Encoding)$/;

function storedAttrs({ variable: { attrs }, document: { fill_value: fill } }: ArrayView): JsonObject {
  return fill === null ? attrs : { ...attrs, _FillValue: fill };
}

function decodedAttrs(attrs: JsonObject): JsonObject {
  const isLeft = (name: string) => !DECODED.test(name) && !(name === "dtype" && attrs[name] === "bool");
  return Object.fromEntries(Object.entries(attrs).filter(([name]) => isLeft(name)));
}

/** Attributes that name other variables (CF). */
const REFERENCES =
  "bounds climatology coordinates grid_mapping ancillary_variables cell_measures formula_terms";

/**
 * Renames the variables that attributes name as they are in the answer, and names coordinates that xarray would else take for data: those
 * whose dimension is left out.
 */
function withReferences(variable: PlannedVariable, all: readonly PlannedVariable[]): PlannedVariable {
  const group = groupPathOf(variable);
  const names = new Map(
    all.flatMap((each) => (groupPathOf(each) === group ? [[nodeName(each.path), each.name]] : [])),
  );
  const attrs: Record<string, JsonValue> = { ...variable.attrs };
  for (const name of REFERENCES.split(" ")) {
    const text = attrs[name];
    if (typeof text === "string") attrs[name] = text.replace(/[^\s:]+/g, (word) => names.get(word) ?? word);
  }
  const own = all.filter(
    ({ isCoordinate, dims, name, path }) =>
      isCoordinate &&
      dims.join() !== name &&
      dims.every((dim) => variable.dims.includes(dim)) &&
      group.startsWith(groupPathOf({ path })),
  );
  const words = typeof attrs.coordinates === "string" ? attrs.coordinates.trim().split(/\s+/) : [];
  // xarray makes no coordinates of names if one of them is missing.
  const known = words.filter((word) => all.some(({ name }) => name === word));
  if (!variable.isCoordinate) known.push(...own.map(({ name }) => name));
  if (known.length > 0) attrs.coordinates = [...new Set(known)].join(" ");
  else delete attrs.coordinates;
  return { ...variable, attrs };
}
