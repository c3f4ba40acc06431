import { ZpublishError } from "../../../src/errors.js";
import type { StoredArray } from "../../../src/zarr/stored-array.js";
import type { Source, StoredGroup, StoredTree } from "../../../src/zarr/stored-tree.js";

/** A source whose tree a test sets, and can change or break while it is open. */
export interface FakeSource extends Source {
  tree: StoredTree;
  /** Error that the next refresh throws. */
  failure: ZpublishError | undefined;
  reads: number;
  closed: boolean;
}

const INT16 = {
  kind: "i",
  itemSize: 2,
  byteOrder: "<",
  zarr: "<i2",
  numpyName: "int16",
  numpyStr: "int16",
} as const;

/** An int16 array of zeros in one file per chunk, none of which exists. */
export function storedArray(path: string, more: Partial<StoredArray> = {}): StoredArray {
  const shape = more.shape ?? [4, 6];
  return {
    name: path.slice(path.lastIndexOf("/") + 1),
    path,
    shape,
    chunkShape: shape.map((length) => Math.min(length, 2)),
    dataType: INT16,
    axisOrder: shape.map((_, axis) => axis),
    codecs: [{ id: "zlib", level: 1 }],
    compressorCount: 1,
    fill: { served: 0, item: new Uint8Array(2), absentIsServed: true },
    dimNames: shape.map((_, axis) => `axis${axis}`),
    attrs: {},
    chunks: {
      kind: "files",
      directory: "/nowhere",
      keyEncoding: { name: "v2", separator: "." },
    },
    ...more,
  };
}

export function storedTree(groups: readonly StoredGroup[], more: Partial<StoredTree> = {}): StoredTree {
  return { groups, refused: [], warnings: [], identity: "here", fingerprint: "1", ...more };
}

export function fakeSource(tree: StoredTree): FakeSource {
  const source: FakeSource = {
    location: "fake",
    tree,
    failure: undefined,
    reads: 0,
    closed: false,
    async readTree() {
      source.reads++;
      if (source.failure !== undefined) throw source.failure;
      return source.tree;
    },
    async fingerprint() {
      if (source.failure !== undefined) throw source.failure;
      return source.tree.fingerprint;
    },
    async close() {
      source.closed = true;
    },
  };
  return source;
}

export function unreadable(message = "cannot be read"): ZpublishError {
  return new ZpublishError("source-unreadable", message);
}
