import type { ChunkSource } from "../zarr/chunk-source.js";

/** Where a source's bytes are, as far as one bad place is told from others: what is likely to be one mount. Memory: "". */
export function storeOf(source: ChunkSource): string {
  return source.kind === "memory" ? "" : (source.root ?? source.directory);
}
