import { messageOf, ZpublishError } from "../errors.js";
import { HEAD_BYTES } from "../formats/file-format.js";
import type { ByteStore, ObjectBytes } from "../stores/byte-store.js";
import { type Source, type StoredTree, withinLocation } from "../zarr/stored-tree.js";
import { createStoreDocuments } from "../zarr-store/object-hierarchy.js";
import { createObjectSource, type ObjectSourceOptions } from "../zarr-store/zarr-source.js";

/** Bytes that are read first of what is named like a file: a block of its index. */
const FIRST_BLOCK_BYTES = 2 ** 20;

/** A file by its first bytes: its kind's source; undefined if it is of no kind that is known. */
export type OpenFileSource = (file: ByteStore, key: string, head: ObjectBytes) => Source | undefined;

/** Options of {@link createRemoteSource}. */
export interface RemoteSourceOptions extends Omit<ObjectSourceOptions, "documents"> {
  /** The store that has the location as a file, and its key there; undefined if the location can only be a directory. */
  readonly file: { readonly store: ByteStore; readonly key: string } | undefined;
  readonly openFile: OpenFileSource;
  /** Tells whether the index of the file is kept, so that no more than its first bytes are needed. Default: it is not. */
  readonly isKept?: (() => Promise<boolean>) | undefined;
  /** Opens an Icechunk repository; undefined if the location is none. Default: it is none. */
  readonly openRepository?: () => Promise<Source | undefined>;
  /** Opens a directory of references; see `readsAsReferences`. */
  readonly openReferences: (zmetadata: string) => Source | undefined;
}

/**
 * Creates the source of a location that may be a directory or a file. What it is is found out when it is first read, from documents and
 * first bytes that are asked for at the same time.
 */
export function createRemoteSource(options: RemoteSourceOptions): Source {
  const { location, store, file, openFile } = options;
  const looksLikeFile = file !== undefined && /.\.(?!zarr$)[^.]+$/i.test(file.key);
  let found: Source | undefined;
  /** True if documents or first bytes told what it is. */
  let isKnown = false;
  /** True once its tree has been read: then it stays what it is. */
  let isRead = false;

  /** Finds out what the location is. @param headBytes Bytes to read of it as a file. */
  async function find(headBytes: number): Promise<Source> {
    const documents = createStoreDocuments(store);
    const reading = readHead(headBytes);
    // What is named like a file need not be asked for documents.
    const early = looksLikeFile ? await reading : undefined;
    const format = typeof early === "object" ? open(early) : undefined;
    if (format !== undefined) return format;
    const [zarrJson, zmetadata, head] = await Promise.all([
      documents.read("zarr.json"),
      documents.read(".zmetadata"),
      reading,
    ]);
    isKnown = zarrJson !== undefined || zmetadata !== undefined;
    const references = zmetadata === undefined ? undefined : options.openReferences(zmetadata);
    if (references !== undefined) return references;
    const directory = createObjectSource({ ...options, documents });
    if (zarrJson !== undefined || zmetadata !== undefined) return directory;
    const repository = typeof head === "object" ? undefined : await options.openRepository?.();
    isKnown = repository !== undefined;
    if (repository !== undefined) return repository;
    if (head === undefined) return withReason(directory, () => absenceOf(location, file !== undefined));
    if (typeof head === "string") return withReason(directory, (reason) => `${reason}; as a file: ${head}`);
    const source = open(head);
    if (source !== undefined) return source;
    throw new ZpublishError("unsupported", unknownFile(head.bytes));
  }

  function open(head: ObjectBytes): Source | undefined {
    const source = openFile((file as { store: ByteStore }).store, (file as { key: string }).key, head);
    isKnown = source !== undefined;
    return source;
  }

  /** Reads the first bytes of the location as a file; undefined if there is none, a text if that cannot be told. */
  async function readHead(byteLength: number): Promise<ObjectBytes | string | undefined> {
    if (file === undefined) return undefined;
    const { store, key } = file;
    try {
      const range = { offset: 0, byteLength };
      return await store.read(key, { range }).catch((error: unknown) => {
        // The whole file may be shorter.
        if (!(error instanceof ZpublishError) || error.code !== "corrupt-chunk") throw error;
        return store.read(key, { maxByteLength: byteLength });
      });
    } catch (error) {
      return messageOf(error);
    }
  }

  async function source(headBytes: number): Promise<Source> {
    found ??= await withinLocation(location, () => find(headBytes));
    return found;
  }

  async function readTree(progress?: (arraysRead: number) => void): Promise<StoredTree> {
    const isEnough = found !== undefined || !looksLikeFile || (await options.isKept?.()) === true;
    const current = await source(isEnough ? HEAD_BYTES : FIRST_BLOCK_BYTES);
    try {
      const tree = await current.readTree(progress);
      isRead = true;
      return tree;
    } catch (error) {
      // What could not be read at first may be something else: a file that could not be looked at, or one that is put there later.
      if (!isRead) found = undefined;
      throw error;
    }
  }

  return {
    location,
    get versions() {
      return found?.versions;
    },
    async check() {
      const current = await source(HEAD_BYTES);
      if (!isKnown) await readTree();
      else await current.check?.();
    },
    readTree,
    fingerprint: async () =>
      isRead ? (await source(HEAD_BYTES)).fingerprint() : (await readTree()).fingerprint,
    close: async () => found?.close(),
  };
}

/** Says what is wrong with a location that is no object, and has no documents of a Zarr store below it. */
function absenceOf(location: string, canBeFile: boolean): string {
  if (/^s3:/i.test(location)) return `${location}: expected an object or a Zarr store, found neither`;
  const documents = canBeFile ? "" : " for .zgroup, .zarray, .zmetadata and zarr.json";
  return `${location}: the server answers 404 Not Found${documents}`;
}

/** Changes the error of a directory that has no document of a store. @param reasonOf Returns the message from that of the error. */
function withReason(directory: Source, reasonOf: (reason: string) => string): Source {
  return {
    ...directory,
    async readTree(progress): Promise<StoredTree> {
      try {
        return await directory.readTree(progress);
      } catch (error) {
        if (!(error instanceof ZpublishError) || error.details.isAbsent !== true) throw error;
        throw new ZpublishError(error.code, reasonOf(error.message), { cause: error });
      }
    },
  };
}

/** Returns the message about a file of no kind that is known. */
export function unknownFile(head: Uint8Array): string {
  const begin = JSON.stringify(Buffer.from(head.subarray(0, 16)).toString("latin1"));
  const found = head.length === 0 ? "an empty file" : `a file that begins with ${begin}`;
  return `expected a Zarr store, NetCDF, HDF5, GeoTIFF, a zip archive or kerchunk references, found ${found}`;
}
