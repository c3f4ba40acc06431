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
  /** The array of a chunk, or of a document of one array. */
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

/** Every value of what is not there. */
export const FILL_VALUE = -1;
/** In place of a version: the file is not there. */
export const ABSENT = -1;

/**
 * The values of one row as a version of its file has them: version, row and noise that depends on all of these, so that
 * each value tells what it belongs to.
 */
export function rowValues(array: ChaosArray, row: number, version: number): Int32Array {
  const values = new Int32Array(array.items);
  const base = (version << 16) | (row << 8);
  let state = Math.imul(array.number * 65_537 + row * 257 + version + 1, 0x9e3779b1) | 1;
  for (let i = 0; i < values.length; i++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    values[i] = base | (state & 0xff);
  }
  return values;
}

/** What a served chunk turned out to hold. */
export type ChunkFinding =
  | {
      /** The version of each of its files, see `filesOf`; {@link ABSENT} if it holds fill values. */
      readonly versions: readonly number[];
    }
  | { readonly problem: string };

/** Compares every value of a decoded chunk with what was ever written there. */
export function checkChunk(key: ChaosKey, decoded: Uint8Array): ChunkFinding {
  const array = key.array as ChaosArray;
  const { items, rows, rowsPerChunk, rowsPerFile } = array;
  const expectedBytes = rowsPerChunk * items * 4;
  if (decoded.byteLength !== expectedBytes)
    return { problem: `expected ${expectedBytes} bytes, received ${decoded.byteLength}` };
  const values = new Int32Array(Uint8Array.from(decoded).buffer);
  const files = filesOf(key);
  const versions: number[] = [];
  for (let i = 0; i < rowsPerChunk; i++) {
    const row = key.row + i;
    const received = values.subarray(i * items, (i + 1) * items);
    const isInside = row < rows;
    const version = received[0] === FILL_VALUE || !isInside ? ABSENT : received[0]! >> 16;
    const expected =
      version === ABSENT ? new Int32Array(items).fill(FILL_VALUE) : rowValues(array, row, version);
    const at = received.findIndex((value, item) => value !== expected[item]);
    if (at >= 0) {
      const [was, is] = [expected[at]!, received[at]!].map(describe);
      return { problem: `row ${row}, item ${at}: expected ${was}, received ${is}` };
    }
    if (!isInside) continue;
    const file = Math.floor(row / rowsPerFile) - files[0]!;
    if (versions[file] !== undefined && versions[file] !== version)
      return { problem: `row ${row}: expected version ${versions[file]} of its file, received ${version}` };
    versions[file] = version;
  }
  return { versions };
}

function describe(value: number): string {
  if (value === FILL_VALUE) return "the fill value";
  return `version ${value >> 16} of row ${(value >> 8) & 0xff} (${value})`;
}
