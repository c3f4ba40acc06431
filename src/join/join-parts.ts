import { cfTimeScale } from "../cf/cf-time.js";
import { ZpublishError } from "../errors.js";
import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import { parseDataType } from "../model/data-type.js";
import type { Refusal } from "../zarr/stored-tree.js";
import type { PartArray, PartDescription } from "./describe-part.js";
import { formKey, type PartStored } from "./item-forms.js";
import { type JoinedArray, joinColumn } from "./join-arrays.js";
import { decodeItems, type Item, type Items, isSameItem, itemsOfValues, writeItems } from "./join-values.js";
import {
  createColumns,
  createScope,
  type JoinScope,
  orderParts,
  type PartColumn,
  type PartColumns,
  type PartSteps,
  scopeOfOrder,
} from "./order-parts.js";

/** Several parts as one tree, before anything is known of the places of their chunks. Plain data. */
export interface JoinedTree {
  /** Indices of the parts in the order in which they lie along the joined dimension: all of them, also those without steps. */
  readonly order: readonly number[];
  /** The steps of each part that has some, along the joined dimension, without gaps. */
  readonly steps: readonly PartSteps[];
  readonly groups: readonly JoinedGroup[];
  readonly refused: readonly Refusal[];
  readonly warnings: readonly string[];
}

/** A group of a {@link JoinedTree}. */
interface JoinedGroup {
  readonly path: string;
  readonly attrs: JsonObject;
  readonly arrays: readonly JoinedArray[];
}

/** Options of {@link joinParts}. */
interface JoinOptions {
  /** `concat`: parts follow each other along a dimension that they have. `stack`: each is one step of a new dimension. */
  readonly kind: "concat" | "stack";
  readonly dimension: string;
  /** Coordinate of the new dimension of a stack, one value per part. Default: it has none. */
  readonly coordinate?: readonly (string | number)[];
}

/**
 * Joins parts into one tree, as xarray's `open_mfdataset` reads it (README). An array whose parts differ is refused, and the others are
 * served.
 * @throws ZpublishError `invalid-metadata`, naming two parts and what differs, if they cannot be one dataset
 */
export function joinParts(parts: readonly PartDescription[], options: JoinOptions): JoinedTree {
  return runNow(joinSteps(parts, options));
}

/** {@link joinParts} in steps. */
export function* joinSteps(
  parts: readonly PartDescription[],
  options: JoinOptions,
): CooperativeTask<JoinedTree> {
  if (parts.length === 0)
    throw new ZpublishError("invalid-metadata", "expected files to join, received none");
  const { dimension } = options;
  const names = parts.map(({ name }) => name);
  const found = yield* createColumns(parts);
  const { table, scope } =
    options.kind === "stack"
      ? stackParts(found, parts, options)
      : { table: found, scope: yield* createScope(found, parts, dimension) };
  yield* compareParts(table, names, dimension, scope.present);
  const refused: Refusal[] = [];
  const warnings: string[] = [];
  const bounds = new Map<string, string>();
  const groups = table.groups.map((path) => ({
    path,
    attrs: table.attrsOf(path, [...scope.present, ...scope.order]),
    arrays: [] as JoinedArray[],
  }));
  const byPath = new Map(groups.map((group) => [group.path, group]));
  for (const column of table.columns.values()) {
    yield;
    try {
      const joined = joinColumn(column, parts, scope, dimension);
      byPath.get(column.group)?.arrays.push(joined.array);
      if (joined.bounds !== undefined) bounds.set(joined.bounds, column.path);
      if (joined.warning !== undefined) warnings.push(`'${column.path}': ${joined.warning}`);
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      if (column.path === scope.coordinate)
        throw new ZpublishError(error.code, `'${column.path}': ${error.message}`);
      refused.push({ path: column.path, reason: error.message });
    }
  }
  for (const group of groups) {
    group.arrays = group.arrays.filter(({ kind, stored: { path } }) => {
      const time = kind === "joined" ? bounds.get(path) : undefined;
      if (time === undefined) return true;
      refused.push({
        path,
        reason: `times of '${time}' are converted to other units, and its bounds cannot be`,
      });
      return false;
    });
    group.arrays.sort((a, b) => (a.stored.name < b.stored.name ? -1 : 1));
  }
  refused.push(...refusedByParts(parts, table));
  return { order: scope.order, steps: scope.steps, groups, refused, warnings };
}

/** Lists arrays and groups that no part can serve, each with the reason of the first. */
function refusedByParts(parts: readonly PartDescription[], { columns, groups }: PartColumns): Refusal[] {
  const reasons = new Map<string, string>();
  for (const part of parts) {
    for (const { path, reason } of part.refused) {
      const isServed = columns.has(path) || groups.includes(`/${path}`);
      if (!isServed && !reasons.has(path)) reasons.set(path, `${part.name}: ${reason}`);
    }
  }
  return [...reasons].map(([path, reason]) => ({ path, reason }));
}

/**
 * Compares lengths of dimensions, and values of their coordinates, as xarray's `join="exact"` does. Those of the joined dimension may
 * differ.
 * @throws ZpublishError `invalid-metadata`, naming two parts and what each has
 */
function* compareParts(
  { columns }: PartColumns,
  names: readonly string[],
  dimension: string,
  present: readonly number[],
): CooperativeTask<void> {
  const lengths = new Map<string, Map<string, { readonly length: number; readonly part: number }>>();
  for (const column of columns.values()) {
    yield;
    const known = lengths.get(column.group) ?? new Map();
    lengths.set(column.group, known);
    compareLengths(column, present, known, names, dimension);
  }
  for (const column of columns.values()) {
    yield;
    if (column.name !== dimension) compareCoordinate(column, present, names);
  }
}

function compareLengths(
  column: PartColumn,
  parts: readonly number[],
  known: Map<string, { readonly length: number; readonly part: number }>,
  names: readonly string[],
  dimension: string,
): void {
  let last: PartArray | undefined;
  for (const part of parts) {
    const array = column.arrays[part];
    if (array === undefined || array.stored === last?.stored) continue;
    last = array;
    const { shape } = array.stored;
    for (let axis = 0; axis < shape.length; axis++) {
      const dim = array.dims[axis]!;
      if (dim === dimension) continue;
      const length = shape[axis]!;
      const expected = known.get(dim);
      if (expected === undefined) known.set(dim, { length, part });
      else if (expected.length !== length) {
        throw new ZpublishError(
          "invalid-metadata",
          `expected ${expected.length} steps along '${dim}' in ${names[part]}, as in ${names[expected.part]}, received ${length} ('${column.path}')`,
        );
      }
    }
  }
}

function compareCoordinate(column: PartColumn, parts: readonly number[], names: readonly string[]): void {
  let first: { readonly array: PartArray; readonly part: number } | undefined;
  for (const part of parts) {
    const array = column.arrays[part];
    if (array?.values === undefined || array.dims.length !== 1 || array.dims[0] !== column.name) continue;
    if (first === undefined) first = { array, part };
    const difference = findDifference(first.array, array);
    if (difference === undefined) continue;
    const { index, expected, received } = difference;
    throw new ZpublishError(
      "invalid-metadata",
      `expected '${column.path}' of ${names[part]} to be that of ${names[first.part]}, whose item ${index} is ${expected}, received ${received}`,
    );
  }
}

/** The first difference of two coordinates. */
interface Difference {
  readonly index: number;
  readonly expected: string;
  readonly received: string;
}

/** Finds the first item in which two arrays of equal length differ, whatever their types; undefined if there is none. */
function findDifference(a: PartArray, b: PartArray): Difference | undefined {
  if (a === b || a.values === undefined || b.values === undefined) return undefined;
  const isSameBytes = a.values === b.values || Buffer.compare(a.values, b.values) === 0;
  if (isSameBytes && formKey(a.stored) === formKey(b.stored)) return undefined;
  const one = decodeItems(a.values, a.stored, cfTimeScale(a.stored.attrs));
  const other = decodeItems(b.values, b.stored, cfTimeScale(b.stored.attrs));
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    if (isSameItem(one[index], other[index])) continue;
    return { index, expected: textOf(a, one, index), received: textOf(b, other, index) };
  }
  return undefined;
}

function textOf({ stored, values }: PartArray, decoded: ArrayLike<Item>, index: number): string {
  const item = decoded[index];
  if (item === undefined) return "none";
  if (typeof item === "string") return JSON.stringify(item);
  if (cfTimeScale(stored.attrs) === undefined || values === undefined) return String(item);
  return `${itemsOfValues(values, stored.dataType)[index]} ${String(stored.attrs.units)}`;
}

/** Attributes that name arrays which belong to others, and are no data themselves (CF sections 5, 5.6, 7.1 and 7.4). */
const NAMING = ["coordinates", "bounds", "climatology", "grid_mapping"];

/**
 * Orders the parts of a stack: by the given coordinate, else by a scalar of the new dimension's name, else by name.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if they have one value, or there is such a dimension already
 */
function stackScope(
  table: PartColumns,
  parts: readonly PartDescription[],
  dimension: string,
  coordinate?: readonly (string | number)[],
): JoinScope {
  for (const { path, name, arrays } of table.columns.values()) {
    const part = arrays.findIndex(
      (array) =>
        array?.dims.includes(dimension) ||
        (name === dimension && array !== undefined && array.dims.length > 0),
    );
    if (part < 0) continue;
    throw new ZpublishError(
      "invalid-metadata",
      `expected parts without a dimension '${dimension}', which is to be new, received array '${path}' of ${parts[part]?.name} with it`,
    );
  }
  const scalars = table.columns.get(dimension)?.arrays;
  const isNumber = coordinate?.every((each) => typeof each === "number");
  const keysOf = (part: number): Items | undefined => {
    const value = coordinate?.[part];
    if (value !== undefined) return isNumber ? Float64Array.of(Number(value)) : [String(value)];
    if (scalars?.every((array) => array?.values !== undefined) !== true) return undefined;
    const { stored, values } = scalars[part] as PartArray & { readonly values: Uint8Array };
    return itemsOfValues(values, stored.dataType);
  };
  const unordered = parts.map(({ name }, part) => {
    const keys = keysOf(part);
    return { part, name, length: 1, keys, textOf: () => String(keys?.[0]) };
  });
  const lengths = parts.map(() => 1);
  return scopeOfOrder(orderParts(unordered, dimension), lengths, parts, dimension);
}

/** The options of a stack. */
interface StackOptions {
  readonly dimension: string;
  readonly coordinate?: readonly (string | number)[];
}

/**
 * Gives the arrays of parts the new dimension of a stack, in which each part is one step.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if they have one value, or there is such a dimension already
 */
function stackParts(
  table: PartColumns,
  parts: readonly PartDescription[],
  { dimension, coordinate }: StackOptions,
): { readonly table: PartColumns; readonly scope: JoinScope } {
  const scope = stackScope(table, parts, dimension, coordinate);
  const related = relatedNames(table, scope.present);
  const columns = new Map<string, PartColumn>();
  const groups = new Set<string>();
  for (const column of table.columns.values()) {
    const isOwn = column.name === dimension;
    if (isOwn && coordinate !== undefined) continue;
    if (!isOwn && !isStacked(column, scope.present, related)) columns.set(column.path, column);
    else {
      groups.add(column.group);
      columns.set(column.path, stackColumn(column, dimension));
    }
  }
  if (coordinate !== undefined) {
    for (const group of groups) {
      const column = stackColumn(coordinateColumn(coordinate, dimension, group), dimension);
      columns.set(column.path, column);
    }
  }
  return { table: { ...table, columns }, scope };
}

/** Makes the coordinate of a stack as an array of each part: integers, floats or texts. */
function coordinateColumn(
  coordinate: readonly (string | number)[],
  dimension: string,
  group: string,
): PartColumn {
  const path = group === "/" ? dimension : `${group.slice(1)}/${dimension}`;
  const isNumber = coordinate.every((each) => typeof each === "number");
  const isInteger = coordinate.every((each) => Number.isSafeInteger(each));
  const width = Math.max(1, ...coordinate.map((each) => Array.from(String(each)).length));
  const dataType = parseDataType(isInteger ? "<i8" : isNumber ? "<f8" : `<U${width}`);
  const stored: PartStored = {
    ...{ name: dimension, path, shape: [], chunkShape: [], dataType, axisOrder: [], codecs: [] },
    ...{ compressorCount: 0, dimNames: [], attrs: {} },
    fill: { served: null, item: null, absentIsServed: true },
  };
  const arrays = coordinate.map((each): PartArray => {
    return { stored, dims: [], values: writeItems([isNumber ? each : String(each)], dataType) };
  });
  return { path, name: dimension, group, arrays };
}

/**
 * Tells whether an array gets the new dimension of a stack. Coordinates and scalars whose values are equal do not, nor do other arrays
 * that `coordinates`, `bounds` or `grid_mapping` name and whose values are not known.
 */
function isStacked(column: PartColumn, present: readonly number[], related: ReadonlySet<string>): boolean {
  const arrays = present.map((part) => column.arrays[part]);
  const first = arrays.find((array) => array !== undefined);
  if (first === undefined) return false;
  const isCoordinate = first.dims.length === 1 && first.dims[0] === column.name;
  if (isCoordinate) return false;
  const isAuxiliary = first.dims.length === 0 || related.has(column.path);
  if (!isAuxiliary) return true;
  if (arrays.some((array) => array?.values === undefined)) {
    return first.dims.length === 0 && arrays.every((array) => array !== undefined);
  }
  return arrays.some((array) => array !== undefined && findDifference(first, array) !== undefined);
}

/** Returns the paths of arrays that belong to others, as attributes of the parts' arrays name them. */
function relatedNames(table: PartColumns, present: readonly number[]): Set<string> {
  const names = new Set<string>();
  for (const { group, arrays } of table.columns.values()) {
    const first = present.find((part) => arrays[part] !== undefined);
    const attrs: JsonObject = first === undefined ? {} : arrays[first]!.stored.attrs;
    const prefix = group === "/" ? "" : `${group.slice(1)}/`;
    for (const attribute of NAMING) {
      const text = attrs[attribute];
      if (typeof text !== "string") continue;
      for (const name of text.split(/\s+/)) if (name !== "") names.add(`${prefix}${name.replace(/:$/, "")}`);
    }
  }
  return names;
}

/** Returns the column with the new axis in front of each array. Chunks keep their bytes. */
function stackColumn(column: PartColumn, dimension: string): PartColumn {
  const stacked = new Map<PartStored, PartStored>();
  const arrays = column.arrays.map((array) => {
    if (array === undefined) return undefined;
    const stored = stacked.get(array.stored) ?? stack(array.stored);
    stacked.set(array.stored, stored);
    return { ...array, stored, dims: [dimension, ...array.dims] };
  });
  return { ...column, arrays };
}

function stack(stored: PartStored): PartStored {
  const { shape, chunkShape, axisOrder } = stored;
  const shifted = axisOrder.map((axis) => axis + 1);
  const isFortran =
    axisOrder.length > 1 && axisOrder.every((axis, index) => axis === axisOrder.length - 1 - index);
  return {
    ...stored,
    shape: [1, ...shape],
    chunkShape: [1, ...chunkShape],
    // An axis of one step may lie anywhere: `order` of Zarr v2 knows no other than these two.
    axisOrder: isFortran ? [...shifted, 0] : [0, ...shifted],
  };
}
