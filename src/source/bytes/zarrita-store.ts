import { createHash } from "node:crypto";
import type { Readable } from "zarrita";
import { ZpublishError } from "../../errors.js";
import { assertStoredLength } from "../../zarr/plan/max-stored-byte-length.js";
import type { ByteStore, ObjectBytes, ObjectRange, ObjectVersion, ReadObjectOptions } from "./byte-store.js";

/** What zarrita's contract of stores does not have. */
export interface ZarritaStoreOptions {
  /** For messages and pages. Default `zarrita`. */
  readonly location?: string;
  /**
   * Returns a text that changes whenever anything in the store changes. Without it the store is taken for one that never changes.
   */
  readonly version?: () => string | Promise<string>;
  /**
   * Lists the names directly below a prefix, which is empty or ends with a slash. Without it a store needs consolidated metadata.
   */
  readonly list?: (prefix: string) => Promise<readonly string[]>;
}

/** Length of objects, since zarrita's stores do not tell it: ranges that end there count from the end. */
const UNKNOWN_LENGTH = Number.MAX_SAFE_INTEGER;
const MAX_OBJECT_BYTES = 2 ** 31 - 1;
/** Name of the one thing that has a version. */
const WHOLE_STORE = "store";

/**
 * Creates a byte store of anything that implements zarrita's `Readable`. Results are checked as far as they tell anything: some of
 * zarrita's stores return other bytes than the ones asked for if a server does not know ranges.
 */
export function createZarritaStore(store: Readable, options: ZarritaStoreOptions = {}): ByteStore {
  const { location = "zarrita", version: versionOf = () => "unchanging", list } = options;

  async function currentVersion(): Promise<ObjectVersion> {
    return {
      token: createHash("sha256")
        .update(await versionOf())
        .digest("hex")
        .slice(0, 20),
    };
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
    const bytes =
      "last" in range || isFromEnd
        ? await store.getRange(path, { suffixLength: countOf(range) }, context)
        : await store.getRange(path, { offset: range.offset, length: range.byteLength }, context);
    if (bytes !== undefined) assertCount(key, range, bytes.length);
    return bytes;
  }

  async function read(key: string, wanted: ReadObjectOptions = {}): Promise<ObjectBytes | undefined> {
    const { range, version, signal, maxByteLength = MAX_OBJECT_BYTES } = wanted;
    const before = version ?? (await currentVersion());
    const bytes = await get(key, range, signal).catch((cause: unknown) => {
      throw new ZpublishError("source-unreadable", `'${key}': ${location} cannot be read`, { cause });
    });
    if ((await currentVersion()).token !== before.token)
      throw new ZpublishError("source-changed", `'${key}' changed while it was being read`);
    if (bytes === undefined) return undefined;
    assertStoredLength(bytes.length, maxByteLength, before.token, () => `'${key}'`);
    const objectByteLength = range === undefined ? bytes.length : UNKNOWN_LENGTH;
    return { bytes: bytes as Uint8Array<ArrayBuffer>, version: before, objectByteLength };
  }

  return {
    location,
    identity: `zarrita\n${location}`,
    read,
    async readIfChanged(key, known, wanted) {
      return (await currentVersion()).token === known.token ? "unchanged" : read(key, wanted);
    },
    async stat(key, signal) {
      const found = await read(key, { signal });
      return found && { version: found.version, byteLength: found.objectByteLength };
    },
    objectOf: () => WHOLE_STORE,
    list: list && (async (prefix) => ({ objects: [], prefixes: await list(prefix) })),
  };
}

/** @throws ZpublishError for a key that zarrita's stores read as another one: they make URLs of keys without encoding them. */
function pathOf(key: string): `/${string}` {
  if (!/[#?%]|^[a-z]+:/i.test(key)) return `/${key}`;
  throw new ZpublishError(
    "unsupported",
    `expected a key without #, ?, % and scheme, which zarrita's stores do not encode, received ${JSON.stringify(key)}`,
  );
}

function countOf(range: ObjectRange): number {
  return "last" in range ? range.last : range.byteLength;
}

function partOf(bytes: Uint8Array | undefined, range: ObjectRange): Uint8Array | undefined {
  if (bytes === undefined) return undefined;
  if ("last" in range) return bytes.slice(Math.max(0, bytes.length - range.last));
  const isFromEnd = range.offset + range.byteLength === UNKNOWN_LENGTH;
  const offset = isFromEnd ? bytes.length - range.byteLength : range.offset;
  return bytes.slice(offset, offset + range.byteLength);
}

function assertCount(key: string, range: ObjectRange, received: number): void {
  const expected = countOf(range);
  if (received === expected || ("last" in range && received < expected)) return;
  throw new ZpublishError(
    "source-unreadable",
    `'${key}': expected ${expected} bytes of a range, received ${received}: the store may not know ranges`,
  );
}
