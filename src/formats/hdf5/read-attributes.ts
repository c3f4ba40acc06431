import { startCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { readBTree2 } from "./b-tree-2.js";
import { ByteCursor, invalidFile } from "./byte-cursor.js";
import { FractalHeap } from "./fractal-heap.js";
import type { Hdf5Attribute, Hdf5Item, Hdf5Type } from "./hdf5-model.js";
import type { ObjectReader } from "./object-reader.js";
import { roundUp } from "./parse-dataset-messages.js";
import { type Dataspace, itemCount, parseDataspace } from "./parse-dataspace.js";
import { type ItemBudget, readItems } from "./read-items.js";
import { type HeaderMessage, MESSAGE } from "./read-object-header.js";
import { cursorOf } from "./shared-messages.js";

/** Records of the B-tree that has attributes by name, and their bytes: heap id, flags, creation order, hash. */
const ATTRIBUTES_BY_NAME = 8;
const RECORD_BYTES = 17;
const ID_BYTES = 8;

/** Bounds for the values of one attribute. They are decoded in one go. */
const LIMITS: Readonly<ItemBudget> = { items: 300_000, bytes: 16 * 1024 * 1024 };

/** Flag of messages whose content is elsewhere. */
const IS_SHARED = 0x02;

/** An attribute and its name. */
interface NamedAttribute {
  readonly name: string;
  readonly attribute: Hdf5Attribute;
}

/**
 * Reads the attributes of an object: those of its header, and those in a heap.
 * @throws ZpublishError `source-unreadable`, `source-changed`; `invalid-metadata`, `unsupported` if the list cannot be read. An
 * attribute whose values cannot be read has a `problem`; one without a name is counted among the file's warnings.
 */
export async function readAttributes(
  reader: ObjectReader,
  path: string,
  messages: readonly HeaderMessage[],
): Promise<Map<string, Hdf5Attribute>> {
  const attributes = new Map<string, Hdf5Attribute>();
  for (const message of await attributeMessages(reader, messages)) {
    if (reader.input.isPauseDue) await reader.input.pause();
    try {
      const cursor = message();
      const found = readAttribute(reader, cursor instanceof Promise ? await cursor : cursor);
      const { name, attribute } = found instanceof Promise ? await found : found;
      attributes.set(name, attribute);
    } catch (error) {
      reader.warn(`'${path}': an attribute cannot be read: ${reader.reasonOf(error)}`);
    }
  }
  return attributes;
}

/** A function that finds the content of an attribute message. */
type AttributeMessage = () => ByteCursor | Promise<ByteCursor>;

async function attributeMessages(
  reader: ObjectReader,
  messages: readonly HeaderMessage[],
): Promise<AttributeMessage[]> {
  const found: AttributeMessage[] = [];
  for (const message of messages) {
    if (message.type === MESSAGE.attribute) found.push(() => reader.shared.resolve(message, "attribute"));
    else if (message.type === MESSAGE.attributeInfo) {
      for (const dense of await readDense(reader, cursorOf(message, "attribute info"))) found.push(dense);
    }
  }
  return found;
}

/** Finds the attributes of a heap, in the order of their creation. */
async function readDense(reader: ObjectReader, info: ByteCursor): Promise<AttributeMessage[]> {
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
  const sorted = await startCooperatively(sortCooperatively(entries, (a, b) => a.order - b.order));
  return sorted.map(({ id, isShared }) => () => {
    if (isShared) return reader.shared.readFromHeap(id, MESSAGE.attribute, "attribute");
    const bytes = heap.read(id);
    return bytes instanceof Uint8Array
      ? new ByteCursor(bytes, "attribute")
      : bytes.then((later) => new ByteCursor(later, "attribute"));
  });
}

/** Reads an attribute message (HDF5 File Format Specification, IV.A.2.m). Waits only if something has to be fetched. */
function readAttribute(reader: ObjectReader, cursor: ByteCursor): NamedAttribute | Promise<NamedAttribute> {
  const version = cursor.version(1, 3);
  const flags = version === 1 ? cursor.u8() & 0 : cursor.u8();
  const nameBytes = cursor.u16();
  const typeBytes = cursor.u16();
  const spaceBytes = cursor.u16();
  // Charset of the name: ASCII is UTF-8, too.
  if (version === 3) cursor.skip(1);
  const name = parseName(cursor, nameBytes, version);
  const typePart = cursor.part(version === 1 ? roundUp(typeBytes) : typeBytes, "datatype");
  const spacePart = cursor.part(version === 1 ? roundUp(spaceBytes) : spaceBytes, "dataspace");
  const type = reader.shared.datatype(typePart, (flags & 1) !== 0);
  const space = (flags & 2) !== 0 ? reader.shared.follow(spacePart, MESSAGE.dataspace) : spacePart;
  if (!(type instanceof Promise || space instanceof Promise)) {
    return withValues(reader, name, type, space, cursor);
  }
  return Promise.all([type, space]).then(([found, shape]) => withValues(reader, name, found, shape, cursor));
}

/** Names, types and spaces are padded to 8 bytes in version 1. */
function parseName(cursor: ByteCursor, byteLength: number, version: number): string {
  const name = cursor.text(byteLength);
  if (version === 1) cursor.skip(roundUp(byteLength) - byteLength);
  return name;
}

/** @param values The rest of the attribute message. */
function withValues(
  reader: ObjectReader,
  name: string,
  type: Hdf5Type,
  space: ByteCursor,
  values: ByteCursor,
): NamedAttribute | Promise<NamedAttribute> {
  const { shape } = parseDataspace(space);
  try {
    const items = readValues(reader, values, type, shape);
    if (!(items instanceof Promise)) return { name, attribute: { type, shape, items } };
    return items.then(
      (found) => ({ name, attribute: { type, shape, items: found } }),
      (error) => ({ name, attribute: withoutValues(reader, type, shape, error) }),
    );
  } catch (error) {
    return { name, attribute: withoutValues(reader, type, shape, error) };
  }
}

function withoutValues(
  reader: ObjectReader,
  type: Hdf5Type,
  shape: Dataspace["shape"],
  error: unknown,
): Hdf5Attribute {
  return { type, shape, items: undefined, problem: reader.reasonOf(error) };
}

function readValues(
  reader: ObjectReader,
  cursor: ByteCursor,
  type: Hdf5Type,
  shape: Dataspace["shape"],
): Hdf5Item[] | Promise<Hdf5Item[]> {
  const count = itemCount(shape);
  const byteLength = count * type.size;
  if (byteLength > cursor.left) {
    throw invalidFile(`attribute: expected values of ${byteLength} bytes, received ${cursor.left}`);
  }
  reader.checkBudget();
  const budget = { items: LIMITS.items, bytes: LIMITS.bytes };
  // What a failure has used counts, too.
  const spend = (): void => reader.spend(LIMITS.items - budget.items, LIMITS.bytes - budget.bytes);
  try {
    const items = readItems(reader.heap, type, cursor.bytes, count, budget, cursor.at);
    return items instanceof Promise ? items.finally(spend) : items;
  } finally {
    spend();
  }
}
