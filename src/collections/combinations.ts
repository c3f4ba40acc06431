/** Lists all combinations of one entry per list, in C order: the last list varies fastest. One, which is empty, of no lists. */
export function* combinations<T>(lists: readonly (readonly T[])[], before: T[] = []): Generator<T[]> {
  const entries = lists[before.length];
  if (entries === undefined) yield before;
  else for (const entry of entries) yield* combinations(lists, [...before, entry]);
}

/** Lists the indexes of all items of a shape in C order, without holding them. */
export function* indexesIn(shape: readonly number[]): Generator<number[]> {
  const indexes = shape.map(() => 0);
  for (let left = shape.reduce((count, length) => count * length, 1); left > 0; left -= 1) {
    yield [...indexes];
    for (let axis = shape.length - 1; axis >= 0 && ++indexes[axis]! === shape[axis]; axis--)
      indexes[axis] = 0;
  }
}
