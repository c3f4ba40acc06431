import { pointerWidths } from "../b-trees.js";
import { addressAt, damaged, uintAt } from "./index-blocks.js";
import { createChunkEntries, type IndexWalk } from "./index-walk.js";

const HEADER_BYTES = 38;
/** Signature, version, type, and the checksum behind the records. */
const NODE_BYTES = 10;
/** Bytes before the records. */
const PREFIX_BYTES = 6;
const ADDRESS_BYTES = 8;
/** Types of records: places in the grid, without and with length and filter mask. */
const UNFILTERED = 10;
const FILTERED = 11;

/** A node, and the number of records its parent has for it. */
interface Node {
  readonly address: number;
  readonly count: number;
}

/** Reads a B-tree of version 2 (HDF5 File Format Specification, III.A.2), level by level. Inner nodes have records, too. */
export async function readBTree2(walk: IndexWalk): Promise<void> {
  const { blocks, geometry } = walk;
  const header = await blocks.readChecked(walk.address, HEADER_BYTES, "BTHD", "header of a B-tree");
  const type = header.getUint8(5);
  if (header.getUint8(4) !== 0 || (type !== UNFILTERED && type !== FILTERED)) {
    throw damaged(
      `expected a B-tree of version 0 with chunks, received version ${header.getUint8(4)}, type ${type}`,
    );
  }
  const nodeBytes = header.getUint32(6, true);
  const recordBytes = header.getUint16(10, true);
  const depth = header.getUint16(12, true);
  const rank = geometry.grid.length;
  const entries = createChunkEntries(walk, type === FILTERED, recordBytes - 8 * rank);
  const { countBytes, totalBytes } = pointerWidths(nodeBytes, recordBytes, depth);
  const root = addressAt(header, 16);
  const coords = new Float64Array(rank);

  let nodes: Node[] = root === null ? [] : [{ address: root, count: header.getUint16(24, true) }];
  for (let level = depth; level >= 0; level--) {
    const what = level === 0 ? "leaf of a B-tree" : "node of a B-tree";
    const pointerBytes = level === 0 ? 0 : ADDRESS_BYTES + countBytes + totalBytes[level - 1]!;
    const addresses = nodes.map(({ address }) => address);
    if (new Set(addresses).size !== nodes.length)
      throw damaged(`expected each ${what} once, received one twice`);
    const children: Node[] = [];
    for (const [i, { address, count }] of nodes.entries()) {
      const byteLength = NODE_BYTES + count * recordBytes + (level === 0 ? 0 : (count + 1) * pointerBytes);
      await blocks.prefetch(addresses, i, byteLength);
      const node = await blocks.readChecked(address, byteLength, level === 0 ? "BTLF" : "BTIN", what);
      if (node.getUint8(5) !== type)
        throw damaged(`expected a ${what} of type ${type}, received ${node.getUint8(5)}`);
      for (let record = 0; record < count; record++) {
        const at = PREFIX_BYTES + record * recordBytes;
        for (let axis = 0; axis < rank; axis++)
          coords[axis] = uintAt(node, at + entries.byteLength + 8 * axis, 8);
        entries.add(node, at, coords);
      }
      for (let at = PREFIX_BYTES + count * recordBytes; at < node.byteLength; at += pointerBytes) {
        const child = addressAt(node, at);
        if (child === null) throw damaged(`expected the address of a node of a B-tree, received none`);
        children.push({ address: child, count: uintAt(node, at + ADDRESS_BYTES, countBytes) });
      }
    }
    nodes = children;
  }
}
