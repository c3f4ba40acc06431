/**
 * Returns the results of `work` for all items, in their order; so many items are worked on at a time.
 * @throws the first error of `work`, at once. No further lot is started then.
 */
export async function mapInLots<T, R>(
  items: readonly T[],
  atOnce: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < items.length; from += atOnce)
    results.push(...(await Promise.all(items.slice(from, from + atOnce).map(work))));
  return results;
}
