import { lookup3 } from "../../src/formats/hdf5/bytes.js";

/** A structure of an HDF5 file with its checksum in the last four bytes. */
interface ChecksummedBlock {
  readonly begin: number;
  readonly end: number;
}

/** What the structures with checksums begin with, besides the superblock. */
const SIGNATURES = [
  "OHDR",
  "OCHK",
  "FRHP",
  "FHDB",
  "FHIB",
  "BTHD",
  "BTIN",
  "BTLF",
  "FAHD",
  "FADB",
  "EAHD",
  "EAIB",
  "EASB",
  "EADB",
];
const SUPERBLOCK = "\x89HDF\r\n\x1a\n";
/** Longest structure that is looked for. */
const MAX_BLOCK_BYTES = 2048;

/**
 * Finds the structures of a good file that have checksums: damage to them is refused before anything of it is understood, unless the
 * checksum is written again.
 */
export function checksummedBlocks(file: Uint8Array): ChecksummedBlock[] {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  return [SUPERBLOCK, ...SIGNATURES].flatMap((signature) => {
    const blocks: ChecksummedBlock[] = [];
    for (let begin = 0; ; begin++) {
      begin = bytes.indexOf(signature, begin, "latin1");
      if (begin === -1) return blocks;
      const end = endOfBlock(bytes, begin);
      if (end !== undefined) blocks.push({ begin, end });
    }
  });
}

/** Writes the checksums of structures again that a copy of the file has damaged. */
export function sealBlocks(bytes: Uint8Array, blocks: readonly ChecksummedBlock[]): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  for (const { begin, end } of blocks)
    if (end <= bytes.length) view.setUint32(end - 4, lookup3(bytes.subarray(begin, end - 4)), true);
}

function endOfBlock(bytes: Buffer, begin: number): number | undefined {
  for (let end = begin + 8; end <= Math.min(bytes.length, begin + MAX_BLOCK_BYTES); end++)
    if (bytes.readUInt32LE(end - 4) === lookup3(bytes.subarray(begin, end - 4)) >>> 0) return end;
  return undefined;
}
