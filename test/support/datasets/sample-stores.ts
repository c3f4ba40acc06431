import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import type { Test } from "tap";
import * as zpublish from "../../../src/index.js";
import { makeDirectory, v3Array, v3Group, writeFiles, zarray, zgroup } from "../write-store.js";

const matrix = { ...zarray, shape: [4, 4], chunks: [2, 2], fill_value: 9 };
const v2 = {
  ".zgroup": zgroup,
  ".zattrs": { title: "a store" },
  "t/.zarray": matrix,
  "t/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
  "g/.zgroup": zgroup,
  "g/u/.zarray": matrix,
  "g/u/.zattrs": { _ARRAY_DIMENSIONS: ["y", "x"] },
};
/** Chunk 1.0 of both arrays is absent. */
const v2Chunks = {
  ...{ "t/0.0": bytes(0), "t/0.1": bytes(10), "t/1.1": bytes(20) },
  ...{ "g/u/0.0": bytes(30), "g/u/0.1": bytes(40), "g/u/1.1": bytes(50) },
};
const sharded = {
  ...v3Array,
  shape: [24],
  dimension_names: ["x"],
  chunk_grid: { name: "regular", configuration: { chunk_shape: [8] } },
  codecs: [
    {
      name: "sharding_indexed",
      configuration: {
        chunk_shape: [4],
        codecs: [{ name: "bytes" }],
        index_codecs: [{ name: "bytes", configuration: { endian: "little" } }],
      },
    },
  ],
};
const v3 = {
  "zarr.json": {
    ...v3Group,
    consolidated_metadata: { kind: "inline", must_understand: false, metadata: { s: sharded } },
  },
  "s/zarr.json": sharded,
};

/** Returns four bytes that count up. */
export function bytes(first: number): Uint8Array {
  return Uint8Array.from({ length: 4 }, (_, index) => first + index);
}

/** A shard of two inner chunks of four bytes, the second of which may be absent. */
function shard(first: number, hasSecond: boolean): Uint8Array {
  const index = Buffer.alloc(32, 0xff);
  const chunks = hasSecond ? [bytes(first), bytes(first + 4)] : [bytes(first)];
  chunks.forEach((_, position) => {
    index.writeBigUInt64LE(BigInt(4 * position), 16 * position);
    index.writeBigUInt64LE(4n, 16 * position + 8);
  });
  return Buffer.concat([...chunks, index]);
}

/** Writes both stores: `v2` and `v3`, with consolidated metadata. */
export async function writeStores(t: Test): Promise<string> {
  const directory = await makeDirectory(t);
  await writeFiles(join(directory, "v2"), {
    ".zmetadata": { zarr_consolidated_format: 1, metadata: v2 },
    ...v2,
    ...v2Chunks,
  });
  // The second inner chunk of one shard, and a whole shard are absent.
  await writeFiles(join(directory, "v3"), { ...v3, "s/c/0": shard(0, true), "s/c/2": shard(100, false) });
  return directory;
}

/** Reads the files of a store, by key without a slash at the beginning. */
export async function filesOf(directory: string): Promise<Map<string, Uint8Array>> {
  const files = new Map<string, Uint8Array>();
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files.set(relative(directory, path), await readFile(path));
  }
  return files;
}

/** Makes of files a store of zarrita. */
export function mapOf(files: ReadonlyMap<string, Uint8Array>): Map<`/${string}`, Uint8Array> {
  return new Map([...files].map(([key, content]) => [`/${key}`, content]));
}

/** Returns the consolidated metadata of the store `v2` with other attributes. */
export function consolidated(attrs: object): Uint8Array {
  const metadata = { ...v2, ".zattrs": attrs };
  return Buffer.from(JSON.stringify({ zarr_consolidated_format: 1, metadata }));
}

/** Serves datasets until the test ends. */
export async function serve(t: Test, datasets: zpublish.ServerOptions["datasets"], refresh = 0) {
  const server = await zpublish.createServer({ datasets, workers: 1, refresh, log: "fatal" });
  t.teardown(() => server.close());
  const { url } = await server.listen({ port: 0 });
  return { server, get: (path: string) => fetch(`${url}/datasets/${path}`) };
}
