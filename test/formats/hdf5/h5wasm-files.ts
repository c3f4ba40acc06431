import type { Hdf5ChunkedLayout, Hdf5ChunkIndex } from "../../../src/formats/hdf5/hdf5-model.js";

/** A dataset of uint32 that h5wasm writes; the value of an item is its number in C order, plus one. */
export interface WrittenChunks {
  readonly libver: "earliest" | "latest";
  readonly shape: readonly number[];
  /** Null along axes without limit. */
  readonly maxShape: readonly (number | null)[];
  readonly chunkShape: readonly number[];
  readonly isDeflated: boolean;
}

/** Signatures that indexes of chunks begin with, and their kinds. Fields that only the layout message has are not read. */
const SIGNATURES: readonly (readonly [signature: string, index: Hdf5ChunkIndex])[] = [
  ["FAHD", { kind: "fixed-array" }],
  ["EAHD", { kind: "extensible-array" }],
  ["BTHD", { kind: "b-tree-2" }],
];

/** Writes a file with one dataset in memory, and finds its index. */
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
  const { address, index } = findIndex(bytes);
  return {
    bytes,
    layout: {
      kind: "chunked",
      chunkShape,
      itemSize: 4,
      address,
      baseAddress: 0,
      index,
    },
  };
}

function findIndex(bytes: Uint8Array): { readonly address: number; readonly index: Hdf5ChunkIndex } {
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (const [signature, index] of SIGNATURES) {
    const address = buffer.indexOf(signature);
    if (address !== -1) return { address, index };
  }
  // Of B-tree nodes of chunks, the root has the highest level.
  let root = { level: -1, address: 0 };
  for (let at = buffer.indexOf("TREE"); at !== -1; at = buffer.indexOf("TREE", at + 1)) {
    if (bytes[at + 4] === 1 && bytes[at + 5]! > root.level) root = { level: bytes[at + 5]!, address: at };
  }
  if (root.level === -1) throw new Error("expected an index of chunks, received none");
  return { address: root.address, index: { kind: "b-tree-1" } };
}
