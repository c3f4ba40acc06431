import type { FileIndex } from "./file-index.js";

/**
 * A file format whose files hold arrays: NetCDF, HDF5, TIFF. Its reader reads metadata only, and finds out where the stored chunks
 * lie. Files are not trusted: every offset, length and count is checked before it is used.
 */
export interface FileFormat {
  readonly id: "hdf5" | "netcdf3" | "tiff";
  /** Raised whenever the index of an unchanged file would differ: kept indexes of another revision are not used. */
  readonly revision: number;
  /**
   * Tells whether a file has this format.
   * @param head The first 4,096 bytes of the file, or all if it is shorter.
   */
  recognizes(head: Uint8Array): boolean;
  /**
   * Reads the metadata of a file. An array that cannot be served goes to `refused`, with the reason.
   * @throws ZpublishError `invalid-metadata` if the file as a whole is damaged or incomplete, `unsupported`, `source-unreadable`,
   * `source-changed`.
   */
  readIndex(file: FileBlocks): Promise<FileIndex>;
  /**
   * Makes a chunk of an array whose chunks are `made`; undefined if it is absent. Its bytes are as the array's codecs say.
   * @param recipe As the index has it.
   * @param chunkCoords Position in the stored grid.
   * @throws ZpublishError `corrupt-chunk`, `source-unreadable`, `source-changed`
   */
  readonly makeChunk?: (
    file: FileBlocks,
    recipe: unknown,
    chunkCoords: readonly number[],
  ) => Promise<Uint8Array<ArrayBuffer> | undefined>;
}

/** One version of a file, read in blocks that are cached for some time. */
export interface FileBlocks {
  /** Name of the file without its folder, for messages. */
  readonly name: string;
  /** Length of the file in bytes. */
  readonly byteLength: number;
  /**
   * Reads bytes. They may be a view of a cached block, so callers must not write to them.
   * @throws ZpublishError `invalid-metadata` if they are not inside the file, before memory is allocated; `source-unreadable`,
   * `source-changed`.
   */
  read(offset: number, byteLength: number): Promise<Uint8Array>;
  /** Returns bytes that are in memory; undefined if `read` has to fetch them, or has to say that they are not inside the file. */
  readNow(offset: number, byteLength: number): Uint8Array | undefined;
  /**
   * Reads bytes that are not needed again, past the cache: chunks and heaps of data.
   * @throws as `read`
   */
  readOnce(offset: number, byteLength: number): Promise<Uint8Array<ArrayBuffer>>;
}

/** First bytes of a file that are read to find out what it is. */
export const HEAD_BYTES = 4_096;
