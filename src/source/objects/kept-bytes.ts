import type { ObjectBytes } from "../bytes/byte-store.js";

/** Bytes that were received with a version, and wait for the read that follows, of all stores together. */
export const MAX_KEPT_BYTES = 32 * 2 ** 20;

/** Bytes that wait for the read that follows. */
export interface KeptBytes {
  add(name: string, found: ObjectBytes): void;
  /** Returns bytes and forgets them; undefined if they are not there any more. */
  take(name: string): ObjectBytes | undefined;
}

/** Creates a store of kept bytes. The oldest are dropped if there are too many: they are read again. */
export function createKeptBytes(): KeptBytes {
  const kept = new Map<string, ObjectBytes>();
  let byteLength = 0;

  function take(name: string): ObjectBytes | undefined {
    const found = kept.get(name);
    if (found === undefined) return undefined;
    kept.delete(name);
    byteLength -= found.bytes.length;
    return found;
  }

  return {
    take,
    add(name, found) {
      take(name);
      kept.set(name, found);
      byteLength += found.bytes.length;
      for (const oldest of kept.keys()) {
        if (byteLength <= MAX_KEPT_BYTES) break;
        take(oldest);
      }
    },
  };
}
