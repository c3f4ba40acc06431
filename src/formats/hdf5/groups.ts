import { startCooperatively } from "../../event-loop/cooperative-task.js";
import { sortCooperatively } from "../../event-loop/sort-cooperatively.js";
import type { FileBlocks } from "../file-format.js";
import { readAttributes } from "./attributes.js";
import { NODE_TYPE, readBTree1 } from "./b-trees.js";
import { ByteCursor, Hdf5Input, invalidFile, unsupportedFile } from "./bytes.js";
import { datasetOfMessages } from "./datasets.js";
import type { Hdf5Attribute, Hdf5Dataset, Hdf5File, Hdf5Group } from "./hdf5-model.js";
import { openIndexedHeap } from "./heaps.js";
import {
  cursorOf,
  type HeaderMessage,
  MESSAGE,
  ObjectReader,
  readObjectHeader,
  readSuperblock,
} from "./objects.js";

/** Maximum depth of groups. A path of a request has at most 1,024 bytes. */
const MAX_DEPTH = 256;

/** Maximum number of paths that lead to objects. Links that share groups can make more of them than there are objects. */
const MAX_PATHS = 1_000_000;

/** Maximum length of a path. Requests have shorter ones. */
const MAX_PATH_LENGTH = 4096;

/** A group whose links are still being read. */
interface OpenGroup extends Hdf5Group {
  readonly attributes: Map<string, Hdf5Attribute>;
  readonly groups: Map<string, Hdf5Group>;
  readonly datasets: Map<string, Hdf5Dataset>;
}

/** Paths below a group, and whether its links are still being read. */
interface GroupPaths {
  count: number;
  isOpen: boolean;
}

/** Object of a link: a group, a dataset, or a committed datatype, which is not shown. */
type HdfObject =
  | { readonly kind: "group"; readonly group: OpenGroup; readonly paths: GroupPaths }
  | { readonly kind: "dataset"; readonly dataset: Hdf5Dataset }
  | { readonly kind: "type" }
  | { readonly kind: "refused"; readonly reason: string };

/**
 * Reads the metadata of an HDF5 file.
 * @throws ZpublishError `invalid-metadata` if it is none, is cut short, or its root cannot be read; `unsupported`,
 * `source-unreadable`, `source-changed`
 */
export async function readHdf5(file: FileBlocks): Promise<Hdf5File> {
  const superblock = await readSuperblock(file);
  const reader = new ObjectReader(new Hdf5Input(file, superblock.baseAddress));
  if (superblock.isOpenForWriting) {
    reader.warnings.push("the file is open for writing: chunks that are being written may be missing");
  }
  if (superblock.extensionAddress !== null) await readExtension(reader, superblock.extensionAddress);
  const walk = new FileWalk(reader);
  return {
    root: await walk.readRoot(superblock.rootAddress),
    refused: walk.refused,
    warnings: reader.warnings,
  };
}

async function readExtension(reader: ObjectReader, address: number): Promise<void> {
  for (const message of await readObjectHeader(reader.input, address)) {
    if (message.type !== MESSAGE.driverInfo) continue;
    throw unsupportedFile("the file is one of several, written by a driver of its own");
  }
}

/** Walk over all objects of a file. Each is parsed once. */
class FileWalk {
  readonly refused: { readonly path: string; readonly reason: string }[] = [];
  private readonly objects = new Map<number, HdfObject>();
  private readonly softLinks: SoftLinks = new Map();

  constructor(private readonly reader: ObjectReader) {}

  async readRoot(address: number): Promise<Hdf5Group> {
    const messages = await this.reader.shared.readObject(address);
    if (!isGroup(messages)) throw invalidFile("expected a group as root, received another object");
    const root = await this.readGroup(address, "/", messages, 0);
    for (const [parent, links] of this.softLinks) {
      for (const [name, target] of links) {
        await this.reader.input.pause();
        this.addSoftLink(root, parent as OpenGroup, name, target);
      }
    }
    return root;
  }

  private async readGroup(
    address: number,
    path: string,
    messages: readonly HeaderMessage[],
    depth: number,
  ): Promise<OpenGroup> {
    const { reader } = this;
    const group: OpenGroup = {
      address: address + reader.input.baseAddress,
      path,
      attributes: await readAttributes(reader, path, messages),
      groups: new Map(),
      datasets: new Map(),
    };
    const paths = { count: 1, isOpen: true };
    this.objects.set(address, { kind: "group", group, paths });
    for (const link of await readLinks(reader.input, messages)) {
      const pause = reader.input.pause();
      if (pause !== undefined) await pause;
      await this.addLink(group, link, depth, paths);
    }
    paths.isOpen = false;
    return group;
  }

  private async addLink(parent: OpenGroup, link: Hdf5Link, depth: number, paths: GroupPaths): Promise<void> {
    const { name } = link;
    const path = pathIn(parent, name);
    if (parent.groups.has(name) || parent.datasets.has(name))
      return void this.refuse(path, "the name is there twice");
    if (link.kind === "other") return void this.refuse(path, link.reason);
    if (link.kind === "soft") {
      const links = this.softLinks.get(parent) ?? new Map<string, string>();
      this.softLinks.set(parent, links.set(name, link.target));
      return;
    }
    const object = this.objects.get(link.address) ?? (await this.readObject(link.address, path, depth + 1));
    const added = object.kind === "group" ? object.paths.count : 1;
    if (object.kind === "refused") this.refuse(path, object.reason);
    else if (object.kind === "type") return;
    else if (object.kind === "group" && object.paths.isOpen)
      this.refuse(path, "it links to a group that contains it");
    else if (paths.count + added > MAX_PATHS)
      this.refuse(path, `more than ${MAX_PATHS} paths lead to objects`);
    else {
      paths.count += added;
      if (object.kind === "group") parent.groups.set(name, object.group);
      else parent.datasets.set(name, object.dataset);
    }
  }

  private async readObject(address: number, path: string, depth: number): Promise<HdfObject> {
    let object: HdfObject;
    try {
      const messages = await this.reader.shared.readObject(address);
      if (isGroup(messages)) {
        if (depth > MAX_DEPTH)
          throw unsupportedFile(`expected at most ${MAX_DEPTH} groups inside each other`);
        await this.readGroup(address, path, messages, depth);
        return this.objects.get(address) as HdfObject;
      }
      const isType = !messages.some(({ type }) => type === MESSAGE.layout || type === MESSAGE.dataspace);
      if (isType && messages.some(({ type }) => type === MESSAGE.datatype)) object = { kind: "type" };
      else
        object = { kind: "dataset", dataset: await datasetOfMessages(this.reader, address, path, messages) };
    } catch (error) {
      object = { kind: "refused", reason: this.reader.reasonOf(error) };
    }
    this.objects.set(address, object);
    return object;
  }

  /** Adds the dataset of a soft link, as netCDF4 and h5netcdf do. Groups are refused, because links could make circles of them. */
  private addSoftLink(root: Hdf5Group, parent: OpenGroup, name: string, target: string): void {
    const path = pathIn(parent, name);
    const found = resolvePath(root, parent, target, this.softLinks);
    if (parent.groups.has(name) || parent.datasets.has(name)) this.refuse(path, "the name is there twice");
    else if (found !== undefined && !("groups" in found)) parent.datasets.set(name, found);
    else {
      const reason = found === undefined ? "leads to no dataset" : "leads to a group";
      this.refuse(path, `its link to the path ${JSON.stringify(target.slice(0, MAX_PATH_LENGTH))} ${reason}`);
    }
  }

  private refuse(path: string, reason: string): void {
    this.refused.push({ path: path.slice(1), reason });
  }
}

const OF_GROUPS: readonly number[] = [MESSAGE.symbolTable, MESSAGE.linkInfo, MESSAGE.link, MESSAGE.groupInfo];

function isGroup(messages: readonly HeaderMessage[]): boolean {
  return messages.some(({ type }) => OF_GROUPS.includes(type));
}

function pathIn(parent: Hdf5Group, name: string): string {
  return parent.path === "/" ? `/${name}` : `${parent.path}/${name}`;
}

/** Records of the B-tree that has links by name, and their bytes: hash, heap id. */
const LINKS_BY_NAME = 5;
const LINK_RECORD_BYTES = 11;
const LINK_ID_BYTES = 7;

/**
 * Reads the links of a group: of a symbol table, of its header, and of a heap.
 * @returns In the order of creation if all links have it, else of names.
 */
async function readLinks(input: Hdf5Input, messages: readonly HeaderMessage[]): Promise<Hdf5Link[]> {
  const links: Hdf5Link[] = [];
  for (const message of messages) {
    if (message.type === MESSAGE.symbolTable) {
      const table = cursorOf(message, "symbol table");
      for (const link of await readSymbolTable(input, table.address(), table.address())) links.push(link);
    } else if (message.type === MESSAGE.link) {
      links.push(parseLink(cursorOf(message, "link")));
    } else if (message.type === MESSAGE.linkInfo) {
      for (const link of await readDenseLinks(input, cursorOf(message, "link info"))) links.push(link);
    }
  }
  const isOrdered = links.every(({ creationOrder }) => creationOrder !== undefined);
  return startCooperatively(sortCooperatively(links, isOrdered ? byCreation : byName));
}

function byCreation(a: Hdf5Link, b: Hdf5Link): number {
  return a.creationOrder! - b.creationOrder!;
}

function byName(a: Hdf5Link, b: Hdf5Link): number {
  return a.name < b.name ? -1 : a.name > b.name ? 1 : 0;
}

/** Reads links of a heap, as a link info message says (HDF5 File Format Specification, IV.A.2.c). */
async function readDenseLinks(input: Hdf5Input, info: ByteCursor): Promise<Hdf5Link[]> {
  const ids: ByteCursor[] = [];
  const heap = await openIndexedHeap(input, info, 8, [LINKS_BY_NAME, LINK_RECORD_BYTES], (record) => {
    record.skip(4);
    ids.push(record.part(LINK_ID_BYTES, "fractal heap"));
  });
  if (heap === undefined) return [];
  const links: Hdf5Link[] = [];
  for (const id of ids) {
    const pause = input.pause();
    if (pause !== undefined) await pause;
    links.push(parseLink(new ByteCursor(await heap.read(id), "link")));
  }
  return links;
}

/** A link of a group to an object. */
type Hdf5Link = { readonly name: string; readonly creationOrder?: number } & (
  | { readonly kind: "hard"; readonly address: number }
  /** To a path, from the group or, with a leading slash, from the root. */
  | { readonly kind: "soft"; readonly target: string }
  /** Not followed. */
  | { readonly kind: "other"; readonly reason: string }
);

const HARD = 0;
const SOFT = 1;
const EXTERNAL = 64;

/** Parses a link message (HDF5 File Format Specification, IV.A.2.g). */
function parseLink(cursor: ByteCursor): Hdf5Link {
  cursor.version(1, 1);
  const flags = cursor.u8();
  const kind = (flags & 0x08) !== 0 ? cursor.u8() : HARD;
  const order = (flags & 0x04) !== 0 ? { creationOrder: cursor.u64() } : {};
  // Charset: ASCII is UTF-8, too.
  if ((flags & 0x10) !== 0) cursor.skip(1);
  const name = cursor.text(cursor.uint(1 << (flags & 3)));
  if (kind === HARD) return { name, ...order, kind: "hard", address: cursor.address() };
  if (kind === SOFT) return { name, ...order, kind: "soft", target: cursor.text(cursor.u16()) };
  const reason =
    kind === EXTERNAL ? "it is a link to another file" : `it is a link of the user-defined kind ${kind}`;
  return { name, ...order, kind: "other", reason };
}

/** Bytes of the headers of a local heap, and of a node with symbols; of a symbol. */
const LOCAL_HEAP_BYTES = 32;
const KEY_BYTES = 8;
const SYMBOLS_HEADER_BYTES = 8;
const SYMBOL_BYTES = 40;

/** Kind of a symbol whose object is found by its path. */
const SOFT_LINK = 2;

/**
 * Reads the links of a group of the old kind: a version 1 B-tree, nodes with symbols, and a heap with names (HDF5 File Format
 * Specification, III.A.1, III.B, III.D).
 */
async function readSymbolTable(input: Hdf5Input, treeAddress: number, heapAddress: number) {
  const header = await input.read(heapAddress, LOCAL_HEAP_BYTES, "local heap");
  header.signature("HEAP");
  header.version(0, 0);
  header.skip(3);
  const heapBytes = header.u64();
  header.skip(8);
  const heap =
    heapBytes === 0 ? new Uint8Array() : (await input.read(header.address(), heapBytes, "local heap")).bytes;
  const nodes: number[] = [];
  await readBTree1(input, treeAddress, NODE_TYPE.symbols, KEY_BYTES, (entry) => {
    // Keys are names, which the symbols have, too.
    entry.skip(KEY_BYTES);
    nodes.push(entry.address());
  });
  const links: Hdf5Link[] = [];
  for (const [i, node] of nodes.entries()) {
    await input.prefetch(nodes, i, SYMBOLS_HEADER_BYTES);
    await readSymbols(input, node, heap, links);
  }
  return links;
}

async function readSymbols(input: Hdf5Input, address: number, heap: Uint8Array, links: Hdf5Link[]) {
  const structure = "symbols of a group";
  const header = await input.read(address, SYMBOLS_HEADER_BYTES, structure);
  header.signature("SNOD");
  header.version(1, 1);
  header.skip(1);
  const count = header.u16();
  const cursor = await input.read(address + SYMBOLS_HEADER_BYTES, count * SYMBOL_BYTES, structure);
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

/** Maximum number of links to follow for one path, those of soft links on the way included. */
const MAX_STEPS = 1000;

/** Targets of soft links, by group and name. */
type SoftLinks = Map<Hdf5Group, Map<string, string>>;

/**
 * Finds the object of a path, through soft links.
 * @param start Group that a path without a leading slash begins at.
 * @param steps Count of the links that were followed.
 * @returns Undefined if the path leads nowhere, or in circles.
 */
function resolvePath(
  root: Hdf5Group,
  start: Hdf5Group,
  path: string,
  softLinks: SoftLinks,
  steps = { count: 0 },
): Hdf5Group | Hdf5Dataset | undefined {
  let found: Hdf5Group | Hdf5Dataset | undefined = path.startsWith("/") ? root : start;
  for (const name of path.split("/")) {
    if (name === "" || name === ".") continue;
    steps.count += 1;
    if (found === undefined || !("groups" in found) || steps.count > MAX_STEPS) return undefined;
    const group: Hdf5Group = found;
    const target = softLinks.get(group)?.get(name);
    found = group.datasets.get(name) ?? group.groups.get(name);
    if (target !== undefined) found ??= resolvePath(root, group, target, softLinks, steps);
  }
  return found;
}
