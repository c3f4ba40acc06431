import { ByteCursor, bytesFor, checkChecksum, type Hdf5Input, invalidFile } from "./bytes.js";

/** Bytes of a node besides its records and pointers: signature, version, type and checksum. */
const NODE_OVERHEAD = 10;

/** Bytes of the header: that of files with addresses and lengths of 8 bytes. */
const HEADER_BYTES = 38;

/** Maximum depth: with two records per node there would be more than 2^32 records. */
const MAX_DEPTH = 32;

interface Tree extends PointerWidths {
  readonly type: number;
  readonly nodeBytes: number;
  readonly recordBytes: number;
  /** Records that are left to be found. */
  recordsLeft: number;
}

/**
 * Reads all records of a version 2 B-tree, in order (HDF5 File Format Specification, III.A.2).
 * @param type Expected kind of records.
 * @param minRecordBytes Bytes that the caller reads of a record.
 * @returns Views of the nodes.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
 */
export async function readBTree2(
  input: Hdf5Input,
  address: number,
  type: number,
  minRecordBytes: number,
): Promise<ByteCursor[]> {
  const bytes = await input.read(address, HEADER_BYTES, "B-tree");
  checkChecksum(bytes, "B-tree");
  const cursor = new ByteCursor(bytes, "B-tree");
  cursor.signature("BTHD");
  cursor.version(0, 0);
  const found = cursor.u8();
  if (found !== type) throw invalidFile(`B-tree: expected records of type ${type}, received ${found}`);
  const nodeBytes = cursor.u32();
  const recordBytes = cursor.u16();
  const depth = cursor.u16();
  cursor.skip(2);
  const root = cursor.optional();
  const rootCount = cursor.u16();
  const recordsLeft = cursor.u64();
  if (recordBytes < minRecordBytes || nodeBytes < NODE_OVERHEAD + recordBytes) {
    throw invalidFile(`B-tree: received records of ${recordBytes} bytes in nodes of ${nodeBytes}`);
  }
  const records: ByteCursor[] = [];
  if (root === null || recordsLeft === 0) return records;
  const tree: Tree = {
    type,
    nodeBytes,
    recordBytes,
    ...pointerWidths(nodeBytes, recordBytes, depth),
    recordsLeft,
  };
  await readNode(input, tree, root, rootCount, depth, records);
  if (tree.recordsLeft > 0) throw invalidFile(`B-tree: ${tree.recordsLeft} records are missing`);
  return records;
}

/** Widths of the numbers in the pointers of nodes. */
export interface PointerWidths {
  /** Bytes of the number of records in a child. */
  readonly countBytes: number;
  /** Bytes of the number of records below a child, by depth of that child. */
  readonly totalBytes: readonly number[];
}

/**
 * Computes the widths of numbers in pointers, which follow from how many records a node can have.
 * @throws ZpublishError `invalid-metadata` if nodes have no room for records, or the tree for more than 2^53.
 */
export function pointerWidths(nodeBytes: number, recordBytes: number, depth: number): PointerWidths {
  const leafRecords = Math.floor((nodeBytes - NODE_OVERHEAD) / recordBytes);
  if (depth > MAX_DEPTH || leafRecords < 1) {
    throw invalidFile(
      `B-tree: expected at most ${MAX_DEPTH} levels and room for records, received ${depth} levels of nodes of ${nodeBytes} bytes`,
    );
  }
  const countBytes = bytesFor(leafRecords);
  const totalBytes = [0];
  let total = leafRecords;
  for (let level = 1; level < depth; level++) {
    const pointerBytes = 8 + countBytes + (totalBytes[level - 1] as number);
    const records = Math.floor((nodeBytes - NODE_OVERHEAD - pointerBytes) / (recordBytes + pointerBytes));
    total = (records + 1) * total + records;
    if (records < 1 || total > Number.MAX_SAFE_INTEGER) {
      throw invalidFile(
        `B-tree: expected room for at most 2^53 records, received ${depth} levels of ${nodeBytes} bytes`,
      );
    }
    totalBytes.push(bytesFor(total));
  }
  return { countBytes, totalBytes };
}

async function readNode(
  input: Hdf5Input,
  tree: Tree,
  address: number,
  count: number,
  depth: number,
  records: ByteCursor[],
): Promise<void> {
  if (input.isPauseDue) await input.pause();
  if (count > tree.recordsLeft) throw invalidFile("B-tree: a node has more records than the tree");
  tree.recordsLeft -= count;
  const { recordBytes } = tree;
  const pointerBytes = depth === 0 ? 0 : 8 + tree.countBytes + (tree.totalBytes[depth - 1] as number);
  const used = NODE_OVERHEAD + count * recordBytes + (depth === 0 ? 0 : (count + 1) * pointerBytes);
  if (used > tree.nodeBytes)
    throw invalidFile(`B-tree: expected at most ${tree.nodeBytes} bytes of a node, received ${used}`);
  const bytes = await input.read(address, used, "node of a B-tree");
  checkChecksum(bytes, "node of a B-tree");
  const cursor = new ByteCursor(bytes, "node of a B-tree");
  cursor.signature(depth === 0 ? "BTLF" : "BTIN");
  cursor.version(0, 0);
  if (cursor.u8() !== tree.type) throw invalidFile("node of a B-tree: it belongs to another kind of tree");
  const own = Array.from({ length: count }, () => cursor.part(recordBytes, "record of a B-tree"));
  if (depth === 0) {
    for (const record of own) records.push(record);
    return;
  }
  for (let child = 0; child <= count; child++) {
    const childAddress = cursor.address();
    const childCount = cursor.uint(tree.countBytes);
    cursor.skip(tree.totalBytes[depth - 1] as number);
    await readNode(input, tree, childAddress, childCount, depth - 1, records);
    const record = own[child];
    if (record !== undefined) records.push(record);
  }
}
