import { ByteCursor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import { FractalHeap } from "./fractal-heap.js";
import type { Hdf5Input } from "./hdf5-input.js";
import type { Hdf5Type } from "./hdf5-model.js";
import { checkChecksum } from "./lookup3.js";
import { parseDatatype } from "./parse-datatype.js";
import { type HeaderMessage, MESSAGE, readObjectHeader } from "./read-object-header.js";

/** Maximum number of indexes of shared messages (HDF5's `H5O_SHMESG_MAX_NINDEXES`). */
const MAX_INDEXES = 8;

/** Bytes of an index in the master table. */
const INDEX_BYTES = 30;

/** Bytes of a shared message's id. */
const ID_BYTES = 8;

/** Place of a shared message, if it is in the heap of shared messages. */
const IN_HEAP = 1;

/** Messages and datatypes that several objects share (HDF5 File Format Specification, IV.A.2.c, IV.A.2.p, III.H). */
export class SharedMessages {
  private readonly types = new Map<number, Hdf5Type>();
  /** Heaps, and the bits of the kinds of messages that are in them. */
  private heaps: { readonly kinds: number; readonly heap: FractalHeap }[] = [];

  constructor(private readonly input: Hdf5Input) {}

  /**
   * Reads the master table of the heaps of shared messages.
   * @param message The shared message table message, from the superblock's extension.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  async readTable(message: HeaderMessage): Promise<void> {
    const place = cursorOf(message, "shared message table");
    place.version(0, 0);
    const address = place.address();
    const count = place.u8();
    if (count > MAX_INDEXES) {
      throw invalidFile(`shared message table: expected at most ${MAX_INDEXES} indexes, received ${count}`);
    }
    const bytes = await this.input.read(address, 8 + count * INDEX_BYTES, "shared message table");
    checkChecksum(bytes, "shared message table");
    const cursor = new ByteCursor(bytes, "shared message table");
    cursor.signature("SMTB");
    for (let i = 0; i < count; i++) {
      cursor.skip(2);
      const kinds = cursor.u16();
      // Bounds of messages and indexes, and the index, which only writers need.
      cursor.skip(18);
      const heapAddress = cursor.optional();
      if (heapAddress !== null)
        this.heaps.push({ kinds, heap: await FractalHeap.open(this.input, heapAddress) });
    }
  }

  /**
   * Reads the messages of an object. Shared ones are replaced by those that they lead to, except datatypes and attributes.
   * @throws ZpublishError as {@link resolve}
   */
  async readObject(address: number): Promise<readonly HeaderMessage[]> {
    const messages = await readObjectHeader(this.input, address);
    for (const [i, message] of messages.entries()) {
      if (!message.isShared || message.type === MESSAGE.datatype || message.type === MESSAGE.attribute)
        continue;
      const content = await this.follow(cursorOf(message, "shared message"), message.type);
      const bytes = content.take(content.left);
      messages[i] = {
        type: message.type,
        isShared: false,
        bytes,
        start: 0,
        end: bytes.length,
      };
    }
    return messages;
  }

  /**
   * Returns the content of a message, and follows it to where it is.
   * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
   */
  resolve(message: HeaderMessage, structure: string): ByteCursor | Promise<ByteCursor> {
    const cursor = cursorOf(message, structure);
    return message.isShared ? this.follow(cursor, message.type) : cursor;
  }

  /**
   * Returns the type of a datatype message. A committed datatype is parsed once.
   * @param isShared True if the content only says where the message is.
   * @throws ZpublishError as {@link resolve}
   */
  datatype(cursor: ByteCursor, isShared: boolean): Hdf5Type | Promise<Hdf5Type> {
    return isShared ? this.sharedDatatype(cursor) : parseDatatype(cursor);
  }

  /** Follows a shared dataspace or other message. */
  async follow(cursor: ByteCursor, type: number): Promise<ByteCursor> {
    const place = parsePlace(cursor);
    if (place.id !== undefined) return this.readFromHeap(place.id, type, cursor.structure);
    const messages = await readObjectHeader(this.input, place.address);
    const found = messages.find((message) => message.type === type);
    if (found === undefined || found.isShared) {
      throw invalidFile(`${cursor.structure}: expected the shared message in another object, received none`);
    }
    return cursorOf(found, cursor.structure);
  }

  private async sharedDatatype(cursor: ByteCursor): Promise<Hdf5Type> {
    const start = cursor.at;
    const { address } = parsePlace(cursor);
    const known = address === undefined ? undefined : this.types.get(address);
    if (known !== undefined) return known;
    cursor.at = start;
    const type = parseDatatype(await this.follow(cursor, MESSAGE.datatype));
    if (address !== undefined) this.types.set(address, type);
    return type;
  }

  /** Reads a message from the heap of shared messages of its kind. @throws ZpublishError as {@link resolve} */
  async readFromHeap(id: ByteCursor, type: number, structure: string): Promise<ByteCursor> {
    const found = this.heaps.find(({ kinds }) => ((kinds >> type) & 1) === 1);
    if (found === undefined) throw unsupportedFile(`${structure}: there is no heap of such shared messages`);
    return new ByteCursor(await found.heap.read(id), structure);
  }
}

/** Returns a cursor over the content of a message that is not shared. */
export function cursorOf(message: HeaderMessage, structure: string): ByteCursor {
  return new ByteCursor(message.bytes, structure, message.start, message.end);
}

type Place =
  | { readonly address: number; readonly id?: undefined }
  | { readonly id: ByteCursor; readonly address?: undefined };

function parsePlace(cursor: ByteCursor): Place {
  const version = cursor.version(1, 3);
  const kind = cursor.u8();
  // Version 1 has 6 reserved bytes, and a symbol table entry, which begins with the offset of a name.
  if (version === 1) cursor.skip(14);
  if (version === 3 && kind === IN_HEAP) return { id: cursor.part(ID_BYTES, "fractal heap") };
  return { address: cursor.address() };
}
