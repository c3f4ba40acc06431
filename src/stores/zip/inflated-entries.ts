import { pipeline, Readable } from "node:stream";
import { crc32, createInflateRaw, inflateRaw } from "node:zlib";
import { createBoundedMap } from "../../collections/bounded-map.js";
import { createLimiter } from "../../collections/limiter.js";
import { messageOf, ZpublishError } from "../../errors.js";
import { createSlice } from "../../event-loop/cooperative-task.js";
import type { ResolvedRange } from "../byte-store.js";

/** Bytes of entries that are kept inflated, of all archives. A longer entry is inflated again for ranges that are asked for later. */
const MAX_KEPT_BYTES = 128 * 2 ** 20;
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

/** One inflation of an entry, for all who want ranges of it when it begins. */
interface Pass {
  readonly takers: Taker[];
  readonly done: Promise<void>;
}

const kept = createBoundedMap<Uint8Array>({
  maxBytes: MAX_KEPT_BYTES,
  byteLengthOf: ({ byteLength }) => byteLength,
});
/** Passes that have not begun, by id of the entry. */
const waiting = new Map<string, Pass>();
const ONE_AT_A_TIME = { maxRunning: 1, maxPerKey: 1, maxWaiting: Number.POSITIVE_INFINITY };
/** One entry at a time, so that no more memory is used than may be kept. */
const passes = createLimiter(ONE_AT_A_TIME);
/** Copies of what is kept, which do not wait for another entry. */
const copies = createLimiter(ONE_AT_A_TIME);
const slice = createSlice();

/**
 * Reads a range of an entry's inflated bytes. The entry is inflated once for all who wait for ranges of it, in pieces and by libuv's
 * threads, and kept for later ones if it is not too long.
 * @throws ZpublishError `corrupt-chunk`, `cancelled` once no reader waits; what reading throws
 */
export async function readInflated(entry: DeflatedEntry, taker: Taker): Promise<void> {
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

function planPass(entry: DeflatedEntry): Pass {
  const { id } = entry;
  const takers: Taker[] = [];
  const run = async () => {
    // Who comes from now on waits for the next pass.
    waiting.delete(id);
    await inflateFor(entry, takers);
  };
  // Not at once: who plans the pass is its first taker.
  const done = Promise.resolve().then(() => (kept.get(id) === undefined ? passes : copies).run(id, run));
  const pass = { takers, done };
  waiting.set(id, pass);
  return pass;
}

async function inflateFor(entry: DeflatedEntry, takers: readonly Taker[]): Promise<void> {
  const { id, byteLength } = entry;
  if (byteLength > MAX_KEPT_BYTES) return inflatePieces(entry, takers);
  let inflated = kept.get(id);
  if (inflated === undefined) {
    if (kept.byteLength + byteLength > MAX_KEPT_BYTES) kept.clear();
    inflated = new Uint8Array(byteLength);
    await inflatePieces(entry, takers, inflated);
    kept.set(id, inflated);
    return;
  }
  for (const taker of takers) {
    // Hundreds of mebibytes may be copied.
    if (slice.isOver()) await slice.next();
    give(inflated, 0, taker);
  }
}

/**
 * Inflates an entry up to the last byte that is wanted. The checksum is verified if that is the end of the entry.
 * @param whole Memory for all of it. Default: what no taker wants is dropped.
 */
async function inflatePieces(
  entry: DeflatedEntry,
  takers: readonly Taker[],
  whole?: Uint8Array,
): Promise<void> {
  const { name, byteLength: expected, checksum } = entry;
  const wanted = whole?.length ?? Math.max(...takers.map(({ offset, byteLength }) => offset + byteLength));
  const inflater = createInflateRaw({ chunkSize: PIECE_BYTES });
  // An error of either end is thrown by the loop.
  pipeline(Readable.from(storedPieces(entry)), inflater, () => {});
  let at = 0;
  let received = 0;
  try {
    for await (const piece of inflater as AsyncIterable<Uint8Array>) {
      if (takers.every(({ signal }) => signal?.aborted))
        throw new ZpublishError("cancelled", `no reader waits for '${name}'`);
      for (const taker of takers) give(piece, at, taker);
      if (at < expected) whole?.set(piece.subarray(0, expected - at), at);
      received = crc32(piece, received);
      at += piece.length;
      if (at > expected || (at >= wanted && wanted < expected)) break;
    }
  } catch (error) {
    if (error instanceof ZpublishError) throw error;
    throw corrupt(name, `cannot be inflated to ${expected} bytes (${messageOf(error)})`);
  }
  if (at > expected || at < wanted)
    throw corrupt(name, `expected ${expected} bytes, inflated are ${at > expected ? "more" : at}`);
  if (wanted === expected && received !== checksum)
    throw corrupt(name, `expected CRC-32 ${checksum}, received ${received}`);
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
