import { openChunkReader } from "../../src/open/chunk-reader.js";
import type { ChunkSource, ReadOptions } from "../../src/zarr/chunk-reader.js";

/** Returns a result if it is there at once; undefined if it comes later, or fails then. */
function atOnce<T>(result: T | Promise<T>): T | undefined {
  if (!(result instanceof Promise)) return result;
  result.catch(() => undefined);
  return undefined;
}

/** Opens a reader whose methods return promises, as tests await them; versions are their tokens. */
export function openReader(source: ChunkSource) {
  const { version, read, places, parts } = openChunkReader(source);
  return {
    version: async (coords: readonly number[]) => (await version(coords)).token,
    read: async (coords: readonly number[], options?: ReadOptions) => read(coords, options),
    readNow: (coords: readonly number[], options?: ReadOptions) => atOnce(read(coords, options)),
    versionNow: (coords: readonly number[], wasChecked?: boolean) =>
      atOnce(version(coords, { wasChecked }))?.token,
    places,
    parts,
  };
}
