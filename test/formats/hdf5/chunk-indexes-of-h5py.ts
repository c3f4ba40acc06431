import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { inflateSync } from "node:zlib";
import { readChunkIndex } from "../../../src/formats/hdf5/chunk-index.js";
import type { Hdf5Chunks } from "../../../src/formats/hdf5/chunk-list.js";
import { readHdf5 } from "../../../src/formats/hdf5/groups.js";
import { PYTHON } from "../../support/clients/require-client.js";
import { memoryBlocks } from "../memory-blocks.js";

/** A chunked dataset of uint32, as it was written. */
export interface WrittenDataset {
  readonly shape: readonly number[];
  readonly chunkShape: readonly number[];
  /** Ids of filters. */
  readonly filters: readonly number[];
}

/** A dataset named `data` that h5py wrote into a file of its own, and whose values it read. */
export interface DatasetOfH5py extends WrittenDataset {
  readonly name: string;
}

const SCRIPT = "test/fixtures/hdf5_chunk_indexes.py";

/** Writes the datasets of `hdf5_chunk_indexes.py` into a folder that is removed by `remove`. */
export function writeChunkIndexes(args: readonly string[] = []): {
  readonly datasets: readonly DatasetOfH5py[];
  readonly bytesOf: (name: string) => Uint8Array;
  readonly remove: () => void;
} {
  const directory = mkdtempSync(join(tmpdir(), "zpublish-hdf5-"));
  const run = spawnSync(PYTHON, ["-W", "ignore", SCRIPT, directory, ...args], {
    encoding: "utf8",
    maxBuffer: 2 ** 26,
  });
  if (run.status !== 0) throw new Error(`Python ended with ${run.status}: ${run.stderr.slice(-2000)}`);
  return {
    datasets: JSON.parse(run.stdout) as DatasetOfH5py[],
    bytesOf: (name) => new Uint8Array(readFileSync(join(directory, name))),
    remove: () => rmSync(directory, { recursive: true }),
  };
}

/** Reads the index of the only dataset of a file. @param isCold Whether the blocks of the file have to be fetched. */
export async function readOnlyIndex(
  bytes: Uint8Array,
  isCold = false,
): Promise<{ readonly kind: string; readonly chunks: Hdf5Chunks }> {
  const file = memoryBlocks(bytes, isCold);
  const dataset = (await readHdf5(file)).root.datasets.get("data");
  if (dataset?.layout.kind !== "chunked" || dataset.shape === null)
    throw new Error(`expected a chunked dataset, received ${JSON.stringify(dataset?.layout)}`);
  const { layout, shape, maxShape, filters } = dataset;
  const chunks = await readChunkIndex(file, layout, shape, maxShape, filters.length);
  return { kind: layout.index.kind, chunks };
}

/** Puts the chunks of a dataset of uint32 together; absent ones are zeros. Knows shuffle (2) and deflate (1). */
export function valuesOf(dataset: WrittenDataset, bytes: Uint8Array, chunks: Hdf5Chunks): Uint32Array {
  const { shape, chunkShape, filters } = dataset;
  const grid = shape.map((length, axis) => Math.ceil(length / chunkShape[axis]!));
  const count = (lengths: readonly number[]): number =>
    lengths.reduce((product, length) => product * length, 1);
  const values = new Uint32Array(count(shape));
  for (let i = 0; i < chunks.offsets.length; i++) {
    const offset = chunks.offsets[i]!;
    if (offset === -1) continue;
    let stored: Uint8Array<ArrayBuffer> = bytes.slice(offset, offset + chunks.byteLengths[i]!);
    const mask = chunks.filterMasks?.[i] ?? 0;
    for (let filter = filters.length - 1; filter >= 0; filter--) {
      if (((mask >>> filter) & 1) === 1) continue;
      stored = filters[filter] === 1 ? new Uint8Array(inflateSync(stored)) : unshuffled(stored);
    }
    const items = new Uint32Array(stored.buffer, stored.byteOffset, count(chunkShape));
    const origin = coordsOf(chunks.numbers?.[i] ?? i, grid).map((at, axis) => at * chunkShape[axis]!);
    if (shape.length === 1) {
      values.set(items.subarray(0, shape[0]! - origin[0]!), origin[0]);
      continue;
    }
    for (const [item, value] of items.entries()) {
      const coords = coordsOf(item, chunkShape);
      let place: number | undefined = 0;
      for (let axis = 0; axis < shape.length && place !== undefined; axis++) {
        const at = coords[axis]! + origin[axis]!;
        place = at < shape[axis]! ? place * shape[axis]! + at : undefined;
      }
      if (place !== undefined) values[place] = value;
    }
  }
  return values;
}

function coordsOf(number: number, lengths: readonly number[]): number[] {
  const coords = lengths.map(() => 0);
  let rest = number;
  for (let axis = lengths.length - 1; axis >= 0; axis--) {
    coords[axis] = rest % lengths[axis]!;
    rest = Math.floor(rest / lengths[axis]!);
  }
  return coords;
}

function unshuffled(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const count = bytes.length / 4;
  return Uint8Array.from({ length: bytes.length }, (_, i) => bytes[(i % 4) * count + Math.floor(i / 4)]!);
}
