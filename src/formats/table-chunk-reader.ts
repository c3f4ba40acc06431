import type { ChunkPlace, ChunkReader, StoredChunk } from "../zarr/chunk-reader.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import { createFindPlace, type FileArray, memoryFor } from "./file-index.js";
import type { VersionedFile } from "./versioned-file.js";

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

  /** The reader of chunks whose bytes are not simply somewhere in the file. */
  function readerOf(
    read: (chunkCoords: readonly number[]) => Promise<Uint8Array<ArrayBuffer> | undefined>,
    isAbsent: boolean,
  ): ChunkReader {
    return {
      async version() {
        await file.assertUnchanged();
        return isAbsent ? undefined : version;
      },
      versionNow: (_chunkCoords, wasChecked) => (isAbsent ? undefined : file.versionNow(wasChecked)),
      has: () => !isAbsent,
      async read(chunkCoords, { maxByteLength } = {}) {
        const bytes = await read(chunkCoords);
        if (bytes === undefined) return absent();
        assertStoredLength(bytes.length, maxByteLength, version, labelOf(chunkCoords));
        return { bytes, version };
      },
      async measure(chunkCoords) {
        const bytes = await read(chunkCoords);
        return bytes === undefined ? absent() : { byteLength: bytes.length, version };
      },
    };
  }

  async function absent(): Promise<undefined> {
    await file.assertUnchanged();
    return undefined;
  }

  if (chunks.kind === "inline") {
    const { bytes } = chunks;
    // Of its own, as callers write to it.
    return readerOf(async () => bytes?.slice() as Uint8Array<ArrayBuffer> | undefined, bytes === null);
  }
  if (chunks.kind === "made") return readerOf((chunkCoords) => makeChunk(chunks.recipe, chunkCoords), false);

  const find = createFindPlace(array, chunks);
  const { local } = file;

  function storedChunk(place: ChunkPlace, bytes: Uint8Array): StoredChunk {
    return place.variant === 0 ? { bytes, version } : { bytes, version, variant: place.variant };
  }

  return {
    async version(chunkCoords) {
      await file.assertUnchanged();
      return find(chunkCoords) === undefined ? undefined : version;
    },
    versionNow: (chunkCoords, wasChecked) =>
      find(chunkCoords) === undefined ? undefined : file.versionNow(wasChecked),
    placeOf:
      local &&
      ((chunkCoords) => {
        const place = find(chunkCoords);
        return place && { ...local, version, ...place };
      }),
    has: (chunkCoords) => find(chunkCoords) !== undefined,
    variantOf: (chunkCoords) => find(chunkCoords)?.variant ?? 0,
    readNow(chunkCoords, { allocate, maxByteLength = Number.POSITIVE_INFINITY } = {}) {
      const place = find(chunkCoords);
      if (place === undefined || place.wholeByteLength > maxByteLength) return undefined;
      const memory = memoryFor(place, allocate);
      const bytes = file.readNow(place.offset, place.byteLength, memory.allocate);
      return bytes && storedChunk(place, memory.whole(bytes));
    },
    async read(chunkCoords, { allocate, maxByteLength } = {}) {
      const place = find(chunkCoords);
      if (place === undefined) return absent();
      const { offset, byteLength, wholeByteLength } = place;
      assertStoredLength(wholeByteLength, maxByteLength, version, labelOf(chunkCoords));
      const memory = memoryFor(place, allocate);
      return storedChunk(place, memory.whole(await file.read(offset, byteLength, memory.allocate)));
    },
    async measure(chunkCoords) {
      const place = find(chunkCoords);
      return place === undefined ? absent() : { byteLength: place.wholeByteLength, version };
    },
  };
}
