import { ByteCursor, invalidFile } from "./byte-cursor.js";
import type { Hdf5Input } from "./hdf5-input.js";
import type { Hdf5Link } from "./parse-link.js";

/** Maximum level of a group's B-tree: with two children per node there would be more than 2^32 symbols. */
const MAX_LEVEL = 32;

/** Bytes of the header of a node of a version 1 B-tree. */
const NODE_HEADER_BYTES = 24;

/** Bytes of the headers of a local heap, and of a node with symbols; of a symbol. */
const HEAP_HEADER_BYTES = 32;
const SYMBOLS_HEADER_BYTES = 8;
const SYMBOL_BYTES = 40;

/** Kind of a symbol whose object is found by its path. */
const SOFT_LINK = 2;

/**
 * Reads the links of a group of the old kind: a version 1 B-tree, nodes with symbols, and a heap with names (HDF5 File Format
 * Specification, III.A.1, III.B, III.D).
 * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
 */
export async function readSymbolTable(
  input: Hdf5Input,
  treeAddress: number,
  heapAddress: number,
): Promise<Hdf5Link[]> {
  const heapHeader = new ByteCursor(
    await input.read(heapAddress, HEAP_HEADER_BYTES, "local heap"),
    "local heap",
  );
  heapHeader.signature("HEAP");
  heapHeader.version(0, 0);
  heapHeader.skip(3);
  const heapBytes = heapHeader.u64();
  heapHeader.skip(8);
  const heap =
    heapBytes === 0 ? new Uint8Array() : await input.read(heapHeader.address(), heapBytes, "local heap");
  const links: Hdf5Link[] = [];
  await readNode(input, treeAddress, heap, undefined, links);
  return links;
}

/** @param level Expected level; undefined for the root. */
async function readNode(
  input: Hdf5Input,
  address: number,
  heap: Uint8Array,
  level: number | undefined,
  links: Hdf5Link[],
): Promise<void> {
  if (input.isPauseDue) await input.pause();
  const structure = "node of a B-tree";
  const header = new ByteCursor(await input.read(address, NODE_HEADER_BYTES, structure), structure);
  header.signature("TREE");
  if (header.u8() !== 0) throw invalidFile(`${structure}: expected symbols`);
  const found = header.u8();
  const count = header.u16();
  if (found !== (level ?? found) || found > MAX_LEVEL) {
    throw invalidFile(`${structure}: expected level ${level ?? `0 to ${MAX_LEVEL}`}, received ${found}`);
  }
  const bytes = await input.read(address + NODE_HEADER_BYTES, count * 16, structure);
  const cursor = new ByteCursor(bytes, structure);
  for (let i = 0; i < count; i++) {
    // Keys are names, which the symbols have, too.
    cursor.skip(8);
    const child = cursor.address();
    if (found > 0) await readNode(input, child, heap, found - 1, links);
    else await readSymbols(input, child, heap, links);
  }
}

async function readSymbols(
  input: Hdf5Input,
  address: number,
  heap: Uint8Array,
  links: Hdf5Link[],
): Promise<void> {
  const structure = "symbols of a group";
  const header = new ByteCursor(await input.read(address, SYMBOLS_HEADER_BYTES, structure), structure);
  header.signature("SNOD");
  header.version(1, 1);
  header.skip(1);
  const count = header.u16();
  const bytes = await input.read(address + SYMBOLS_HEADER_BYTES, count * SYMBOL_BYTES, structure);
  const cursor = new ByteCursor(bytes, structure);
  for (let i = 0; i < count; i++) {
    const name = nameIn(heap, cursor.u64());
    const objectAddress = cursor.optional();
    const kind = cursor.u32();
    cursor.skip(4);
    const targetOffset = cursor.u32();
    cursor.skip(12);
    if (kind === SOFT_LINK) links.push({ name, kind: "soft", target: nameIn(heap, targetOffset) });
    else if (objectAddress === null) throw invalidFile(`${structure}: '${name}' has no address`);
    else links.push({ name, kind: "hard", address: objectAddress });
  }
}

function nameIn(heap: Uint8Array, offset: number): string {
  const cursor = new ByteCursor(heap, "local heap");
  cursor.skip(offset);
  return cursor.textToNul();
}
