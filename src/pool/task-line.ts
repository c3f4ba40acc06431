/** Those who wait, first come, first served. */
export interface TaskLine<T> {
  readonly length: number;
  /** Who is first; undefined: nobody waits. */
  first(): T | undefined;
  /** Takes the first out. */
  take(): T | undefined;
  add(item: T): void;
  /** Puts some before all others, in their order. */
  putBack(items: readonly T[]): void;
  /** Takes the last out. */
  removeLast(): T | undefined;
  /** Takes out all that are not to stay, in their order. */
  remove(isToStay: (item: T) => boolean): T[];
}

/** A line with nobody in it. */
export function createTaskLine<T>(): TaskLine<T> {
  let items: T[] = [];
  let head = 0;
  return {
    get length() {
      return items.length - head;
    },
    first: () => items[head],
    take() {
      const item = items[head];
      if (item === undefined) return undefined;
      head++;
      // Shifting one by one is slow for long lines.
      if (head > 1024 || head === items.length) {
        items.splice(0, head);
        head = 0;
      }
      return item;
    },
    add(item) {
      items.push(item);
    },
    putBack(first) {
      items = [...first, ...items.slice(head)];
      head = 0;
    },
    removeLast: () => (items.length > head ? items.pop() : undefined),
    remove(isToStay) {
      const waiting = items.slice(head);
      const removed: T[] = [];
      items = waiting.filter((item) => {
        if (isToStay(item)) return true;
        removed.push(item);
        return false;
      });
      head = 0;
      return removed;
    },
  };
}
