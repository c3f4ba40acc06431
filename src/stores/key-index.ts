import { compareItems, firstNotLess } from "../collections/sorted-lists.js";
import { type CooperativeTask, runCooperatively } from "../event-loop/cooperative-task.js";
import { sortCooperatively } from "../event-loop/sort-cooperatively.js";
import type { ObjectListing } from "./byte-store.js";

/** Names that are listed in one step. */
const STEP_NAMES = 512;

/** Keys, numbered in the order in which they were added. */
export type KeyIndex = ReturnType<typeof createKeyIndex>;

/** Creates an index without keys. */
export function createKeyIndex() {
  const numbers = new Map<string, number>();
  const keys: string[] = [];
  let sorted: Promise<readonly string[]> | undefined;

  return {
    get size() {
      return keys.length;
    },
    /** Adds a key. @returns Its number; a key that was added before keeps its number. */
    add(key: string) {
      const known = numbers.get(key);
      if (known !== undefined) return known;
      numbers.set(key, keys.length);
      sorted = undefined;
      return keys.push(key) - 1;
    },
    /** Returns the number of a key; -1 if it was not added. */
    find: (key: string) => numbers.get(key) ?? -1,
    keyOf: (number: number) => keys[number]!,
    /** Returns all keys in the order of their numbers. */
    all: (): readonly string[] => keys,
    /** Lists the names directly below a prefix, as {@link ByteStore.list}. */
    async list(prefix: string) {
      sorted ??= runCooperatively(sortCooperatively(keys, compareItems));
      return runCooperatively(listSteps(await sorted, prefix));
    },
  };
}

/** Lists the names directly below a prefix. */
function* listSteps(sorted: readonly string[], prefix: string): CooperativeTask<ObjectListing> {
  const objects: string[] = [];
  const prefixes: string[] = [];
  let step = 0;
  for (let place = firstNotLess(sorted, prefix); sorted[place]?.startsWith(prefix); ) {
    if (++step % STEP_NAMES === 0) yield;
    const name = sorted[place]!.slice(prefix.length);
    const end = name.indexOf("/");
    if (end === -1) {
      if (name !== "") objects.push(name);
      place++;
    } else {
      const child = name.slice(0, end);
      prefixes.push(child);
      // "0" is the character after the slash: all that lies below the child comes before it.
      place = firstNotLess(sorted, `${prefix}${child}0`);
    }
  }
  return { objects, prefixes };
}
