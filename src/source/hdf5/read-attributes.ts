import { readBTree2 } from "./b-tree-2.js";
import { ByteCursor, invalidFile, unsupportedFile } from "./byte-cursor.js";
import { FractalHeap } from "./fractal-heap.js";
import type { Hdf5Attribute, Hdf5Item } from "./hdf5-model.js";
import type { ObjectReader } from "./object-reader.js";
import { roundUp } from "./parse-dataset-messages.js";
import { type Dataspace, itemCount, parseDataspace } from "./parse-dataspace.js";
import { readItems } from "./read-items.js";
import { type HeaderMessage, MESSAGE } from "./read-object-header.js";

/** Records of the B-tree that has attributes by name, and their bytes: heap id, flags, creation order, hash. */
const ATTRIBUTES_BY_NAME = 8;
const RECORD_BYTES = 17;
const ID_BYTES = 8;

/** Bounds for the values of one attribute. */
const LIMITS = { items: 1_000_000, bytes: 16 * 1024 * 1024 };

/** Maximum number of items of all attributes of a file, so that a small file cannot fill the memory. */
export const MAX_ATTRIBUTE_ITEMS = 16_000_000;

/** Flag of messages whose content is elsewhere. */
const IS_SHARED = 0x02;

/** An attribute message; its data are stored items. */
interface StoredAttribute {
  readonly name: string;
  readonly attribute: Hdf5Attribute;
}

/**
 * Reads the attributes of an object: those of its header, and those in a heap.
 * @throws ZpublishError `source-unreadable`, `source-changed`; `invalid-metadata`, `unsupported` if the list cannot be read. An
 * attribute that cannot be read has a `problem`, or is named among the file's warnings.
 */
export async function readAttributes(
  reader: ObjectReader,
  path: string,
  messages: readonly HeaderMessage[],
): Promise<Map<string, Hdf5Attribute>> {
  const attributes = new Map<string, Hdf5Attribute>();
  const add = async (message: ByteCursor | Promise<ByteCursor>): Promise<void> => {
    try {
      const { name, attribute } = await readAttribute(
        reader,
        message instanceof ByteCursor ? message : await message,
      );
      attributes.set(name, attribute);
    } catch (error) {
      reader.input.warnings.push(`'${path}': an attribute cannot be read: ${reader.reasonOf(error)}`);
    }
  };
  for (const message of messages) {
    if (message.type === MESSAGE.attribute) await add(reader.shared.resolve(message, "attribute"));
    else if (message.type === MESSAGE.attributeInfo) {
      for (const dense of await readDense(reader, message)) await add(dense());
    }
  }
  return attributes;
}

/** Returns functions that read the attributes of a heap, in the order of their creation. */
async function readDense(
  reader: ObjectReader,
  message: HeaderMessage,
): Promise<(() => Promise<ByteCursor>)[]> {
  const info = await reader.shared.resolve(message, "attribute info");
  info.version(0, 0);
  const flags = info.u8();
  if ((flags & 1) !== 0) info.skip(2);
  const heapAddress = info.optional();
  const treeAddress = info.optional();
  if (heapAddress === null || treeAddress === null) return [];
  const heap = await FractalHeap.open(reader.input, heapAddress);
  const records = await readBTree2(reader.input, treeAddress, ATTRIBUTES_BY_NAME, RECORD_BYTES);
  const entries = records.map((record) => {
    const id = record.part(ID_BYTES, "fractal heap");
    return { id, isShared: (record.u8() & IS_SHARED) !== 0, order: record.u32() };
  });
  entries.sort((a, b) => a.order - b.order);
  return entries.map(({ id, isShared }) => async () => {
    if (isShared) return reader.shared.readFromHeap(id, MESSAGE.attribute, "attribute");
    return new ByteCursor(await heap.read(id), "attribute");
  });
}

/** Reads an attribute message (HDF5 File Format Specification, IV.A.2.m). */
async function readAttribute(reader: ObjectReader, cursor: ByteCursor): Promise<StoredAttribute> {
  await reader.input.pause();
  const version = cursor.version(1, 3);
  const flags = cursor.u8();
  const [nameBytes, typeBytes, spaceBytes] = [cursor.u16(), cursor.u16(), cursor.u16()];
  // Charset of the name: ASCII is UTF-8, too.
  if (version === 3) cursor.skip(1);
  const padded = version === 1 ? roundUp : (byteLength: number) => byteLength;
  const name = cursor.text(padded(nameBytes));
  const typePart = cursor.part(padded(typeBytes), "datatype");
  const spacePart = cursor.part(padded(spaceBytes), "dataspace");
  const isTypeShared = version > 1 && (flags & 1) !== 0;
  const isSpaceShared = version > 1 && (flags & 2) !== 0;
  const type = await reader.shared.datatype(typePart, isTypeShared);
  const space = isSpaceShared ? await reader.shared.follow(spacePart, MESSAGE.dataspace) : spacePart;
  const { shape } = parseDataspace(space);
  try {
    return { name, attribute: { type, shape, items: await readValues(reader, cursor, type, shape) } };
  } catch (error) {
    return { name, attribute: { type, shape, items: undefined, problem: reader.reasonOf(error) } };
  }
}

async function readValues(
  reader: ObjectReader,
  cursor: ByteCursor,
  type: Hdf5Attribute["type"],
  shape: Dataspace["shape"],
): Promise<Hdf5Item[]> {
  const count = itemCount(shape);
  const byteLength = count * type.size;
  if (byteLength > cursor.left) {
    throw invalidFile(`attribute: expected values of ${byteLength} bytes, received ${cursor.left}`);
  }
  reader.attributeItems += count;
  if (reader.attributeItems > MAX_ATTRIBUTE_ITEMS) {
    throw unsupportedFile(`the file's attributes have more than ${MAX_ATTRIBUTE_ITEMS} values`);
  }
  return readItems(reader.heap, type, cursor.take(byteLength), count, LIMITS);
}
