import { ZpublishError } from "../../src/errors.js";
import {
  type ByteStore,
  type ObjectBytes,
  type ObjectStat,
  type ObjectVersion,
  type ReadObjectOptions,
  sliceOf,
} from "../../src/stores/byte-store.js";

/** A request that a {@link MemoryStore} received: `read a 0+4`, `read a -3`, `read a`, `stat a`, `list a/`. */
export type StoreRequest = string;

/** A byte store of objects in memory, which counts what it is asked for. */
export interface MemoryStore extends ByteStore {
  /** Puts an object, under another version than before. */
  put(key: string, content: string | Uint8Array): void;
  remove(key: string): void;
  /** Every later request fails with this error; undefined ends that. */
  failWith(error: Error | undefined): void;
  /** Runs before each request is answered, such as to put an object in between. */
  onRequest: ((request: StoreRequest) => void) | undefined;
  /** Returns the requests since the last call. */
  takeRequests(): StoreRequest[];
}

/** Versions differ between stores, too. */
let versions = 0;

/** Creates a store. @param objects By key. */
export function createMemoryStore(
  objects: Readonly<Record<string, string | Uint8Array>> = {},
  location = "memory://store",
): MemoryStore {
  const stored = new Map<string, { bytes: Uint8Array<ArrayBuffer>; version: ObjectVersion }>();
  let requests: StoreRequest[] = [];
  let failure: Error | undefined;

  function request(text: StoreRequest): void {
    requests.push(text);
    store.onRequest?.(text);
    if (failure !== undefined) throw failure;
  }

  function find(key: string, options: ReadObjectOptions): ObjectBytes | undefined {
    options.signal?.throwIfAborted();
    const found = stored.get(key);
    if (found === undefined) return undefined;
    const { bytes, version } = found;
    if (options.version !== undefined && options.version.token !== version.token) {
      throw new ZpublishError("source-changed", `'${key}' changed`, { details: { key } });
    }
    return sliceOf(key, bytes, version, options);
  }

  const store: MemoryStore = {
    location,
    identity: location,
    onRequest: undefined,
    put(key, content) {
      const bytes = Uint8Array.from(typeof content === "string" ? Buffer.from(content) : content);
      stored.set(key, { bytes, version: { token: `m${++versions}`, etag: `"m${versions}"` } });
    },
    remove: (key) => void stored.delete(key),
    failWith(error) {
      failure = error;
    },
    takeRequests() {
      const taken = requests;
      requests = [];
      return taken;
    },
    async stat(key): Promise<ObjectStat | undefined> {
      request(`stat ${key}`);
      const found = stored.get(key);
      return found && { version: found.version, byteLength: found.bytes.length };
    },
    async read(key, options = {}) {
      request(`read ${key}${rangeText(options)}`);
      return find(key, options);
    },
    async readIfChanged(key, known, options = {}) {
      request(`readIfChanged ${key}${rangeText(options)}`);
      return stored.get(key)?.version.token === known.token ? "unchanged" : find(key, options);
    },
    async list(prefix) {
      request(`list ${prefix}`);
      const below = [...stored.keys()]
        .filter((key) => key.startsWith(prefix))
        .map((key) => key.slice(prefix.length));
      const prefixes = below.filter((name) => name.includes("/")).map((name) => name.split("/")[0] as string);
      return { objects: below.filter((name) => !name.includes("/")), prefixes: [...new Set(prefixes)] };
    },
  };
  for (const [key, content] of Object.entries(objects)) store.put(key, content);
  return store;
}

function rangeText({ range }: ReadObjectOptions): string {
  if (range === undefined) return "";
  return "last" in range ? ` -${range.last}` : ` ${range.offset}+${range.byteLength}`;
}
