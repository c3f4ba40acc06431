/** @param sorted Ascending. @returns NaN where there is nothing. */
export function percentile(sorted: ArrayLike<number>, percent: number): number {
  if (sorted.length === 0) return Number.NaN;
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))]!;
}

/** The middle one, or the mean of the middle two; undefined where there is none. */
export function median(values: readonly number[]): number | undefined {
  if (values.length === 0) return undefined;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Pearson's correlation of two lists of one length. */
export function correlate(a: readonly number[], b: readonly number[]): number {
  const mean = (values: readonly number[]) => values.reduce((sum, each) => sum + each, 0) / values.length;
  const [meanA, meanB] = [mean(a), mean(b)];
  let [both, ofA, ofB] = [0, 0, 0];
  for (const [index, each] of a.entries()) {
    const [da, db] = [each - meanA, b[index]! - meanB];
    both += da * db;
    ofA += da * da;
    ofB += db * db;
  }
  return both / Math.sqrt(ofA * ofB);
}
/** Items by key, keys in the order of their first item. (`Map.groupBy` needs Node 21.) */
export function groupBy<Item>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
): Map<string, [Item, ...Item[]]> {
  const groups = new Map<string, [Item, ...Item[]]>();
  for (const item of items) {
    const key = keyOf(item);
    const group = groups.get(key);
    if (group === undefined) groups.set(key, [item]);
    else group.push(item);
  }
  return groups;
}
