import t from "tap";
import { contiguousChunks } from "../../../../src/source/hdf5/mapping/contiguous-chunks.js";

t.test("small data is one chunk", async (t) => {
  t.same(contiguousChunks(100, [3, 4], 8), {
    chunkShape: [3, 4],
    chunks: { kind: "strided", start: 100, strides: [96, 32], byteLength: 96 },
  });
  t.same(contiguousChunks(100, [], 8), {
    chunkShape: [],
    chunks: { kind: "strided", start: 100, strides: [], byteLength: 8 },
  });
});

t.test("large data is cut along leading axes into pieces of at most 1 MiB", async (t) => {
  t.same(contiguousChunks(0, [3, 701, 301], 4), {
    chunkShape: [1, 701, 301],
    chunks: { kind: "strided", start: 0, strides: [844_004, 1_204 * 701, 1_204], byteLength: 844_004 },
  });
  t.same(contiguousChunks(8, [1_000_001], 8), {
    chunkShape: [131_072],
    chunks: {
      ...{ kind: "strided", start: 8, strides: [1_048_576], byteLength: 1_048_576 },
      last: { axis: 0, byteLength: (1_000_001 % 131_072) * 8 },
    },
  });
  const { chunkShape, chunks } = contiguousChunks(0, [2, 3, 600_001], 2);
  t.same(chunkShape, [1, 1, 524_288]);
  t.match(chunks, { strides: [3_600_006, 1_200_002, 1_048_576], last: { axis: 2, byteLength: 2 * 75_713 } });
});
