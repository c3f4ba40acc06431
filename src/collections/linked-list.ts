/** A value in a list, and its place, by which it is removed. */
export interface ListEntry<T> {
  readonly value: T;
  /** The list's own. */
  previous: ListEntry<T> | undefined;
  /** The list's own. */
  next: ListEntry<T> | undefined;
}

/**
 * A list of values in the order in which they were added, each of which can be removed. It is made for values that come and go
 * with every request.
 *
 * A `Set` or a `Map` is slow at that. V8 (11.3, of Node.js 20) makes a new table whenever one is full of deleted entries. Once a full
 * collection has promoted a table, all later ones, and their values, outlive every scavenge until the next full collection.
 */
export class LinkedList<T> implements Iterable<T> {
  #first: ListEntry<T> | undefined;
  #last: ListEntry<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The oldest entry; undefined if the list is empty. */
  get first(): ListEntry<T> | undefined {
    return this.#first;
  }

  /** The newest entry; undefined if the list is empty. */
  get last(): ListEntry<T> | undefined {
    return this.#last;
  }

  /** Adds a value at the end. @returns the entry by which it is removed */
  add(value: T): ListEntry<T> {
    const entry: ListEntry<T> = { value, previous: undefined, next: undefined };
    this.#append(entry);
    return entry;
  }

  /** Moves an entry to the end, which must be in this list. */
  moveToEnd(entry: ListEntry<T>): void {
    this.remove(entry);
    this.#append(entry);
  }

  #append(entry: ListEntry<T>): void {
    entry.previous = this.#last;
    if (this.#last === undefined) this.#first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    this.#size++;
  }

  /** Removes an entry, which must be in this list. */
  remove(entry: ListEntry<T>): void {
    const { previous, next } = entry;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    // A removed entry must not keep later ones alive.
    entry.previous = undefined;
    entry.next = undefined;
    this.#size--;
  }

  /** Iterates from the oldest value. The current value may be removed meanwhile, but no other. */
  *[Symbol.iterator](): Iterator<T> {
    for (let entry = this.#first; entry !== undefined; ) {
      const { next } = entry;
      yield entry.value;
      entry = next;
    }
  }
}
