import { ZpublishError } from "../../errors.js";
import { runCooperatively } from "../../event-loop/cooperative-task.js";
import type { ByteStore, ObjectVersion, ReadObjectOptions } from "../byte-store.js";
import { childPlace } from "../child-place.js";
import { assertKnownVersion } from "../known-version.js";
import { readDirectory, type ZipEntries } from "./central-directory.js";
import { findDirectory, invalid, readTail } from "./end-of-archive.js";
import type { Archive } from "./entry-data.js";
import { readEntry } from "./read-entry.js";

/** Longer directories, of five million entries, are refused before memory is allocated. */
const MAX_DIRECTORY_BYTES = 512 * 2 ** 20;

/**
 * Tells if an object looks like a zip archive.
 * @param bytes Its first four bytes, or more. Archives behind other data, such as a program, are not told by them.
 */
export function isZip(bytes: Uint8Array): boolean {
  const start = Buffer.from(bytes.subarray(0, 4)).toString("latin1");
  return start === "PK\x03\x04" || start === "PK\x05\x06";
}

/** A zip archive as a byte store. Its keys are the names of entries. */
export interface ZipStore extends ByteStore {
  /** Version of the archive, under which its directory was read. All entries have it, and no other one is ever read. */
  readonly version: ObjectVersion;
  /** Entries that are left out because of their names, as text for the operator. */
  readonly warnings: readonly string[];
}

/**
 * Opens a zip archive: reads its directory, usually with one request. An entry that is stored without compression is read by
 * range, in place. Every read throws `source-changed` once the archive has another version; then it has to be opened again.
 *
 * If all entries lie in one folder `….zarr`, keys are without it.
 * @param key Name of the archive in `container`.
 * @throws ZpublishError `source-unreadable` if there is no archive; `invalid-metadata` if it is none, or cut short;
 * `unsupported` if it has several parts.
 */
export async function openZipStore(container: ByteStore, key: string): Promise<ZipStore> {
  const { archive, entries } = await readArchive(container, key);
  const { version } = archive;
  const folder = wrappingFolder(entries);
  const { index } = entries;

  /** Finds an entry. If there is none, the archive has to be the same still: another one may have it. */
  async function findNow(name: string, signal?: AbortSignal): Promise<number | undefined> {
    const number = index.find(folder + name);
    if (number >= 0) return number;
    await assertKnownVersion(container, key, version, signal);
    return undefined;
  }

  async function read(name: string, options: ReadObjectOptions = {}) {
    if (options.version !== undefined && options.version.token !== version.token) {
      throw new ZpublishError("source-changed", `'${name}': '${key}' has another version`, {
        details: { key: name },
      });
    }
    const number = await findNow(name, options.signal);
    return number === undefined ? undefined : readEntry(archive, entries, number, name, options);
  }

  return {
    ...childPlace(container, key),
    version,
    warnings: entries.warnings,
    async stat(name, signal) {
      const number = index.find(folder + name);
      await assertKnownVersion(container, key, version, signal);
      return number < 0 ? undefined : { version, byteLength: entries.byteLengths[number] as number };
    },
    read,
    async readIfChanged(name, known, options = {}) {
      if (known.token !== version.token || index.find(folder + name) < 0) return read(name, options);
      await assertKnownVersion(container, key, version, options.signal);
      return "unchanged";
    },
    list: (prefix) => index.list(folder + prefix),
    objectOf(name) {
      if (index.find(folder + name) < 0) return undefined;
      return container.objectOf === undefined ? key : container.objectOf(key);
    },
  };
}

/** Reads the directory. A function of its own, so that the store does not retain the bytes from which it was read. */
async function readArchive(
  container: ByteStore,
  key: string,
): Promise<{ readonly archive: Archive; readonly entries: ZipEntries }> {
  const tail = await readTail(container, key);
  const { version, objectByteLength } = tail;
  const place = findDirectory(key, tail);
  const { offset, byteLength } = place;
  if (byteLength > MAX_DIRECTORY_BYTES) {
    throw invalid(
      key,
      `expected a directory of at most ${MAX_DIRECTORY_BYTES} bytes, received ${byteLength}`,
    );
  }
  const from = offset - tail.offset;
  const range = { offset, byteLength };
  const read = from >= 0 ? tail : await container.read(key, { range, version });
  if (read === undefined) throw new ZpublishError("source-unreadable", `'${key}' is no longer there`);
  const bytes = from >= 0 ? tail.bytes.subarray(from, from + byteLength) : read.bytes;
  const entries = await runCooperatively(readDirectory(key, bytes, place));
  return { archive: { container, key, version, objectByteLength, extraSlack: 0 }, entries };
}

/** Returns the folder `….zarr/` if it holds all entries; else an empty string. */
function wrappingFolder({ index }: ZipEntries): string {
  if (index.size === 0) return "";
  const first = index.keyOf(0);
  const folder = first.slice(0, first.indexOf("/") + 1);
  if (!/\.zarr\/$/i.test(folder)) return "";
  for (let number = 1; number < index.size; number++) if (!index.keyOf(number).startsWith(folder)) return "";
  return folder;
}
