import { createBoundedMap } from "../../collections/bounded-map.js";
import { assertRecords, readBTree2 } from "./b-trees.js";
import {
  ByteCursor,
  bytesFor,
  checkChecksum,
  type Hdf5Input,
  invalidFile,
  isPowerOfTwo,
  unsupportedFile,
} from "./bytes.js";

/** Maximum depth of indirect blocks: each has at least twice the bytes of the one below. */
const MAX_DEPTH = 64;

/** Bytes of blocks that a heap keeps. */
const MAX_KEPT_BLOCKS = 16 * 1024 * 1024;

/** B-tree records of huge objects that have no filters. */
const HUGE_OBJECT_RECORDS = 1;

/** A heap of links, attributes or shared messages (HDF5 File Format Specification, III.G). */
export class FractalHeap {
  private readonly blocks = createBoundedMap<Uint8Array>({
    maxBytes: MAX_KEPT_BLOCKS,
    byteLengthOf: ({ length }) => length,
  });
  private hugeObjects: Map<number, { readonly address: number; readonly byteLength: number }> | undefined;

  private constructor(
    private readonly input: Hdf5Input,
    private readonly address: number,
    private readonly header: HeapHeader,
  ) {}

  /** @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed` */
  static async open(input: Hdf5Input, address: number): Promise<FractalHeap> {
    const cursor = await input.read(address, HEAP_HEADER_BYTES, "fractal heap");
    return new FractalHeap(input, address, parseHeapHeader(cursor));
  }

  /**
   * Reads an object.
   * @param id Its id in the heap.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  async read(id: ByteCursor): Promise<Uint8Array> {
    const { header } = this;
    const first = id.u8();
    if (first >> 6 !== 0)
      throw unsupportedFile(`fractal heap: expected ids of version 0, received ${first >> 6}`);
    switch ((first >> 4) & 3) {
      case 0: {
        const offset = id.uint(header.offsetBytes);
        const lengthBytes = bytesFor(Math.min(header.maxDirectBytes, header.maxManagedBytes));
        return this.readManaged(offset, id.uint(lengthBytes));
      }
      case 1:
        return this.readHuge(id);
      case 2: {
        const isExtended = header.idBytes > 17;
        const length = isExtended ? (first & 0x0f) * 256 + id.u8() + 1 : (first & 0x0f) + 1;
        return id.take(length);
      }
      default:
        throw invalidFile("fractal heap: an object has an unknown kind");
    }
  }

  private async readManaged(offset: number, byteLength: number): Promise<Uint8Array> {
    const { header } = this;
    if (header.rootAddress === null) throw invalidFile("fractal heap: it has no blocks");
    if (header.rootRows === 0) {
      return objectIn(await this.directBlock(header.rootAddress, header.startBytes), offset, byteLength);
    }
    let address = header.rootAddress;
    let rows = header.rootRows;
    let rest = offset;
    for (let depth = 0; depth < MAX_DEPTH; depth++) {
      const { row, column, start, blockBytes } = placeOf(header, rest);
      if (row >= rows) throw invalidFile("fractal heap: an object is behind the last block");
      const children = await this.indirectBlock(address, rows);
      const cursor = new ByteCursor(children, "indirect block of a fractal heap");
      cursor.skip(13 + header.offsetBytes + 8 * (row * header.width + column));
      const child = cursor.address();
      if (blockBytes <= header.maxDirectBytes) {
        return objectIn(await this.directBlock(child, blockBytes), rest - start, byteLength);
      }
      address = child;
      rows = Math.log2(blockBytes / (header.startBytes * header.width)) + 1;
      rest -= start;
    }
    throw invalidFile("fractal heap: its blocks lead back to themselves");
  }

  private async directBlock(address: number, byteLength: number): Promise<Uint8Array> {
    const kept = this.blocks.get(String(address));
    if (kept?.length === byteLength) return kept;
    const cursor = await this.input.read(address, byteLength, "block of a fractal heap");
    cursor.signature("FHDB");
    this.checkOwner(cursor);
    cursor.skip(this.header.offsetBytes);
    if (this.header.hasBlockChecksums) this.checkBlock(cursor.bytes, cursor.at);
    this.blocks.set(String(address), cursor.bytes);
    return cursor.bytes;
  }

  private async indirectBlock(address: number, rows: number): Promise<Uint8Array> {
    const { width, offsetBytes } = this.header;
    const byteLength = 17 + offsetBytes + rows * width * 8;
    const kept = this.blocks.get(String(address));
    if (kept?.length === byteLength) return kept;
    const structure = "indirect block of a fractal heap";
    const cursor = await this.input.readChecked(address, byteLength, "FHIB", structure);
    this.checkOwner(cursor);
    this.blocks.set(String(address), cursor.bytes);
    return cursor.bytes;
  }

  private checkOwner(cursor: ByteCursor): void {
    cursor.version(0, 0);
    if (cursor.address() !== this.address)
      throw invalidFile(`${cursor.structure}: it belongs to another heap`);
  }

  /** The checksum lies inside of the block, and counts as zeros. */
  private checkBlock(bytes: Uint8Array, at: number): void {
    const copy = new Uint8Array(bytes.length + 4);
    copy.set(bytes);
    copy.fill(0, at, at + 4);
    copy.set(bytes.subarray(at, at + 4), bytes.length);
    checkChecksum(copy, "block of a fractal heap");
  }

  private async readHuge(id: ByteCursor): Promise<Uint8Array> {
    const structure = "object of a fractal heap";
    // Ids of 17 bytes and more have room for address and length.
    if (this.header.idBytes >= 17) return (await this.input.read(id.address(), id.u64(), structure)).bytes;
    const key = id.uint(Math.min(8, this.header.idBytes - 1));
    this.hugeObjects ??= await this.readHugeObjects();
    const place = this.hugeObjects.get(key);
    if (place === undefined) throw invalidFile(`fractal heap: there is no huge object ${key}`);
    return (await this.input.read(place.address, place.byteLength, structure)).bytes;
  }

  private async readHugeObjects() {
    const { hugeTree } = this.header;
    if (hugeTree === null) throw invalidFile("fractal heap: it has no huge objects");
    const objects = new Map<number, { readonly address: number; readonly byteLength: number }>();
    await readBTree2(this.input, hugeTree, (kind) => {
      assertRecords(kind, HUGE_OBJECT_RECORDS, 24);
      return (record) => {
        const place = { address: record.address(), byteLength: record.u64() };
        objects.set(record.u64(), place);
      };
    });
    return objects;
  }
}

/** Returns the place of an offset in the doubling table: all blocks of a row have one size, which doubles from row 2 on. */
function placeOf({ width, startBytes }: HeapHeader, offset: number) {
  let row = 0;
  let blockBytes = startBytes;
  let start = 0;
  while (offset >= start + width * blockBytes) {
    start += width * blockBytes;
    if (row > 0) blockBytes *= 2;
    row++;
  }
  const column = Math.floor((offset - start) / blockBytes);
  return { row, column, start: start + column * blockBytes, blockBytes };
}

function objectIn(block: Uint8Array, offset: number, byteLength: number): Uint8Array {
  if (offset + byteLength <= block.length) return block.subarray(offset, offset + byteLength);
  throw invalidFile(
    `fractal heap: expected an object inside ${block.length} bytes, received one to ${offset + byteLength}`,
  );
}

/** Bytes of the header of a heap without filters. */
const HEAP_HEADER_BYTES = 146;

/** The fields of a heap's header that finding objects needs. */
interface HeapHeader {
  readonly idBytes: number;
  readonly hasBlockChecksums: boolean;
  readonly maxManagedBytes: number;
  readonly hugeTree: number | null;
  /** Columns of the doubling table. */
  readonly width: number;
  readonly startBytes: number;
  readonly maxDirectBytes: number;
  /** Bytes of an offset in the heap. */
  readonly offsetBytes: number;
  readonly rootAddress: number | null;
  /** Rows of the root block; 0 if it is a direct block. */
  readonly rootRows: number;
}

/** Parses the header of a fractal heap (HDF5 File Format Specification, III.G). */
function parseHeapHeader(cursor: ByteCursor): HeapHeader {
  cursor.signature("FRHP");
  cursor.version(0, 0);
  const idBytes = cursor.u16();
  if (cursor.u16() !== 0) throw unsupportedFile("fractal heap: its blocks have filters");
  checkChecksum(cursor.bytes, "fractal heap");
  const hasBlockChecksums = (cursor.u8() & 2) !== 0;
  const maxManagedBytes = cursor.u32();
  cursor.skip(8);
  const hugeTree = cursor.optional();
  // Free space, and statistics.
  cursor.skip(80);
  const width = cursor.u16();
  const startBytes = cursor.u64();
  const maxDirectBytes = cursor.u64();
  const heapBits = cursor.u16();
  cursor.skip(2);
  const rootAddress = cursor.optional();
  const rootRows = cursor.u16();
  if (!isPowerOfTwo(width) || !isPowerOfTwo(startBytes) || !isPowerOfTwo(maxDirectBytes) || heapBits > 64) {
    throw invalidFile(
      `fractal heap: received blocks of ${startBytes} to ${maxDirectBytes} bytes in ${width} columns`,
    );
  }
  const offsetBytes = Math.ceil(heapBits / 8);
  return {
    idBytes,
    hasBlockChecksums,
    maxManagedBytes,
    hugeTree,
    width,
    startBytes,
    maxDirectBytes,
    offsetBytes,
    rootAddress,
    rootRows,
  };
}

/** Bytes of a collection's header, and of an object's. */
const COLLECTION_HEADER_BYTES = 16;

/** Bytes of collections that are kept. Those of one object's attributes lie together. */
const MAX_KEPT_COLLECTIONS = 4 * 1024 * 1024;

/** The objects of a collection by index. */
export type HeapCollection = ReadonlyMap<number, Buffer>;

interface LoadedCollection {
  readonly collection: HeapCollection;
  /** Bytes that it occupies in the file. */
  readonly byteLength: number;
}

/** Collections of objects that have no fixed size: strings, lists (HDF5 File Format Specification, III.E). */
export class GlobalHeap {
  private readonly kept = createBoundedMap<LoadedCollection>({
    maxBytes: MAX_KEPT_COLLECTIONS,
    byteLengthOf: ({ byteLength }) => byteLength,
  });

  constructor(readonly input: Hdf5Input) {}

  /** @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed` */
  async load(address: number): Promise<LoadedCollection> {
    const kept = this.kept.get(String(address));
    if (kept !== undefined) return kept;
    const structure = "global heap";
    const header = await this.input.read(address, COLLECTION_HEADER_BYTES, structure);
    header.signature("GCOL");
    header.version(1, 1);
    header.skip(3);
    const byteLength = header.u64();
    // A copy, since a view would keep a whole block of the file in memory.
    const bytes = new Uint8Array((await this.input.read(address, byteLength, structure)).bytes);
    const loaded = { collection: parseCollection(bytes), byteLength };
    this.kept.set(String(address), loaded);
    return loaded;
  }
}

function parseCollection(bytes: Uint8Array): HeapCollection {
  const objects = new Map<number, Buffer>();
  const cursor = new ByteCursor(bytes, "global heap");
  if (bytes.length < COLLECTION_HEADER_BYTES)
    throw invalidFile(`global heap: received a collection of ${bytes.length} bytes`);
  cursor.skip(COLLECTION_HEADER_BYTES);
  while (cursor.left >= COLLECTION_HEADER_BYTES) {
    const index = cursor.u16();
    cursor.skip(6);
    const byteLength = cursor.u64();
    // The rest is free.
    if (index === 0) break;
    objects.set(index, cursor.take(byteLength));
    cursor.skip(Math.min(cursor.left, (8 - (byteLength % 8)) % 8));
  }
  return objects;
}
