import { ZpublishError } from "../errors.js";
import { encodeKey } from "./aws-requests.js";
import {
  type ByteStore,
  type HeaderValue,
  type ObjectBytes,
  type ReadObjectOptions,
  type StoreSettings,
  settingsFor,
  withSlash,
} from "./byte-store.js";
import { createHttpStore } from "./http-store.js";
import { createS3Store } from "./s3-store.js";

/**
 * Opens the store whose keys begin below a URL, `https://…` or `s3://…`. It makes no request.
 * @param location URL of a directory; a slash at its end may be missing.
 * @throws ZpublishError `invalid-config` for URLs with credentials or queries, for other schemes, and for variables that are not set.
 */
export function openByteStore(location: string, stores: readonly StoreSettings[]): ByteStore {
  const settings = settingsFor(location, stores);
  const url = parseUrl(withSlash(location));
  const headers = headersOf(settings);
  if (url.protocol === "s3:") return mergeRanges(createS3Store(withSlash(location), settings, headers));
  const areMissing = settings?.missing === "404+403" ? [404, 410, 403] : [404, 410];
  const isPublic = settings?.redirect === true && Object.keys(settings.headers ?? {}).length === 0;
  const http = createHttpStore({
    store: settings?.name ?? url.origin,
    location: url.href,
    identity: url.href,
    urlOf: (key) => new URL(url.href + encodeKey(key)),
    headersOf: async (_method, _url, asked) => ({ ...headers, ...asked }),
    isMissing: ({ status }) => areMissing.includes(status),
  });
  const store = mergeRanges(http);
  if (!isPublic) return store;
  const urlOf = (key: string) => url.href + encodeKey(key);
  return {
    ...store,
    urlFor: async (key) => urlOf(key),
    urlTellsAbsence: settings.missing !== "404+403",
    placeOf: (key) => ({ location: urlOf(key), isPublic }),
  };
}

function parseUrl(location: string): URL {
  // Messages show no URL that may contain a secret.
  const expected = "expected an https://, http:// or s3:// URL";
  if (!URL.canParse(location)) throw invalid(`${expected}, received one that cannot be parsed`);
  const url = new URL(location);
  if (url.username !== "" || url.password !== "")
    throw invalid('expected a URL without user and password: name variables under "stores" instead');
  if (url.search !== "" || url.hash !== "")
    throw invalid('expected a URL without query and fragment: secrets belong under "stores"');
  if (!["http:", "https:", "s3:"].includes(url.protocol))
    throw invalid(`${expected}, received ${location.slice(0, 200)}`);
  return url;
}

function headersOf(settings: StoreSettings | undefined): Record<string, string> {
  const entries = Object.entries(settings?.headers ?? {});
  return Object.fromEntries(
    entries.map(([name, value]) => [
      name.toLowerCase(),
      textOf(value, `stores.${settings?.name}.headers.${name}`),
    ]),
  );
}

function textOf(value: HeaderValue, place: string): string {
  const text = typeof value === "string" ? value : process.env[value.env];
  const variable = typeof value === "string" ? "" : `the variable ${value.env} to have `;
  if (text === undefined || text === "")
    throw invalid(`${place}: expected ${variable}a text, found it unset or empty`);
  // Also a line break at the end, as files of secrets have.
  if (!/^[\t\x20-\x7e\x80-\xff]+$/.test(text))
    throw invalid(
      `${place}: expected ${variable}a text that a header can have, found other characters in it`,
    );
  return text;
}

function invalid(message: string): ZpublishError {
  return new ZpublishError("invalid-config", message);
}

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
