import t from "tap";
import { inspectPieces, inspectTree } from "../../src/cli/inspect.js";
import { parseDataType } from "../../src/model/data-type.js";
import {
  type ChunkPiece,
  type PartChunkReader,
  type PartChunks,
  PIECED,
  type PieceLayout,
} from "../../src/zarr/chunk-reader.js";
import type { CodecStep } from "../../src/zarr/codec-step.js";
import type { StoredArray } from "../../src/zarr/stored-array.js";
import type { StoredTree } from "../../src/zarr/stored-tree.js";

const ZLIB: CodecStep = {
  ...{ codec: { id: "zlib", level: 1 }, decodedByteLength: 8, maxDecodedByteLength: 8, itemSize: 1 },
};
const LAYOUT: PieceLayout = {
  ...{ name: "x", title: "x", chunkShape: [2, 4], axisOrder: [0, 1], itemSize: 1, decode: [ZLIB] },
  ...{ variants: [], maxStoredByteLength: undefined, fillItem: null, conversion: undefined },
};

/** A tree of one array of 5 × 2 chunks along steps and columns. @param layouts Of the pieces of each chunk; one if it is passed through. */
function treeOf(layouts: readonly (readonly Partial<PieceLayout>[])[], asked: number[] = []): StoredTree {
  const reader = {
    variantOf: ([step]: readonly number[]) => (layouts[step as number]?.length === 1 ? 0 : PIECED),
    async piecesOf([step]: readonly number[]) {
      asked.push(step as number);
      return (layouts[step as number] ?? []).map(
        (layout) => ({ layout: { ...LAYOUT, ...layout } }) as ChunkPiece,
      );
    },
  } as unknown as PartChunkReader;
  const array: StoredArray = {
    ...{ name: "v", path: "v", shape: [layouts.length * 2, 7], chunkShape: [2, 4], axisOrder: [0, 1] },
    ...{
      dataType: parseDataType("|u1"),
      codecs: [{ id: "zlib", level: 1 }],
      compressorCount: 1,
      variants: [[]],
    },
    fill: { served: 0, item: null, absentIsServed: true },
    ...{ dimNames: ["time", "x"], attrs: {} },
    chunks: { kind: "parts", store: "s", path: "v", axis: 0, openReader: () => reader },
  };
  return {
    groups: [{ path: "/", attrs: {}, arrays: [array] }],
    join: { kind: "concat", dimension: "time", parts: [{ name: "a", start: 0, length: layouts.length * 2 }] },
    ...{ refused: [], warnings: [], identity: "i", fingerprint: undefined },
  };
}

async function piecesOf(...layouts: readonly (readonly Partial<PieceLayout>[])[]) {
  return (await inspectPieces(treeOf(layouts))).get("v");
}

t.test("chunks that are passed through and those that are put together are counted", async (t) => {
  t.same(await piecesOf([{}], [{}]), { passed: 4, joined: 0, reasons: [] });
  t.same(await piecesOf([{}], [{}, {}], [{}]), {
    ...{ passed: 4, joined: 2, reasons: ["files begin or end within chunks"] },
  });
});

t.test("the reasons are what differs between files", async (t) => {
  const reasonsOf = async (...layouts: readonly (readonly Partial<PieceLayout>[])[]) =>
    (await piecesOf(...layouts))?.reasons;
  const lengths = [31, 28, 30, 29].map((length) => ({ chunkShape: [length, 4] }));
  t.same(await reasonsOf(lengths.slice(0, 2)), ["chunk lengths differ: 31 and 28"]);
  t.same(await reasonsOf(lengths), ["chunk lengths differ: 31, 28, 30 and 1 more"]);
  t.same(
    await reasonsOf([{}], lengths.slice(0, 2)),
    ["chunk lengths differ: 2, 31 and 28"],
    "the others' length, too",
  );
  t.same(await reasonsOf([{}, { chunkShape: [2, 7] }]), ["chunk shapes differ: (2, 4) and (2, 7)"]);
  t.same(await reasonsOf([{}, { decode: [] }]), ["codecs differ: zlib and none"]);
  t.same(await reasonsOf([{}, { axisOrder: [1, 0] }]), ["orders of axes differ: (0, 1) and (1, 0)"]);
});

t.test("an array of one file is no array of pieces", async (t) => {
  const tree = treeOf([[{}]]);
  const arrays = tree.groups.flatMap((group) => group.arrays);
  const alone = arrays.map((array) => ({ ...array, chunks: { ...array.chunks, axis: -1 } as PartChunks }));
  t.equal((await inspectPieces({ ...tree, groups: [{ path: "/", attrs: {}, arrays: alone }] })).size, 0);
});

t.test("the files of few chunks are opened for the reasons", async (t) => {
  const asked: number[] = [];
  await inspectPieces(
    treeOf(
      Array.from({ length: 100 }, () => [{}, {}]),
      asked,
    ),
  );
  t.same(asked, [0, 1, 2, 3]);
});

t.test("an inspection has the files of a joined dataset, and how each array's chunks are made", async (t) => {
  const { join, groups } = await inspectTree("x", treeOf([[{}], [{}, { decode: [] }]]));
  t.same(join, { kind: "concat", dimension: "time", parts: [{ name: "a", start: 0, length: 4 }] });
  t.equal(
    groups[0]?.variables[0]?.way,
    "2 of 4 chunks are put together from several files, since codecs differ: zlib and none",
  );
  t.same(groups[0]?.variables[0]?.pieces, {
    passed: 2,
    joined: 2,
    reasons: ["codecs differ: zlib and none"],
  });
});
