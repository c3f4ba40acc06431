import { itemValues } from "../codec/items/item-values.js";
import type { ArrayView, DatasetView } from "../dataset/dataset.js";
import { wrongParameter } from "../http/query.js";
import type { JsonObject, JsonValue } from "../json/json-value.js";
import { nodeName, parentPath, type Variable } from "../model/data-tree.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { encodeFillItem } from "../model/fill-value.js";
import type { AxisSelection, ValueBlock } from "../values/values.js";
import { pickedLength } from "../zarr/plan/item-pick.js";
import { type ExportedDataset, type ExportedVariable, POINT, TEXT_TYPE } from "./exported-dataset.js";

/** A variable, and where it is stored. */
interface PlannedVariable extends ExportedVariable {
  readonly path: string;
}

/** Steps of one dimension, and what becomes of it in the answer. */
export interface StepSelection {
  readonly selection: AxisSelection;
  /**
   * `steps` stay a dimension, one `step` is none. Those of `points`, one per point and negative for points outside, are taken together with
   * the ones of other dimensions, along the dimension `point`.
   */
  readonly kind: "steps" | "step" | "points";
  /** Labels of the steps in place of the stored ones: longitudes that ascend across the seam. */
  readonly labels?: Float64Array | undefined;
}

/** What is read along one dimension. */
export interface DimSelection extends StepSelection {
  /** Parameter or column that says it. */
  readonly parameter: string;
}

/** One dimension of a group, which it may share with other groups. */
interface Dim {
  readonly key: string;
  readonly name: string;
  /** The variable of the same name that holds its labels, of the group or the nearest one above. */
  readonly owner: Variable | undefined;
}

/** Returns the path of a group that holds a variable: `/a/b` for `a/b/t2m`. */
export function groupPathOf({ path }: { readonly path: string }): string {
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
  const hasPoints = [...selections.values()].some(({ kind }) => kind === "points");
  const nameOf = createDimNames(hasPoints ? [POINT] : []);
  const dims = new Map<string, number>();

  function describe(variable: Variable): PlannedVariable {
    const { path, shape } = variable;
    const array = snapshot.arrays.get(path)!;
    const axes = variable.dims.map((_, at) => dimOf(snapshot, variable, at));
    const found = axes.map(({ key }) => selections.get(key));
    const isText = isDecoded && variable.dataType.numpyName === "bytes8" && found.at(-1) === undefined;
    const textLength = isText ? shape.at(-1) : undefined;
    const points = [...axes.keys()].filter((at) => found[at]?.kind === "points");
    const kept = [...axes.keys()].filter((at) => {
      const isCharacter = textLength !== undefined && at === shape.length - 1;
      return found[at]?.kind !== "step" && !isCharacter && points.indexOf(at) <= 0;
    });
    const selection = found.map((each, at) => each?.selection ?? { begin: 0, count: shape[at]!, step: 1 });
    const own = kept.map((at): [string, number] => [
      points.includes(at) ? POINT : nameOf(axes[at]!),
      pickedLength(selection[at]!),
    ]);
    for (const [name, length] of own) dims.set(name, length);
    const isOutside = points.some((at) => {
      const { indexes } = selection[at] as { readonly indexes: Int32Array };
      return indexes.some((index) => index < 0);
    });
    const dataType = textLength === undefined ? typeOf(array, isOutside) : TEXT_TYPE;
    const labels = axes[0]?.owner === variable ? found[0]?.labels : undefined;
    const block = labels && hasLabels(variable, dataType) ? blockOf(labels, dataType) : undefined;
    return {
      name: path.replaceAll("/", "_"),
      path,
      isCoordinate: snapshot.tree.groups.get(groupPathOf(variable))!.coordinateNames.has(variable.name),
      dims: own.map(([name]) => name),
      shape: own.map(([, length]) => length),
      dataType,
      attrs: isDecoded ? decodedAttrs(variable.attrs) : storedAttrs(array),
      source: block === undefined ? { array, selection, kept, points, textLength } : { block },
    };
  }

  /** Tells whether values are labels themselves, of a type that holds other ones: packed ones are not, unless they are decoded. */
  function hasLabels({ attrs }: Variable, { kind, itemSize }: DataType): boolean {
    const isPacked = !isDecoded && (attrs.scale_factor ?? attrs.add_offset) !== undefined;
    return !isPacked && "if".includes(kind) && itemSize > 1;
  }

  /** Integers without a fill value are doubles if a point is outside: nothing else says that it is missing. So does xarray's `reindex`. */
  function typeOf(array: ArrayView, isOutside: boolean): DataType {
    const type = dataTypeOf(array);
    const hasMark = !isDecoded && array.document.fill_value !== null;
    return isOutside && !hasMark && "iub".includes(type.kind) ? parseDataType("<f8") : type;
  }

  // Data variables first: the table has their order of dimensions.
  const data = chosen.map(describe);
  const all = [
    ...coordinatesOf(snapshot, chosen).map((each) => ({ ...describe(each), isCoordinate: true })),
    ...data,
  ];
  assertNames(all);
  return {
    ...{ snapshot, isDecoded, dims, attrs: attrsOf(snapshot, chosen) },
    variables: all.map((variable) => withReferences(variable, all)),
  };
}

/** Makes values of a type of labels. */
function blockOf(labels: Float64Array, dataType: DataType): ValueBlock {
  const bytes = new Uint8Array(Buffer.concat(Array.from(labels, (each) => encodeFillItem(each, dataType))));
  return { shape: [labels.length], dataType, bytes, values: itemValues(bytes, dataType) };
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

/** Creates the function that names dimensions in an answer, after the variables of their labels: no two alike, and none as in `taken`. */
export function createDimNames(taken: readonly string[]): (dim: Dim) => string {
  const keys = new Map(taken.map((name) => [name, ""]));
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

/** Copies attributes with other names of the variables that they name. @param nameOf Returns the new name; undefined if it stays. */
export function renamedReferences(
  attrs: JsonObject,
  nameOf: (word: string) => string | undefined,
): Record<string, JsonValue> {
  const renamed: Record<string, JsonValue> = { ...attrs };
  for (const name of REFERENCES.split(" ")) {
    const text = attrs[name];
    if (typeof text === "string") renamed[name] = text.replace(/[^\s:]+/g, (word) => nameOf(word) ?? word);
  }
  return renamed;
}

/**
 * Renames the variables that attributes name as they are in the answer, and names coordinates that xarray would else take for data: those
 * whose dimension is left out.
 */
function withReferences(variable: PlannedVariable, all: readonly PlannedVariable[]): PlannedVariable {
  const group = groupPathOf(variable);
  const names = new Map(
    all.flatMap((each) => (groupPathOf(each) === group ? [[nodeName(each.path), each.name]] : [])),
  );
  const attrs = renamedReferences(variable.attrs, (word) => names.get(word));
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
