import { createHash } from "node:crypto";
import { createBoundedMap } from "../collections/bounded-map.js";
import { combinations } from "../collections/combinations.js";
import {
  type AxisChunk,
  type ChunkAxis,
  chunksWithin,
  isRegularChunk,
  lengthRangeOf,
} from "../model/chunk-axis.js";
import { elementCount } from "../model/data-tree.js";
import type {
  ChunkPiece,
  ChunkReader,
  FileChunks,
  PartChunkReader,
  ShardChunks,
  ShardLevel,
} from "../zarr/chunk-reader.js";
import { createPartChunkReader, type FindPieces } from "../zarr/part-reader.js";
import { completeCodec, decodeProblem } from "../zarr/plan/codec-rules.js";
import { MAX_ENCODE_BYTES } from "../zarr/plan/create-encoding-plan.js";
import { unservable } from "../zarr/plan/encoding-plan.js";
import { storedLayoutOf } from "../zarr/plan/stored-layout.js";
import type { ParsedArray, StoredArray } from "../zarr/stored-array.js";
import { openLocalChunkReader } from "./chunk-reader.js";

/**
 * Gives an array whose files have unequal lengths the chunks of a regular grid; leaves others as they are. A chunk that is stored with that
 * shape is passed through, others are put together from pieces of stored chunks. In unequal shards all chunks have one shape, and each is
 * passed through.
 * @throws ZpublishError `unsupported`, naming the array, if stored chunks cannot be decoded
 */
export function withRegularGrid(parsed: ParsedArray): ParsedArray {
  const { array, warnings } = parsed;
  const { axes, path, chunks: source } = array;
  if (axes === undefined || (source.kind !== "files" && source.kind !== "shards")) return parsed;
  if (source.kind === "files") assertDecodable(array, axes);
  const store = source.objects?.store ?? source.root ?? source.directory;
  let reader: PartChunkReader | undefined;
  const openReader = (): PartChunkReader => {
    reader ??= createPartChunkReader(createFindStored(array, axes, source), (opened) => opened);
    return reader;
  };
  const chunks = Object.freeze({ kind: "parts", store, path, axis: undefined, openReader } as const);
  return { array: { ...array, chunks, ...(source.kind === "files" && { variants: [[]] }) }, warnings };
}

function assertDecodable(array: StoredArray, axes: readonly ChunkAxis[]): void {
  const { kind, numpyName, itemSize } = array.dataType;
  const problem =
    kind === "O"
      ? `items of ${numpyName} have no fixed size`
      : array.codecs.map((codec) => decodeProblem(completeCodec(codec))).find(Boolean);
  if (problem !== undefined)
    throw unservable(array, `its chunks have unequal lengths and have to be put together, but ${problem}`);
  const longest = axes.map((axis) => lengthRangeOf(axis)[1]);
  const byteLength = elementCount(longest) * itemSize;
  if (byteLength <= MAX_ENCODE_BYTES) return;
  const received = `up to (${longest.join(", ")}), which is ${byteLength}`;
  throw unservable(
    array,
    `expected stored chunks of at most ${MAX_ENCODE_BYTES} bytes, received ${received}`,
  );
}

/** Files of one shape. */
type FileForm = Pick<ChunkPiece, "reader" | "layout" | "part">;

/** Shapes that are remembered: there may be as many as chunks. */
const MAX_FORMS = 1_024;

/** A stored chunk along one axis, as the reader of its form knows it, and the length of its file. */
type StoredChunkAlong = AxisChunk & { readonly fileLength: number };

function createFindStored(
  array: StoredArray,
  axes: readonly ChunkAxis[],
  source: FileChunks | ShardChunks,
): FindPieces<ChunkReader> {
  const { chunkShape, path } = array;
  const isSharded = source.kind === "shards";
  const longest = axes.map((axis) => lengthRangeOf(axis)[1]);
  const forms = createBoundedMap<FileForm>({ maxEntries: MAX_FORMS });
  const open = (each: FileChunks | ShardChunks) =>
    each.objects?.openReader(each) ?? openLocalChunkReader(each, false);
  const files = isSharded ? undefined : open(source);

  function formOf(chunks: readonly StoredChunkAlong[]): FileForm {
    const key = chunks.map(({ fileLength }) => fileLength).join();
    let form = forms.get(key);
    if (form !== undefined) return form;
    const own = isSharded ? { ...source, levels: levelsOf(source.levels, chunks) } : source;
    const { variants: _none, ...rest } = array;
    const stored = storedLayoutOf({ ...rest, chunkShape: chunks.map(({ decodedLength }) => decodedLength) });
    const content = JSON.stringify([path, stored, own.kind === "shards" && own.levels]);
    const part = createHash("sha256").update(content).digest().toString("hex", 0, 8);
    const layout = Object.freeze({ ...stored, name: part, title: `array '${path}'`, conversion: undefined });
    form = { reader: files ?? open(own), layout, part };
    forms.set(key, form);
    return form;
  }

  /** Returns the levels of shards of some shape. @param levels Those of the longest shards. */
  function levelsOf([outermost, ...inner]: readonly ShardLevel[], chunks: readonly StoredChunkAlong[]) {
    const perShard = outermost!.chunksPerShard;
    const ownPerShard = chunks.map(({ fileLength }, axis) => (perShard[axis]! * fileLength) / longest[axis]!);
    return [{ ...outermost!, chunksPerShard: ownPerShard }, ...inner];
  }

  function chunksAlong(index: number, axis: number): StoredChunkAlong[] {
    const length = chunkShape[axis]!;
    const start = index * length;
    const files = chunksWithin(axes[axis]!, start, start + length);
    return files.map((file) => {
      const fileLength = file.decodedLength;
      if (!isSharded) return { ...file, fileLength };
      const own = (file.index * fileLength + start - file.start) / length;
      return { index: own, start, length, decodedLength: length, fileLength };
    });
  }

  return {
    passed(coords) {
      const chunks = coords.map((index, axis) => chunksAlong(index, axis)[0]!);
      if (!chunks.every((chunk, axis) => isRegularChunk(axes[axis]!, chunk, chunkShape[axis]!)))
        return undefined;
      const { reader, part } = formOf(chunks);
      return { array: reader, part, coords: chunks.map(({ index }) => index) };
    },
    pieces(coords) {
      return Array.from(combinations(coords.map(chunksAlong)), (chunks) => {
        const { reader, layout, part } = formOf(chunks);
        const begin = chunks.map(({ start }) => start);
        const end = chunks.map(({ start, length }, axis) => Math.min(start + length, axes[axis]!.extent));
        return {
          array: reader,
          layout,
          part,
          coords: chunks.map(({ index }) => index),
          origin: begin,
          begin,
          end,
        };
      });
    },
  };
}
