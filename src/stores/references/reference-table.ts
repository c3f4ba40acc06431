import { createKeyIndex, type KeyIndex } from "../key-index.js";
import type { Reference } from "./reference-store.js";

const INLINE = -1;
/** Length of a reference to a whole object. */
const WHOLE = -1;
const MIN_CAPACITY = 1024;

/** References by key: 20 bytes for each, besides its key; every URL is kept once. */
export interface ReferenceTable {
  readonly keys: KeyIndex;
  /** Sets a reference; the last one of a key counts. */
  set(key: string, reference: Reference): void;
  find(key: string): Reference | undefined;
}

/** Creates an empty table. */
export function createReferenceTable(): ReferenceTable {
  const keys = createKeyIndex(MIN_CAPACITY);
  const urls = createKeyIndex();
  let urlNumbers = new Int32Array(MIN_CAPACITY);
  let offsets = new Float64Array(MIN_CAPACITY);
  let byteLengths = new Float64Array(MIN_CAPACITY);
  let inline = new Uint8Array(64 * 1024);
  let inlineEnd = 0;

  function grow(): void {
    const capacity = urlNumbers.length * 2;
    urlNumbers = copyInto(new Int32Array(capacity), urlNumbers);
    offsets = copyInto(new Float64Array(capacity), offsets);
    byteLengths = copyInto(new Float64Array(capacity), byteLengths);
  }

  function keep(bytes: Uint8Array): number {
    if (inlineEnd + bytes.length > inline.length) {
      inline = copyInto(new Uint8Array(Math.max(inline.length * 2, inlineEnd + bytes.length)), inline);
    }
    inline.set(bytes, inlineEnd);
    inlineEnd += bytes.length;
    return inlineEnd - bytes.length;
  }

  return {
    keys,
    set(key, reference) {
      const number = keys.add(Buffer.from(key));
      if (number >= urlNumbers.length) grow();
      const isInline = "inline" in reference;
      urlNumbers[number] = isInline ? INLINE : urls.add(Buffer.from(reference.url));
      offsets[number] = isInline ? keep(reference.inline) : (reference.part?.offset ?? 0);
      byteLengths[number] = isInline ? reference.inline.length : (reference.part?.byteLength ?? WHOLE);
    },
    find(key) {
      const number = keys.find(key);
      if (number < 0) return undefined;
      const offset = offsets[number] as number;
      const byteLength = byteLengths[number] as number;
      const urlNumber = urlNumbers[number] as number;
      if (urlNumber === INLINE) return { inline: inline.subarray(offset, offset + byteLength) };
      return { url: urls.keyOf(urlNumber), part: byteLength === WHOLE ? undefined : { offset, byteLength } };
    },
  };
}

function copyInto<T extends Int32Array | Float64Array | Uint8Array>(target: T, source: T): T {
  target.set(source);
  return target;
}
