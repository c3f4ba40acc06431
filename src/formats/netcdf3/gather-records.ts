import { workThrough } from "../../event-loop/work-through.js";
import type { FileBlocks } from "../file-format.js";

/** Records of an array that are put together to chunks. */
export interface RecordsRecipe {
  /** Offset of the first record in the file. */
  readonly begin: number;
  /** Bytes from one record to the next. */
  readonly stride: number;
  readonly recordBytes: number;
  readonly count: number;
  readonly chunkRecords: number;
}

/** Bytes between two records that are read and dropped: they cost less than another read. */
const MAX_GAP_BYTES = 32 * 1024;
/** Longest read of several records. */
const MAX_READ_BYTES = 2 ** 20;
const READS_AT_ONCE = 16;

/**
 * Gathers the records of a chunk. The last chunk is padded with zeros.
 * @throws ZpublishError `source-unreadable`, `source-changed`
 */
export async function gatherRecords(
  file: FileBlocks,
  { begin, stride, recordBytes, count, chunkRecords }: RecordsRecipe,
  chunkNumber: number,
): Promise<Uint8Array<ArrayBuffer>> {
  const chunk = new Uint8Array(chunkRecords * recordBytes);
  const first = chunkNumber * chunkRecords;
  const end = Math.min(count, first + chunkRecords);
  const isDense = stride - recordBytes <= MAX_GAP_BYTES;
  const recordsPerRead = isDense ? Math.max(1, Math.floor(MAX_READ_BYTES / stride)) : 1;

  function* reads(): Generator<number> {
    for (let record = first; record < end; record += recordsPerRead) yield record;
  }
  await workThrough(reads(), READS_AT_ONCE, async (record) => {
    const records = Math.min(recordsPerRead, end - record);
    const bytes = await file.readOnce(begin + record * stride, (records - 1) * stride + recordBytes);
    for (let i = 0; i < records; i++) {
      const item = bytes.subarray(i * stride, i * stride + recordBytes);
      chunk.set(item, (record - first + i) * recordBytes);
    }
  });
  return chunk;
}
