import { type MaybePromise, whenDone } from "../event-loop/maybe-promise.js";
import type { ObjectStat } from "../stores/byte-store.js";
import type { FreshObjects } from "../stores/object-versions.js";
import {
  type ChunkReader,
  HIDDEN,
  placeOfPart,
  type StoredVersion,
  type VersionOptions,
} from "../zarr/chunk-reader.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import { createFileBlocks } from "./file-blocks.js";
import type { FileFormat } from "./file-format.js";
import { createFindPlace, type FileArray, type FileChunkTable, memoryFor } from "./file-index.js";
import { createVersionedFile, type VersionedFile } from "./versioned-file.js";

/** Makes a chunk from a recipe; see `FileFormat.makeChunk`. */
export type MakeFileChunk = (
  recipe: unknown,
  chunkCoords: readonly number[],
) => Promise<Uint8Array<ArrayBuffer> | undefined>;

/**
 * Opens the reader of an array's chunks in a file. They have the version of the file; those that the index does not have are absent
 * while the file has that version.
 */
export function openTableChunkReader(
  file: VersionedFile,
  array: Pick<FileArray, "name" | "shape" | "chunkShape" | "chunks">,
  makeChunk: MakeFileChunk,
): ChunkReader {
  const { chunks } = array;
  const version = file.version.token;
  const labelOf = (chunkCoords: readonly number[]) => () => `chunk '${chunkCoords.join(".")}'`;

  function look(isPresent: boolean, { wasChecked }: VersionOptions = {}): MaybePromise<StoredVersion> {
    const checked = file.check(wasChecked);
    return isPresent ? checked : whenDone(checked, (found) => ({ ...found, token: undefined }));
  }

  const absent = () => whenDone(file.check(), () => undefined);

  /** The reader of chunks whose bytes are not simply somewhere in the file. */
  function readerOf(
    read: (chunkCoords: readonly number[]) => MaybePromise<Uint8Array<ArrayBuffer> | undefined>,
    isPresent: boolean,
  ): ChunkReader {
    return {
      version: (_chunkCoords, options) => look(isPresent, options),
      places: { has: () => isPresent, variantOf: () => 0, placeOf: undefined },
      read: (chunkCoords, { maxByteLength } = {}) =>
        whenDone(read(chunkCoords), (bytes) => {
          if (bytes === undefined) return absent();
          assertStoredLength(bytes.length, maxByteLength, labelOf(chunkCoords));
          return { bytes, version };
        }),
    };
  }

  if (chunks.kind === "inline") {
    const { bytes } = chunks;
    // Of its own, as callers write to it.
    return readerOf(() => bytes?.slice() as Uint8Array<ArrayBuffer> | undefined, bytes !== null);
  }
  if (chunks.kind === "made") return readerOf((chunkCoords) => makeChunk(chunks.recipe, chunkCoords), true);

  const find = createFindPlace(array, chunks);
  const { local } = file;
  let filePlace: ReturnType<typeof file.place>;
  const has = (chunkCoords: readonly number[]) => find(chunkCoords) !== undefined;
  const placeOf = (chunkCoords: readonly number[]) => {
    const place = find(chunkCoords);
    return place && local && { ...local, version, ...place };
  };

  return {
    version: (chunkCoords, options) => look(has(chunkCoords), options),
    places: {
      has,
      variantOf: (chunkCoords) => find(chunkCoords)?.variant ?? 0,
      placeOf: local && placeOf,
    },
    locate(chunkCoords) {
      const place = find(chunkCoords);
      if (place === undefined) return undefined;
      const { offset, wholeByteLength, variant } = place;
      // Padding is outside of the array, so that whatever follows in the file may stand for it.
      if (variant !== 0 || offset + wholeByteLength > file.byteLength) return HIDDEN;
      filePlace ??= file.place();
      return whenDone(filePlace, (found) => placeOfPart(found, { offset, byteLength: wholeByteLength }));
    },
    read(chunkCoords, { allocate, maxByteLength } = {}) {
      const place = find(chunkCoords);
      if (place === undefined) return absent();
      const { offset, byteLength, wholeByteLength, variant } = place;
      assertStoredLength(wholeByteLength, maxByteLength, labelOf(chunkCoords));
      const memory = memoryFor(place, allocate);
      return whenDone(file.read(offset, byteLength, memory.allocate), (bytes) => {
        const chunk = { bytes: memory.whole(bytes), version };
        return variant === 0 ? chunk : { ...chunk, variant };
      });
    },
  };
}

/** The places of an array's chunks in one version of a file: plain data, which is kept as `RangeChunks.index`. */
export interface ChunkIndex {
  readonly file: ObjectStat;
  readonly format: FileFormat["id"];
  readonly chunks: Exclude<FileChunkTable, { kind: "inline" }>;
}

/** A file whose chunks have places that are known. */
interface IndexedFile {
  /** States of the objects of its store. */
  readonly objects: FreshObjects;
  readonly key: string;
  /** As for {@link createVersionedFile}. */
  readonly identity: string;
  readonly hasMoved: () => Promise<boolean>;
  /** Formats that the file may have. */
  readonly formats: readonly FileFormat[];
}

/** Opens the reader of an array's chunks from their places, without any I/O: reads check that the file has the version of the places. */
export function openIndexedChunks(
  { objects, key, identity, hasMoved, formats }: IndexedFile,
  array: Pick<FileArray, "name" | "shape" | "chunkShape">,
  { file, format, chunks }: ChunkIndex,
): ChunkReader {
  const versioned = createVersionedFile(objects.store, key, file, objects, identity, hasMoved);
  const make = chunks.kind === "made" ? formats.find(({ id }) => id === format)?.makeChunk : undefined;
  const blocks = make && createFileBlocks(versioned);
  return openTableChunkReader(
    versioned,
    { ...array, chunks },
    async (recipe, coords) => blocks && make(blocks, recipe, coords),
  );
}
