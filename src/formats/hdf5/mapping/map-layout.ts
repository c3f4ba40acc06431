import { ZpublishError } from "../../../errors.js";
import { elementCount } from "../../../model/data-tree.js";
import type { FileBlocks } from "../../file-format.js";
import { cutChunks, type FileArray, NO_CHUNKS, placeItems } from "../../file-index.js";
import type { Hdf5ChunkedLayout } from "../hdf5-model.js";
import { readChunkIndex } from "../read-chunk-index.js";
import { innerShapeOf, type MappedType } from "./map-type.js";
import type { NetcdfVariable } from "./netcdf-file.js";
import { extendGrid, hasAbsentChunks } from "./place-chunks.js";
import { itemCodecs, storedCodecs } from "./stored-codecs.js";

/** The parts of an array that follow from how its items are stored. */
export type MappedLayout = Pick<
  FileArray,
  "chunkShape" | "chunks" | "codecs" | "compressorCount" | "variants" | "servedFilters" | "servedCompressor"
> & {
  /** True if there is a chunk that is not stored. */
  readonly hasAbsent: boolean;
};

/** A variable whose chunks are to be found. */
export interface LayoutInput {
  readonly file: FileBlocks;
  readonly variable: NetcdfVariable;
  readonly type: MappedType;
  /** Shape as served: at least that of the variable. */
  readonly shape: readonly number[];
}

/**
 * Maps the layout of a dataset.
 * @throws ZpublishError `unsupported`, `invalid-metadata` if it cannot be served; `source-unreadable`, `source-changed`
 */
export async function mapLayout(input: LayoutInput): Promise<MappedLayout> {
  const { variable, type, shape } = input;
  const { layout } = variable.dataset;
  if (layout.kind === "unsupported") throw new ZpublishError("unsupported", layout.reason);
  if (layout.kind === "chunked") return await mapChunked(input, layout);
  if (shape.join() !== variable.shape.join()) {
    throw new ZpublishError(
      "unsupported",
      `expected dimensions of lengths ${variable.shape.join()}, received ${shape.join()}, and the data is not chunked`,
    );
  }
  const { byteLengths: _, ...items } = itemCodecs(variable.dataset.type, type);
  const byteLength = elementCount(shape) * type.storedSize;
  const longShape = shape.map((length) => Math.max(1, length));
  const { chunkShape } = cutChunks(longShape, type.storedSize, true);
  if (byteLength === 0) return { ...items, chunkShape, chunks: NO_CHUNKS, hasAbsent: false };
  if (layout.kind === "compact") {
    checkLength(byteLength, layout.bytes.length);
    const bytes = Uint8Array.from(layout.bytes.subarray(0, byteLength));
    return { ...items, chunkShape: shape, chunks: { kind: "inline", bytes }, hasAbsent: false };
  }
  if (layout.address === null) return { ...items, chunkShape, chunks: NO_CHUNKS, hasAbsent: true };
  checkLength(byteLength, layout.byteLength);
  checkLength(layout.address + byteLength, input.file.byteLength);
  const placed = { begin: layout.address, shape, itemSize: type.storedSize };
  return { ...items, ...placeItems(placed, true), hasAbsent: false };
}

async function mapChunked(
  { file, variable, type, shape }: LayoutInput,
  layout: Hdf5ChunkedLayout,
): Promise<MappedLayout> {
  const { dataset } = variable;
  const inner = innerShapeOf(dataset.type);
  const itemSize = elementCount(inner) * type.storedSize;
  if (layout.itemSize !== itemSize) {
    throw new ZpublishError(
      "invalid-metadata",
      `chunks: expected items of ${itemSize} bytes, received ${layout.itemSize}`,
    );
  }
  const stored = dataset.shape ?? [];
  const { filters, maxShape } = dataset;
  const rank = stored.length;
  const found = await readChunkIndex(file, layout, stored, maxShape, filters.length);
  const places = await extendGrid(found, layout.chunkShape, stored, shape.slice(0, rank));
  const chunkShape = [...layout.chunkShape, ...inner];
  const byteLength = elementCount(chunkShape) * type.storedSize;
  const { byteLengths, chunkVariants, ...codecs } = storedCodecs(
    filters,
    dataset.type,
    type,
    byteLength,
    places,
  );
  const { numbers, offsets } = places;
  return {
    ...codecs,
    chunkShape,
    chunks: {
      kind: "listed",
      ...(numbers === undefined ? {} : { numbers }),
      offsets,
      byteLengths,
      ...(chunkVariants === undefined ? {} : { variants: chunkVariants }),
    },
    hasAbsent: hasAbsentChunks(places, shape, chunkShape),
  };
}

function checkLength(expected: number, received: number): void {
  if (received >= expected) return;
  throw new ZpublishError(
    "invalid-metadata",
    `data: expected at least ${expected} bytes, received ${received}: the file is cut short or damaged`,
  );
}
