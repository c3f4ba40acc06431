import { ByteCursor, invalidFile } from "./byte-cursor.js";
import type { Hdf5Input } from "./hdf5-input.js";

/** Bytes of a collection's header, and of an object's. */
const HEADER_BYTES = 16;

/** Bytes of collections that are kept. Those of one object's attributes lie together. */
const MAX_KEPT_BYTES = 4 * 1024 * 1024;

/** The objects of a collection by index. */
export type HeapCollection = ReadonlyMap<number, Buffer>;

/** Collections of objects that have no fixed size: strings, lists (HDF5 File Format Specification, III.E). */
export class GlobalHeap {
  private readonly kept = new Map<
    number,
    { readonly collection: HeapCollection; readonly byteLength: number }
  >();
  private keptBytes = 0;

  constructor(readonly input: Hdf5Input) {}

  /**
   * Reads a collection.
   * @returns Its objects, and the bytes that it occupies.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  async load(address: number): Promise<{ readonly collection: HeapCollection; readonly byteLength: number }> {
    const kept = this.kept.get(address);
    if (kept !== undefined) return kept;
    const structure = "global heap";
    const header = new ByteCursor(await this.input.read(address, HEADER_BYTES, structure), structure);
    header.signature("GCOL");
    header.version(1, 1);
    header.skip(3);
    const byteLength = header.u64();
    // A copy, since a view would keep a whole block of the file in memory.
    const bytes = new Uint8Array(await this.input.read(address, byteLength, structure));
    const loaded = { collection: parseCollection(bytes), byteLength };
    if (this.keptBytes + byteLength > MAX_KEPT_BYTES) {
      this.kept.clear();
      this.keptBytes = 0;
    }
    this.kept.set(address, loaded);
    this.keptBytes += byteLength;
    return loaded;
  }
}

function parseCollection(bytes: Uint8Array): HeapCollection {
  const objects = new Map<number, Buffer>();
  const cursor = new ByteCursor(bytes, "global heap");
  if (bytes.length < HEADER_BYTES)
    throw invalidFile(`global heap: received a collection of ${bytes.length} bytes`);
  cursor.skip(HEADER_BYTES);
  while (cursor.left >= HEADER_BYTES) {
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
