/** Lists all combinations of one entry per list, in C order: the last list varies fastest. One, which is empty, of no lists. */
export function* combinations<T>(lists: readonly (readonly T[])[], before: T[] = []): Generator<T[]> {
  const entries = lists[before.length];
  if (entries === undefined) yield before;
  else for (const entry of entries) yield* combinations(lists, [...before, entry]);
}
