import { ZpublishError } from "../errors.js";
import { memoryFor } from "../formats/chunk-places.js";
import type { ByteStore, ReadObjectOptions } from "../stores/byte-store.js";
import {
  type ChunkPiece,
  type ChunkReader,
  type LocalPlace,
  type PartChunkReader,
  PIECED,
  type StoredChunk,
  type ThreadSource,
  versionOfPassed,
  versionOfPieces,
} from "../zarr/chunk-reader.js";
import { assertStoredLength } from "../zarr/plan/max-stored-byte-length.js";
import type { GivenBytes, GivenChunk } from "./chunk-task.js";

/** Local files and stores that a worker opens, and keeps open. */
export interface GivenPlaces {
  readonly filesOf: (directory: string) => ByteStore;
  readonly readerOf: (source: ThreadSource) => ChunkReader;
}

/** A chunk that came with a task, as it is read. */
interface OpenChunk {
  readonly reader: ChunkReader;
  /** Undefined if the chunk is not put together. */
  readonly pieces?: readonly ChunkPiece[];
}

/** Opens a reader of chunks that came with a task. */
export function openGivenReader(
  stored: readonly GivenChunk[],
  places: GivenPlaces,
): ChunkReader | PartChunkReader {
  const chunks = new Map(stored.map((chunk) => [chunk.coords.join("."), openChunk(chunk, places)]));
  const absent: OpenChunk = { reader: readerOfBytes(ABSENT, places) };
  const find = (coords: readonly number[]) => chunks.get(coords.join(".")) ?? absent;
  return {
    version: (coords) => find(coords).reader.version(coords),
    read: (coords, options) => find(coords).reader.read(coords, options),
    measure: (coords) => find(coords).reader.measure(coords),
    variantOf: (coords) => (find(coords).pieces === undefined ? 0 : PIECED),
    piecesOf: async (coords) => find(coords).pieces ?? [],
  };
}

const ABSENT: GivenBytes = { version: undefined, bytes: undefined };

function openChunk(chunk: GivenChunk, places: GivenPlaces): OpenChunk {
  if (chunk.pieces === undefined) return { reader: readerOfBytes(chunk, places) };
  const pieces = chunk.pieces.map(({ given, ...piece }) => ({
    ...piece,
    reader: readerOfBytes(given, places),
  }));
  const [only] = pieces;
  if (chunk.variant === PIECED || only === undefined) return { reader: readerOfPieces(pieces), pieces };
  return { reader: readerOfPassed(only) };
}

/** Opens a reader of one chunk, whose coordinates it knows unless the worker opens its source. */
function readerOfBytes(
  { version, variant = 0, bytes, place, source }: GivenBytes,
  places: GivenPlaces,
): ChunkReader {
  if (source !== undefined) return places.readerOf(source);
  return {
    version: async () => version,
    async read(_coords, { allocate, maxByteLength } = {}) {
      if (place !== undefined)
        return readPlace(places.filesOf(place.directory), place, { allocate, maxByteLength });
      if (bytes === undefined) return undefined;
      // Codecs expect memory that is not shared.
      const own = allocate?.(bytes.length) ?? new Uint8Array(bytes.length);
      own.set(bytes);
      return { bytes: own, version: version ?? "", variant };
    },
    async measure() {
      const byteLength = place?.wholeByteLength ?? bytes?.length;
      return byteLength === undefined ? undefined : { byteLength, version: version ?? "" };
    },
  };
}

/** Opens a reader of a chunk of a joined array that is one chunk of a part. */
function readerOfPassed(piece: ChunkPiece): ChunkReader {
  const { reader, coords } = piece;
  return {
    async version() {
      const version = await reader.version(coords);
      return version && versionOfPassed(piece, version);
    },
    async read(_coords, options) {
      const stored = await reader.read(coords, options);
      return stored && { bytes: stored.bytes, version: versionOfPassed(piece, stored.version) };
    },
    async measure() {
      const size = await reader.measure(coords);
      return size && { ...size, version: versionOfPassed(piece, size.version) };
    },
  };
}

/** Opens a reader of the version of a chunk that is put together. */
function readerOfPieces(pieces: readonly ChunkPiece[]): ChunkReader {
  return {
    async version() {
      const versions: (string | undefined)[] = [];
      for (const { reader, coords } of pieces) versions.push(await reader.version(coords));
      return versionOfPieces(pieces, versions);
    },
    read: async () => undefined,
    measure: async () => undefined,
  };
}

/** Reads a chunk of a local file. @throws ZpublishError `source-changed` if the file has another version, `source-unreadable` */
async function readPlace(
  files: ByteStore,
  place: LocalPlace,
  { allocate, maxByteLength }: Pick<ReadObjectOptions, "allocate" | "maxByteLength">,
): Promise<StoredChunk> {
  const { key, version, offset, byteLength, wholeByteLength, variant } = place;
  assertStoredLength(wholeByteLength, maxByteLength, version, () => `'${key}'`);
  const memory = memoryFor(place, allocate);
  const found = await files.read(key, {
    range: { offset, byteLength },
    version: { token: version },
    allocate: memory.allocate,
  });
  if (found === undefined) throw new ZpublishError("source-unreadable", `'${key}' is no longer there`);
  return { bytes: memory.whole(found.bytes), version, variant };
}
