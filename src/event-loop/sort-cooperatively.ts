import type { CooperativeTask } from "./cooperative-task.js";

/** Items that are sorted or merged in one step, which takes a fraction of a millisecond. */
const STEP_ITEMS = 512;

/** Sorts items stably, a bounded number per step. @returns A new array. */
export function* sortCooperatively<T>(
  items: readonly T[],
  compare: (a: T, b: T) => number,
): CooperativeTask<T[]> {
  let runs: T[][] = [];
  for (let from = 0; from < items.length; from += STEP_ITEMS) {
    runs.push(items.slice(from, from + STEP_ITEMS).sort(compare));
    yield;
  }
  while (runs.length > 1) {
    const merged: T[][] = [];
    for (let i = 0; i < runs.length; i += 2) {
      const [left, right] = [runs[i] as T[], runs[i + 1]];
      merged.push(right === undefined ? left : yield* mergeSteps(left, right, compare));
    }
    runs = merged;
  }
  return runs[0] ?? [];
}

function* mergeSteps<T>(
  left: readonly T[],
  right: readonly T[],
  compare: (a: T, b: T) => number,
): CooperativeTask<T[]> {
  const merged: T[] = [];
  let i = 0;
  let j = 0;
  while (i < left.length || j < right.length) {
    const isLeft = j === right.length || (i < left.length && compare(left[i] as T, right[j] as T) <= 0);
    merged.push((isLeft ? left[i++] : right[j++]) as T);
    if (merged.length % STEP_ITEMS === 0) yield;
  }
  return merged;
}
