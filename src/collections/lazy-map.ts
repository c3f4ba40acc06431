/**
 * A map whose values are made when they are first asked for, and kept. Iterating makes one value after the other, so that a caller
 * can pause in between.
 */
export class LazyMap<V> implements ReadonlyMap<string, V> {
  readonly #keys: () => Iterable<string>;
  readonly #make: (key: string) => V | undefined;
  readonly #made = new Map<string, V>();

  /**
   * @param keys Returns all keys that may have a value, in order.
   * @param make Makes the value of any key; undefined if it has none, which is not kept.
   */
  constructor(keys: () => Iterable<string>, make: (key: string) => V | undefined) {
    this.#keys = keys;
    this.#make = make;
  }

  get(key: string): V | undefined {
    let value = this.#made.get(key);
    if (value === undefined) {
      value = this.#make(key);
      if (value !== undefined) this.#made.set(key, value);
    }
    return value;
  }

  has(key: string): boolean {
    return this.get(key) !== undefined;
  }

  get size(): number {
    let size = 0;
    for (const _ of this.entries()) size++;
    return size;
  }

  forEach(callback: (value: V, key: string, map: ReadonlyMap<string, V>) => void): void {
    for (const [key, value] of this.entries()) callback(value, key, this);
  }

  *entries(): MapIterator<[string, V]> {
    for (const key of this.#keys()) {
      const value = this.get(key);
      if (value !== undefined) yield [key, value];
    }
  }

  *keys(): MapIterator<string> {
    for (const [key] of this.entries()) yield key;
  }

  *values(): MapIterator<V> {
    for (const [, value] of this.entries()) yield value;
  }

  [Symbol.iterator](): MapIterator<[string, V]> {
    return this.entries();
  }
}
