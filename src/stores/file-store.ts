import { type BigIntStats, type Dirent, lstat, lstatSync, open, openSync, readdir, realpath } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createBoundedMap } from "../collections/bounded-map.js";
import { isMissing, ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import type { StoredVersion } from "../zarr/chunk-reader.js";
import {
  type ByteStore,
  type ObjectBytes,
  type ObjectListing,
  type ObjectStat,
  type ReadObjectOptions,
  resolveObjectRange,
} from "./byte-store.js";
import {
  absentOrThrow,
  assertFile,
  closeWhenAnswered,
  codeOf,
  createFileCalls,
  directReadsOf,
  type FileCalls,
  isOnLocalFileSystem,
  type Label,
  OPEN_FLAGS,
  type OpenDescriptor,
  type OpenFile,
  remainingSettleMs,
  sourceReadSeconds,
  unreadable,
  useNow,
  useUnchanged,
  versionOf,
} from "./file-calls.js";

/** A directory whose real path has been looked up. */
interface VerifiedDirectory {
  readonly real: string;
  /** `st_dev` */
  readonly device: bigint;
}

/** Verified directories by path, of all stores of this thread: 330 bytes each for paths of 100 characters. */
const verifiedDirectories = createBoundedMap<VerifiedDirectory>({ maxEntries: 32_768 });

/**
 * Verifies a directory of a store on a local file system at once; undefined if that has to wait, since a link or a mount leads to it.
 * @param root Absolute real path of the store.
 */
export function verifyNow(root: string, directory: string): VerifiedDirectory | undefined {
  // Another file system may be mounted in the store.
  const device = isOnLocalFileSystem(directory) ? directoryDeviceNow(root) : undefined;
  if (device === undefined) return undefined;
  // From the root downwards: what is below a link may be on a file system that does not answer.
  let path = root;
  for (const name of directory === root ? [] : relative(root, directory).split(sep)) {
    path = join(path, name);
    if (directoryDeviceNow(path) !== device) return undefined;
  }
  for (const real of [root, directory]) verifiedDirectories.set(real, { real, device });
  return { real: directory, device };
}

/** Returns the device of what is a directory itself, and no link to one. */
function directoryDeviceNow(path: string): bigint | undefined {
  const found = lstatNow(path);
  return found?.isDirectory() ? found.dev : undefined;
}

/**
 * Creates the directories and links of a store. A path whose real path is outside of the store is refused.
 * @param root Absolute real path of the store.
 */
function createStorePaths(root: string, calls: FileCalls) {
  const prefix = root.endsWith(sep) ? root : `${root}${sep}`;
  // Another store of this thread may have looked it up, such as that of another file of the directory.
  let rootDevice = verifiedDirectories.get(root)?.device;

  function isWithinStore(real: string): boolean {
    return real === root || real.startsWith(prefix);
  }

  function verified(directory: string): VerifiedDirectory | undefined {
    const known = verifiedDirectories.get(directory);
    return rootDevice !== undefined && known !== undefined && isWithinStore(known.real) ? known : undefined;
  }

  function assertWithinStore(real: string, label: Label): void {
    if (!isWithinStore(real)) throw unreadable(label, "is reached by a link that leaves the store");
  }

  function realPathOf(path: string): Promise<string> {
    return calls.call<string>((done) => realpath.native(path, done));
  }

  function lstatAsync(path: string): Promise<BigIntStats> {
    return calls.call<BigIntStats>((done) => lstat(path, { bigint: true }, done));
  }

  return {
    /** Returns a directory that has been verified before; else undefined. Does no I/O. */
    verified,
    /** As the function of that name. */
    verifyNow(directory: string): VerifiedDirectory | undefined {
      const found = isWithinStore(directory) ? verifyNow(root, directory) : undefined;
      if (found !== undefined) rootDevice = found.device;
      return found;
    },
    /** Looks up a directory; undefined if it does not exist. @throws ZpublishError `source-unreadable` */
    async verify(directory: string, label: Label): Promise<VerifiedDirectory | undefined> {
      try {
        const real = await realPathOf(directory);
        assertWithinStore(real, label);
        const { dev: device } = await lstatAsync(real);
        rootDevice = real === root ? device : (await lstatAsync(root)).dev;
        const found = { real, device };
        verifiedDirectories.set(directory, found);
        return found;
      } catch (error) {
        if (error instanceof ZpublishError) throw error;
        return absentOrThrow(error, label);
      }
    },
    /** Returns the device of a directory if this thread may wait for its files: no other machine or program has to answer. */
    localDeviceOf: (directory: VerifiedDirectory | undefined): bigint | undefined =>
      calls.isLocal && directory?.device === rootDevice ? rootDevice : undefined,
    /** Returns the real path behind a link. @throws ZpublishError `source-unreadable` */
    async resolveLink(path: string, label: Label): Promise<string> {
      // A link to nothing is data that is not there now (not fetched, not mounted), so the chunk is not absent.
      const real = await realPathOf(path).catch((error: unknown) => {
        if (!isMissing(error) && codeOf(error) !== "ELOOP")
          throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
        throw unreadable(label, `is a link that leads nowhere (${codeOf(error)})`);
      });
      assertWithinStore(real, label);
      return real;
    },
    lstat: lstatAsync,
    /** Returns the name of a file for messages: its path within the store. */
    labelOf: (path: string): string => relative(root, path).split(sep).join("/"),
  };
}

const MAX_TRIES = 5;

/** Reader of the files of one store. It opens nothing outside of it; errors name files relative to the store. */
export interface StoreFiles {
  /** Other calls to the store's file system. */
  readonly calls: FileCalls;
  /**
   * Calls `lstat`, and waits until the file is no longer fresh; undefined if there is no file.
   * @throws ZpublishError `source-unreadable`
   */
  stat(path: string): Promise<BigIntStats | undefined>;
  /**
   * Returns the version of a file: at once unless it is absent, a link or fresh, not on a quick local file system, or its directory
   * has not been verified.
   * @param wasChecked Whether the file was checked before, so that its metadata is in memory. Default false.
   */
  version(path: string, wasChecked?: boolean): MaybePromise<StoredVersion>;
  /**
   * Runs `use` on the open file, and again if the file changed meanwhile, at most five times: in this thread, and at once, if the file
   * is on a local file system that is quick at present.
   * @param use Returns its result at once if `readBytes` does.
   * @param wasChecked Whether the file was checked just now, so that opening it waits for no disk. Default false.
   * @returns Undefined if there is no such file.
   * @throws ZpublishError `source-unreadable`, and what `use` throws for an unchanged file.
   */
  read<T>(
    path: string,
    use: (file: OpenFile) => MaybePromise<T>,
    wasChecked?: boolean,
  ): MaybePromise<T | undefined>;
}

/**
 * Creates the reader of a store's files.
 * @param root Absolute real path of the store.
 * @param mayBlock Whether this thread may block, and so reads files of local file systems itself. Default false.
 */
export function createStoreFiles(root: string, mayBlock = false): StoreFiles {
  const calls = createFileCalls(root);
  const paths = createStorePaths(root, calls);
  const direct = directReadsOf(root);

  /** Returns the directory of a file if it is verified, or can be at once. */
  function directoryNow(path: string): VerifiedDirectory | undefined {
    const directory = dirname(path);
    const known = paths.verified(directory);
    if (known !== undefined || !calls.isLocal || !direct.isQuick) return known;
    return direct.run(() => paths.verifyNow(directory));
  }

  /** Same as {@link lstatInMemory}, if the metadata may have to come from a disk. */
  function statNow(path: string): BigIntStats | undefined {
    directoryNow(path);
    return direct.isQuick ? direct.run(() => lstatInMemory(path)) : undefined;
  }

  /** Calls `lstat` for a file of a local file system; undefined if `stat` has to check the file with more care. */
  function lstatInMemory(path: string): BigIntStats | undefined {
    const device = paths.localDeviceOf(paths.verified(dirname(path)));
    if (device === undefined) return undefined;
    const stat = lstatNow(path);
    // Another file system may have been mounted there.
    return stat?.isFile() && stat.dev === device && remainingSettleMs(stat) === 0 ? stat : undefined;
  }

  function openAsync(path: string): Promise<number> {
    return calls.call<number>((done) => open(path, OPEN_FLAGS, done), calls.close);
  }

  async function openPath(
    path: string,
    label: Label,
    wasChecked: boolean,
  ): Promise<OpenDescriptor | undefined> {
    const at = dirname(path);
    const directory = paths.verified(at) ?? (await paths.verify(at, label));
    if (directory === undefined) return undefined;
    const device = paths.localDeviceOf(directory);
    const isLocal = device !== undefined;
    const blockingDevice = mayBlock ? device : undefined;
    try {
      const fd = isLocal && (wasChecked || mayBlock) ? openSync(path, OPEN_FLAGS) : await openAsync(path);
      return { fd, calls, isLocal, blockingDevice, reusesMemory: mayBlock };
    } catch (error) {
      if (codeOf(error) !== "ELOOP") return absentOrThrow(error, label);
    }
    const target = await paths.resolveLink(path, label);
    const fd = await openAsync(target).catch((error: unknown) => absentOrThrow(error, label));
    if (fd === undefined) return undefined;
    // Its directory may be on another file system.
    return { fd, calls, isLocal: false, blockingDevice, reusesMemory: mayBlock };
  }

  async function stat(path: string): Promise<BigIntStats | undefined> {
    const label = () => paths.labelOf(path);
    const at = dirname(path);
    if ((paths.verified(at) ?? (await paths.verify(at, label))) === undefined) return undefined;
    let target = path;
    for (let attempt = 1; ; attempt++) {
      const stat = await paths.lstat(target).catch((error: unknown) => absentOrThrow(error, label));
      if (stat === undefined) return undefined;
      if (stat.isSymbolicLink() && attempt < MAX_TRIES) {
        target = await paths.resolveLink(path, label);
        continue;
      }
      assertFile(stat, label);
      const wait = remainingSettleMs(stat);
      if (wait === 0 || attempt >= MAX_TRIES) return stat;
      await sleep(wait);
    }
  }

  function readNow<T>(path: string, use: (file: OpenFile) => MaybePromise<T>): T | undefined {
    const device = paths.localDeviceOf(directoryNow(path));
    if (device === undefined || !direct.isQuick) return undefined;
    return direct.run(() => useNow(path, device, use), sourceReadSeconds.direct);
  }

  async function readLater<T>(
    path: string,
    use: (file: OpenFile) => MaybePromise<T>,
    wasChecked: boolean,
  ): Promise<T | undefined> {
    const label = () => paths.labelOf(path);
    const beganMs = performance.now();
    for (let attempt = 1; attempt <= MAX_TRIES; attempt++) {
      const descriptor = await openPath(path, label, wasChecked);
      if (descriptor === undefined) return undefined;
      let failure: unknown;
      try {
        const result = await useUnchanged(descriptor, label, use);
        if (result === undefined) continue;
        sourceReadSeconds.threads.observe((performance.now() - beganMs) / 1_000);
        return result.value;
      } catch (error) {
        failure = error;
        if (error instanceof ZpublishError) throw error;
        throw unreadable(label, `cannot be read (${codeOf(error)})`, error);
      } finally {
        closeWhenAnswered(descriptor, failure);
      }
    }
    throw unreadable(label, `changed during each of ${MAX_TRIES} tries to read it`);
  }

  return {
    calls,
    stat: async (path) => statNow(path) ?? stat(path),
    version(path, wasChecked = false) {
      const found = wasChecked ? lstatInMemory(path) : statNow(path);
      if (found !== undefined) return checkable(path, found);
      return stat(path).then((later) => ({ token: later && versionOf(later) }));
    },
    read: (path, use, wasChecked = false) => readNow(path, use) ?? readLater(path, use, wasChecked),
  };
}

/** Returns the version of a file that can be checked without waiting. */
function checkable(path: string, stat: BigIntStats): StoredVersion {
  const { mtimeNs, size, dev } = stat;
  return {
    token: versionOf(stat),
    isUnchanged() {
      const now = lstatNow(path);
      if (now === undefined || !now.isFile()) return false;
      return now.mtimeNs === mtimeNs && now.size === size && now.dev === dev;
    },
  };
}

const LSTAT_OPTIONS = { bigint: true, throwIfNoEntry: false } as const;

/**
 * Calls `lstat` in this thread; undefined if it fails. It blocks for microseconds if the metadata is in memory: 2.2 µs of CPU,
 * while the asynchronous form takes 20 µs of two threads.
 */
function lstatNow(path: string): BigIntStats | undefined {
  try {
    return lstatSync(path, LSTAT_OPTIONS);
  } catch {
    return undefined;
  }
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
  const prefix = root.endsWith(sep) ? root : root + sep;

  function pathOf(key: string): string {
    // Such a key needs no normalisation, which would take as long as a call to the file system.
    if (!/(?:^|\/)\.{0,2}(?:\/|$)/.test(key)) return prefix + key;
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
      throw new ZpublishError("source-unreadable", `its directory cannot be read (${codeOf(error)})`, {
        cause: error,
      });
    }
    throw new ZpublishError("source-unreadable", "expected a directory, found something else");
  }

  async function stat(key: string, signal?: AbortSignal): Promise<ObjectStat | undefined> {
    signal?.throwIfAborted();
    const found = await files.stat(pathOf(key));
    return found === undefined
      ? absent()
      : { version: { token: versionOf(found) }, byteLength: Number(found.size) };
  }

  function read(key: string, options: ReadObjectOptions = {}): MaybePromise<ObjectBytes | undefined> {
    options.signal?.throwIfAborted();
    const found = files.read(pathOf(key), (file) => readRange(key, file, options));
    return whenDone(found, (bytes) => bytes ?? absent());
  }

  return {
    location: root,
    identity: `file:${root}`,
    stat,
    read: async (key, options) => read(key, options),
    local: { version: (key, wasChecked) => files.version(pathOf(key), wasChecked), read },
    placeOf: (key) => ({ location: pathOf(key) }),
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

/** Reads the bytes that are asked for. @throws ZpublishError `source-changed`, `corrupt-chunk` */
function readRange(
  key: string,
  { stat, readBytes }: OpenFile,
  options: ReadObjectOptions,
): MaybePromise<ObjectBytes> {
  const token = versionOf(stat);
  if (options.version !== undefined && options.version.token !== token) {
    throw new ZpublishError("source-changed", `'${key}' has another version than expected`, {
      details: { key },
    });
  }
  const objectByteLength = Number(stat.size);
  const { offset, byteLength } = resolveObjectRange(key, objectByteLength, options);
  return whenDone(readBytes(offset, byteLength, options.allocate), (bytes) => ({
    version: { token },
    bytes,
    objectByteLength,
  }));
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
