/** What was added, and its place. Whoever has it can take it out. */
export interface ListEntry<T> {
  readonly value: T;
  /** The list's own. */
  previous: ListEntry<T> | undefined;
  /** The list's own. */
  next: ListEntry<T> | undefined;
}

/**
 * Things in the order in which they were added, of which each can be taken out: for what comes and goes with every request.
 *
 * A `Set` or a `Map` is not for that. V8 (11.3, of Node.js 20) makes a new table whenever one is full of what was deleted, and has the
 * old one point at it. Once one of these tables has been promoted by a full collection, all that follow, and what they held,
 * outlive every scavenge until the next full collection. A loop that does nothing but add one and delete the oldest of 32 took
 * twice as long from a call of `gc()` on (`node --expose-gc`).
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

  /** @returns What takes it out again. */
  add(value: T): ListEntry<T> {
    const entry: ListEntry<T> = { value, previous: this.#last, next: undefined };
    if (this.#last === undefined) this.#first = entry;
    else this.#last.next = entry;
    this.#last = entry;
    this.#size++;
    return entry;
  }

  /** @param entry Of this list, and not taken out before. */
  remove(entry: ListEntry<T>): void {
    const { previous, next } = entry;
    if (previous === undefined) this.#first = next;
    else previous.next = next;
    if (next === undefined) this.#last = previous;
    else next.previous = previous;
    // What is old and gone must not keep alive what came after it.
    entry.previous = undefined;
    entry.next = undefined;
    this.#size--;
  }

  /** The oldest first. What it is at may be taken out meanwhile, but nothing else. */
  *[Symbol.iterator](): Iterator<T> {
    for (let entry = this.#first; entry !== undefined; ) {
      const { next } = entry;
      yield entry.value;
      entry = next;
    }
  }
}
