import { createSlice } from "./cooperative-task.js";

/**
 * Does a piece of work for every item, a number of them at a time, and for those that come up meanwhile. Keeps the event
 * loop no longer than a slice where there is nothing to wait for.
 * @param limit Items at a time.
 * @param work Gets what takes further items, which come before the rest of those there are. They are asked for one by one.
 * @throws what the work threw first; nothing was begun after that.
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

  function take(): { readonly item: T } | undefined {
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
      begin();
    }
    function begin(): void {
      while (running < limit) {
        const found = take();
        if (found === undefined) break;
        running++;
        void run(found.item);
      }
      if (running === 0) resolve();
    }
    begin();
  });
  if (failures.length > 0) throw failures[0];
}
