import { messageOf, ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { parseDataType } from "../model/data-type.js";
import type { RangeChunks } from "../zarr/chunk-reader.js";
import { withoutDimensions } from "../zarr/metadata-fields.js";
import type { StoredArray } from "../zarr/stored-array.js";
import {
  comparePaths,
  nameProblem,
  printablePath,
  type Refusal,
  type StoredGroup,
  type StoredTree,
  warnOfName,
} from "../zarr/stored-tree.js";
import type { FileFormat } from "./file-format.js";
import type { FileArray, FileChunkTable, FileIndex } from "./file-index.js";
import { type ChunkIndex, type MakeFileChunk, openTableChunkReader } from "./table-chunk-reader.js";
import type { VersionedFile } from "./versioned-file.js";

/** A file whose index was read. */
interface IndexedFile {
  readonly file: VersionedFile;
  readonly index: FileIndex;
  /** Name of the file's store, and its key there, as in `RangeChunks`. */
  readonly store: string;
  readonly key: string;
  readonly makeChunk: MakeFileChunk;
  /** Its format, if the version of the file is more than its length, so that places of chunks may be kept with it. */
  readonly format: FileFormat["id"] | undefined;
}

/** Makes the groups and arrays of a file's index. Those whose name or type cannot be served go to `refused`. */
export async function treeOfIndex(
  indexed: IndexedFile,
): Promise<Pick<StoredTree, "groups" | "refused" | "warnings" | "format" | "unlimited">> {
  const { index } = indexed;
  const refused: Refusal[] = [...index.refused];
  const warnings: string[] = [...index.warnings];
  const groups: StoredGroup[] = [];
  const slice = createSlice();
  for (const group of index.groups) {
    const path = group.path.slice(1);
    const problem = path === "" ? undefined : nameProblem(path);
    if (problem !== undefined) {
      refused.push({ path: printablePath(path), reason: problem });
      continue;
    }
    warnOfName(path, warnings);
    const arrays: StoredArray[] = [];
    for (const array of group.arrays) {
      if (slice.isOver()) await slice.next();
      const arrayPath = path === "" ? array.name : `${path}/${array.name}`;
      try {
        arrays.push(storeArray(indexed, array, arrayPath));
        warnOfName(arrayPath, warnings);
      } catch (error) {
        if (!(error instanceof ZpublishError)) throw error;
        refused.push({ path: printablePath(arrayPath), reason: messageOf(error) });
      }
    }
    arrays.sort((a, b) => comparePaths(a.path, b.path));
    groups.push(
      Object.freeze({
        path: `/${path}`,
        attrs: withoutDimensions(group.attrs),
        arrays: Object.freeze(arrays),
      }),
    );
  }
  return {
    format: index.format,
    ...(index.unlimited === undefined ? {} : { unlimited: index.unlimited }),
    groups: Object.freeze(groups),
    refused: Object.freeze(refused),
    warnings: Object.freeze(warnings),
  };
}

/** @throws ZpublishError `unsupported`, `invalid-metadata` if its name or type cannot be served. */
function storeArray(indexed: IndexedFile, array: FileArray, path: string): StoredArray {
  const problem = array.name.includes("/") ? "expected a name without a slash" : nameProblem(path);
  if (problem !== undefined) throw new ZpublishError("unsupported", problem);
  const { name, shape, chunkShape, codecs, compressorCount, variants, fill, dimNames, attrs } = array;
  const { servedChunks, servedFilters, servedCompressor, chunks } = array;
  if (chunks.kind === "listed") assertVariants(chunks.variants, variants?.length ?? 0);
  return Object.freeze({
    ...{ name, path, shape, chunkShape },
    dataType: parseDataType(array.dtype),
    axisOrder: Object.freeze(array.axisOrder ?? shape.map((_, axis) => axis)),
    ...{ codecs, compressorCount, fill, dimNames },
    attrs: withoutDimensions(attrs),
    chunks: chunksOf(indexed, array, path),
    ...(variants === undefined ? {} : { variants }),
    ...(servedChunks === undefined ? {} : { servedChunks }),
    ...(servedFilters === undefined ? {} : { servedFilters }),
    ...(servedCompressor === undefined ? {} : { servedCompressor }),
  } satisfies StoredArray);
}

/** @throws ZpublishError `invalid-metadata` if a chunk has codecs that the array does not name: it would be served as it is. */
function assertVariants(variants: Uint8Array | undefined, count: number): void {
  const wrong = variants?.find((variant) => variant > count);
  if (wrong !== undefined)
    throw new ZpublishError("invalid-metadata", `expected variants of at most ${count}, received ${wrong}`);
}

const FORMS = { listed: "ranges", strided: "ranges", inline: "kept", made: "made" } as const;

function differingOf(chunks: FileChunkTable): number {
  if (chunks.kind !== "listed" || chunks.variants === undefined) return 0;
  return chunks.variants.reduce((count, variant) => (variant === 0 ? count : count + 1), 0);
}

/** Tells whether the places of chunks are all that reading them takes: also recipes that are a few numbers, such as those of records. */
function isPlaced(chunks: FileChunkTable): chunks is ChunkIndex["chunks"] {
  if (chunks.kind !== "made") return chunks.kind !== "inline";
  return Object.values(chunks.recipe as object).every((each) => typeof each === "number");
}

/** A function of its own, so that what opens the reader retains no more than it needs. */
function chunksOf(
  { file, store, key, makeChunk, format }: IndexedFile,
  array: FileArray,
  path: string,
): RangeChunks {
  const { version, byteLength } = file;
  const { chunks } = array;
  return Object.freeze({
    kind: "ranges",
    ...{ store, key, path },
    version: version.token,
    form: FORMS[chunks.kind],
    differing: differingOf(chunks),
    ...(format && isPlaced(chunks) && { index: { file: { version, byteLength }, format, chunks } }),
    openReader: () => openTableChunkReader(file, array, makeChunk),
  });
}
