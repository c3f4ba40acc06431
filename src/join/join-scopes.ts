import { cfTimeFormatter, cfTimeOf } from "../cf/cf-time.js";
import { messageOf, ZpublishError } from "../errors.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { orderParts, type PartOrder, type UnorderedPart } from "./order-parts.js";
import type { PartColumn, PartColumns } from "./part-columns.js";
import type { PartArray, PartDescription } from "./part-description.js";
import { differingScales, formError, groupForms, type PartForm } from "./part-forms.js";
import { type Item, type Items, readItems } from "./part-items.js";
import { packingOfStored } from "./stored-form.js";

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
