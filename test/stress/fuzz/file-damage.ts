import type { FileFormat } from "../../../src/formats/file-format.js";
import type { FileArray } from "../../../src/formats/file-index.js";
import { lookup3 } from "../../../src/formats/hdf5/bytes.js";
import { elementCount, gridShapeOf } from "../../../src/model/data-tree.js";
import { memoryBlocks } from "../../formats/memory-blocks.js";
import { mutations } from "../../support/codec/mutate-chunk.js";
import type { Damage } from "./fuzz.js";

/** A file to damage. */
export interface DamagedFile {
  readonly bytes: Uint8Array;
  /** Chunks whose place is known, if none shares a byte with metadata or another chunk. */
  readonly extents: readonly ChunkExtent[];
  /** Places that belong to no chunk. */
  readonly metadata: Uint32Array;
  /** Writes the checksums of metadata again in a damaged copy; undefined if the file has none. */
  readonly seal?: (bytes: Uint8Array) => void;
}

/** A damaged copy of a file, and what may be expected of it. */
export interface FileDamage extends Damage {
  /**
   * `chunks`: only bytes of chunks differ, so everything else reads as before. `cut`: the end is missing, so whatever reads is as
   * before. `any`: nothing can be said about its values.
   */
  readonly scope: "chunks" | "cut" | "any";
}

const EXTREMES = [0, 1, 2, 7, 8, 16, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fffffff, 0x80000000, 0xffffffff];
const MAX_FLIPS = 4;

/** Yields damaged copies of a file without end. @param random Numbers in [0, 1): the same ones give the same copies. */
export function* damageFile(target: DamagedFile, random: () => number): Generator<FileDamage, never, void> {
  const { bytes: good, extents, metadata } = target;
  const draw = (below: number) => Math.floor(random() * below);
  const general = mutations(good, [good], random);
  const inMetadata = () => metadata[draw(metadata.length)] ?? draw(good.length);
  const isSealed = () => target.seal !== undefined && draw(4) > 0;

  /** Damages a copy, and writes checksums again in three of four copies. */
  function damaged(kind: string, change: (bytes: Uint8Array) => void): FileDamage {
    const bytes = new Uint8Array(good);
    change(bytes);
    if (isSealed()) target.seal?.(bytes);
    return { kind, bytes, scope: "any" };
  }

  for (;;) {
    yield damaged("bits of metadata flipped", (bytes) => {
      for (let i = draw(MAX_FLIPS); i >= 0; i--) {
        const place = inMetadata();
        bytes[place] = bytes[place]! ^ (1 << draw(8));
      }
    });
    yield damaged("an extreme in metadata", (bytes) => {
      const value = [...EXTREMES, good.length, good.length - 1, good.length + 1][
        draw(EXTREMES.length + 3)
      ] as number;
      writeNumber(bytes, inMetadata(), value, 1 << draw(4), draw(2) === 0);
    });
    yield damaged("a large number in metadata", (bytes) => {
      writeNumber(bytes, inMetadata(), 2 ** (31 + draw(31)), 8, draw(2) === 0);
    });
    // Addresses of other structures make cycles, and lead to structures of another kind.
    yield damaged("metadata copied over other metadata", (bytes) => {
      const length = [1, 2, 4, 8, 16, 64][draw(6)] as number;
      const from = inMetadata();
      bytes.copyWithin(inMetadata(), from, from + length);
    });
    yield damaged("a number replaced by a place in metadata", (bytes) => {
      writeNumber(bytes, inMetadata(), inMetadata(), 4 << draw(2), draw(2) === 0);
    });
    yield { kind: "cut short", bytes: good.slice(0, draw(good.length)), scope: "cut" };
    yield { ...general.next().value, scope: "any" };
    const extent = extents[draw(extents.length)];
    if (extent === undefined || extent.end === extent.begin) continue;
    const bytes = new Uint8Array(good);
    for (let i = draw(MAX_FLIPS); i >= 0; i--) {
      const place = extent.begin + draw(extent.end - extent.begin);
      bytes[place] = bytes[place]! ^ (1 << draw(8));
    }
    yield { kind: "bits of a chunk flipped", bytes, scope: "chunks" };
  }
}

function writeNumber(
  bytes: Uint8Array,
  place: number,
  value: number,
  width: number,
  isBigEndian: boolean,
): void {
  let rest = BigInt(value);
  for (let i = 0; i < width && i < 8; i++) {
    const at = place + (isBigEndian ? width - 1 - i : i);
    if (at < bytes.length) bytes[at] = Number(rest & 0xffn);
    rest >>= 8n;
  }
}

/** A structure of an HDF5 file with its checksum in the last four bytes. */
interface ChecksummedBlock {
  readonly begin: number;
  readonly end: number;
}

/** What the structures with checksums begin with, besides the superblock. */
const SIGNATURES = "OHDR OCHK FRHP FHDB FHIB BTHD BTIN BTLF FAHD FADB EAHD EAIB EASB EADB".split(" ");
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

/** Bytes of a chunk in its file. */
export interface ChunkExtent {
  readonly path: string;
  /** As in `ArrayReading.chunks`. */
  readonly key: string;
  readonly begin: number;
  readonly end: number;
}

/** Returns where the chunks of a good file are, those of tables with places. Chunks that are made or inline are left out. */
export async function chunkExtents(format: FileFormat, bytes: Uint8Array): Promise<ChunkExtent[]> {
  const { groups } = await format.readIndex(memoryBlocks(bytes));
  return groups.flatMap(({ path, arrays }) =>
    arrays.flatMap((array) => extentsOf(array, `${path === "/" ? "" : `${path.slice(1)}/`}${array.name}`)),
  );
}

function extentsOf({ shape, chunkShape, chunks }: FileArray, path: string): ChunkExtent[] {
  const grid = gridShapeOf(shape, chunkShape);
  const extent = (number: number, begin: number, byteLength: number): ChunkExtent => ({
    ...{ path, key: coordsOf(number, grid).join("."), begin },
    end: begin + byteLength,
  });
  if (chunks.kind === "listed") {
    return [...chunks.offsets].flatMap((offset, i) =>
      offset < 0 ? [] : [extent(chunks.numbers?.[i] ?? i, offset, chunks.byteLengths[i] as number)],
    );
  }
  if (chunks.kind !== "strided") return [];
  return Array.from({ length: elementCount(grid) }, (_, number) => {
    const coords = coordsOf(number, grid);
    const begin = coords.reduce((sum, at, axis) => sum + at * chunks.strides[axis]!, chunks.start);
    const { last } = chunks;
    const isLast = last !== undefined && coords[last.axis] === grid[last.axis]! - 1;
    return extent(number, begin, isLast ? last.byteLength : chunks.byteLength);
  });
}

/** Position of a chunk, counted in C order. */
function coordsOf(number: number, grid: readonly number[]): number[] {
  const coords = grid.map(() => 0);
  let rest = number;
  for (let axis = grid.length - 1; axis >= 0; axis--) {
    coords[axis] = rest % grid[axis]!;
    rest = Math.floor(rest / grid[axis]!);
  }
  return coords;
}
