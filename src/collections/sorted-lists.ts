/** Compares texts by their UTF-16 code units, and numbers: the order is the same on every machine. */
export function compareItems<T extends string | number | bigint>(a: T, b: T): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Finds the first item that is not less than another one. @param begin Items are sorted from here on. @returns Its place; the length if there is none. */
export function firstNotLess<T extends string | number>(sorted: ArrayLike<T>, item: T, begin = 0): number {
  let low = begin;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (sorted[middle]! < item) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Tells whether two lists have the same items in the same order. */
export function isSameList(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one === other || (one.length === other.length && one.every((item, index) => item === other[index]));
}
