import { addressAt, checkSignature, damaged, uintAt } from "./index-blocks.js";
import type { IndexWalk } from "./index-walk.js";

/** Signature, type, level, number of entries, two siblings. */
const HEADER_BYTES = 24;
const CHUNK_NODE = 1;
const ADDRESS_BYTES = 8;
const WHAT = "node of a B-tree";

/** Reads a B-tree of version 1 (HDF5 File Format Specification, III.A.1): keys and children in turn, level by level. */
export async function readBTree1({ blocks, geometry, address, chunks }: IndexWalk): Promise<void> {
  const { chunkShape } = geometry;
  const rank = chunkShape.length;
  // Length and mask, and an offset per axis and one inside of the item.
  const keyBytes = 8 + 8 * (rank + 1);
  const coords = new Float64Array(rank);
  let level: number | undefined;
  let nodes = [address];
  while (nodes.length > 0) {
    const children: number[] = [];
    for (const [i, node] of nodes.entries()) {
      await blocks.prefetch(nodes, i, HEADER_BYTES);
      const header = await blocks.read(node, HEADER_BYTES, WHAT);
      checkSignature(header, "TREE", WHAT);
      level ??= header.getUint8(5);
      if (header.getUint8(4) !== CHUNK_NODE || header.getUint8(5) !== level) {
        throw damaged(
          `expected a node of type ${CHUNK_NODE} and level ${level}, received ${header.getUint8(4)} and ${header.getUint8(5)}`,
        );
      }
      const count = header.getUint16(6, true);
      const entries = await blocks.read(node + HEADER_BYTES, count * (keyBytes + ADDRESS_BYTES), WHAT);
      for (let at = 0; at < entries.byteLength; at += keyBytes + ADDRESS_BYTES) {
        const child = addressAt(entries, at + keyBytes);
        if (child === null) continue;
        if (level > 0) children.push(child);
        else {
          for (let axis = 0; axis < rank; axis++) {
            coords[axis] = uintAt(entries, at + 8 + 8 * axis, 8) / chunkShape[axis]!;
            if (Number.isInteger(coords[axis])) continue;
            throw damaged(
              `expected a chunk at multiples of ${chunkShape.join(" x ")}, received another place`,
            );
          }
          chunks.add(coords, child, entries.getUint32(at, true), entries.getUint32(at + 4, true));
        }
      }
    }
    if (new Set(children).size !== children.length)
      throw damaged(`expected each ${WHAT} once, received one twice`);
    if (level === 0) return;
    level = level! - 1;
    nodes = children;
  }
}
