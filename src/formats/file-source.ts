import { createHash } from "node:crypto";
import { isDamage, ZpublishError } from "../errors.js";
import type { ByteStore, ObjectBytes, ObjectStat } from "../stores/byte-store.js";
import { createFreshObjects, type Freshness } from "../stores/object-versions.js";
import { type Source, type StoredTree, withinLocation } from "../zarr/stored-tree.js";
import { createFileBlocks } from "./file-blocks.js";
import { type FileBlocks, type FileFormat, HEAD_BYTES } from "./file-format.js";
import { indexedFileOf, type KeptIndexes } from "./kept-indexes.js";
import { treeOfIndex } from "./tree-of-index.js";
import { createVersionedFile, type VersionedFile } from "./versioned-file.js";

/** A file in a store. */
export interface FilePlace {
  readonly store: ByteStore;
  readonly key: string;
}

/** Options of {@link createFileSource}. */
interface FileSourceOptions extends FilePlace {
  /** As the operator wrote it, for messages. */
  readonly location: string;
  /** Formats that the file may have, also after it was replaced. */
  readonly formats: readonly FileFormat[];
  readonly freshness: Freshness;
  /** The first bytes of the file, if they were read already. */
  readonly head?: ObjectBytes | undefined;
  /** Indexes that are kept between runs. Default: none are. */
  readonly kept?: KeptIndexes | undefined;
  /** Finds the file again, since a link may lead to another one by now. Default: it stays where it is. */
  readonly locate?: (() => Promise<FilePlace>) | undefined;
}

/** Time for which the first bytes that the caller has read say which version the file has. */
const HEAD_VALID_MS = 1_000;
/** Attempts to read a file that is replaced while it is read. */
const MAX_ATTEMPTS = 3;

/** Creates the source of a file whose format has arrays. If the file has another version, its index is read again. */
export function createFileSource(options: FileSourceOptions): Source {
  const { location, formats, freshness } = options;
  let place: FilePlace = options;
  let objects = createFreshObjects(place.store, freshness);
  let { head } = options;
  const createdAtMs = performance.now();
  let latest: StoredTree | undefined;
  /** The last tree of a file that was not damaged. */
  let good: StoredTree | undefined;

  /** Finds the file, and its version. @throws ZpublishError `invalid-metadata` if there is none, `source-unreadable` */
  async function look(): Promise<ObjectStat> {
    const found = (await options.locate?.()) ?? place;
    if (!isSamePlace(found, place)) {
      place = found;
      objects = createFreshObjects(place.store, freshness);
    }
    const beganMs = performance.now();
    const stat = await place.store.stat(place.key);
    if (stat === undefined)
      throw latest === undefined
        ? new ZpublishError("invalid-metadata", "it does not exist")
        : new ZpublishError("source-unreadable", "it is no longer there");
    objects.believe(place.key, stat, beganMs);
    return stat;
  }

  function fingerprintOf({ version }: ObjectStat): string {
    return hashOf([place.store.identity, place.key, version.token]);
  }

  /** Reads the file; again if it is replaced meanwhile. */
  async function read(
    progress?: (arraysRead: number) => void,
    attemptsLeft = MAX_ATTEMPTS,
  ): Promise<StoredTree> {
    // A file that was looked at some time ago may be another one by now.
    const known = performance.now() - createdAtMs < HEAD_VALID_MS ? head : undefined;
    head = undefined;
    const stat: ObjectStat =
      known === undefined ? await look() : { version: known.version, byteLength: known.objectByteLength };
    if (known !== undefined) objects.believe(place.key, stat, createdAtMs);
    const fingerprint = fingerprintOf(stat);
    if (latest?.fingerprint === fingerprint) return latest;
    try {
      const tree = await readVersion(stat, known?.bytes);
      latest = Object.freeze({ ...tree, identity: fingerprint, fingerprint });
      good = latest;
    } catch (error) {
      if (!(error instanceof ZpublishError)) throw error;
      if (error.code === "source-changed" && attemptsLeft > 1) return read(progress, attemptsLeft - 1);
      if (good === undefined || !isDamage(error)) throw error;
      latest = Object.freeze({ ...refusedTree(good, error.message), identity: fingerprint, fingerprint });
    }
    progress?.(latest.groups.reduce((count, group) => count + group.arrays.length, 0));
    return latest;
  }

  async function readVersion(stat: ObjectStat, firstBytes?: Uint8Array): Promise<TreeParts> {
    const from = place;
    const { store, key } = from;
    const hasMoved = async () => !isSamePlace((await options.locate?.().catch(() => from)) ?? from, from);
    const file = createVersionedFile(store, key, stat, objects, fingerprintOf(stat), hasMoved);
    const blocks = createFileBlocks(file, firstBytes);
    const isTold = isVersionTold(file);
    const { format, index } = await findIndex(file, blocks, isTold ? options.kept : undefined);
    const tree = await treeOfIndex({
      ...{ file, index, key },
      store: store.identity,
      format: isTold ? format.id : undefined,
      makeChunk: async (recipe, chunkCoords) => format.makeChunk?.(blocks, recipe, chunkCoords),
    });
    const warnings = isTold ? tree.warnings : Object.freeze([...tree.warnings, UNTOLD]);
    return { ...tree, file, warnings };
  }

  /** Returns the index that was kept of this version, or reads it, and keeps it. */
  async function findIndex(
    { version, byteLength }: VersionedFile,
    blocks: FileBlocks,
    kept: KeptIndexes | undefined,
  ) {
    const file = indexedFileOf(place.store, place.key);
    const stamps = formats.map(({ id, revision }) => [id, revision, version.token, byteLength].join("\n"));
    const known = await kept?.get(file, stamps);
    if (known !== undefined) {
      const format = formats[stamps.indexOf(known.stamp)] as FileFormat;
      return { format, index: known.index };
    }
    const format = await formatOf(blocks, formats);
    const index = await format.readIndex(blocks);
    // No one waits until it is written.
    void kept?.set(file, { stamp: stamps[formats.indexOf(format)] as string, index });
    return { format, index };
  }

  return {
    location,
    async check() {
      // The first bytes told its format; its index may take long. They are dropped, since there may be thousands of files.
      if (head === undefined) await withinLocation(location, look);
      head = undefined;
    },
    readTree: (progress) => withinLocation(location, () => read(progress)),
    fingerprint: () => withinLocation(location, async () => fingerprintOf(await look())),
    close: async () => undefined,
  };
}

const UNTOLD =
  "its store sends neither ETag nor Last-Modified: if the file is replaced by one of the same length, parts of both may be served";

/** Tells whether the version of a file is more than its length, as nearly all web servers say it. */
function isVersionTold({ local, version }: VersionedFile): boolean {
  return local !== undefined || version.etag !== undefined || version.lastModified !== undefined;
}

function isSamePlace(one: FilePlace, other: FilePlace): boolean {
  return one.store.identity === other.store.identity && one.key === other.key;
}

type TreeParts = Omit<StoredTree, "identity" | "fingerprint">;

/** Finds the format of a file. @throws ZpublishError `invalid-metadata` if it has none that is known. */
async function formatOf(blocks: FileBlocks, formats: readonly FileFormat[]): Promise<FileFormat> {
  const head = await blocks.read(0, Math.min(HEAD_BYTES, blocks.byteLength));
  const format = formats.find((each) => each.recognizes(head));
  if (format !== undefined) return format;
  const expected = formats.map(({ id }) => id).join(", ");
  throw new ZpublishError(
    "invalid-metadata",
    `expected a file of a known format (${expected}), found another one`,
  );
}

/** Returns a tree that refuses all that was served before: an open dataset waits whether the file is only half written. */
function refusedTree(before: StoredTree, reason: string): TreeParts {
  const root = before.groups.filter(({ path }) => path === "/").map((group) => ({ ...group, arrays: [] }));
  const paths = before.groups.flatMap(({ path, arrays }) => [
    ...(path === "/" ? [] : [path.slice(1)]),
    ...arrays.map((array) => array.path),
  ]);
  return {
    groups: Object.freeze(root.map((group) => Object.freeze(group))),
    refused: Object.freeze(paths.map((path) => ({ path, reason }))),
    warnings: Object.freeze([]),
  };
}

function hashOf(parts: readonly string[]): string {
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 40);
}
