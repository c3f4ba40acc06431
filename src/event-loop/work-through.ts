import { createSlice } from "./cooperative-task.js";

/**
 * Works on every item, several at a time, and on items that are added meanwhile. Occupies the event loop for no longer than a
 * slice, even if there is nothing to wait for.
 * @param limit Items at a time.
 * @param work Receives an item, and a function that adds further ones, which come before the remaining ones. Iterables are read
 * one item at a time.
 * @throws The first error of `work`. No item is started after it.
 */
export async function workThrough<T>(
  first: Iterable<T>,
  limit: number,
  work: (item: T, add: (items: Iterable<T>) => void) => Promise<void> | void,
): Promise<void> {
  const waiting: Iterator<T>[] = [];
  const add = (items: Iterable<T>): void => void waiting.push(items[Symbol.iterator]());
  add(first);
  const slice = createSlice();
  const failures: unknown[] = [];
  let running = 0;

  function nextItem(): { readonly item: T } | undefined {
    if (failures.length > 0) return undefined;
    for (let items = waiting.at(-1); items !== undefined; items = waiting.at(-1)) {
      const { done, value } = items.next();
      if (!done) return { item: value };
      waiting.pop();
    }
    return undefined;
  }

  await new Promise<void>((resolve) => {
    async function run(item: T): Promise<void> {
      try {
        await work(item, add);
        if (slice.isOver()) await slice.next();
      } catch (error) {
        failures.push(error);
      }
      running--;
      startMore();
    }
    function startMore(): void {
      while (running < limit) {
        const found = nextItem();
        if (found === undefined) break;
        running++;
        void run(found.item);
      }
      if (running === 0) resolve();
    }
    startMore();
  });
  if (failures.length > 0) throw failures[0];
}
