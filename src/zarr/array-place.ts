import type { ChunkFiles } from "../source/chunk-source.js";
import type { StoredArray } from "../source/source.js";

/** Where an array's documents were found: what they do not say themselves. */
export interface ArrayPlace {
  readonly name: string;
  /** Without a leading slash. */
  readonly path: string;
  readonly files: ChunkFiles;
}

/** An array, and what is odd about its documents, one line each, without the array's path. */
export interface ParsedArray {
  readonly array: StoredArray;
  readonly warnings: readonly string[];
}
