import { type FileHandle, open } from "node:fs/promises";
import { endianness } from "node:os";
import {
  currentMeta,
  Damage,
  FLAG_OVERFLOW,
  type LmdbTree,
  lastTransaction,
  PAGE_HEADER_BYTES,
  readAt,
  readPageSize,
  treeAt,
  uint64,
} from "./lmdb-file.js";

/**
 * LMDB believes every offset in its file, and ends the process (SIGSEGV, SIGBUS, abort) where one is wrong. So the
 * trees are walked before it is opened. Nodes are as `mdb.c` has them (MDB_node); offsets in a page count from behind
 * its header.
 */
const HEADER = PAGE_HEADER_BYTES;
const FLAG_BRANCH = 1;
const FLAG_LEAF = 2;
const NODE_BIG = 1;
const NODE_SUBTREE = 2;
const NO_PAGE = 2 ** 64;
const MAX_DEPTH = 32;

/** Heads of large values are spread over the whole file: reading all of them from a slow disk would take minutes. */
const VALUE_HEADS_BUDGET_MS = 2_000;
const VALUE_HEADS_AT_ONCE = 16;
const ATTEMPTS = 3;

/** What one walk carries along. */
interface Walk {
  readonly file: FileHandle;
  readonly pageSize: number;
  readonly lastPage: number;
  /** Pages that the file has: fewer than `lastPage` says, where those behind its end are free. */
  readonly filePages: number;
  /** One bit per page. */
  readonly used: Uint8Array;
  readonly valueHeads: { readonly page: number; readonly pages: number }[];
}

interface Totals {
  branchPages: number;
  leafPages: number;
  overflowPages: number;
  entries: number;
}

/**
 * What is wrong with an LMDB file, undefined where nothing is found or there is no file. Checks metadata pages, every
 * page of every tree, the list of free pages, that no page is used twice, and for up to two seconds the heads of
 * large values; not the values themselves. Safe while other processes write: a snapshot stays as it is until the next
 * commit, so a finding counts only if there was none meanwhile.
 * @throws Error Where the file cannot be read at all.
 */
export async function findLmdbDamage(path: string): Promise<string | undefined> {
  // Never seen in the wild with zpublish's dependencies; lmdb would still notice a foreign byte order by its magic.
  if (endianness() !== "LE") return undefined;
  let file: FileHandle;
  try {
    file = await open(path, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
  try {
    for (let attempt = 1; ; attempt++) {
      const before = await lastTransaction(file);
      const damage = await walkFile(file);
      if (damage === undefined) return undefined;
      // A commit in between: another process lives on this file, so it was found sound when that one began.
      if ((await lastTransaction(file)) === before) return damage;
      if (attempt === ATTEMPTS) return undefined;
    }
  } finally {
    await file.close();
  }
}

async function walkFile(file: FileHandle): Promise<string | undefined> {
  try {
    const { size } = await file.stat();
    if (size === 0) return undefined; // Just being made, or never written.
    const pageSize = await readPageSize(file);
    const meta = await currentMeta(file, pageSize);
    if (!(meta.lastPage >= 1 && meta.lastPage < 2 ** 40))
      throw new Damage(`impossible last page ${meta.lastPage}`);
    const filePages = Math.floor(size / pageSize);
    const used = new Uint8Array((filePages >> 3) + 1);
    const walk: Walk = { file, pageSize, lastPage: meta.lastPage, filePages, used, valueHeads: [] };
    await walkTree(walk, meta.main);
    await walkTree(walk, meta.free);
    await checkValueHeads(walk);
    return undefined;
  } catch (error) {
    if (error instanceof Damage) return error.message;
    throw error;
  }
}

async function walkTree(walk: Walk, tree: LmdbTree): Promise<void> {
  const totals: Totals = { branchPages: 0, leafPages: 0, overflowPages: 0, entries: 0 };
  if (tree.root < NO_PAGE) {
    if (tree.depth < 1 || tree.depth > MAX_DEPTH)
      throw new Damage(`${tree.name}: impossible depth ${tree.depth}`);
    await walkPage(walk, tree, tree.root, tree.depth, totals);
  }
  for (const field of ["branchPages", "leafPages", "overflowPages", "entries"] as const) {
    if (totals[field] !== tree[field]) {
      throw new Damage(`${tree.name}: ${tree[field]} ${field} expected, found ${totals[field]}`);
    }
  }
}

async function walkPage(
  walk: Walk,
  tree: LmdbTree,
  number: number,
  depth: number,
  totals: Totals,
): Promise<void> {
  markUsed(walk, number, 1);
  const page = await readAt(walk.file, number * walk.pageSize, walk.pageSize);
  const where = `page ${number}`;
  const isLeaf = depth === 1;
  if (uint64(page, 0) !== number) throw new Damage(`${where} says it is page ${uint64(page, 0)}`);
  if (page.readUInt16LE(18) !== (isLeaf ? FLAG_LEAF : FLAG_BRANCH))
    throw new Damage(`${where} is of a wrong kind`);
  const lower = page.readUInt16LE(20);
  const upper = page.readUInt16LE(22);
  if (lower > upper || upper > walk.pageSize - HEADER || lower % 2 !== 0) {
    throw new Damage(`${where} has impossible bounds`);
  }
  const count = lower >> 1;
  if (count === 0 || (!isLeaf && count < 2)) throw new Damage(`${where} is empty`);
  if (isLeaf) totals.leafPages++;
  else totals.branchPages++;
  let previous: Buffer | undefined;
  for (let i = 0; i < count; i++) {
    const start = page.readUInt16LE(HEADER + 2 * i) + HEADER;
    if (start < upper + HEADER || start + 8 > walk.pageSize)
      throw new Damage(`${where} has a node outside of it`);
    const keyEnd = start + 8 + page.readUInt16LE(start + 6);
    if (keyEnd > walk.pageSize) throw new Damage(`${where} has a key outside of it`);
    const key = page.subarray(start + 8, keyEnd);
    // The first key of a branch page stands for minus infinity.
    if (isLeaf || i > 0) {
      if (previous !== undefined && compareKeys(tree, previous, key) >= 0) {
        throw new Damage(`${where} is out of order`);
      }
      previous = key;
    }
    if (isLeaf) {
      totals.entries++;
      await checkLeafNode(walk, tree, page, start, keyEnd, totals);
    } else {
      const child = page.readUInt32LE(start) + page.readUInt16LE(start + 4) * 2 ** 32;
      await walkPage(walk, tree, child, depth - 1, totals);
    }
  }
}

async function checkLeafNode(
  walk: Walk,
  tree: LmdbTree,
  page: Buffer,
  start: number,
  dataStart: number,
  totals: Totals,
): Promise<void> {
  const byteLength = page.readUInt32LE(start);
  const flags = page.readUInt16LE(start + 4);
  const isBig = flags === NODE_BIG;
  const dataEnd = dataStart + (isBig ? HEADER : byteLength);
  if (dataEnd > walk.pageSize) throw new Damage(`${tree.name} has a value outside of its page`);
  if (isBig) {
    const first = uint64(page, dataStart);
    const pages = uint64(page, dataStart + 16);
    if (pages < 1 || pages * walk.pageSize < byteLength + HEADER) {
      throw new Damage(`${tree.name} has a value longer than its pages`);
    }
    markUsed(walk, first, pages);
    totals.overflowPages += pages;
    if (tree.name === "list of free pages") {
      const list = await readAt(walk.file, first * walk.pageSize, HEADER + byteLength);
      checkFreePages(walk, list.subarray(HEADER));
    } else {
      walk.valueHeads.push({ page: first, pages });
    }
  } else if (flags === NODE_SUBTREE && tree.name === "main" && byteLength === 48) {
    await walkTree(walk, treeAt(page, dataStart, page.toString("latin1", start + 8, dataStart)));
  } else if (flags !== 0) {
    throw new Damage(`${tree.name} has a node of unknown kind ${flags}`);
  } else if (tree.name === "list of free pages") {
    checkFreePages(walk, page.subarray(dataStart, dataEnd));
  }
}

/** A list as `midl.c` of lmdb-js writes it: count, then page numbers; a negative number is the length of a run. */
function checkFreePages(walk: Walk, list: Buffer): void {
  const count = list.length < 8 ? -1 : uint64(list, 0);
  if (count < 0 || (count + 1) * 8 > list.length) throw new Damage("a list of free pages is cut short");
  for (let i = 1; i <= count; i++) {
    let item = Number(list.readBigInt64LE(i * 8));
    if (item === 0) continue;
    let pages = 1;
    if (item < 0) {
      pages = -item;
      if (++i > count) throw new Damage("a list of free pages is cut short");
      item = Number(list.readBigInt64LE(i * 8));
    }
    if (item < 2 || item + pages - 1 > walk.lastPage) throw new Damage(`page ${item} cannot be free`);
    for (let page = item; page < item + pages; page++) {
      if (isUsed(walk, page)) throw new Damage(`page ${page} is both used and free`);
    }
  }
}

/** `mp_pages` of such a head is what lmdb frees when the value goes: a wrong one takes other values' pages with it. */
async function checkValueHeads(walk: Walk): Promise<void> {
  const { file, pageSize, valueHeads } = walk;
  valueHeads.sort((a, b) => a.page - b.page);
  const deadline = performance.now() + VALUE_HEADS_BUDGET_MS;
  for (let i = 0; i < valueHeads.length && performance.now() < deadline; i += VALUE_HEADS_AT_ONCE) {
    const some = valueHeads.slice(i, i + VALUE_HEADS_AT_ONCE);
    const heads = await Promise.all(some.map(({ page }) => readAt(file, page * pageSize, HEADER)));
    for (const [n, head] of heads.entries()) {
      const { page, pages } = some[n]!;
      if (
        uint64(head, 0) !== page ||
        head.readUInt16LE(18) !== FLAG_OVERFLOW ||
        head.readUInt32LE(20) !== pages
      ) {
        throw new Damage(`the head of the value at page ${page} is wrong`);
      }
    }
  }
}

function markUsed(walk: Walk, first: number, count: number): void {
  if (first < 2 || first + count - 1 > walk.lastPage) throw new Damage(`page ${first} is outside the file`);
  if (first + count > walk.filePages) throw new Damage(`page ${first} is behind the end of the file`);
  for (let page = first; page < first + count; page++) {
    if (isUsed(walk, page)) throw new Damage(`page ${page} is used twice`);
    walk.used[page >> 3]! |= 1 << (page & 7);
  }
}

function isUsed(walk: Walk, page: number): boolean {
  return ((walk.used[page >> 3] ?? 0) & (1 << (page & 7))) !== 0;
}

function compareKeys(tree: LmdbTree, a: Buffer, b: Buffer): number {
  if (tree.name !== "list of free pages") return Buffer.compare(a, b);
  return a.length === 8 && b.length === 8 ? uint64(a, 0) - uint64(b, 0) : 0;
}
