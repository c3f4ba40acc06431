import { ZpublishError } from "../errors.js";
import type { JsonObject } from "../json/json-value.js";
import { parseDataType } from "../model/data-type.js";
import { findDifference } from "./compare-parts.js";
import { type JoinScope, type JoinScopes, scopeOfOrder } from "./join-scopes.js";
import { orderParts } from "./order-parts.js";
import type { PartColumn, PartColumns } from "./part-columns.js";
import type { PartArray, PartDescription } from "./part-description.js";
import { type Items, readItems, writeItems } from "./part-items.js";
import type { PartStored } from "./stored-form.js";

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
  overlap?: "last",
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
  const keysOf = (part: number): Items | undefined => {
    if (coordinate !== undefined) return itemsOf(coordinate, part);
    if (scalars?.every((array) => array?.values !== undefined) !== true) return undefined;
    const { stored, values } = scalars[part] as PartArray & { readonly values: Uint8Array };
    return readItems(values, stored.dataType);
  };
  const unordered = parts.map(({ name }, part) => {
    const keys = keysOf(part);
    return { part, name, length: 1, keys, textOf: () => String(keys?.[0]) };
  });
  const { order, steps } = orderParts(unordered, dimension, overlap);
  return scopeOfOrder(
    { order, steps },
    parts.map(() => 1),
    parts,
  );
}

function itemsOf(coordinate: readonly (string | number)[], part: number): Items {
  const value = coordinate[part] as string | number;
  const isNumber = coordinate.every((each) => typeof each === "number");
  return isNumber ? Float64Array.of(Number(value)) : [String(value)];
}

/** The options of a stack. */
interface StackOptions {
  readonly dimension: string;
  readonly overlap?: "last";
  readonly coordinate?: readonly (string | number)[];
}

/**
 * Gives the arrays of parts the new dimension of a stack, in which each part is one step.
 * @throws ZpublishError `invalid-metadata`, naming two parts, if they have one value, or there is such a dimension already
 */
export function stackParts(
  table: PartColumns,
  parts: readonly PartDescription[],
  { dimension, overlap, coordinate }: StackOptions,
): { readonly table: PartColumns; readonly scopes: JoinScopes } {
  const main = stackScope(table, parts, dimension, coordinate, overlap);
  const related = relatedNames(table, main.present);
  const columns = new Map<string, PartColumn>();
  const groups = new Set<string>();
  for (const column of table.columns.values()) {
    const isOwn = column.name === dimension;
    if (isOwn && coordinate !== undefined) continue;
    if (!isOwn && !isStacked(column, main.present, related)) columns.set(column.path, column);
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
  return { table: { ...table, columns }, scopes: { main, scopeOf: () => main } };
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
 * @param related Names of arrays that belong to others; see {@link relatedNames}.
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
    const attrs: JsonObject = first === undefined ? {} : (arrays[first] as PartArray).stored.attrs;
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
  let last: PartArray | undefined;
  let lastStacked: PartStored | undefined;
  const arrays = column.arrays.map((array) => {
    if (array === undefined) return undefined;
    const stored =
      lastStacked !== undefined && array.stored === last?.stored ? lastStacked : stack(array.stored);
    last = array;
    lastStacked = stored;
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
