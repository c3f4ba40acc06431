import { type Stats, stat } from "node:fs";
import { realpath } from "node:fs/promises";
import { basename, dirname, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { ZpublishError } from "../errors.js";
import type { ByteStore } from "./bytes/byte-store.js";
import { createFileStore } from "./bytes/file-store.js";
import { openByteStore } from "./bytes/open-byte-store.js";
import type { StoreSettings } from "./bytes/store-settings.js";
import { openZipStore } from "./bytes/zip/open-zip-store.js";
import { createDirectorySource } from "./directory/directory-source.js";
import { createFileCalls } from "./files/file-calls.js";
import { nameProblem } from "./node-name.js";
import type { Freshness } from "./objects/fresh-objects.js";
import { createIndexedSource } from "./objects/indexed-source.js";
import { createRemoteSource } from "./objects/remote-source.js";
import type { Source } from "./source.js";

/** Options of {@link openSource}. */
export interface OpenSourceOptions {
  /** How remote places are reached. Default: with AWS's usual credentials, or none. */
  readonly stores?: readonly StoreSettings[] | undefined;
  /** Default: five seconds. */
  readonly freshness?: Freshness | undefined;
  /** Paths of arrays to read if nothing lists them. */
  readonly names?: readonly string[] | undefined;
  /** URLs and absolute paths below which references may lead. Default: the folder of the reference file. */
  readonly allow?: readonly string[] | undefined;
}

const DEFAULT_FRESHNESS: Freshness = { seconds: 5 };
/** Name of the variable if the store is a single array and its location has no name that can be served. */
const FALLBACK_ARRAY_NAME = "data";

/**
 * Opens a location: the path of a directory or file, its `file:` URL, or the URL of a directory or file behind `https:`, `http:` or
 * `s3:`. Its documents and first bytes decide what it is. `readTree` then reads its metadata.
 * @throws ZpublishError `invalid-config`, `invalid-metadata`
 */
export async function openSource(location: string, options: OpenSourceOptions = {}): Promise<Source> {
  const scheme = /^([a-z][a-z0-9+.-]+):\/\//i.exec(location)?.[1]?.toLowerCase();
  if (scheme === undefined) return openLocal(location, resolve(location), options);
  if (scheme === "file") return openLocal(location, pathOf(location), options);
  const { stores = [] } = options;
  const url = location.replace(/\/+$/, "");
  const parent = url.slice(0, url.lastIndexOf("/") + 1);
  const isDirectory = location.endsWith("/") || /^[a-z0-9+.-]+:\/\/$/i.test(parent);
  return createRemoteSource({
    ...contextOf(location, options),
    store: openByteStore(url, stores),
    file: isDirectory
      ? undefined
      : {
          store: openByteStore(parent, stores),
          key: scheme === "s3" ? url.slice(parent.length) : decodeName(url.slice(parent.length)),
        },
    openFile: (store, key, head) => openFile(location, store, key, head, options),
    openReferences: () => undefined,
  });
}

function pathOf(location: string): string {
  try {
    return fileURLToPath(location);
  } catch (cause) {
    throw new ZpublishError("invalid-metadata", `expected a file URL of this machine, received ${location}`, {
      cause,
    });
  }
}

async function openLocal(location: string, path: string, options: OpenSourceOptions): Promise<Source> {
  const calls = createFileCalls(path);
  const found = await calls.call<Stats>((done) => stat(path, done)).catch(() => undefined);
  if (!found?.isFile()) return createDirectorySource(location.startsWith("file:") ? path : location);
  const real = await realpath(path);
  const store = createFileStore(dirname(real));
  const key = basename(real);
  const head = await store.read(key, { range: { offset: 0, byteLength: Math.min(4_096, found.size) } });
  const source = openFile(location, store, key, head?.bytes ?? new Uint8Array(0), options);
  if (source !== undefined) return source;
  throw new ZpublishError(
    "unsupported",
    `${location}: expected a Zarr store, a zip archive or kerchunk references, found another file`,
  );
}

/** Opens a file by its first bytes; undefined if they are of no kind that is known. */
function openFile(
  location: string,
  container: ByteStore,
  key: string,
  head: Uint8Array,
  options: OpenSourceOptions,
): Source | undefined {
  const context = { ...contextOf(location, options), container, key };
  // The first entry of an archive, or the end of an empty one.
  const magic = Buffer.from(head.subarray(0, 4)).toString("latin1");
  if (magic === "PK\x03\x04" || magic === "PK\x05\x06")
    return createIndexedSource({ ...context, open: () => openZipStore(container, key) });
  return undefined;
}

function contextOf(location: string, { freshness = DEFAULT_FRESHNESS, names = [] }: OpenSourceOptions) {
  return { location, freshness, names, rootArrayName: arrayNameOf(location) };
}

/** Returns the last part of a location without its extensions, as the name of an array. */
function arrayNameOf(location: string): string {
  const base = decodeName(location.split(/[\\/]/).findLast((part) => part !== "") ?? "");
  const name = base.replace(/(?<=.)(\.zarr)?\.[^.]*$/, "");
  return name === "" || nameProblem(name) !== undefined ? FALLBACK_ARRAY_NAME : name;
}

function decodeName(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
