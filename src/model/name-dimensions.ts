import { runNow, type Steps } from "../sliced-work.js";

/** What naming needs to know of an array of a group. */
export interface UnnamedArray {
  readonly name: string;
  readonly shape: readonly number[];
  /** From the source; null where it names none (for the array, or for one axis). */
  readonly dimNames: readonly (string | null)[] | null;
}

/**
 * Dimension names for the arrays of one group, one list per array.
 *
 * Names of the source are kept. An axis without one is called after its length, `dim_12`; the next axis of the same
 * length in the same array is `dim_12_1`. So two arrays never disagree about a dimension's length, anywhere in a tree,
 * and a name does not depend on which other arrays there are, except where it is taken: by another variable of
 * the group (xarray would take it for a coordinate) or by a dimension of the source of another length.
 */
export function nameDimensions(arrays: readonly UnnamedArray[]): string[][] {
  return runNow(nameDimensionsSteps(arrays));
}

/** {@link nameDimensions} as work that can be interrupted. */
export function* nameDimensionsSteps(arrays: readonly UnnamedArray[]): Steps<string[][]> {
  const lengthsOfSource = new Map<string, Set<number>>();
  const variableNames = new Set<string>();
  for (const array of arrays) {
    yield;
    variableNames.add(array.name);
    array.dimNames?.forEach((name, axis) => {
      if (name === null) return;
      const lengths = lengthsOfSource.get(name) ?? new Set();
      lengthsOfSource.set(name, lengths.add(array.shape[axis] as number));
    });
  }

  const names: string[][] = [];
  for (const array of arrays) {
    yield;
    const used = new Set(array.dimNames?.filter((name) => name !== null));
    names.push(
      array.shape.map((length, axis) => {
        const named = array.dimNames?.[axis];
        if (typeof named === "string") return named;
        for (let suffix = 0; ; suffix++) {
          const name = suffix === 0 ? `dim_${length}` : `dim_${length}_${suffix}`;
          const lengths = lengthsOfSource.get(name);
          const isFree = lengths === undefined || (lengths.size === 1 && lengths.has(length));
          if (!isFree || used.has(name) || variableNames.has(name)) continue;
          used.add(name);
          return name;
        }
      }),
    );
  }
  return names;
}
