import { readHdf5 } from "../../../src/formats/hdf5/groups.js";
import type { Hdf5ChunkedLayout } from "../../../src/formats/hdf5/hdf5-model.js";
import { memoryBlocks } from "../memory-blocks.js";

/** A dataset of uint32 that h5wasm writes; the value of an item is its number in C order, plus one. */
export interface WrittenChunks {
  readonly libver: "earliest" | "latest";
  readonly shape: readonly number[];
  /** Null along axes without limit. */
  readonly maxShape: readonly (number | null)[];
  readonly chunkShape: readonly number[];
  readonly isDeflated: boolean;
}

/** Writes a file with one dataset in memory, and reads its layout. */
export async function writeWithH5wasm(
  chunks: WrittenChunks,
): Promise<{ readonly bytes: Uint8Array; readonly layout: Hdf5ChunkedLayout }> {
  const h5wasm = await import("h5wasm");
  const { FS } = await h5wasm.ready;
  const { libver, shape, maxShape, chunkShape, isDeflated } = chunks;
  const path = `/written-${libver}.h5`;
  const file = new h5wasm.File(path, "w", { libver });
  const count = shape.reduce((product, length) => product * length, 1);
  file.create_dataset({
    name: "data",
    data: Uint32Array.from({ length: count }, (_, i) => i + 1),
    shape: [...shape],
    maxshape: [...maxShape],
    chunks: [...chunkShape],
    ...(isDeflated ? { compression: "gzip", compression_opts: [1] } : {}),
  });
  file.close();
  const bytes = new Uint8Array(FS.readFile(path));
  FS.unlink(path);
  const layout = (await readHdf5(memoryBlocks(bytes))).root.datasets.get("data")?.layout;
  if (layout?.kind !== "chunked") throw new Error(`expected chunks, received ${layout?.kind}`);
  return { bytes, layout };
}
