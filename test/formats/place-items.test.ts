import t from "tap";
import { placeItems } from "../../src/formats/file-index.js";

t.test("large data is cut along leading axes into pieces of at most 1 MiB", async (t) => {
  t.same(placeItems({ begin: 0, shape: [3, 701, 301], itemSize: 4 }, true), {
    chunkShape: [1, 701, 301],
    chunks: { kind: "strided", start: 0, strides: [844_004, 1_204 * 701, 1_204], byteLength: 844_004 },
  });
  t.same(placeItems({ begin: 8, shape: [1_000_001], itemSize: 8 }, true), {
    chunkShape: [131_072],
    chunks: {
      ...{ kind: "strided", start: 8, strides: [1_048_576], byteLength: 1_048_576 },
      last: { axis: 0, byteLength: (1_000_001 % 131_072) * 8 },
    },
  });
  const { chunkShape, chunks } = placeItems({ begin: 0, shape: [2, 3, 600_001], itemSize: 2 }, true);
  t.same(chunkShape, [1, 1, 524_288]);
  t.match(chunks, { strides: [3_600_006, 1_200_002, 1_048_576], last: { axis: 2, byteLength: 2 * 75_713 } });
});
