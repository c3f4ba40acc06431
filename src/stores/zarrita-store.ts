import { createHash, randomUUID } from "node:crypto";
import type { Listable, Readable } from "zarrita";
import { ZpublishError } from "../errors.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import type { ByteStore, ObjectBytes, ObjectRange, ObjectVersion, ReadObjectOptions } from "./byte-store.js";

/** What zarrita's contract of stores does not have. */
export interface ZarritaStoreOptions {
  /**
   * For messages and pages, and to find chunks in the cache again after a restart: other data have another location. Default
   * `zarrita`, and no chunks of former processes.
   */
  readonly location?: string;
  /** Returns a text that changes whenever anything in the store changes. Without it the store is taken for one that never changes. */
  readonly version?: () => string | Promise<string>;
  /**
   * Lists the names directly below a prefix, which is empty or ends with a slash. Default: what `contents()` of zarrita's
   * `withConsolidatedMetadata` lists; without either, a store needs consolidated metadata.
   */
  readonly list?: (prefix: string) => Promise<readonly string[]>;
}

/** Length of objects, since zarrita's stores do not tell it: ranges that end there count from the end. */
const UNKNOWN_LENGTH = Number.MAX_SAFE_INTEGER;
const MAX_OBJECT_BYTES = 2 ** 31 - 1;

/**
 * Creates a byte store of anything that implements zarrita's `Readable`. Results are checked as far as they tell anything: some of
 * zarrita's stores return other bytes than the ones asked for if a server does not know ranges.
 */
export function createZarritaStore(store: Readable, options: ZarritaStoreOptions = {}): ByteStore {
  const { location = "zarrita", version: versionOf = () => "unchanging", list = listOf(store) } = options;

  /** Runs a function of the program. @throws ZpublishError `source-unreadable` in place of the program's own errors. */
  async function call<T>(what: string, run: () => T | Promise<T>): Promise<T> {
    try {
      return await run();
    } catch (cause) {
      if (cause instanceof ZpublishError) throw cause;
      throw new ZpublishError("source-unreadable", `${what}: ${location} cannot be read`, { cause });
    }
  }

  async function currentVersion(): Promise<ObjectVersion> {
    const text = await call("its version", versionOf);
    if (typeof text !== "string")
      throw new ZpublishError(
        "source-unreadable",
        `its version: expected ${location} to return a text, received ${typeof text}`,
      );
    return { token: createHash("sha256").update(text).digest("hex").slice(0, 20) };
  }

  async function get(
    key: string,
    range: ObjectRange | undefined,
    signal: AbortSignal | undefined,
  ): Promise<Uint8Array | undefined> {
    const path = pathOf(key);
    const context = signal && { signal };
    if (range === undefined) return store.get(path, context);
    if (store.getRange === undefined) return partOf(await store.get(path, context), range);
    const isFromEnd = "offset" in range && range.offset + range.byteLength === UNKNOWN_LENGTH;
    return "last" in range || isFromEnd
      ? store.getRange(path, { suffixLength: countOf(range) }, context)
      : store.getRange(path, { offset: range.offset, length: range.byteLength }, context);
  }

  async function read(key: string, wanted: ReadObjectOptions = {}): Promise<ObjectBytes | undefined> {
    const { range, version, signal, maxByteLength = MAX_OBJECT_BYTES, allocate } = wanted;
    const before = version ?? (await currentVersion());
    const found: unknown = await call(`'${key}'`, () => get(key, range, signal));
    if ((await currentVersion()).token !== before.token)
      throw new ZpublishError("source-changed", `'${key}' changed while it was being read`);
    if (found === undefined) return undefined;
    if (!(found instanceof Uint8Array))
      throw new ZpublishError(
        "source-unreadable",
        `'${key}': expected ${location} to return a Uint8Array or undefined, received ${typeof found}`,
      );
    if (range !== undefined) assertCount(key, range, found.length);
    assertStoredLength(found.length, maxByteLength, () => `'${key}'`);
    // A store may keep the memory that it returns, and return it again.
    const bytes = allocate?.(found.length) ?? new Uint8Array(found.length);
    bytes.set(found);
    const objectByteLength = range === undefined ? found.length : UNKNOWN_LENGTH;
    return { bytes, version: before, objectByteLength };
  }

  return {
    location,
    // Two stores without a location must not share what is cached.
    identity: `zarrita\n${options.location ?? randomUUID()}`,
    read,
    async readIfChanged(key, known, wanted) {
      return (await currentVersion()).token === known.token ? "unchanged" : read(key, wanted);
    },
    async stat(key, signal) {
      const found = await read(key, { signal });
      return found && { version: found.version, byteLength: found.objectByteLength };
    },
    list:
      list &&
      (async (prefix) => ({
        objects: [],
        prefixes: await call(`a list of '${prefix === "" ? "/" : prefix}'`, () => list(prefix)),
      })),
  };
}

/** Returns the list of a store that knows its contents, as zarrita's `withConsolidatedMetadata` makes it; undefined for others. */
function listOf(store: Partial<Listable<Readable>>): ZarritaStoreOptions["list"] {
  if (typeof store.contents !== "function") return undefined;
  const paths = store.contents().map(({ path }) => path.slice(1));
  return async (prefix) => {
    const below = paths.filter((path) => path.startsWith(prefix) && path.length > prefix.length);
    return [...new Set(below.map((path) => path.slice(prefix.length).split("/", 1)[0] as string))];
  };
}

/** Characters and beginnings of keys that URLs read as something else than a path. */
const UNSAFE_KEY = /[#?%\\\p{Cc}]|^ |^[a-z][a-z0-9+.-]*:/iu;

/** @throws ZpublishError for a key that zarrita's stores read as another one: they make URLs of keys without encoding them. */
function pathOf(key: string): `/${string}` {
  if (!UNSAFE_KEY.test(key)) return `/${key}`;
  throw new ZpublishError(
    "unsupported",
    `expected a key without #, ?, %, backslash and scheme, which zarrita's stores do not encode, received ${JSON.stringify(key)}`,
  );
}

function countOf(range: ObjectRange): number {
  return "last" in range ? range.last : range.byteLength;
}

function partOf(bytes: Uint8Array | undefined, range: ObjectRange): Uint8Array | undefined {
  if (bytes === undefined) return undefined;
  if ("last" in range) return bytes.subarray(Math.max(0, bytes.length - range.last));
  const isFromEnd = range.offset + range.byteLength === UNKNOWN_LENGTH;
  const offset = isFromEnd ? Math.max(0, bytes.length - range.byteLength) : range.offset;
  return bytes.subarray(offset, offset + range.byteLength);
}

function assertCount(key: string, range: ObjectRange, received: number): void {
  const expected = countOf(range);
  if (received === expected || ("last" in range && received < expected)) return;
  throw new ZpublishError(
    "source-unreadable",
    `'${key}': expected ${expected} bytes of a range, received ${received}: the store may not know ranges`,
  );
}
