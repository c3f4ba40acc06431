import { closeSync, ftruncateSync, openSync, writeSync } from "node:fs";
import { mkdir, rename, rm, truncate, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { gzipSync } from "node:zlib";
import Blosc from "numcodecs/blosc";
import Zstd from "numcodecs/zstd";
import { crc32c } from "../../../src/codec/checksums.js";
import { CHAOS_ARRAYS, CHAOS_DATASETS, type ChaosArray, fileCount, rowValues } from "./arrays.js";

const blosc = Blosc.fromConfig({ id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 });
const zstd = Zstd.fromConfig({ id: "zstd", level: 1 });

const STORED_COMPRESSORS = {
  none: null,
  blosc: { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 },
  gzip: { id: "gzip", level: 1 },
  shard: null,
} as const;

/** How a file is written where there is one already. */
export type WriteMode = "replace" | "in place" | "truncating";

/** The stores of a run on disk. */
export class ChaosStore {
  readonly folder: string;
  #temporary = 0;

  constructor(folder: string) {
    this.folder = folder;
  }

  /** Where a dataset is. */
  location(dataset: string): string {
    return join(this.folder, `${dataset}.zarr`);
  }

  /** Writes everything, each file in its version 0. */
  async create(): Promise<void> {
    for (const dataset of CHAOS_DATASETS) await this.#writeGroups(dataset);
    for (const array of CHAOS_ARRAYS) {
      await this.writeMetadata(array, array.rows);
      for (let file = 0; file < fileCount(array); file++) {
        if (!array.absentFiles.includes(file)) await this.write(array, file, 0, "replace");
      }
    }
  }

  async #writeGroups(dataset: string): Promise<void> {
    const ofDataset = CHAOS_ARRAYS.filter((array) => array.dataset === dataset);
    const paths = new Set([""]);
    for (const { path } of ofDataset) {
      const parts = path.split("/").slice(0, -1);
      for (let i = 1; i <= parts.length; i++) paths.add(parts.slice(0, i).join("/"));
    }
    const isV3 = ofDataset.some(({ stored }) => stored === "shard");
    const [name, document] = isV3
      ? ["zarr.json", { zarr_format: 3, node_type: "group", attributes: {} }]
      : [".zgroup", { zarr_format: 2 }];
    for (const path of paths) await this.#replace(join(this.location(dataset), path, name), text(document));
  }

  /** Writes an array's document. @param rows Its length. */
  async writeMetadata(array: ChaosArray, rows: number): Promise<void> {
    const { dataset, path, stored } = array;
    const folder = join(this.location(dataset), path);
    const dims = ["row", "item"].map((name) => `${path.split("/").at(-1)}_${name}`);
    if (stored === "shard") {
      await this.#replace(join(folder, "zarr.json"), text(shardDocument(array, rows, dims)));
      return;
    }
    if (rows === array.rows) await this.#replace(join(folder, ".zattrs"), text({ _ARRAY_DIMENSIONS: dims }));
    await this.#replace(join(folder, ".zarray"), text(arrayDocument(array, rows)));
  }

  fileOf({ dataset, path, stored }: ChaosArray, file: number): string {
    return join(this.location(dataset), path, stored === "shard" ? `c/${file}/0` : `${file}.0`);
  }

  /**
   * Writes one file in a version. @returns Milliseconds for which it may have held parts of both, and none of them cut off.
   */
  async write(array: ChaosArray, file: number, version: number, mode: WriteMode): Promise<number> {
    const bytes = await encodeFile(array, file, version);
    const name = this.fileOf(array, file);
    if (mode === "replace") {
      await this.#replace(name, bytes);
    } else if (mode === "truncating") {
      await writeFile(name, bytes);
    } else {
      return writeInPlace(name, bytes);
    }
    return 0;
  }

  async truncate(array: ChaosArray, file: number, byteLength: number): Promise<void> {
    await truncate(this.fileOf(array, file), byteLength);
  }

  async remove(array: ChaosArray, file: number): Promise<void> {
    await rm(this.fileOf(array, file), { force: true });
  }

  async #replace(name: string, content: Uint8Array | string): Promise<void> {
    await mkdir(dirname(name), { recursive: true });
    // Beside the stores: a directory whose listing matters is not touched before its file is whole.
    const temporary = join(this.folder, `.new-${this.#temporary++}`);
    await writeFile(temporary, content);
    await rename(temporary, name);
  }
}

/** Without a pause, unless the system makes one. @returns Milliseconds that it took. */
function writeInPlace(name: string, bytes: Uint8Array): number {
  const descriptor = openSync(name, "r+");
  const began = performance.now();
  try {
    writeSync(descriptor, bytes, 0, bytes.byteLength, 0);
    ftruncateSync(descriptor, bytes.byteLength);
    return performance.now() - began;
  } finally {
    closeSync(descriptor);
  }
}

function text(document: unknown): string {
  return JSON.stringify(document);
}

function arrayDocument({ items, stored }: ChaosArray, rows: number): unknown {
  return {
    zarr_format: 2,
    shape: [rows, items],
    chunks: [1, items],
    dtype: "<i4",
    compressor: STORED_COMPRESSORS[stored],
    fill_value: -1,
    order: "C",
    filters: null,
  };
}

function shardDocument({ items, rowsPerFile }: ChaosArray, rows: number, dims: readonly string[]): unknown {
  const bytes = { name: "bytes", configuration: { endian: "little" } };
  return {
    zarr_format: 3,
    node_type: "array",
    shape: [rows, items],
    data_type: "int32",
    chunk_grid: { name: "regular", configuration: { chunk_shape: [rowsPerFile, items] } },
    chunk_key_encoding: { name: "default", configuration: { separator: "/" } },
    codecs: [
      {
        name: "sharding_indexed",
        configuration: {
          chunk_shape: [1, items],
          codecs: [bytes, { name: "zstd", configuration: { level: 1, checksum: false } }],
          index_codecs: [bytes, { name: "crc32c" }],
          index_location: "end",
        },
      },
    ],
    fill_value: -1,
    dimension_names: dims,
    attributes: { _FillValue: -1 },
  };
}

async function encodeFile(array: ChaosArray, file: number, version: number): Promise<Uint8Array> {
  const rows = Array.from({ length: array.rowsPerFile }, (_, i) => {
    const values = rowValues(array, file * array.rowsPerFile + i, version);
    return new Uint8Array(values.buffer);
  });
  const [first] = rows as [Uint8Array];
  switch (array.stored) {
    case "none":
      return first;
    case "blosc":
      return blosc.encode(first);
    case "gzip":
      return gzipSync(first, { level: 1 });
    case "shard":
      return joinShard(await Promise.all(rows.map(async (row) => Uint8Array.from(await zstd.encode(row)))));
  }
}

/** Chunks one after another, then offset and length of each, and the crc32c of these. */
function joinShard(chunks: readonly Uint8Array[]): Uint8Array {
  const index = Buffer.alloc(16 * chunks.length);
  let offset = 0;
  for (const [i, { length }] of chunks.entries()) {
    index.writeBigUInt64LE(BigInt(offset), 16 * i);
    index.writeBigUInt64LE(BigInt(length), 16 * i + 8);
    offset += length;
  }
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32c(index));
  return Buffer.concat([...chunks, index, checksum]);
}
