import { cfTimeFormatter, cfTimeOf } from "../cf/cf-time.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { JsonObject } from "../json/json-value.js";
import { comparePaths } from "../zarr/stored-tree.js";
import type { PartArray, PartDescription } from "./describe-part.js";
import { differingScales, formError, groupForms, type PartForm, packingOfStored } from "./item-forms.js";
import { type Item, type Items, readItems } from "./join-values.js";

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
        const group = (parts[part] as PartDescription).groups.find((each) => each.path === path);
        if (group !== undefined) return group.attrs;
      }
      return {};
    },
  };
}

/** Neighbouring steps of one part along the joined dimension. */
export interface PartSteps {
  /** Index of the part in the list of descriptions. */
  readonly part: number;
  /** First step in the joined dataset. */
  readonly start: number;
  /** Number of steps of the joined dataset. */
  readonly length: number;
  /** First step of the part that is used: above 0 if another part has the steps before, or they come twice. */
  readonly from: number;
}

/** The joined dimension as one or more groups have it. */
export interface JoinScope extends PartOrder {
  /** Steps of each part along the dimension. */
  readonly lengths: readonly number[];
  /** Parts with steps, in order of their first one. If no part has any, all. */
  readonly present: readonly number[];
  /** Names of these parts. */
  readonly names: readonly string[];
  /** Steps that the joined dimension has of each of these parts. */
  readonly weights: readonly number[];
  /** Index in {@link present} of the part of each run of steps. */
  readonly presentOf: readonly number[];
}

/** The joined dimension in all groups. */
export interface JoinScopes {
  /** That of the root, or of the first group that has the dimension. */
  readonly main: JoinScope;
  /** Returns the scope of a group, or why its arrays along the dimension cannot be joined; undefined if none has the dimension. */
  scopeOf(group: string): JoinScope | string | undefined;
}

/**
 * Orders the parts along a dimension that they have. Groups with a coordinate of their own have their own order, and those whose
 * dimension has other lengths than their parent's; the others have their parent's.
 * @throws ZpublishError `invalid-metadata` if the parts cannot be put in order in the first group that has the dimension
 */
export function* createScopes(
  table: PartColumns,
  parts: readonly PartDescription[],
  dimension: string,
  overlap?: "last",
): CooperativeTask<JoinScopes> {
  const scopes = new Map<string, JoinScope | string>();
  let main: JoinScope | undefined;
  for (const group of table.groups) {
    yield;
    const along = [...table.columns.values()].filter(
      (column) => column.group === group && column.arrays.some((array) => array?.dims.includes(dimension)),
    );
    if (along.length === 0) continue;
    const prefix = group === "/" ? "" : `${group.slice(1)}/`;
    const coordinate = coordinateOf(table.columns.get(`${prefix}${dimension}`), dimension);
    const lengths = lengthsOf(coordinate === undefined ? along : [coordinate, ...along], parts, dimension);
    const parent = parentScope(scopes, group);
    yield;
    if (coordinate === undefined && typeof parent === "object" && isWithin(lengths, parent)) {
      scopes.set(group, parent);
      continue;
    }
    try {
      const scope = yield* createScope(coordinate, lengths, parts, dimension, overlap);
      scopes.set(group, scope);
      main ??= scope;
    } catch (error) {
      if (main === undefined || !(error instanceof ZpublishError)) throw error;
      scopes.set(group, messageOf(error));
    }
  }
  if (main === undefined) {
    const { name, arrays } = parts[0] as PartDescription;
    throw new ZpublishError(
      "invalid-metadata",
      `expected arrays along '${dimension}', received ${dimsText(arrays)} in ${name}`,
    );
  }
  return { main, scopeOf: (group) => scopes.get(group) };
}

/** Returns a column if it is a coordinate along the dimension. */
function coordinateOf(column: PartColumn | undefined, dimension: string): PartColumn | undefined {
  const isCoordinate = (array: PartArray | undefined) =>
    array?.values !== undefined && array.dims.length === 1 && array.dims[0] === dimension;
  return column?.arrays.some(isCoordinate) ? column : undefined;
}

/** Returns the length of the dimension in each part; undefined if the part has none in these columns. */
function lengthsOf(
  columns: readonly PartColumn[],
  parts: readonly PartDescription[],
  dimension: string,
): (number | undefined)[] {
  return parts.map((_, part) => {
    for (const { arrays } of columns) {
      const array = arrays[part];
      const axis = array?.dims.indexOf(dimension) ?? -1;
      if (axis >= 0) return array?.stored.shape[axis];
    }
    return undefined;
  });
}

function isWithin(lengths: readonly (number | undefined)[], parent: JoinScope): boolean {
  return lengths.every((length, part) => length === undefined || length === parent.lengths[part]);
}

function parentScope(
  scopes: ReadonlyMap<string, JoinScope | string>,
  group: string,
): JoinScope | string | undefined {
  for (let path = group; path !== "/"; ) {
    path = path.slice(0, path.lastIndexOf("/")) || "/";
    const scope = scopes.get(path);
    if (scope !== undefined) return scope;
  }
  return undefined;
}

function* createScope(
  coordinate: PartColumn | undefined,
  found: readonly (number | undefined)[],
  parts: readonly PartDescription[],
  dimension: string,
  overlap: "last" | undefined,
): CooperativeTask<JoinScope> {
  const known = found.findIndex((length) => length !== undefined);
  const lengths = found.map((length, part) => {
    if (length !== undefined) return length;
    const { name, arrays } = parts[part] as PartDescription;
    const other = (parts[known] as PartDescription).name;
    throw new ZpublishError(
      "invalid-metadata",
      `expected arrays along '${dimension}' in ${name}, as in ${other}, received ${dimsText(arrays)}`,
    );
  });
  const keys = coordinate && (yield* coordinateKeys(coordinate, lengths, parts));
  const unordered = parts.map(
    ({ name }, part): UnorderedPart => ({
      ...{ part, name, length: lengths[part] as number, keys: keys?.[part] },
      textOf: (step) => textOf(coordinate?.arrays[part], step),
    }),
  );
  yield;
  const { order, steps } = orderParts(unordered, dimension, overlap);
  yield;
  return scopeOfOrder({ order, steps }, lengths, parts);
}

/** Completes the scope of parts that are in order. */
export function scopeOfOrder(
  { order, steps }: PartOrder,
  lengths: readonly number[],
  parts: readonly PartDescription[],
): JoinScope {
  const sums = new Map<number, number>(steps.length === 0 ? order.map((part) => [part, 0]) : []);
  for (const { part, length } of steps) sums.set(part, (sums.get(part) ?? 0) + length);
  const present = [...sums.keys()];
  const indices = new Map(present.map((part, index) => [part, index]));
  return {
    ...{ order, steps, lengths, present, weights: [...sums.values()] },
    names: present.map((part) => (parts[part] as PartDescription).name),
    presentOf: steps.map(({ part }) => indices.get(part) as number),
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
    const { name } = parts[part] as PartDescription;
    if (array?.values !== undefined) return { ...array, values: array.values, name };
    const other = parts[arrays.findIndex((each) => each?.values !== undefined)];
    throw new ZpublishError(
      "invalid-metadata",
      `expected a coordinate '${path}' in ${name}, as in ${other?.name}, received none`,
    );
  });
  if (members.length === 0) return [];
  const { forms, formOf } = groupForms({
    stored: members.map(({ stored }) => stored),
    names: members.map(({ name }) => name),
    weights: members.map(() => 1),
  });
  const isText = ({ stored: { dataType } }: PartForm) => ["S", "U", "O"].includes(dataType.kind);
  const first = forms[0] as PartForm;
  const odd = forms.find((form) => isText(form) !== isText(first));
  const scales = within(path, () => {
    if (odd !== undefined) throw formError(first, odd);
    return differingScales(forms);
  });
  const keys = new Array<Items | undefined>(parts.length).fill(undefined);
  for (const [index, { stored, values }] of members.entries()) {
    yield;
    const items = within(path, () => readItems(values, stored.dataType));
    const scale = scales?.[formOf[index] as number];
    const { scale: factor, offset } = packingOfStored(stored);
    const decode = (item: Item) => {
      const isTime = scale !== undefined && typeof item !== "string" && Number.isFinite(Number(item));
      return isTime ? cfTimeOf(item, scale) : Number(item) * factor + offset;
    };
    const isPlain = scale === undefined && factor === 1 && offset === 0;
    keys[withSteps[index] as number] = isPlain
      ? items
      : (Array.from(items as Iterable<Item>, decode) as never);
  }
  return keys;
}

/** Returns a value of a coordinate as people read it: with its date if it is a time. */
function textOf(array: PartArray | undefined, step: number): string {
  if (array?.values === undefined) return `step ${step}`;
  const { attrs, dataType } = array.stored;
  const item = readItems(array.values, dataType)[step] as Item;
  if (typeof item === "string") return JSON.stringify(item);
  const format = cfTimeFormatter(attrs);
  return format === undefined ? String(item) : `${item} (${format(item)})`;
}

/** Runs `work`, and puts the path before the message of its error. */
function within<T>(path: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof ZpublishError)) throw error;
    throw new ZpublishError(error.code, `'${path}': ${error.message}`);
  }
}

function dimsText(arrays: readonly PartArray[]): string {
  const dims = new Set(arrays.flatMap((array) => array.dims));
  return dims.size === 0 ? "none" : `arrays along ${[...dims].sort().join(", ")}`;
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

/** Parts in order. */
export interface PartOrder {
  /** All parts, also those without steps. */
  readonly order: readonly number[];
  /** Runs of neighbouring steps of one part, without gaps. */
  readonly steps: readonly PartSteps[];
}

const collator = new Intl.Collator("en", { numeric: true });

/** Compares names in natural order: `run-9` is before `run-10`. */
export function compareNames(a: string, b: string): number {
  return collator.compare(a, b) || (a < b ? -1 : a > b ? 1 : 0);
}

/**
 * Orders parts by the first value of their coordinate, ascending or descending as their values are; by name if they have no coordinate.
 * @param overlap If `last`, each value is that of the last part that has it, in order of first values, then of names. Then parts may
 * overlap in any way, and no value of any part gets lost.
 * @throws ZpublishError `invalid-metadata`, naming two parts and their values
 */
export function orderParts(parts: readonly UnorderedPart[], dimension: string, overlap?: "last"): PartOrder {
  const empty = parts.filter(({ length }) => length === 0);
  const full = parts.filter(({ length }) => length > 0);
  const isDescending = directionOf(full, dimension);
  full.sort((a, b) => {
    const byKey =
      a.keys === undefined || b.keys === undefined ? 0 : compare(firstOf(a.keys), firstOf(b.keys));
    return (isDescending ? -byKey : byKey) || compareNames(a.name, b.name);
  });
  empty.sort((a, b) => compareNames(a.name, b.name));
  const order = [...full, ...empty].map(({ part }) => part);
  const overlapping = findOverlap(full, isDescending);
  if (overlapping === undefined) return { order, steps: stepsInOrder(full) };
  if (overlap !== "last") throw overlapError(overlapping, dimension);
  return { order, steps: lastSteps(full, isDescending) };
}

/** Returns whether values descend. @throws ZpublishError if parts disagree, or values are in no order. */
function directionOf(parts: readonly UnorderedPart[], dimension: string): boolean {
  let known: { readonly isDescending: boolean; readonly name: string } | undefined;
  for (const { name, keys, textOf } of parts) {
    if (keys === undefined) continue;
    let isDescending: boolean | undefined;
    for (let i = 0; i < keys.length; i++) {
      const key = keys[i] as Item;
      if (Number.isNaN(key)) {
        throw invalid(`${name}: expected a value of '${dimension}' at each step, received NaN at step ${i}`);
      }
      const sign = i === 0 ? 0 : compare(keys[i - 1] as Item, key);
      if (sign === 0) continue;
      isDescending ??= sign > 0;
      if (isDescending === sign > 0) continue;
      throw invalid(
        `${name}: expected values of '${dimension}' to ${isDescending ? "descend" : "ascend"} from step to step, received ${textOf(i - 1)} before ${textOf(i)}`,
      );
    }
    if (isDescending === undefined) continue;
    known ??= { isDescending, name };
    if (known.isDescending === isDescending) continue;
    const [expected, received] = isDescending ? ["ascend", "descend"] : ["descend", "ascend"];
    throw invalid(
      `expected values of '${dimension}' to ${expected} in ${name}, as in ${known.name}; they ${received}`,
    );
  }
  return known?.isDescending ?? false;
}

/** Two neighbours of which the second does not begin behind the first. */
type Neighbours = readonly [UnorderedPart, UnorderedPart];

function findOverlap(parts: readonly UnorderedPart[], isDescending: boolean): Neighbours | undefined {
  for (let i = 1; i < parts.length; i++) {
    const [before, after] = [parts[i - 1] as UnorderedPart, parts[i] as UnorderedPart];
    if (before.keys === undefined || after.keys === undefined) continue;
    const sign = compare(before.keys[before.keys.length - 1] as Item, firstOf(after.keys));
    if (isDescending ? sign <= 0 : sign >= 0) return [before, after];
  }
  return undefined;
}

function overlapError([before, after]: Neighbours, dimension: string): ZpublishError {
  const range = ({ textOf, length }: UnorderedPart) =>
    length === 1 ? textOf(0) : `${textOf(0)} to ${textOf(length - 1)}`;
  return invalid(
    `expected files whose values of '${dimension}' do not overlap, received ${range(before)} in ${before.name} and ${range(after)} in ${after.name} ("overlap": "last" serves those of the latter)`,
  );
}

function stepsInOrder(parts: readonly UnorderedPart[]): PartSteps[] {
  let start = 0;
  return parts.map(({ part, length }) => {
    const steps = { part, start, length, from: 0 };
    start += length;
    return steps;
  });
}

/** Takes each value from the last part that has it. */
function lastSteps(parts: readonly UnorderedPart[], isDescending: boolean): PartSteps[] {
  const keys: Item[] = [];
  const ranks: number[] = [];
  const steps: number[] = [];
  parts.forEach((part, rank) => {
    for (let step = 0; step < part.length; step++) {
      keys.push((part.keys as Items)[step] as Item);
      ranks.push(rank);
      steps.push(step);
    }
  });
  // Parts are sorted runs already, which this sort makes use of.
  const places = keys
    .map((_, place) => place)
    .sort((a, b) => {
      const byKey = compare(keys[a] as Item, keys[b] as Item);
      return (isDescending ? -byKey : byKey) || (ranks[b] as number) - (ranks[a] as number) || a - b;
    });
  const runs: { part: number; start: number; length: number; from: number }[] = [];
  let total = 0;
  let last: number | undefined;
  for (const place of places) {
    const rank = ranks[place] as number;
    const isTaken = last !== undefined && compare(keys[last] as Item, keys[place] as Item) === 0;
    if (isTaken && ranks[last as number] !== rank) continue;
    const { part } = parts[rank] as UnorderedPart;
    const run = runs.at(-1);
    const step = steps[place] as number;
    if (run?.part === part && run.from + run.length === step) run.length++;
    else runs.push({ part, start: total, length: 1, from: step });
    last = place;
    total++;
  }
  return runs;
}

function firstOf(keys: Items): Item {
  return keys[0] as Item;
}

function compare(a: Item, b: Item): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-metadata", message);
}
