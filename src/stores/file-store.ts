import { type BigIntStats, type Dirent, readdir } from "node:fs";
import { join } from "node:path";
import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import type {
  ByteStore,
  ObjectBytes,
  ObjectListing,
  ObjectStat,
  ObjectVersion,
  ReadObjectOptions,
} from "./byte-store.js";
import { versionOf } from "./files/file-version.js";
import { type Allocate, allocateOwn } from "./files/open-file.js";
import { createStoreFiles } from "./files/store-files.js";
import { createStorePaths } from "./files/store-paths.js";
import { codeOf, unreadable } from "./files/unreadable-file.js";
import { resolveRange } from "./resolve-range.js";

/** A file that is open, whichever thread reads it. */
interface ReadableFile<T> {
  readonly stat: BigIntStats;
  readonly readBytes: (offset: number, byteLength: number, allocate?: Allocate) => T;
}

/**
 * Creates the store of the files below a directory. Links may lead to files in it, never out of it. A file counts as absent only
 * if the directory itself exists.
 * @param root Absolute real path.
 * @param mayBlock Whether this thread may block, and so reads files of local file systems itself. Default false.
 */
export function createFileStore(root: string, mayBlock = false): ByteStore {
  const files = createStoreFiles(root, mayBlock);
  const paths = createStorePaths(root, files.calls);

  function pathOf(key: string): string {
    if (!/(?:^|\/)\.{0,2}(?:\/|$)/.test(key)) return join(root, key);
    throw new ZpublishError(
      "source-unreadable",
      `expected the key of a file, received ${JSON.stringify(key)}`,
    );
  }

  /** @returns Undefined: the file is absent, and the directory exists. */
  async function absent(): Promise<undefined> {
    try {
      if ((await paths.lstat(root)).isDirectory()) return undefined;
    } catch (error) {
      throw unreadable(() => "", `is a store whose directory cannot be read (${codeOf(error)})`, error);
    }
    throw unreadable(() => "", "is a store that is no longer a directory");
  }

  async function stat(key: string, signal?: AbortSignal): Promise<ObjectStat | undefined> {
    signal?.throwIfAborted();
    const found = await files.stat(pathOf(key));
    return found === undefined
      ? absent()
      : { version: { token: versionOf(found) }, byteLength: Number(found.size) };
  }

  function readNow(key: string, options: ReadObjectOptions = {}): ObjectBytes | undefined {
    return files.readNow(pathOf(key), (file) => readRange(key, file, options));
  }

  async function read(key: string, options: ReadObjectOptions = {}): Promise<ObjectBytes | undefined> {
    options.signal?.throwIfAborted();
    const path = pathOf(key);
    const now = readNow(key, options);
    if (now !== undefined) return now;
    const found = await files.read(path, async (file) => {
      const started = readRange(key, file, options);
      return { ...started, bytes: await started.bytes };
    });
    return found ?? absent();
  }

  return {
    location: root,
    identity: `file:${root}`,
    stat,
    read,
    versionNow: (key, wasChecked) => files.versionNow(pathOf(key), wasChecked),
    readNow,
    async readIfChanged(key, known, options = {}) {
      const found = await stat(key, options.signal);
      return found?.version.token === known.token ? "unchanged" : read(key, options);
    },
    async list(prefix, signal) {
      signal?.throwIfAborted();
      const directory = prefix === "" ? root : pathOf(prefix.replace(/\/$/, ""));
      const found = await paths.verify(directory, () => prefix);
      if (found === undefined) {
        await absent();
        return { objects: [], prefixes: [] };
      }
      const entries = await files.calls
        .call<Dirent[]>((done) => readdir(found.real, { withFileTypes: true }, done))
        .catch((error: unknown) => {
          throw unreadable(() => prefix, `cannot be listed (${codeOf(error)})`, error);
        });
      return sortOut(entries, (entry) => leadsToDirectory(join(found.real, entry.name)));
    },
  };

  /** Tells whether a link leads to a directory of the store. Others count as files: reading them says what is wrong. */
  async function leadsToDirectory(link: string): Promise<boolean> {
    try {
      return (await paths.lstat(await paths.resolveLink(link, () => link))).isDirectory();
    } catch {
      return false;
    }
  }
}

/** Starts reading the bytes that are asked for. @throws ZpublishError `source-changed`, `corrupt-chunk` */
function readRange<T>(
  key: string,
  file: ReadableFile<T>,
  options: ReadObjectOptions,
): { readonly version: ObjectVersion; readonly bytes: T; readonly objectByteLength: number } {
  const token = versionOf(file.stat);
  if (options.version !== undefined && options.version.token !== token) {
    throw new ZpublishError("source-changed", `'${key}' has another version than expected`, {
      details: { key },
    });
  }
  const objectByteLength = Number(file.stat.size);
  const { offset, byteLength } = resolveRange(key, objectByteLength, options);
  return {
    version: { token },
    bytes: file.readBytes(offset, byteLength, options.allocate ?? allocateOwn),
    objectByteLength,
  };
}

async function sortOut(
  entries: readonly Dirent[],
  leadsToDirectory: (entry: Dirent) => Promise<boolean>,
): Promise<ObjectListing> {
  const slice = createSlice();
  const objects: string[] = [];
  const prefixes: string[] = [];
  for (const entry of entries) {
    if (slice.isOver()) await slice.next();
    const isDirectory = entry.isSymbolicLink() ? await leadsToDirectory(entry) : entry.isDirectory();
    (isDirectory ? prefixes : objects).push(entry.name);
  }
  return { objects, prefixes };
}
