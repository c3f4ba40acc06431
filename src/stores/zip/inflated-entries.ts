import { pipeline, Readable } from "node:stream";
import { crc32, createInflateRaw, inflateRaw } from "node:zlib";
import { createLimiter } from "../../collections/limiter.js";
import { messageOf, ZpublishError } from "../../errors.js";
import { createSlice } from "../../event-loop/cooperative-task.js";
import type { ResolvedRange } from "../byte-store.js";

/** Inflated bytes that are kept, of all archives: of an entry, those that came last. */
const MAX_KEPT_BYTES = 32 * 2 ** 20;
/** Inflated bytes of entries that wait for their turn. More would take minutes. */
const MAX_WAITING_BYTES = 16 * 2 ** 30;
/** Entries up to which all of their deflated bytes are in memory if they are read whole. */
export const MAX_AT_ONCE_BYTES: number = 16 * 2 ** 20;
/** Deflated bytes that are read at a time, and inflated bytes that are made. */
const PIECE_BYTES = 512 * 1024;

/** A deflated entry of an archive. */
export interface DeflatedEntry {
  /** Name that no other entry of any archive has, and no other version of it. */
  readonly id: string;
  /** Name for messages. */
  readonly name: string;
  readonly byteLength: number;
  readonly storedByteLength: number;
  /** CRC-32 of the inflated bytes. */
  readonly checksum: number;
  /** Reads deflated bytes. */
  readonly readStored: (range: ResolvedRange) => Promise<Uint8Array>;
}

/** A range of an entry, and the memory for it. */
interface Taker extends ResolvedRange {
  readonly into: Uint8Array;
  /** Aborts when the range is no longer needed. */
  readonly signal?: AbortSignal | undefined;
}

/** Ranges of an entry that are inflated together: all that are wanted when it is its turn. */
interface Pass {
  readonly takers: Taker[];
  readonly done: Promise<void>;
}

/** How far an entry is inflated. The next pass continues there, since chunks are mostly read in order. */
interface Inflation {
  /** What is kept, in blocks of {@link PIECE_BYTES}; the last one need not be full. */
  readonly blocks: Uint8Array[];
  /** Offsets of the first block, and of what the inflater gives next. */
  begin: number;
  end: number;
  /** CRC-32 of all bytes up to `end`. */
  checksum: number;
  /** Whether blocks may be given away: those of an entry that can be kept are verified first. */
  isTrusted: boolean;
  readonly inflater: AsyncIterator<Uint8Array>;
}

/** By id of the entry. The one used last comes last. */
const inflations = new Map<string, Inflation>();
let keptBlocks = 0;
/** Passes that have not begun, by id of the entry. */
const waiting = new Map<string, Pass>();
let waitingBytes = 0;
/** One entry at a time, so that no more memory is used than may be kept. */
const passes = createLimiter({ maxRunning: 1, maxPerKey: 1, maxWaiting: Number.POSITIVE_INFINITY });
const slice = createSlice();

/**
 * Reads a range of an entry's inflated bytes. The entry is inflated once for all who wait for ranges of it, in pieces and by libuv's
 * threads. What came last is kept for later ranges, unless all of the entry was wanted, which is kept by who reads it.
 * @throws ZpublishError `corrupt-chunk`; `cancelled` once no reader waits; `overloaded` if too much is to be inflated; what reading throws
 */
export async function readInflated(entry: DeflatedEntry, taker: Taker): Promise<void> {
  // Hundreds of mebibytes may be copied.
  if (slice.isOver()) await slice.next();
  if (giveKept(entry, taker)) return;
  const pass = waiting.get(entry.id) ?? planPass(entry);
  pass.takers.push(taker);
  await pass.done;
}

/** Copies what a taker wants of bytes. @param at Their offset in the entry. */
function give(bytes: Uint8Array, at: number, { offset, byteLength, into }: Taker): void {
  const begin = Math.max(offset - at, 0);
  const end = Math.min(offset + byteLength - at, bytes.length);
  if (begin < end) into.set(bytes.subarray(begin, end), at + begin - offset);
}

function giveBlocks({ blocks, begin, end }: Inflation, taker: Taker): void {
  for (const [index, block] of blocks.entries()) {
    const at = begin + index * PIECE_BYTES;
    give(block.subarray(0, end - at), at, taker);
  }
}

/** Gives a taker its range if all of it is kept. @returns Whether it is. */
function giveKept({ id }: DeflatedEntry, taker: Taker): boolean {
  const found = inflations.get(id);
  const { offset, byteLength } = taker;
  if (!found?.isTrusted || offset < found.begin || offset + byteLength > found.end) return false;
  inflations.delete(id);
  inflations.set(id, found);
  giveBlocks(found, taker);
  return true;
}

function planPass(entry: DeflatedEntry): Pass {
  const { id, name, byteLength } = entry;
  if (waitingBytes > 0 && waitingBytes + byteLength > MAX_WAITING_BYTES) {
    const message = `'${name}': expected at most ${MAX_WAITING_BYTES} bytes that wait to be inflated, received ${byteLength} more`;
    throw new ZpublishError("overloaded", message);
  }
  waitingBytes += byteLength;
  const takers: Taker[] = [];
  const run = async () => {
    // Who comes from now on waits for the next pass.
    waiting.delete(id);
    waitingBytes -= byteLength;
    await inflateFor(entry, takers);
  };
  // Not at once: who plans the pass is its first taker.
  const pass = { takers, done: Promise.resolve().then(() => passes.run(id, run)) };
  waiting.set(id, pass);
  return pass;
}

async function inflateFor(entry: DeflatedEntry, takers: readonly Taker[]): Promise<void> {
  const first = Math.min(...takers.map(({ offset }) => offset));
  const known = inflations.get(entry.id);
  if (known !== undefined && first < known.begin) forget(entry.id);
  const inflation = inflations.get(entry.id) ?? beginInflation(entry);
  inflations.delete(entry.id);
  inflations.set(entry.id, inflation);
  try {
    await inflateOn(entry, inflation, takers);
  } catch (error) {
    if (!(error instanceof ZpublishError && error.code === "cancelled")) forget(entry.id);
    if (error instanceof ZpublishError) throw error;
    throw corrupt(entry.name, `cannot be inflated to ${entry.byteLength} bytes (${messageOf(error)})`);
  } finally {
    if (inflation.blocks.length === 0) forget(entry.id);
  }
}

function beginInflation(entry: DeflatedEntry): Inflation {
  const stream = createInflateRaw({ chunkSize: PIECE_BYTES });
  // An error of either end is thrown by the iterator.
  pipeline(Readable.from(storedPieces(entry)), stream, () => {});
  const inflater = (stream as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
  const isTrusted = entry.byteLength > MAX_KEPT_BYTES;
  return { blocks: [], begin: 0, end: 0, checksum: 0, isTrusted, inflater };
}

/**
 * Inflates an entry up to the last byte that is wanted, or all of it if it can be kept. The checksum is verified at the end of the entry.
 */
async function inflateOn(
  entry: DeflatedEntry,
  inflation: Inflation,
  takers: readonly Taker[],
): Promise<void> {
  const { name, byteLength: expected } = entry;
  const last = Math.max(...takers.map(({ offset, byteLength }) => offset + byteLength));
  const wanted = expected > MAX_KEPT_BYTES ? last : expected;
  const isKept = inflation.blocks.length > 0 || takers.some(({ byteLength }) => byteLength < expected);
  for (const taker of takers) {
    if (slice.isOver()) await slice.next();
    giveBlocks(inflation, taker);
  }
  while (inflation.end < wanted || wanted === expected) {
    if (takers.every(({ signal }) => signal?.aborted))
      throw new ZpublishError("cancelled", `no reader waits for '${name}'`);
    const { value: piece, done } = await inflation.inflater.next();
    if (done) break;
    for (const taker of takers) give(piece, inflation.end, taker);
    inflation.checksum = crc32(piece, inflation.checksum);
    if (inflation.end + piece.length > expected)
      throw corrupt(name, `expected ${expected} bytes, inflated are more`);
    if (isKept) keep(inflation, piece);
    inflation.end += piece.length;
    if (!isKept) inflation.begin = inflation.end;
  }
  const { end, checksum } = inflation;
  if (end < wanted) throw corrupt(name, `expected ${expected} bytes, inflated are ${end}`);
  if (end === expected && checksum !== entry.checksum)
    throw corrupt(name, `expected CRC-32 ${entry.checksum}, received ${checksum}`);
  inflation.isTrusted = true;
}

/** Keeps a copy of a piece, in blocks that are used again: what is dropped after a while stays until the garbage collector comes. */
function keep(inflation: Inflation, piece: Uint8Array): void {
  for (let from = 0; from < piece.length; ) {
    const used = (inflation.end + from - inflation.begin) % PIECE_BYTES;
    if (used === 0) inflation.blocks.push(takeBlock());
    const part = piece.subarray(from, from + PIECE_BYTES - used);
    inflation.blocks.at(-1)!.set(part, used);
    from += part.length;
  }
}

/** Returns memory for a block. If as much is kept as may be, it is the first block of the entry that was used least. */
function takeBlock(): Uint8Array {
  let block: Uint8Array | undefined;
  if (keptBlocks * PIECE_BYTES >= MAX_KEPT_BYTES) {
    for (const [id, inflation] of inflations) {
      block = inflation.blocks.shift();
      if (block === undefined) continue;
      inflation.begin += PIECE_BYTES;
      if (inflation.blocks.length === 0) forget(id);
      break;
    }
  }
  if (block === undefined) keptBlocks++;
  return block ?? new Uint8Array(PIECE_BYTES);
}

function forget(id: string): void {
  const inflation = inflations.get(id);
  if (inflation === undefined) return;
  inflations.delete(id);
  keptBlocks -= inflation.blocks.length;
  void inflation.inflater.return?.();
}

async function* storedPieces({ storedByteLength, readStored }: DeflatedEntry): AsyncIterable<Uint8Array> {
  for (let offset = 0; offset < storedByteLength; offset += PIECE_BYTES)
    yield await readStored({ offset, byteLength: Math.min(PIECE_BYTES, storedByteLength - offset) });
}

/** Inflates bytes that are all in memory, on one of libuv's threads. @throws ZpublishError `corrupt-chunk` */
export function inflateAtOnce(bytes: Uint8Array, expected: number, name: string): Promise<Uint8Array> {
  // With a little room zlib needs one pass; with none it needs an empty second one.
  const options = { maxOutputLength: Math.max(1, expected), chunkSize: expected + 64 };
  return new Promise((resolve, reject) => {
    inflateRaw(bytes, options, (error, inflated) => {
      if (error === null) resolve(inflated);
      else reject(corrupt(name, `cannot be inflated to ${expected} bytes (${messageOf(error)})`));
    });
  });
}

function corrupt(name: string, problem: string): ZpublishError {
  return new ZpublishError("corrupt-chunk", `'${name}': ${problem}`, { details: { key: name } });
}
