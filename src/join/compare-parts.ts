import { cfTimeOf, cfTimeScale } from "../cf/cf-time.js";
import { ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { PartColumn, PartColumns } from "./part-columns.js";
import type { PartArray } from "./part-description.js";
import { type Item, readItems } from "./part-items.js";
import { isSameForm, packingOfStored } from "./stored-form.js";

/**
 * Compares lengths of dimensions, and values of their coordinates, as xarray's `join="exact"` does. Those of the joined dimension may
 * differ.
 * @param order Returns the parts to compare of a group: those that have steps, in order.
 * @throws ZpublishError `invalid-metadata`, naming two parts and what each has
 */
export function* compareParts(
  { columns }: PartColumns,
  names: readonly string[],
  dimension: string,
  order: (group: string) => readonly number[],
): CooperativeTask<void> {
  const lengths = new Map<string, Map<string, { readonly length: number; readonly part: number }>>();
  for (const column of columns.values()) {
    yield;
    const known = lengths.get(column.group) ?? new Map();
    lengths.set(column.group, known);
    compareLengths(column, order(column.group), known, names, dimension);
  }
  for (const column of columns.values()) {
    yield;
    if (column.name !== dimension) compareCoordinate(column, order(column.group), names);
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
      const dim = array.dims[axis] as string;
      if (dim === dimension) continue;
      const length = shape[axis] as number;
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
export function findDifference(a: PartArray, b: PartArray): Difference | undefined {
  if (a === b || a.values === undefined || b.values === undefined) return undefined;
  const isSameBytes = a.values === b.values || Buffer.compare(a.values, b.values) === 0;
  if (isSameBytes && isSameForm(a.stored, b.stored)) return undefined;
  const [one, other] = [createReader(a), createReader(b)];
  for (let index = 0; index < Math.max(one.length, other.length); index++) {
    const [expected, received] = [one.itemAt(index), other.itemAt(index)];
    if (isSameItem(expected, received)) continue;
    return { index, expected: one.textAt(index), received: other.textAt(index) };
  }
  return undefined;
}

/** Reads items as values that can be compared with those of another type, packing or unit of time. */
function createReader({ stored, values }: PartArray) {
  const items = readItems(values as Uint8Array, stored.dataType);
  const scale = cfTimeScale(stored.attrs);
  const { scale: factor, offset } = packingOfStored(stored);
  const isPacked = factor !== 1 || offset !== 0;
  const { units } = stored.attrs;
  return {
    length: items.length,
    itemAt: (index: number): Item | undefined => {
      const item = items[index];
      if (item === undefined || typeof item === "string") return item;
      if (scale !== undefined && Number.isFinite(Number(item))) return cfTimeOf(item, scale);
      return isPacked ? Number(item) * factor + offset : item;
    },
    textAt: (index: number): string => {
      const item = items[index];
      if (typeof item === "string") return JSON.stringify(item);
      if (item === undefined) return "none";
      if (scale !== undefined) return `${item} ${String(units)}`;
      return String(isPacked ? Number(item) * factor + offset : item);
    },
  };
}

function isSameItem(a: Item | undefined, b: Item | undefined): boolean {
  if ((typeof a === "string") !== (typeof b === "string")) return false;
  // biome-ignore lint/suspicious/noDoubleEquals: 1 and 1n are one value, whatever its type.
  return a == b || (Number.isNaN(a) && Number.isNaN(b));
}
