import type { DatasetConfig } from "../../../src/config/config.js";
import { createMemorySource } from "../../../src/open/memory-source.js";
import type { Source } from "../../../src/zarr/stored-tree.js";

/** Creates a flat dataset in memory: int16 `t` over (y, x), its coordinates, a scalar; 3 × 5 in chunks of 2 × 2. */
export function flatSource(): Source {
  return createMemorySource({
    location: "flat",
    groups: [
      {
        path: "/",
        attrs: { title: "flat" },
        arrays: [
          {
            name: "t",
            data: Int16Array.from({ length: 15 }, (_, index) => index + 1),
            shape: [3, 5],
            dims: ["y", "x"],
            chunks: [2, 2],
            fillValue: -1,
            compressor: null,
            attrs: { units: "K", scale_factor: 0.5 },
          },
          { name: "x", data: Float32Array.from([0, 1, 2, 3, 4]), shape: [5], dims: ["x"], compressor: null },
          {
            name: "y",
            data: BigInt64Array.from([0n, 2n ** 60n, -1n]),
            shape: [3],
            dims: ["y"],
            compressor: null,
          },
          { name: "crs", data: Int32Array.of(7), shape: [], compressor: null },
        ],
      },
    ],
  });
}

/** Creates a tree of groups in memory: `/`, `/a`, `/a/b`, `/c`, each with a variable `v` but the root. */
export function nestedSource(): Source {
  const arrays = [{ name: "v", data: Uint8Array.of(1, 2, 3), shape: [3], compressor: null }];
  return createMemorySource({
    location: "nested",
    groups: [
      { path: "/", attrs: {} },
      { path: "/a", arrays },
      { path: "/a/b", arrays, attrs: { deep: true } },
      { path: "/c", arrays },
    ],
  });
}

export function datasetOf(
  id: string,
  source: Source,
  more: Partial<DatasetConfig> = {},
): DatasetConfig & { readonly source: Source } {
  return { id, location: source.location, source, immutable: false, encoding: {}, variables: {}, ...more };
}
