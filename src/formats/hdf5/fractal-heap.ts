import { readBTree2 } from "./b-tree-2.js";
import { ByteCursor, bytesFor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import { HEAP_HEADER_BYTES, type HeapHeader, parseHeapHeader } from "./fractal-heap-header.js";
import type { Hdf5Input } from "./hdf5-input.js";
import { checkChecksum } from "./lookup3.js";

/** Maximum depth of indirect blocks: each has at least twice the bytes of the one below. */
const MAX_DEPTH = 64;

/** Bytes of blocks that a heap keeps. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;

/** B-tree records of huge objects that have no filters. */
const HUGE_OBJECT_RECORDS = 1;

/** A heap of links, attributes or shared messages (HDF5 File Format Specification, III.G). */
export class FractalHeap {
  private readonly blocks = new Map<number, Uint8Array>();
  private keptBytes = 0;
  private hugeObjects: Map<number, { readonly address: number; readonly byteLength: number }> | undefined;

  private constructor(
    private readonly input: Hdf5Input,
    private readonly address: number,
    private readonly header: HeapHeader,
  ) {}

  /** @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed` */
  static async open(input: Hdf5Input, address: number): Promise<FractalHeap> {
    const bytes = await input.read(address, HEAP_HEADER_BYTES, "fractal heap");
    return new FractalHeap(input, address, parseHeapHeader(bytes));
  }

  /**
   * Reads an object.
   * @param id Its id in the heap.
   * @returns The bytes themselves if its block is in memory.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  read(id: ByteCursor): Uint8Array | Promise<Uint8Array> {
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

  private readManaged(offset: number, byteLength: number): Uint8Array | Promise<Uint8Array> {
    const { header } = this;
    const root = header.rootRows === 0 && header.rootAddress !== null && this.blocks.get(header.rootAddress);
    if (root) return objectIn(root, offset, byteLength);
    return this.findManaged(offset, byteLength);
  }

  private async findManaged(offset: number, byteLength: number): Promise<Uint8Array> {
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
    const kept = this.blocks.get(address);
    if (kept !== undefined && kept.length === byteLength) return kept;
    const bytes = await this.input.read(address, byteLength, "block of a fractal heap");
    const cursor = new ByteCursor(bytes, "block of a fractal heap");
    cursor.signature("FHDB");
    this.checkOwner(cursor);
    cursor.skip(this.header.offsetBytes);
    if (this.header.hasBlockChecksums) this.checkBlock(bytes, cursor.at);
    this.keep(address, bytes);
    return bytes;
  }

  private async indirectBlock(address: number, rows: number): Promise<Uint8Array> {
    const { width, offsetBytes } = this.header;
    const byteLength = 17 + offsetBytes + rows * width * 8;
    const kept = this.blocks.get(address);
    if (kept !== undefined && kept.length === byteLength) return kept;
    const bytes = await this.input.read(address, byteLength, "indirect block of a fractal heap");
    checkChecksum(bytes, "indirect block of a fractal heap");
    const cursor = new ByteCursor(bytes, "indirect block of a fractal heap");
    cursor.signature("FHIB");
    this.checkOwner(cursor);
    this.keep(address, bytes);
    return bytes;
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

  private keep(address: number, bytes: Uint8Array): void {
    if (this.keptBytes + bytes.length > MAX_KEPT_BYTES) {
      this.blocks.clear();
      this.keptBytes = 0;
    }
    this.blocks.set(address, bytes);
    this.keptBytes += bytes.length;
  }

  private async readHuge(id: ByteCursor): Promise<Uint8Array> {
    // Ids of 17 bytes and more have room for address and length.
    if (this.header.idBytes >= 17) {
      const [address, byteLength] = [id.address(), id.u64()];
      return this.input.read(address, byteLength, "object of a fractal heap");
    }
    const key = id.uint(Math.min(8, this.header.idBytes - 1));
    this.hugeObjects ??= await this.readHugeObjects();
    const place = this.hugeObjects.get(key);
    if (place === undefined) throw invalidFile(`fractal heap: there is no huge object ${key}`);
    return this.input.read(place.address, place.byteLength, "object of a fractal heap");
  }

  private async readHugeObjects() {
    const { hugeTree } = this.header;
    if (hugeTree === null) throw invalidFile("fractal heap: it has no huge objects");
    const records = await readBTree2(this.input, hugeTree, HUGE_OBJECT_RECORDS, 24);
    return new Map(
      records.map((record) => {
        const [address, byteLength] = [record.address(), record.u64()];
        return [record.u64(), { address, byteLength }];
      }),
    );
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
