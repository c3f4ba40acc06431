import { type Dirent, existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import type { FileFormat } from "../../src/formats/file-format.js";
import { FORMATS } from "../../src/formats/formats.js";
import { checksummedBlocks, sealBlocks } from "./checksummed-blocks.js";
import { type ChunkExtent, chunkExtents } from "./chunk-extents.js";
import { type FileReading, readWholeFile } from "./file-reading.js";

/** A file to damage, and what the service makes of it. */
export interface FileTarget {
  /** `netcdf3 types_data.nc`. */
  readonly name: string;
  readonly format: FileFormat;
  readonly bytes: Uint8Array;
  readonly reading: FileReading;
  /** Chunks whose place is known, if none shares a byte with metadata or another chunk. */
  readonly extents: readonly ChunkExtent[];
  /** Places that belong to no chunk. */
  readonly metadata: Uint32Array;
  /** Writes the checksums of metadata again in a damaged copy; undefined if the file has none. */
  readonly seal?: (bytes: Uint8Array) => void;
}

/** A file that one of the formats recognizes. */
export interface FileSeed {
  readonly name: string;
  readonly format: FileFormat;
  readonly bytes: Uint8Array;
}

const HEAD_BYTES = 4096;
/** Longer files would be damaged in their chunks only, and take long. */
const MAX_SEED_BYTES = 512 * 1024;

/**
 * Finds files in folders, of every format that the service has (`formats/formats.ts`). Formats take turns in the order, so
 * that each is tried about as often.
 * @param only What names begin with; empty for all.
 */
export function findSeeds(folders: readonly string[], only: string): FileSeed[] {
  const byFormat = new Map<string, FileSeed[]>();
  for (const folder of folders.filter((each) => existsSync(each))) {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }) as Dirent[];
    for (const entry of entries.filter((each) => each.isFile())) {
      const bytes = new Uint8Array(readFileSync(join(entry.parentPath ?? entry.path, entry.name)));
      const format = FORMATS.find((each) => each.recognizes(bytes.subarray(0, HEAD_BYTES)));
      if (format === undefined || bytes.length > MAX_SEED_BYTES) continue;
      const name = `${format.id} ${relative(folder, join(entry.parentPath ?? entry.path, entry.name))}`;
      if (!name.startsWith(only)) continue;
      byFormat.set(format.id, [...(byFormat.get(format.id) ?? []), { name, format, bytes }]);
    }
  }
  const lists = [...byFormat.values()].map((list) => list.sort((a, b) => (a.name < b.name ? -1 : 1)));
  const longest = Math.max(0, ...lists.map((list) => list.length));
  const turns = Array.from({ length: longest }, (_, i) =>
    lists.map((list) => list[i % list.length] as FileSeed),
  );
  return turns.flat();
}

/** Reads a good file. */
export async function createFileTarget({ name, format, bytes }: FileSeed): Promise<FileTarget> {
  const reading = await readWholeFile(format, bytes);
  const found = reading.refusal === undefined ? await chunkExtents(format, bytes) : [];
  const owners = new Uint8Array(bytes.length);
  for (const { begin, end } of found)
    for (let at = begin; at < end; at++) owners[at] = Math.min(2, (owners[at] ?? 0) + 1);
  const isOwn = ({ begin, end }: ChunkExtent) => !owners.subarray(begin, end).includes(2);
  const blocks = format.id === "hdf5" ? checksummedBlocks(bytes) : [];
  return {
    ...{ name, format, bytes, reading },
    extents: found.filter(isOwn),
    metadata: Uint32Array.from(owners.keys()).filter((at) => owners[at] === 0),
    ...(blocks.length > 0 && { seal: (copy: Uint8Array) => sealBlocks(copy, blocks) }),
  };
}
