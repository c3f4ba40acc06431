import type { ByteStore, ObjectBytes, ReadObjectOptions } from "./byte-store.js";

/** Bytes between two ranges that are read and dropped: they cost less than another request. */
const MAX_GAP_BYTES = 64 * 1024;
/** Longest merged range. Longer ones are quicker one beside the other: about what arrives within one round trip. */
const MAX_MERGED_BYTES = 2 * 2 ** 20;

/** A range that waits for the end of the turn. */
interface WaitingRead {
  readonly offset: number;
  readonly end: number;
  readonly options: ReadObjectOptions;
  readonly resolve: (found: Promise<ObjectBytes | undefined> | ObjectBytes | undefined) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Wraps a store so that neighbouring ranges of one version of an object, asked for in the same turn of the event loop, are read with
 * one request.
 */
export function mergeRanges(store: ByteStore): ByteStore {
  const waiting = new Map<string, WaitingRead[]>();

  function readWaiting(): void {
    const all = [...waiting];
    waiting.clear();
    for (const [name, reads] of all) {
      const key = name.slice(0, name.lastIndexOf("\n"));
      for (const group of groupsOf(reads)) void readGroup(store, key, group);
    }
  }

  return {
    ...store,
    read(key, options = {}) {
      const { range, version } = options;
      if (range === undefined || version === undefined || "last" in range || range.byteLength === 0)
        return store.read(key, options);
      if (range.byteLength > MAX_MERGED_BYTES) return store.read(key, options);
      return new Promise((resolve, reject) => {
        if (waiting.size === 0) setImmediate(readWaiting);
        const name = `${key}\n${version.token}`;
        const read = { offset: range.offset, end: range.offset + range.byteLength, options, resolve, reject };
        const others = waiting.get(name);
        if (others === undefined) waiting.set(name, [read]);
        else others.push(read);
      });
    },
  };
}

/** Divides ranges into groups that one request each reads. */
function groupsOf(reads: readonly WaitingRead[]): WaitingRead[][] {
  const groups: WaitingRead[][] = [];
  let begin = 0;
  let end = Number.NEGATIVE_INFINITY;
  for (const read of [...reads].sort((a, b) => a.offset - b.offset)) {
    const merged = Math.max(end, read.end);
    if (read.offset - end <= MAX_GAP_BYTES && merged - begin <= MAX_MERGED_BYTES) {
      groups.at(-1)?.push(read);
      end = merged;
    } else {
      groups.push([read]);
      begin = read.offset;
      end = read.end;
    }
  }
  return groups;
}

/** Reads a group of ranges, and gives each reader its bytes. */
async function readGroup(store: ByteStore, key: string, group: readonly WaitingRead[]): Promise<void> {
  const first = group[0] as WaitingRead;
  if (group.length === 1) {
    first.resolve(store.read(key, first.options));
    return;
  }
  const offset = first.offset;
  const byteLength = Math.max(...group.map(({ end }) => end)) - offset;
  const { version } = first.options;
  try {
    // One reader that has gone must not take the bytes of the others.
    const found = await store.read(key, { range: { offset, byteLength }, version });
    for (const read of group) read.resolve(found && partOf(found, read, offset));
  } catch (error) {
    for (const read of group) read.reject(error);
  }
}

function partOf(found: ObjectBytes, { offset, end, options }: WaitingRead, from: number): ObjectBytes {
  const part = found.bytes.subarray(offset - from, end - from);
  const { allocate = (byteLength: number) => new Uint8Array(byteLength) } = options;
  const bytes = allocate(part.length);
  bytes.set(part);
  return { ...found, bytes };
}
