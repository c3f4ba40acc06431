import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import t from "tap";
import { decodeSteps } from "../../../src/codec/run-steps.js";
import { readChunkIndex } from "../../../src/formats/hdf5/chunk-index.js";
import type { Hdf5Chunks } from "../../../src/formats/hdf5/chunk-list.js";
import { mapType } from "../../../src/formats/hdf5/datatypes.js";
import { storedCodecs } from "../../../src/formats/hdf5/filters.js";
import { readHdf5 } from "../../../src/formats/hdf5/groups.js";
import type { CodecSpec, CodecStep } from "../../../src/zarr/codec-step.js";
import { completeCodec, encodedByteLength } from "../../../src/zarr/plan/codec-rules.js";
import { clientMissing, PYTHON } from "../../support/clients/require-client.js";
import { memoryBlocks } from "../memory-blocks.js";

t.setTimeout(240_000);

t.test(
  "chunks of every pipeline have the values that h5py reads",
  { skip: clientMissing("h5py") },
  async (t) => {
    const directory = mkdtempSync(join(tmpdir(), "zpublish-hdf5-"));
    t.teardown(() => rmSync(directory, { recursive: true }));
    const run = spawnSync(PYTHON, ["-W", "ignore", "test/fixtures/hdf5_filters.py", directory], {
      encoding: "utf8",
      maxBuffer: 2 ** 26,
    });
    if (run.status !== 0) throw new Error(run.stderr);
    const bytes = new Uint8Array(readFileSync(join(directory, "filters.h5")));
    const file = memoryBlocks(bytes);
    const { datasets } = (await readHdf5(file)).root;
    t.equal(datasets.size, Number(run.stdout));
    const seen = new Set<string>();
    for (const [name, dataset] of datasets) {
      const { shape, maxShape, layout, filters, type } = dataset;
      if (layout.kind !== "chunked" || shape === null) throw new Error(`expected ${name} to have chunks`);
      const { chunkShape, itemSize } = layout;
      const chunks = await readChunkIndex(file, layout, shape, maxShape, filters.length);
      const chunkByteLength = chunkShape.reduce((product, length) => product * length, itemSize);
      const found = storedCodecs(filters, type, mapType(type), chunkByteLength, chunks);
      for (const { id } of [found.codecs, ...(found.variants ?? [])].flat()) seen.add(id);
      const listed: Hdf5Chunks = { ...chunks, byteLengths: found.byteLengths };
      const lists = [found.codecs, ...(found.variants ?? [])].map((codecs) =>
        stepsOf(codecs, chunkByteLength),
      );
      const received = await assemble(
        { shape, chunkShape, itemSize },
        bytes,
        listed,
        (i) => lists[found.chunkVariants?.[i] ?? 0]!,
      );
      t.ok(
        received.equals(readFileSync(join(directory, `${name}.bin`))),
        `${name}: ${JSON.stringify(found.codecs)}`,
      );
    }
    t.same([...seen].sort(), [
      "hdf5-bits",
      "hdf5-filters",
      "hdf5-fletcher32",
      "hdf5-shuffle",
      "lzf",
      "shuffle",
      "zlib",
    ]);
  },
);

/** Steps of decoding, outermost first, with the lengths that a plan has. */
function stepsOf(codecs: readonly CodecSpec[], chunkByteLength: number): CodecStep[] {
  let byteLength: number | null = chunkByteLength;
  const steps: CodecStep[] = [];
  for (const spec of codecs) {
    const codec = completeCodec(spec);
    steps.unshift({
      codec,
      decodedByteLength: byteLength,
      maxDecodedByteLength: byteLength ?? 2 ** 20,
      itemSize: 1,
    });
    byteLength = byteLength === null ? null : encodedByteLength(codec, byteLength);
  }
  return steps;
}

/** Decodes all chunks of a dataset of two axes, and puts them together; absent ones are zeros. */
async function assemble(
  {
    shape,
    chunkShape,
    itemSize,
  }: {
    readonly shape: readonly number[];
    readonly chunkShape: readonly number[];
    readonly itemSize: number;
  },
  bytes: Uint8Array,
  chunks: Hdf5Chunks,
  stepsOfChunk: (i: number) => readonly CodecStep[],
): Promise<Buffer> {
  const [rows, columns] = shape as [number, number];
  const [chunkRows, chunkColumns] = chunkShape as [number, number];
  const across = Math.ceil(columns / chunkColumns);
  const all = Buffer.alloc(rows * columns * itemSize);
  for (const [i, offset] of chunks.offsets.entries()) {
    if (offset === -1) continue;
    const stored = bytes.slice(offset, offset + chunks.byteLengths[i]!);
    const decoded = await decodeSteps(stored, stepsOfChunk(i), `chunk ${i}`);
    const number = chunks.numbers?.[i] ?? i;
    const top = Math.floor(number / across) * chunkRows;
    const left = (number % across) * chunkColumns;
    for (let row = 0; row < chunkRows && top + row < rows; row++) {
      const width = Math.min(chunkColumns, columns - left) * itemSize;
      const from = row * chunkColumns * itemSize;
      all.set(decoded.subarray(from, from + width), ((top + row) * columns + left) * itemSize);
    }
  }
  return all;
}
