import t from "tap";
import { createRandom } from "../../../bench/random.js";
import { hasH5wasm } from "../../../src/codec/file-formats/h5wasm-filters.js";
import { isDamage, ZpublishError } from "../../../src/errors.js";
import type { FileBlocks } from "../../../src/formats/file-format.js";
import { lookup3 } from "../../../src/formats/hdf5/bytes.js";
import { readChunkIndex } from "../../../src/formats/hdf5/chunk-index.js";
import type { Hdf5Chunks } from "../../../src/formats/hdf5/chunk-list.js";
import { extendGrid, hasAbsentChunks, hdf5Format } from "../../../src/formats/hdf5/hdf5-format.js";
import type { Hdf5ChunkedLayout } from "../../../src/formats/hdf5/hdf5-model.js";
import { effort } from "../../support/effort.js";
import { memoryBlocks } from "../memory-blocks.js";
import { arrayAt, readArray } from "../read-array.js";
import { type WrittenChunks, writeWithH5wasm } from "./h5wasm-files.js";

t.setTimeout(120_000);

const skip = !hasH5wasm();

const WRITTEN: readonly WrittenChunks[] = [false, true].flatMap((isDeflated) => [
  ...[2, 21, 245, 1025, 3000].flatMap((count): WrittenChunks[] => [
    { libver: "earliest", shape: [count * 2 - 1], maxShape: [null], chunkShape: [2], isDeflated },
    { libver: "latest", shape: [count * 2 - 1], maxShape: [count * 2 - 1], chunkShape: [2], isDeflated },
    { libver: "latest", shape: [count * 2 - 1], maxShape: [null], chunkShape: [2], isDeflated },
    { libver: "latest", shape: [count * 2 - 1, 3], maxShape: [null, null], chunkShape: [2, 2], isDeflated },
  ]),
  { libver: "latest", shape: [7, 40, 5], maxShape: [9, null, 8], chunkShape: [2, 3, 4], isDeflated },
  { libver: "latest", shape: [7, 40, 5], maxShape: [9, 41, 11], chunkShape: [2, 3, 4], isDeflated },
]);

/** Whether the items of a file are as they were written: each its number in C order, plus one. */
async function isWhole({ shape }: WrittenChunks, file: FileBlocks): Promise<boolean> {
  const items = await readArray(file, arrayAt(await hdf5Format.readIndex(file), "data"));
  const count = shape.reduce((product, length) => product * length, 1);
  const expected = Uint32Array.from({ length: count }, (_, i) => i + 1);
  return Buffer.from(expected.buffer).equals(items);
}

async function readAll(
  written: WrittenChunks,
  layout: Hdf5ChunkedLayout,
  file: FileBlocks,
): Promise<Hdf5Chunks> {
  return readChunkIndex(file, layout, written.shape, written.maxShape, written.isDeflated ? 1 : 0);
}

const files = new Map<WrittenChunks, ReturnType<typeof writeWithH5wasm>>();

/** The same file for every test: writing takes longer than reading. */
function fileOf(written: WrittenChunks): ReturnType<typeof writeWithH5wasm> {
  const file = files.get(written) ?? writeWithH5wasm(written);
  files.set(written, file);
  return file;
}

t.test("chunks are found by every kind of index that HDF5 2.0 writes", { skip }, async (t) => {
  const kinds = new Set<string>();
  for (const written of WRITTEN) {
    const { bytes, layout } = await fileOf(written);
    kinds.add(layout.index.kind);
    const chunks = await readAll(written, layout, memoryBlocks(bytes));
    t.ok(await isWhole(written, memoryBlocks(bytes)), JSON.stringify(written));

    const shifted = new Uint8Array(512 + bytes.length);
    shifted.set(bytes, 512);
    const moved = { ...layout, address: layout.address! + 512, baseAddress: 512 };
    const behind = await readAll(written, moved, memoryBlocks(shifted, true));
    const places = behind.offsets.map((offset) => (offset < 0 ? offset : offset - 512));
    t.same([places, behind.byteLengths], [chunks.offsets, chunks.byteLengths], "behind a user block");
  }
  t.same([...kinds].sort(), ["b-tree-1", "b-tree-2", "extensible-array", "fixed-array"]);
});

t.test("pages of extensible arrays are found", { skip }, async (t) => {
  const one = { libver: "latest", maxShape: [null], chunkShape: [1], isDeflated: false } as const;
  const written = { ...one, shape: [140_000] };
  t.ok(await isWhole(written, memoryBlocks((await writeWithH5wasm(written)).bytes)));
});

t.test("damaged indexes are refused, or name chunks inside the file", { skip }, async (t) => {
  for (const [i, written] of WRITTEN.entries()) {
    const { bytes, layout } = await fileOf(written);
    const random = createRandom(i + 1);
    let refused = 0;
    for (let round = 0; round < effort(150); round++) {
      try {
        const chunks = await readAll(written, layout, damagedBlocks(bytes, random, round % 2 === 0));
        const isInside = chunks.offsets.every(
          (offset, chunk) => offset === -1 || offset + chunks.byteLengths[chunk]! <= bytes.length,
        );
        if (!isInside) t.fail(`chunks outside of the file: ${JSON.stringify(written)}`);
      } catch (error) {
        if (!(error instanceof ZpublishError && isDamage(error))) throw error;
        refused++;
      }
    }
    t.ok(refused > 0, `${refused} refused`);
  }
});

/** Damages some of what is read. Checksums are made to fit again, since only they would be tested otherwise. */
function damagedBlocks(bytes: Uint8Array, random: () => number, isGross: boolean): FileBlocks {
  const file = memoryBlocks(bytes);
  function readNow(offset: number, byteLength: number): Uint8Array | undefined {
    const good = file.readNow(offset, byteLength);
    if (good === undefined || random() < 0.6) return good;
    const damaged = good.slice();
    const at = 4 + Math.floor(random() * (damaged.length - 4));
    if (isGross) damaged.fill(random() < 0.5 ? 255 : random() * 256, at, at + 1 + Math.floor(random() * 8));
    else damaged[at] = random() * 256;
    if (damaged.length > 8) {
      const checksum = lookup3(damaged.subarray(0, -4));
      new DataView(damaged.buffer).setUint32(damaged.length - 4, checksum, true);
    }
    return damaged;
  }
  return { ...file, byteLength: bytes.length, readNow };
}

const LAYOUT: Hdf5ChunkedLayout = {
  kind: "chunked",
  chunkShape: [2, 2],
  itemSize: 4,
  address: 1000,
  baseAddress: 0,
  index: { kind: "implicit" },
};

t.test("a single chunk and implicit ones need no index", async (t) => {
  const file = memoryBlocks(new Uint8Array(2000));
  const implicit = await readChunkIndex(file, LAYOUT, [3, 3], [3, 6], 0);
  t.same(
    implicit,
    { offsets: Float64Array.of(1000, 1016, 1048, 1064), byteLengths: Uint32Array.of(16, 16, 16, 16) },
    "the grid of the maximum shape is wider",
  );
  const single = { ...LAYOUT, index: { kind: "single", byteLength: 50, filterMask: 3 } } as const;
  t.same(await readChunkIndex(file, single, [2, 2], [2, 2], 2), {
    offsets: Float64Array.of(1000),
    byteLengths: Uint32Array.of(50),
    filterMasks: Uint32Array.of(3),
  });
  const bare = { ...LAYOUT, index: { kind: "single", byteLength: null, filterMask: 0 } } as const;
  t.same(await readChunkIndex(file, bare, [2, 2], [2, 2], 0), {
    offsets: Float64Array.of(1000),
    byteLengths: Uint32Array.of(16),
  });
});

t.test("what was never written has no chunks, however large its shape", async (t) => {
  const file = memoryBlocks(new Uint8Array(2000));
  const none = { numbers: new Float64Array(), offsets: new Float64Array(), byteLengths: new Uint32Array() };
  t.same(await readChunkIndex(file, { ...LAYOUT, address: null }, [2 ** 26, 2 ** 26], [null, null], 0), none);
  t.match(await readChunkIndex(file, LAYOUT, [0, 3], [0, 3], 0), { offsets: { length: 0 } });
});

t.test("contradictions are refused before anything is read or allocated", async (t) => {
  const file = memoryBlocks(new Uint8Array(2000));
  const cases: readonly (readonly [Hdf5ChunkedLayout, number[], (number | null)[], RegExp])[] = [
    [LAYOUT, [2 ** 50, 2 ** 50], [null, null], /less than 2\^53 chunks/],
    [LAYOUT, [2 ** 26, 2 ** 26], [2 ** 26, 2 ** 26], /expected chunk 0.62 inside the 2000 bytes of the file/],
    [{ ...LAYOUT, address: 1990 }, [2, 2], [2, 2], /chunk 0.0 inside .* received 16 bytes at 1990/],
  ];
  for (const [layout, shape, maxShape, message] of cases) {
    await t.rejects(readChunkIndex(file, layout, shape, maxShape, 0), { code: "invalid-metadata", message });
  }
  for (const kind of ["b-tree-1", "b-tree-2"] as const) {
    const layout = { ...LAYOUT, index: { kind }, address: 1999 };
    await t.rejects(readChunkIndex(file, layout, [3, 3], [3, 3], 0), { code: "invalid-metadata" });
  }
});

t.test("a B-tree that leads back to itself ends", async (t) => {
  const bytes = new Uint8Array(4096);
  const view = new DataView(bytes.buffer);
  for (const [address, level] of [
    [0, 2],
    [1024, 1],
  ] as const) {
    bytes.set(Buffer.from("TREE"), address);
    view.setUint8(address + 4, 1);
    view.setUint8(address + 5, level);
    view.setUint16(address + 6, 2, true);
    // Two keys of 32 bytes and children.
    for (const entry of [0, 1]) view.setUint32(address + 24 + entry * 40 + 32, 1024, true);
  }
  const layout = { ...LAYOUT, address: 0, index: { kind: "b-tree-1" } } as const;
  await t.rejects(readChunkIndex(memoryBlocks(bytes), layout, [3, 3], [3, 3], 0), {
    message: /expected each node of a B-tree once/,
  });
  view.setUint16(6, 1, true);
  await t.rejects(readChunkIndex(memoryBlocks(bytes), layout, [3, 3], [3, 3], 0), {
    message: /once, received one twice/,
  });
});

const places: Hdf5Chunks = {
  offsets: new Float64Array([10, 20, 30, 40]),
  byteLengths: new Uint32Array(4),
};

t.test("chunks keep their places in a longer array", async (t) => {
  // Two by two chunks become three by three.
  const { numbers } = await extendGrid(places, [2, 2], [4, 3], [5, 6]);
  t.same([...(numbers ?? [])], [0, 1, 3, 4]);
  const sparse = { ...places, numbers: new Float64Array([0, 2, 3, 5]) };
  t.same([...((await extendGrid(sparse, [2, 2], [4, 6], [6, 8])).numbers ?? [])], [0, 2, 4, 6]);
  t.equal(await extendGrid(places, [4, 2], [3, 3], [4, 4]), places, "the grid may be the same");
});

t.test("chunks that are not stored are noticed", async (t) => {
  t.equal(hasAbsentChunks(places, [4, 3], [2, 2]), false);
  t.equal(hasAbsentChunks({ ...places, numbers: new Float64Array([0, 1, 2, 3]) }, [5, 3], [2, 2]), true);
  t.equal(hasAbsentChunks({ offsets: new Float64Array([10, -1]) }, [4], [2]), true);
  t.equal(hasAbsentChunks({ numbers: new Float64Array(0), offsets: new Float64Array(0) }, [0], [2]), false);
});
