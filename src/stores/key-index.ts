import { randomInt } from "node:crypto";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import type { ObjectListing } from "./byte-store.js";

const SLASH = 0x2f;
/** Names that are listed in one step. */
const STEP_NAMES = 512;
const MIN_CAPACITY = 16;

/**
 * Keys, numbered in the order in which they were added. A million keys of 20 bytes take 40 MB; as strings in a `Map` they
 * would take four times as much.
 */
export interface KeyIndex {
  readonly size: number;
  /** Adds a key, in UTF-8. @returns Its number; a key that was added before keeps its number. */
  add(utf8: Uint8Array): number;
  /** Returns the number of a key; -1 if it was not added. */
  find(key: string): number;
  keyOf(number: number): string;
  /** Lists the names directly below a prefix, as {@link ByteStore.list}. */
  list(prefix: string): Promise<ObjectListing>;
}

/**
 * Creates an index: all names in one buffer, and a hash table of numbers with open addressing.
 * @param expected Number of keys that memory is allocated for; more may be added. Default 16.
 */
export function createKeyIndex(expected = MIN_CAPACITY): KeyIndex {
  // Names cannot be chosen beforehand such that all of them have one hash.
  const seed = randomInt(2 ** 32);
  let names = new Uint8Array(Math.max(expected, MIN_CAPACITY) * 16);
  /** End of each key's name; the next one begins there. */
  let ends = new Uint32Array(Math.max(expected, MIN_CAPACITY));
  /** Number + 1 of the key in each slot; 0 if it is empty. */
  let slots = new Uint32Array(slotsFor(ends.length));
  let size = 0;
  let scratch = new Uint8Array(256);
  let sorted: Promise<Uint32Array> | undefined;

  const startOf = (number: number): number => (number === 0 ? 0 : ends[number - 1]!);

  function hashOf(bytes: Uint8Array, from: number, to: number): number {
    let hash = seed;
    for (let at = from; at < to; at++) hash = Math.imul(hash ^ bytes[at]!, 0x01000193);
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
    return (hash ^ (hash >>> 13)) >>> 0;
  }

  /** Finds the slot of a name, or the empty one in which it belongs. */
  function slotOf(bytes: Uint8Array, byteLength: number): number {
    const mask = slots.length - 1;
    for (let slot = hashOf(bytes, 0, byteLength) & mask; ; slot = (slot + 1) & mask) {
      const number = slots[slot]! - 1;
      if (number < 0 || isNamed(number, bytes, byteLength)) return slot;
    }
  }

  function isNamed(number: number, bytes: Uint8Array, byteLength: number): boolean {
    const start = startOf(number);
    if (ends[number]! - start !== byteLength) return false;
    for (let at = 0; at < byteLength; at++) if (names[start + at] !== bytes[at]) return false;
    return true;
  }

  function grow(): void {
    const longer = new Uint32Array(ends.length * 2);
    longer.set(ends);
    ends = longer;
    slots = new Uint32Array(slotsFor(ends.length));
    const mask = slots.length - 1;
    for (let number = 0; number < size; number++) {
      let slot = hashOf(names, startOf(number), ends[number]!) & mask;
      while (slots[slot] !== 0) slot = (slot + 1) & mask;
      slots[slot] = number + 1;
    }
  }

  function nameOf(number: number): Uint8Array {
    return names.subarray(startOf(number), ends[number]);
  }

  return {
    get size() {
      return size;
    },
    add(utf8) {
      if (size === ends.length) grow();
      const slot = slotOf(utf8, utf8.length);
      const known = slots[slot]! - 1;
      if (known >= 0) return known;
      const start = startOf(size);
      if (start + utf8.length > names.length) {
        const longer = new Uint8Array(Math.max(names.length * 2, start + utf8.length));
        longer.set(names);
        names = longer;
      }
      names.set(utf8, start);
      ends[size] = start + utf8.length;
      slots[slot] = ++size;
      sorted = undefined;
      return size - 1;
    },
    find(key) {
      // A code unit takes at most three bytes.
      if (key.length * 3 > scratch.length) scratch = new Uint8Array(key.length * 3);
      const { written } = encoder.encodeInto(key, scratch);
      return slots[slotOf(scratch, written)]! - 1;
    },
    keyOf: (number) => Buffer.from(nameOf(number)).toString(),
    async list(prefix) {
      sorted ??= runCooperatively(sortSteps(size, nameOf));
      return runCooperatively(listSteps(await sorted, nameOf, prefix));
    },
  };
}

/** Returns the name of a key, in UTF-8. */
type NameOf = (number: number) => Uint8Array;

/** Sorts the numbers of keys by their names. */
function* sortSteps(size: number, nameOf: NameOf): CooperativeTask<Uint32Array> {
  const numbers: number[] = [];
  for (let number = 0; number < size; number++) {
    numbers.push(number);
    if (number % STEP_NAMES === 0) yield;
  }
  return new Uint32Array(yield* sortCooperatively(numbers, (a, b) => Buffer.compare(nameOf(a), nameOf(b))));
}

/** Lists the names directly below a prefix. @param order Numbers of keys, sorted by their names. */
function* listSteps(order: Uint32Array, nameOf: NameOf, prefix: string): CooperativeTask<ObjectListing> {
  const objects: string[] = [];
  const prefixes: string[] = [];
  const head = Buffer.from(prefix);
  const isBelow = (name: Uint8Array): boolean =>
    name.length > head.length && head.equals(name.subarray(0, head.length));
  let step = 0;
  for (let place = firstFrom(order, nameOf, head); place < order.length; ) {
    const name = nameOf(order[place]!);
    if (name.length === head.length && head.equals(name)) {
      place++;
      continue;
    }
    if (!isBelow(name)) break;
    const end = name.indexOf(SLASH, head.length);
    const child = Buffer.from(name.subarray(head.length, end === -1 ? undefined : end)).toString();
    if (end === -1) {
      objects.push(child);
      place++;
    } else {
      prefixes.push(child);
      // The byte behind the slash: all that lies below the child comes before it.
      const next = Buffer.from(name.subarray(0, end + 1));
      next[end] = SLASH + 1;
      place = firstFrom(order, nameOf, next);
    }
    if (++step % STEP_NAMES === 0) yield;
  }
  return { objects, prefixes };
}

/** Finds the first place in the order whose name is not less than the given one. */
function firstFrom(order: Uint32Array, nameOf: NameOf, name: Uint8Array): number {
  let low = 0;
  let high = order.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Buffer.compare(nameOf(order[middle]!), name) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

const encoder = new TextEncoder();

/** Returns a power of two that is at least one and a half times the number of keys. */
function slotsFor(keys: number): number {
  return 2 ** Math.ceil(Math.log2(keys * 1.5));
}
