import { cfTimeFormatter } from "../cf/cf-time.js";
import { compareItems } from "../collections/sorted-lists.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import { comparePaths } from "../zarr/stored-tree.js";
import type { PartArray, PartDescription } from "./describe-part.js";
import { differingScales, formError, groupForms, type PartForm } from "./item-forms.js";
import { decodeItems, type Item, type Items, itemsOfValues } from "./join-values.js";

/** The arrays of one path in all parts. */
export interface PartColumn {
  /** Without a leading slash. */
  readonly path: string;
  readonly name: string;
  /** Path of the group, with a leading slash. */
  readonly group: string;
  /** One per part; undefined if the part has none. */
  readonly arrays: readonly (PartArray | undefined)[];
}

/** The groups and arrays of all parts. */
export interface PartColumns {
  /** Paths of all groups, parents before children, siblings sorted by name. */
  readonly groups: readonly string[];
  /** By path. */
  readonly columns: ReadonlyMap<string, PartColumn>;
  /** Returns the attributes of a group in the first of `order` that has it. */
  attrsOf(group: string, order: readonly number[]): JsonObject;
}

/** Lists the arrays of parts by path instead of by part. */
export function* createColumns(parts: readonly PartDescription[]): CooperativeTask<PartColumns> {
  const groups = new Set<string>();
  const columns = new Map<string, PartColumn & { readonly arrays: (PartArray | undefined)[] }>();
  for (const [index, part] of parts.entries()) {
    yield;
    for (const { path } of part.groups) groups.add(path);
    for (const array of part.arrays) {
      const { path, name } = array.stored;
      let column = columns.get(path);
      if (column === undefined) {
        const group = path === name ? "/" : `/${path.slice(0, -name.length - 1)}`;
        column = { path, name, group, arrays: new Array(parts.length).fill(undefined) };
        columns.set(path, column);
      }
      column.arrays[index] = array;
    }
  }
  return {
    groups: [...groups].sort(comparePaths),
    columns,
    attrsOf(path, order) {
      for (const part of order) {
        const group = parts[part]!.groups.find((each) => each.path === path);
        if (group !== undefined) return group.attrs;
      }
      return {};
    },
  };
}

/** The steps of one part along the joined dimension. */
export interface PartSteps {
  /** Index of the part in the list of descriptions. */
  readonly part: number;
  /** First step in the joined dataset. */
  readonly start: number;
  /** Number of steps of the joined dataset. */
  readonly length: number;
}

/** The joined dimension. */
export interface JoinScope {
  /** All parts in order, also those without steps. */
  readonly order: readonly number[];
  /** The steps of each part that has some, without gaps; in the order of {@link present}. */
  readonly steps: readonly PartSteps[];
  /** Steps of each part along the dimension. */
  readonly lengths: readonly number[];
  /** Parts with steps, in order of their first one. If no part has any, all. */
  readonly present: readonly number[];
  /** Names of these parts. */
  readonly names: readonly string[];
  /** Steps that the joined dimension has of each of these parts. */
  readonly weights: readonly number[];
  /** Path of the coordinate along the dimension, if there is one. */
  readonly coordinate: string | undefined;
}

/**
 * Orders the parts along a dimension that they have: by the coordinate of the first group that has the dimension, which is the root in
 * most files. Other groups follow that order.
 * @throws ZpublishError `invalid-metadata` if the parts cannot be put in order, or none has the dimension
 */
export function* createScope(
  table: PartColumns,
  parts: readonly PartDescription[],
  dimension: string,
): CooperativeTask<JoinScope> {
  const all = [...table.columns.values()].filter(({ arrays }) =>
    arrays.some((array) => array?.dims.includes(dimension)),
  );
  const group = table.groups.find((path) => all.some((column) => column.group === path));
  const along = all.filter((column) => column.group === group);
  yield;
  const coordinate = along.find(
    ({ name, arrays }) =>
      name === dimension && arrays.some((array) => array?.values !== undefined && array.dims.length === 1),
  );
  const lengths = lengthsOf(coordinate === undefined ? along : [coordinate, ...along], parts, dimension);
  const keys = coordinate && (yield* coordinateKeys(coordinate, lengths, parts));
  const unordered = parts.map(
    ({ name }, part): UnorderedPart => ({
      ...{ part, name, length: lengths[part]!, keys: keys?.[part] },
      textOf: (step) => textOf(coordinate?.arrays[part], step),
    }),
  );
  yield;
  return scopeOfOrder(orderParts(unordered, dimension), lengths, parts, coordinate?.path);
}

/** Returns the length of the dimension in each part. */
function lengthsOf(
  columns: readonly PartColumn[],
  parts: readonly PartDescription[],
  dimension: string,
): number[] {
  const found = parts.map((_, part) => {
    for (const { arrays } of columns) {
      const array = arrays[part];
      const axis = array?.dims.indexOf(dimension) ?? -1;
      if (axis >= 0) return array?.stored.shape[axis];
    }
    return undefined;
  });
  const other = parts[found.findIndex((length) => length !== undefined)];
  return found.map((length, part) => {
    if (length !== undefined) return length;
    const { name, arrays } = parts[part]!;
    const dims = [...new Set(arrays.flatMap((array) => array.dims))].sort().join(", ");
    const asOther = other === undefined ? "" : `, as in ${other.name}`;
    throw invalid(
      `expected arrays along '${dimension}' in ${name}${asOther}, received ${dims === "" ? "none" : `arrays along ${dims}`}`,
    );
  });
}

/** Completes the scope of parts that are in order. */
export function scopeOfOrder(
  order: readonly number[],
  lengths: readonly number[],
  parts: readonly PartDescription[],
  coordinate: string | undefined,
): JoinScope {
  let start = 0;
  const withSteps = order.filter((part) => lengths[part] !== 0);
  const steps = withSteps.map((part): PartSteps => {
    const length = lengths[part]!;
    start += length;
    return { part, start: start - length, length };
  });
  const present = withSteps.length === 0 ? order : withSteps;
  return {
    ...{ order, steps, lengths, present, coordinate },
    weights: present.map((part) => lengths[part]!),
    names: present.map((part) => parts[part]!.name),
  };
}

/** Reads values of a coordinate as such that can be compared between parts: times as nanoseconds if their units differ. */
function* coordinateKeys(
  { path, arrays }: PartColumn,
  lengths: readonly number[],
  parts: readonly PartDescription[],
): CooperativeTask<readonly (Items | undefined)[]> {
  const withSteps = parts.flatMap((_, part) => (lengths[part] === 0 ? [] : [part]));
  const members = withSteps.map((part) => {
    const array = arrays[part];
    const { name } = parts[part]!;
    if (array?.values !== undefined) return { stored: array.stored, values: array.values, name };
    const other = parts[arrays.findIndex((each) => each?.values !== undefined)];
    throw invalid(`expected a coordinate '${path}' in ${name}, as in ${other?.name}, received none`);
  });
  const keys = new Array<Items | undefined>(parts.length).fill(undefined);
  if (members.length === 0) return keys;
  try {
    const { forms, formOf } = groupForms({
      stored: members.map(({ stored }) => stored),
      names: members.map(({ name }) => name),
      weights: members.map(() => 1),
    });
    const isText = ({ stored: { dataType } }: PartForm) => ["S", "U", "O"].includes(dataType.kind);
    const odd = forms.find((form) => isText(form) !== isText(forms[0]!));
    if (odd !== undefined) throw formError(forms[0]!, odd);
    const scales = differingScales(forms);
    for (const [index, { stored, values }] of members.entries()) {
      yield;
      keys[withSteps[index]!] = decodeItems(values, stored, scales?.[formOf[index]!]);
    }
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `'${path}': ${messageOf(error)}`);
  }
  return keys;
}

/** Returns a value of a coordinate as people read it: with its date if it is a time. */
function textOf(array: PartArray | undefined, step: number): string {
  if (array?.values === undefined) return `step ${step}`;
  const { attrs, dataType } = array.stored;
  const item = itemsOfValues(array.values, dataType)[step]!;
  if (typeof item === "string") return JSON.stringify(item);
  const format = cfTimeFormatter(attrs);
  return format === undefined ? String(item) : `${item} (${format(item)})`;
}

/** The steps of one part along the joined dimension, before parts are in order. */
export interface UnorderedPart {
  /** Index of the part in the list of descriptions. */
  readonly part: number;
  readonly name: string;
  readonly length: number;
  /** Values of the coordinate, which can be compared with those of other parts. All parts have them, or none. */
  readonly keys: Items | undefined;
  /** Returns the value of a step as messages show it. */
  readonly textOf: (step: number) => string;
}

const collator = new Intl.Collator("en", { numeric: true });

/** Compares names in natural order: `run-9` is before `run-10`. */
function compareNames(a: string, b: string): number {
  return collator.compare(a, b) || compareItems(a, b);
}

/**
 * Orders parts by the first value of their coordinate, ascending or descending as their values are; by name if they have no coordinate.
 * @throws ZpublishError `invalid-metadata`, naming two parts and their values, if values overlap or are in no order
 */
export function orderParts(parts: readonly UnorderedPart[], dimension: string): number[] {
  const empty = parts.filter(({ length }) => length === 0);
  const full = parts.filter(({ length }) => length > 0);
  const sign = isDescending(full, dimension) ? -1 : 1;
  const byKey = (a: Item | undefined, b: Item | undefined) =>
    a === undefined || b === undefined ? 0 : sign * compareItems(a, b);
  full.sort((a, b) => byKey(a.keys?.[0], b.keys?.[0]) || compareNames(a.name, b.name));
  empty.sort((a, b) => compareNames(a.name, b.name));
  const second = full.findIndex((part, index) => {
    const before = full[index - 1]?.keys?.at(-1);
    return before !== undefined && part.keys !== undefined && byKey(before, part.keys[0]) >= 0;
  });
  if (second < 0) return [...full, ...empty].map(({ part }) => part);
  const range = ({ name, textOf, length }: UnorderedPart) =>
    `${textOf(0)}${length === 1 ? "" : ` to ${textOf(length - 1)}`} in ${name}`;
  throw invalid(
    `expected files whose values of '${dimension}' do not overlap, received ${range(full[second - 1]!)} and ${range(full[second]!)}`,
  );
}

/** Tells whether values descend. @throws ZpublishError if parts disagree, or values are in no order. */
function isDescending(parts: readonly UnorderedPart[], dimension: string): boolean {
  let known: { readonly sign: number; readonly name: string } | undefined;
  for (const { name, keys, textOf } of parts) {
    if (keys === undefined) continue;
    let own: number | undefined;
    for (let i = 0; i < keys.length; i++) {
      if (Number.isNaN(keys[i]))
        throw invalid(`${name}: expected a value of '${dimension}' at each step, received NaN at step ${i}`);
      const sign = i === 0 ? 0 : compareItems(keys[i]!, keys[i - 1]!);
      if (sign === 0) continue;
      own ??= sign;
      if (own === sign) continue;
      throw invalid(
        `${name}: expected values of '${dimension}' to ${verbOf(own)} from step to step, received ${textOf(i - 1)} before ${textOf(i)}`,
      );
    }
    if (own === undefined) continue;
    known ??= { sign: own, name };
    if (known.sign === own) continue;
    throw invalid(
      `expected values of '${dimension}' to ${verbOf(known.sign)} in ${name}, as in ${known.name}; they ${verbOf(own)}`,
    );
  }
  return known?.sign === -1;
}

function verbOf(sign: number): string {
  return sign < 0 ? "descend" : "ascend";
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}
