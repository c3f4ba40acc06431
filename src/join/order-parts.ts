import { ZpublishError } from "../errors.js";
import type { PartSteps } from "./joined-tree.js";
import type { Item, Items } from "./part-items.js";

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
