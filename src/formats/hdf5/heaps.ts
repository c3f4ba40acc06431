import { createBoundedMap } from "../../collections/bounded-map.js";
import { readBTree2 } from "./b-trees.js";
import {
  ByteCursor,
  bytesFor,
  check,
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

/** A heap of links or attributes (HDF5 File Format Specification, III.G). */
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

  static async open(input: Hdf5Input, address: number): Promise<FractalHeap> {
    const cursor = await input.read(address, HEAP_HEADER_BYTES, "fractal heap");
    return new FractalHeap(input, address, parseHeapHeader(cursor));
  }

  /**
   * Reads an object.
   * @param id Its id in the heap.
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
      // Ids of links and attributes have no room for longer objects.
      case 2:
        return id.take((first & 0x0f) + 1);
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

  private directBlock(address: number, byteLength: number): Promise<Uint8Array> {
    return this.block(address, byteLength, "FHDB", ({ bytes, structure }, at) => {
      if (!this.header.hasBlockChecksums) return;
      // The checksum lies inside of the block, and counts as zeros.
      const copy = Buffer.concat([bytes, bytes.subarray(at, at + 4)]).fill(0, at, at + 4);
      checkChecksum(copy, structure);
    });
  }

  private indirectBlock(address: number, rows: number): Promise<Uint8Array> {
    const { width, offsetBytes } = this.header;
    const byteLength = 17 + offsetBytes + rows * width * 8;
    return this.block(address, byteLength, "FHIB", ({ bytes, structure }) => checkChecksum(bytes, structure));
  }

  /** @param verify Checks the checksum of the block. Gets the offset of what follows its head. */
  private async block(
    address: number,
    byteLength: number,
    signature: string,
    verify: (block: ByteCursor, at: number) => void,
  ): Promise<Uint8Array> {
    const kept = this.blocks.get(String(address));
    if (kept?.length === byteLength) return kept;
    const cursor = await this.input.read(address, byteLength, "block of a fractal heap");
    cursor.signature(signature);
    cursor.version(0, 0);
    if (cursor.address() !== this.address) throw invalidFile("fractal heap: a block belongs to another heap");
    verify(cursor, cursor.at + this.header.offsetBytes);
    this.blocks.set(String(address), cursor.bytes);
    return cursor.bytes;
  }

  private async readHuge(id: ByteCursor): Promise<Uint8Array> {
    const key = id.uint(Math.min(8, this.header.idBytes - 1));
    this.hugeObjects ??= await this.readHugeObjects();
    const place = this.hugeObjects.get(key);
    if (place === undefined) throw invalidFile(`fractal heap: there is no huge object ${key}`);
    return (await this.input.read(place.address, place.byteLength, "object of a fractal heap")).bytes;
  }

  private async readHugeObjects() {
    const objects = new Map<number, { readonly address: number; readonly byteLength: number }>();
    const { hugeTree } = this.header;
    if (hugeTree === null) return objects;
    await readBTree2(this.input, hugeTree, HUGE_OBJECT_RECORDS, 24, (record) => {
      const place = { address: record.address(), byteLength: record.u64() };
      objects.set(record.u64(), place);
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
  const end = offset + byteLength;
  check(end <= block.length, "fractal heap", `an object inside ${block.length} bytes`, `one to ${end}`);
  return block.subarray(offset, end);
}

/**
 * Opens the heap that a link info or attribute info message leads to, and reads the records of its objects by name.
 * @param orderBytes Bytes of the greatest number in the order of creation, if the message has it.
 * @param records Type of the records, and the bytes of each that are read.
 * @param visit As in {@link readBTree2}.
 * @returns Undefined if there is no heap.
 */
export async function openIndexedHeap(
  input: Hdf5Input,
  info: ByteCursor,
  orderBytes: number,
  [type, minBytes]: readonly [type: number, minBytes: number],
  visit: (record: ByteCursor) => void,
): Promise<FractalHeap | undefined> {
  info.version(0, 0);
  if ((info.u8() & 1) !== 0) info.skip(orderBytes);
  const [heapAddress, treeAddress] = [info.optional(), info.optional()];
  if (heapAddress === null || treeAddress === null) return undefined;
  const heap = await FractalHeap.open(input, heapAddress);
  await readBTree2(input, treeAddress, type, minBytes, visit);
  return heap;
}

/** Bytes of the header of a heap without filters. */
const HEAP_HEADER_BYTES = 146;

/** The fields of a heap's header that finding objects needs. */
type HeapHeader = ReturnType<typeof parseHeapHeader>;

/** Parses the header of a fractal heap (HDF5 File Format Specification, III.G). */
function parseHeapHeader(cursor: ByteCursor) {
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
  // Columns of the doubling table.
  const width = cursor.u16();
  const startBytes = cursor.u64();
  const maxDirectBytes = cursor.u64();
  const heapBits = cursor.u16();
  cursor.skip(2);
  const rootAddress = cursor.optional();
  // None if the root is a direct block.
  const rootRows = cursor.u16();
  const received = `blocks of ${startBytes} to ${maxDirectBytes} bytes in ${width} columns`;
  const areValid = [width, startBytes, maxDirectBytes].every(isPowerOfTwo) && heapBits <= 64;
  check(areValid, "fractal heap", "powers of two", received);
  const sizes = {
    idBytes,
    maxManagedBytes,
    startBytes,
    maxDirectBytes,
    offsetBytes: Math.ceil(heapBits / 8),
  };
  return { ...sizes, hasBlockChecksums, hugeTree, width, rootAddress, rootRows };
}

/** Bytes of a collection's header, and of an object's. */
const COLLECTION_HEADER_BYTES = 16;

/** Bytes of collections that are kept. Those of one object's attributes lie together. */
const MAX_KEPT_COLLECTIONS = 4 * 1024 * 1024;

/** The objects of a collection by index. */
export type HeapCollection = ReadonlyMap<number, Buffer>;

/** A collection, and the bytes that it occupies in the file. */
interface LoadedCollection {
  readonly collection: HeapCollection;
  readonly byteLength: number;
}

/** Collections of objects that have no fixed size: strings, lists (HDF5 File Format Specification, III.E). */
export class GlobalHeap {
  private readonly kept = createBoundedMap<LoadedCollection>({
    maxBytes: MAX_KEPT_COLLECTIONS,
    byteLengthOf: ({ byteLength }) => byteLength,
  });

  constructor(readonly input: Hdf5Input) {}

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
