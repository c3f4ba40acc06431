import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";

/** An array of a group whose dimensions may lack names. */
export interface UnnamedArray {
  readonly name: string;
  readonly shape: readonly number[];
  /** Names from the source; null if it names none (for the array, or for one axis). */
  readonly dimNames: readonly (string | null)[] | null;
}

/**
 * Names the dimensions of the arrays of one group, one list per array.
 *
 * Names from the source stay. An axis without one is called after its length, `dim_12`; the next axis of the same
 * length in the same array is `dim_12_1`. So two arrays never disagree about a dimension's length, anywhere in a tree.
 *
 * A name does not depend on the other arrays unless it is taken: by another variable of the group, which xarray would
 * take for a coordinate, or by a dimension of the source with another length.
 */
export function nameDimensions(arrays: readonly UnnamedArray[]): string[][] {
  return runNow(nameDimensionsSteps(arrays));
}

/** {@link nameDimensions} in steps. */
export function* nameDimensionsSteps(arrays: readonly UnnamedArray[]): CooperativeTask<string[][]> {
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
