/** How chunks lie in a store. */
export type StoredForm = "none" | "blosc" | "gzip" | "shard";

/** An array of 32-bit integers over (row, item), whose chunks are rows. */
export interface ChaosArray {
  /** Its number, part of its contents. */
  readonly number: number;
  readonly dataset: string;
  /** Below the root. */
  readonly path: string;
  readonly rows: number;
  readonly items: number;
  readonly stored: StoredForm;
  /** Rows of one file: more than one in a shard. */
  readonly rowsPerFile: number;
  /** Rows of a chunk as it is served. */
  readonly rowsPerChunk: number;
  /** As the configuration asks for it; undefined: as it is stored. */
  readonly encoding?: Readonly<Record<string, unknown>>;
  /** Files that are never there. */
  readonly absentFiles: readonly number[];
  /** Whether its files are written again while the server runs. */
  readonly isRewritten: boolean;
  /** Fewest rows it may shrink to, where its length changes. */
  readonly fewestRows?: number;
}

/** Array whose chunks a worker dies of, whenever it opens one; the last part of the path is how. */
export const POISON_DATASET = "poison";
/** Whose chunks now and then cannot be read. */
export const FLAKY_DATASET = "flaky";
/** Whose directory goes away and comes back. */
export const AWAY_DATASET = "away";
/** What lies behind an origin, which fails and hangs now and then. */
export const REMOTE_DATASET = "remote";
/** What the configuration sometimes has and sometimes not. */
export const VISITOR_DATASET = "visitor";

const ZSTD = { compressor: { id: "zstd", level: 1 } };
const BLOSC = { compressor: { id: "blosc", cname: "lz4", clevel: 5, shuffle: 1, blocksize: 0 } };
const GZIP = { compressor: { id: "gzip", level: 1 } };

type ArrayInput = Pick<ChaosArray, "dataset" | "path" | "rows" | "items"> & Partial<ChaosArray>;

const INPUTS: readonly ArrayInput[] = [
  // Passed through, in a tree of groups.
  { dataset: "plain", path: "raw", rows: 24, items: 4_096, absentFiles: [5, 17] },
  { dataset: "plain", path: "packed", rows: 24, items: 16_384, stored: "blosc" },
  { dataset: "plain", path: "deep/er/values", rows: 8, items: 1_024 },
  { dataset: "plain", path: "deep/grows", rows: 32, items: 256, fewestRows: 8, isRewritten: false },
  // Made by workers: of four stored chunks each (the last one padded), and with another codec.
  { dataset: "again", path: "wide", rows: 30, items: 8_192, rowsPerChunk: 4, encoding: ZSTD },
  { dataset: "again", path: "same", rows: 24, items: 16_384, stored: "gzip", encoding: BLOSC },
  // Parts of files.
  { dataset: "shards", path: "cut", rows: 32, items: 4_096, stored: "shard", rowsPerFile: 4 },
  { dataset: FLAKY_DATASET, path: "raw", rows: 12, items: 4_096 },
  { dataset: FLAKY_DATASET, path: "made", rows: 12, items: 4_096, encoding: ZSTD },
  { dataset: AWAY_DATASET, path: "raw", rows: 12, items: 4_096, absentFiles: [3] },
  { dataset: AWAY_DATASET, path: "made", rows: 12, items: 8_192, rowsPerChunk: 2, encoding: GZIP },
  { dataset: VISITOR_DATASET, path: "made", rows: 12, items: 4_096, encoding: ZSTD },
  { dataset: REMOTE_DATASET, path: "raw", rows: 12, items: 4_096, absentFiles: [3] },
  { dataset: REMOTE_DATASET, path: "packed", rows: 12, items: 16_384, stored: "blosc" },
  { dataset: REMOTE_DATASET, path: "made", rows: 12, items: 4_096, encoding: ZSTD },
  { dataset: POISON_DATASET, path: "exit", rows: 3, items: 256, encoding: ZSTD, isRewritten: false },
  { dataset: POISON_DATASET, path: "throw", rows: 3, items: 256, encoding: ZSTD, isRewritten: false },
  { dataset: POISON_DATASET, path: "heap", rows: 2, items: 256, encoding: ZSTD, isRewritten: false },
  { dataset: POISON_DATASET, path: "spin", rows: 2, items: 256, encoding: ZSTD, isRewritten: false },
];

/** All arrays of a run. */
export const CHAOS_ARRAYS: readonly ChaosArray[] = INPUTS.map((input, number) => ({
  stored: "none",
  rowsPerFile: 1,
  rowsPerChunk: 1,
  absentFiles: [],
  isRewritten: true,
  ...input,
  number,
}));

/** Ids of the datasets, each once. */
export const CHAOS_DATASETS: readonly string[] = [...new Set(CHAOS_ARRAYS.map(({ dataset }) => dataset))];

/** What can be asked for. */
export interface ChaosKey {
  /** Path of the URL. */
  readonly url: string;
  readonly kind: "chunk" | "document";
  readonly dataset: string;
  /** Of a chunk, or a document of one array. */
  readonly array?: ChaosArray;
  /** First row of a chunk. */
  readonly row: number;
  /** What a document is, by the last part of its path. */
  readonly name: string;
}

/** Every URL of a run, always in the same order. */
export const CHAOS_KEYS: readonly ChaosKey[] = [...chunkKeys(), ...documentKeys()];

function* chunkKeys(): Iterable<ChaosKey> {
  for (const array of CHAOS_ARRAYS) {
    const { dataset, path, rows, rowsPerChunk } = array;
    for (let row = 0; row < rows; row += rowsPerChunk) {
      const url = `/datasets/${dataset}/zarr/${path}/${row / rowsPerChunk}.0`;
      yield { url, kind: "chunk", dataset, array, row, name: "" };
    }
  }
}

function* documentKeys(): Iterable<ChaosKey> {
  for (const dataset of CHAOS_DATASETS) {
    for (const name of ["keys", "info", "dict", "groups", "zarr/.zmetadata", "zarr/.zgroup"]) {
      yield { url: `/datasets/${dataset}/${name}`, kind: "document", dataset, row: 0, name };
    }
  }
  for (const array of CHAOS_ARRAYS) {
    const { dataset, path } = array;
    const url = `/datasets/${dataset}/zarr/${path}/.zarray`;
    yield { url, kind: "document", dataset, array, row: 0, name: ".zarray" };
  }
}

/** The files, by number, that a served chunk is made of. */
export function filesOf({ row, array }: ChaosKey): readonly number[] {
  if (array === undefined) return [];
  const { rowsPerFile, rowsPerChunk, rows } = array;
  const first = Math.floor(row / rowsPerFile);
  const last = Math.floor((Math.min(row + rowsPerChunk, rows) - 1) / rowsPerFile);
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** How many files an array has, absent ones counted. */
export function fileCount({ rows, rowsPerFile }: ChaosArray): number {
  return Math.ceil(rows / rowsPerFile);
}
