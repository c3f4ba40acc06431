import { startCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import { readBTree2 } from "./b-tree-2.js";
import { ByteCursor } from "./byte-cursor.js";
import { FractalHeap } from "./fractal-heap.js";
import type { Hdf5Input } from "./hdf5-input.js";
import { type Hdf5Link, parseLink } from "./parse-link.js";
import { type HeaderMessage, MESSAGE } from "./read-object-header.js";
import { readSymbolTable } from "./read-symbol-table.js";
import { cursorOf } from "./shared-messages.js";

/** Records of the B-tree that has links by name, and their bytes: hash, heap id. */
const LINKS_BY_NAME = 5;
const RECORD_BYTES = 11;
const ID_BYTES = 7;

/**
 * Reads the links of a group: of a symbol table, of its header, and of a heap.
 * @returns In the order of creation if all links have it, else of names.
 * @throws ZpublishError `invalid-metadata`, `unsupported`, `source-unreadable`, `source-changed`
 */
export async function readLinks(input: Hdf5Input, messages: readonly HeaderMessage[]): Promise<Hdf5Link[]> {
  const links: Hdf5Link[] = [];
  for (const message of messages) {
    if (message.type === MESSAGE.symbolTable) {
      const table = cursorOf(message, "symbol table");
      for (const link of await readSymbolTable(input, table.address(), table.address())) links.push(link);
    } else if (message.type === MESSAGE.link) {
      links.push(parseLink(cursorOf(message, "link")));
    } else if (message.type === MESSAGE.linkInfo) {
      for (const link of await readDense(input, cursorOf(message, "link info"))) links.push(link);
    }
  }
  const isOrdered = links.every(({ creationOrder }) => creationOrder !== undefined);
  return startCooperatively(sortCooperatively(links, isOrdered ? byCreation : byName));
}

function byCreation(a: Hdf5Link, b: Hdf5Link): number {
  return (a.creationOrder as number) - (b.creationOrder as number);
}

function byName(a: Hdf5Link, b: Hdf5Link): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** Reads links of a heap, as a link info message says (HDF5 File Format Specification, IV.A.2.c). */
async function readDense(input: Hdf5Input, info: ByteCursor): Promise<Hdf5Link[]> {
  info.version(0, 0);
  const flags = info.u8();
  if ((flags & 1) !== 0) info.skip(8);
  const heapAddress = info.optional();
  const treeAddress = info.optional();
  if (heapAddress === null || treeAddress === null) return [];
  const heap = await FractalHeap.open(input, heapAddress);
  const links: Hdf5Link[] = [];
  for (const record of await readBTree2(input, treeAddress, LINKS_BY_NAME, RECORD_BYTES)) {
    if (input.isPauseDue) await input.pause();
    record.skip(4);
    const bytes = heap.read(record.part(ID_BYTES, "fractal heap"));
    links.push(parseLink(new ByteCursor(bytes instanceof Uint8Array ? bytes : await bytes, "link")));
  }
  return links;
}
