import { type ByteCursor, bytesFor, check, type Hdf5Input, invalidFile } from "./bytes.js";

const ADDRESS_BYTES = 8;
const NODE = "node of a B-tree";

/** Types of version 1 nodes: those that lead to symbols of a group, and to chunks. */
export const NODE_TYPE = { symbols: 0, chunks: 1 } as const;

/** Bytes of the header of a version 1 node: signature, type, level, number of entries, two siblings. */
const NODE_HEADER_BYTES = 24;

/**
 * Reads a version 1 B-tree, level by level (HDF5 File Format Specification, III.A.1).
 * @param type Expected type of nodes, as in {@link NODE_TYPE}.
 * @param keyBytes Bytes of a key. Each is followed by the address of a child.
 * @param visit Receives the entries of all leaves: a cursor at the key.
 */
export async function readBTree1(
  input: Hdf5Input,
  address: number,
  type: number,
  keyBytes: number,
  visit: (entry: ByteCursor) => void,
): Promise<void> {
  const entryBytes = keyBytes + ADDRESS_BYTES;
  let level: number | undefined;
  let nodes = [address];
  while (nodes.length > 0) {
    const children: number[] = [];
    for (const [i, node] of nodes.entries()) {
      await input.prefetch(nodes, i, NODE_HEADER_BYTES);
      const header = await input.read(node, NODE_HEADER_BYTES, NODE);
      header.signature("TREE");
      const [foundType, foundLevel] = [header.u8(), header.u8()];
      level ??= foundLevel;
      const isExpected = foundType === type && foundLevel === level;
      check(isExpected, NODE, `type ${type} and level ${level}`, `${foundType} and ${foundLevel}`);
      const count = header.u16();
      const entries = await input.read(node + NODE_HEADER_BYTES, count * entryBytes, NODE);
      for (let end = entryBytes; end <= entries.end; end += entryBytes) {
        if (level === 0) visit(entries);
        else {
          entries.skip(keyBytes);
          const child = entries.optional();
          if (child !== null) children.push(child);
        }
        entries.at = end;
      }
    }
    assertDistinct(children);
    level = level! - 1;
    nodes = children;
  }
}

/** Bytes of a version 2 node besides its records and pointers: signature, version, type and checksum. */
const NODE_OVERHEAD = 10;

/** Bytes of the header of a version 2 B-tree. */
const TREE_HEADER_BYTES = 38;

/** Maximum depth: with two records per node there would be more than 2^32 records. */
const MAX_DEPTH = 32;

/**
 * Reads a version 2 B-tree, level by level (HDF5 File Format Specification, III.A.2). Inner nodes have records, too.
 * @param types Types of records that are expected: one, or a range.
 * @param minBytes Bytes that are read of each record.
 * @param visit Receives all records: a cursor at the record, its type and length.
 */
export async function readBTree2(
  input: Hdf5Input,
  address: number,
  types: number | readonly [first: number, last: number],
  minBytes: number,
  visit: (record: ByteCursor, type: number, recordBytes: number) => void,
): Promise<void> {
  const [firstType, lastType] = typeof types === "number" ? [types, types] : types;
  const header = await input.readChecked(address, TREE_HEADER_BYTES, "BTHD", "B-tree");
  header.version(0, 0);
  const type = header.u8();
  const nodeBytes = header.u32();
  const recordBytes = header.u16();
  const depth = header.u16();
  header.skip(2);
  const root = header.optional();
  const rootCount = header.u16();
  let recordsLeft = header.u64();
  const isExpected = type >= firstType && type <= lastType && recordBytes >= minBytes;
  const expected = `records of type ${firstType} and ${minBytes} bytes`;
  check(isExpected, "B-tree", expected, `type ${type} and ${recordBytes}`);
  const { countBytes, totalBytes } = pointerWidths(nodeBytes, recordBytes, depth);
  let nodes = root === null || recordsLeft === 0 ? [] : [{ address: root, count: rootCount }];
  if (nodes.length === 0) return;
  for (let level = depth; level >= 0; level--) {
    const childTotalBytes = totalBytes[level - 1] ?? 0;
    const pointerBytes = level === 0 ? 0 : ADDRESS_BYTES + countBytes + childTotalBytes;
    const addresses = nodes.map((node) => node.address);
    assertDistinct(addresses);
    const children: typeof nodes = [];
    for (const [i, node] of nodes.entries()) {
      recordsLeft -= node.count;
      if (recordsLeft < 0) throw invalidFile("B-tree: its nodes have more records than it");
      const pointers = level === 0 ? 0 : node.count + 1;
      const used = NODE_OVERHEAD + node.count * recordBytes + pointers * pointerBytes;
      check(used <= nodeBytes, NODE, `at most ${nodeBytes} bytes`, used);
      await input.prefetch(addresses, i, used);
      const cursor = await input.readChecked(node.address, used, level === 0 ? "BTLF" : "BTIN", NODE);
      cursor.version(0, 0);
      if (cursor.u8() !== type) throw invalidFile(`${NODE}: it belongs to another kind of tree`);
      for (let record = 0; record < node.count; record++) {
        const start = cursor.at;
        visit(cursor, type, recordBytes);
        cursor.at = start + recordBytes;
      }
      for (let pointer = 0; pointer < pointers; pointer++) {
        children.push({ address: cursor.address(), count: cursor.uint(countBytes) });
        cursor.skip(childTotalBytes);
      }
    }
    nodes = children;
  }
  if (recordsLeft > 0) throw invalidFile(`B-tree: ${recordsLeft} records are missing`);
}

function assertDistinct(nodes: readonly number[]): void {
  if (new Set(nodes).size !== nodes.length)
    throw invalidFile(`expected each ${NODE} once, received one twice`);
}

/**
 * Computes the widths of numbers in the pointers to children, which follow from how many records a node can have: that of the number
 * of records in a child, and, by depth of the child, that of the number of records below it.
 */
function pointerWidths(nodeBytes: number, recordBytes: number, depth: number) {
  const leafRecords = Math.floor((nodeBytes - NODE_OVERHEAD) / recordBytes);
  const expected = `at most ${MAX_DEPTH} levels, and room for at most 2^53 records`;
  const received = `${depth} levels of nodes of ${nodeBytes} bytes`;
  check(depth <= MAX_DEPTH && leafRecords >= 1, "B-tree", expected, received);
  const countBytes = bytesFor(leafRecords);
  const totalBytes = [0];
  let total = leafRecords;
  for (let level = 1; level < depth; level++) {
    const pointerBytes = ADDRESS_BYTES + countBytes + totalBytes[level - 1]!;
    const records = Math.floor((nodeBytes - NODE_OVERHEAD - pointerBytes) / (recordBytes + pointerBytes));
    total = (records + 1) * total + records;
    check(records >= 1 && total <= Number.MAX_SAFE_INTEGER, "B-tree", expected, received);
    totalBytes.push(bytesFor(total));
  }
  return { countBytes, totalBytes };
}
