import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { corrupt } from "../codec.js";
import { copyMatch } from "./block-decoders.js";

/*
 * Zstandard (RFC 8878) in JavaScript, for what zlib of Node.js 20 and numcodecs.js cannot do: dictionaries, frames that do not say their
 * size, and decoding in steps between which the event loop runs. Checksums of frames are not checked.
 */

/** A table of finite state entropy: for each state its symbol, and how the next state is read. */
interface FseTable {
  readonly log: number;
  readonly symbols: Uint8Array;
  readonly bits: Uint8Array;
  readonly bases: Uint16Array;
}

/** A Huffman table: by the next `log` bits, the symbol in the low byte and the length of its code above it. */
interface HuffmanTable {
  readonly log: number;
  readonly entries: Uint16Array;
}

/** What blocks of a frame hand on to later ones. */
interface Entropy {
  huffman: HuffmanTable | undefined;
  /** Tables of literal lengths, offsets and match lengths. */
  readonly tables: (FseTable | undefined)[];
  readonly repeats: Int32Array;
}

/** A dictionary in zstd's own format (RFC 8878, section 5). */
export interface ZstdDictionary extends Readonly<Entropy> {
  readonly content: Uint8Array;
}

const FRAME_MAGIC = 0xfd2fb528;
const DICTIONARY_MAGIC = 0xec30a437;
const MAX_BLOCK_BYTES = 128 * 1024;

/** Base value and number of extra bits by code (RFC 8878, section 3.1.1.3.2.1.1). */
const LITERAL_BITS = extraBits(16, [1, 1, 1, 1, 2, 2, 3, 3, 4], 16);
const MATCH_BITS = extraBits(32, [1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5], 16);
const LITERAL_BASES = basesOf(LITERAL_BITS, 0);
const MATCH_BASES = basesOf(MATCH_BITS, 3);

function extraBits(none: number, few: readonly number[], last: number): Uint8Array {
  const first = few.at(-1)! + 2;
  const many = Array.from({ length: last - first + 1 }, (_, index) => first + index);
  return Uint8Array.from([...new Array<number>(none).fill(0), ...few, ...many]);
}

function basesOf(bits: Uint8Array, first: number): Int32Array {
  let base = first;
  return Int32Array.from(bits, (count) => {
    base += 1 << count;
    return base - (1 << count);
  });
}

/** Largest logarithm of a table and largest code, of literal lengths, offsets and match lengths. */
const LIMITS = [
  { log: 9, code: 35 },
  { log: 8, code: 31 },
  { log: 9, code: 52 },
] as const;

/** Tables of blocks that bring none (RFC 8878, section 3.1.1.3.2.2). */
const PREDEFINED = [
  createFseTable(6, [
    ...[4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1],
    ...[-1, -1, -1, -1],
  ]),
  createFseTable(5, [
    ...[1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1],
  ]),
  createFseTable(6, [
    ...[1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
    ...[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1],
  ]),
] as const;

function invalid(problem: string): Error {
  return corrupt(`zstd: ${problem}`);
}

/** Reads at most 25 bits that begin at a bit of `bytes`. What is outside of `bytes` counts as zeros. */
function bitsAt(bytes: Uint8Array, bit: number, count: number): number {
  const at = bit >> 3;
  const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  return (word >>> (bit & 7)) & ((1 << count) - 1);
}

/** Returns the end in bits of a stream that is read backwards: its last one is a mark. */
function streamEnd(bytes: Uint8Array, end: number): number {
  const last = bytes[end - 1] ?? 0;
  if (last === 0) throw invalid("expected a mark at the end of a bit stream, found none");
  return end * 8 - 1 - (Math.clz32(last) - 24);
}

/** Bits of a stream that is read backwards. */
class BackwardBits {
  constructor(
    private readonly bytes: Uint8Array,
    /** Place behind the next bits. */
    public bit: number,
  ) {}

  /** Reads at most 25 bits. */
  read(count: number): number {
    this.bit -= count;
    return bitsAt(this.bytes, this.bit, count);
  }
}

function highestBit(value: number): number {
  return 31 - Math.clz32(value);
}

/** Creates a table from counts of symbols; -1 stands for less than one. */
function createFseTable(log: number, counts: readonly number[]): FseTable {
  const size = 1 << log;
  const symbols = new Uint8Array(size);
  const next = Uint16Array.from(counts, (count) => Math.abs(count));
  let high = size;
  for (const [symbol, count] of counts.entries()) if (count < 0) symbols[--high] = symbol;
  let place = 0;
  for (const [symbol, count] of counts.entries())
    for (let index = 0; index < count; index++) {
      symbols[place] = symbol;
      do place = (place + (size >> 1) + (size >> 3) + 3) & (size - 1);
      while (place >= high);
    }
  const bits = new Uint8Array(size);
  const bases = new Uint16Array(size);
  for (let state = 0; state < size; state++) {
    const value = next[symbols[state]!]!++;
    bits[state] = log - highestBit(value);
    bases[state] = (value << bits[state]!) - size;
  }
  return { log, symbols, bits, bases };
}

/** Reads the description of a table (RFC 8878, section 4.1.1). @returns The table, and the place behind it. */
function readFseTable(bytes: Uint8Array, at: number, limit: { readonly log: number; readonly code: number }) {
  let bit = at * 8 + 4;
  const log = bitsAt(bytes, at * 8, 4) + 5;
  if (log > limit.log) throw invalid(`expected a table of at most ${limit.log} bits, received ${log}`);
  let remaining = 1 << log;
  const counts: number[] = [];
  while (remaining > 0 && counts.length <= limit.code) {
    const width = highestBit(remaining + 1) + 1;
    const low = (1 << (width - 1)) - 1;
    const threshold = (1 << width) - 2 - remaining;
    let value = bitsAt(bytes, bit, width);
    const isShort = (value & low) < threshold;
    if (isShort) value &= low;
    else if (value > low) value -= threshold;
    bit += isShort ? width - 1 : width;
    remaining -= Math.abs(value - 1);
    counts.push(value - 1);
    if (value !== 1) continue;
    for (let zeros = 3; zeros === 3; bit += 2) {
      zeros = bitsAt(bytes, bit, 2);
      for (let index = 0; index < zeros; index++) counts.push(0);
    }
  }
  const end = (bit + 7) >> 3;
  if (remaining !== 0 || counts.length > limit.code + 1 || end > bytes.length)
    throw invalid("expected a table of entropy codes, received something else");
  return { table: createFseTable(log, counts), end };
}

/** Reads a Huffman tree (RFC 8878, section 4.2.1). @returns The table, and the place behind it. */
function readHuffmanTable(bytes: Uint8Array, at: number) {
  const header = bytes[at] ?? 0;
  const isPlain = header >= 128;
  const end = at + 1 + (isPlain ? (header - 126) >> 1 : header);
  if (end > bytes.length) throw invalid("expected a Huffman tree, received its beginning");
  const weights: number[] = [];
  if (isPlain)
    for (let index = 0; index < header - 127; index++)
      weights.push((bytes[at + 1 + (index >> 1)]! >> (index & 1 ? 0 : 4)) & 15);
  else readWeights(bytes.subarray(0, end), at + 1, weights);
  let sum = 0;
  for (const weight of weights) sum += weight > 0 ? 1 << (weight - 1) : 0;
  const log = highestBit(sum) + 1;
  const left = (1 << log) - sum;
  if (sum === 0 || log > 11 || (left & (left - 1)) !== 0 || weights.length > 255)
    throw invalid("expected a complete Huffman tree, received another");
  weights.push(highestBit(left) + 1);
  const entries = new Uint16Array(1 << log);
  let place = 0;
  for (let weight = 1; weight <= log; weight++)
    for (const [symbol, each] of weights.entries())
      if (each === weight) {
        entries.fill(((log + 1 - weight) << 8) | symbol, place, place + (1 << (weight - 1)));
        place += 1 << (weight - 1);
      }
  return { table: { log, entries }, end };
}

/** Reads the weights of a Huffman tree that are coded by two states in turn. */
function readWeights(bytes: Uint8Array, at: number, weights: number[]): void {
  const { table, end } = readFseTable(bytes, at, { log: 6, code: 12 });
  let bit = streamEnd(bytes, bytes.length) - 2 * table.log;
  const states = [bitsAt(bytes, bit + table.log, table.log), bitsAt(bytes, bit, table.log)];
  for (let turn = 0; weights.length < 256; turn ^= 1) {
    const state = states[turn]!;
    weights.push(table.symbols[state]!);
    bit -= table.bits[state]!;
    if (bit < end * 8) {
      weights.push(table.symbols[states[turn ^ 1]!]!);
      return;
    }
    states[turn] = table.bases[state]! + bitsAt(bytes, bit, table.bits[state]!);
  }
}

function decodeHuffman(
  { log, entries }: HuffmanTable,
  bytes: Uint8Array,
  begin: number,
  end: number,
  target: Uint8Array,
): void {
  let bit = streamEnd(bytes, end);
  for (let index = 0; index < target.length; index++) {
    const entry = entries[bitsAt(bytes, bit - log, log)]!;
    target[index] = entry;
    bit -= entry >> 8;
  }
  if (bit !== begin * 8) throw invalid("expected literals to fill their stream");
}

/** Reads the literals of a block (RFC 8878, section 3.1.1.3.1). @returns Them, and the place behind them. */
function readLiterals(bytes: Uint8Array, entropy: Entropy) {
  const kind = bytes[0]! & 3;
  const format = (bytes[0]! >> 2) & 3;
  if (kind < 2) {
    const headerBytes = format === 1 ? 2 : format === 3 ? 3 : 1;
    const size = bitsAt(bytes, headerBytes === 1 ? 3 : 4, [0, 5, 12, 20][headerBytes]!);
    const at = headerBytes;
    const end = at + (kind === 1 ? 1 : size);
    if (size > MAX_BLOCK_BYTES || end > bytes.length) throw invalid("expected literals, received fewer");
    const literals = kind === 1 ? new Uint8Array(size).fill(bytes[at]!) : bytes.subarray(at, end);
    return { literals, end };
  }
  const width = [10, 10, 14, 18][format]!;
  const size = bitsAt(bytes, 4, width);
  let at = [3, 3, 4, 5][format]!;
  const end = at + bitsAt(bytes, 4 + width, width);
  if (size > MAX_BLOCK_BYTES || end > bytes.length) throw invalid("expected literals, received fewer");
  if (kind === 2) {
    const tree = readHuffmanTable(bytes.subarray(0, end), at);
    entropy.huffman = tree.table;
    at = tree.end;
  }
  const { huffman } = entropy;
  if (huffman === undefined) throw invalid("expected a Huffman tree before literals, found none");
  const literals = new Uint8Array(size);
  if (format === 0) decodeHuffman(huffman, bytes, at, end, literals);
  else {
    const part = (size + 3) >> 2;
    let from = at + 6;
    for (let index = 0; index < 4; index++) {
      const to = index === 3 ? end : from + bitsAt(bytes, (at + index * 2) * 8, 16);
      if (to > end || part * 3 > size) throw invalid("expected four streams of literals");
      decodeHuffman(huffman, bytes, from, to, literals.subarray(index * part, (index + 1) * part));
      from = to;
    }
  }
  return { literals, end };
}

/** Reads the tables of the sequences of a block. @returns The place behind them. */
function readTables(bytes: Uint8Array, begin: number, entropy: Entropy): number {
  const modes = bytes[begin] ?? 0;
  let at = begin + 1;
  for (const [index, limit] of LIMITS.entries()) {
    const mode = (modes >> (6 - 2 * index)) & 3;
    if (mode === 0) entropy.tables[index] = PREDEFINED[index];
    else if (mode === 1) {
      const symbols = bytes.slice(at, ++at);
      if (!(symbols[0]! <= limit.code)) throw invalid("expected a code of sequences, received another");
      entropy.tables[index] = { log: 0, symbols, bits: new Uint8Array(1), bases: new Uint16Array(1) };
    } else if (mode === 2) {
      const { table, end } = readFseTable(bytes, at, limit);
      entropy.tables[index] = table;
      at = end;
    } else if (entropy.tables[index] === undefined)
      throw invalid("expected a table before it is used again, found none");
  }
  return at;
}

/** Decoded bytes, with the content of the dictionary before them. */
interface Output {
  bytes: Uint8Array<ArrayBuffer>;
  end: number;
}

/** Makes room for a block. */
function makeRoom(output: Output, limit: number, byteLength: number): void {
  const needed = output.end + byteLength;
  if (needed > limit) throw invalid(`expected at most ${limit} bytes, received more`);
  if (needed <= output.bytes.length) return;
  const larger = new Uint8Array(Math.min(limit, Math.max(needed, output.bytes.length * 2)));
  larger.set(output.bytes.subarray(0, output.end));
  output.bytes = larger;
}

/** Decodes a compressed block into `output`, which has room for it. @param bytes The block. */
function decodeBlock(bytes: Uint8Array, entropy: Entropy, output: Output): void {
  const { literals, end } = readLiterals(bytes, entropy);
  const first = bytes[end] ?? 0;
  const count =
    first < 128
      ? first
      : first < 255
        ? ((first - 128) << 8) + bytes[end + 1]!
        : bytes[end + 1]! + (bytes[end + 2]! << 8) + 0x7f00;
  let used = 0;
  if (count > 0) {
    const at = readTables(bytes, end + (first < 128 ? 1 : first < 255 ? 2 : 3), entropy);
    used = decodeSequences(bytes, at, count, entropy, literals, output);
  }
  output.bytes.set(literals.subarray(used), output.end);
  output.end += literals.length - used;
}

/** Carries out sequences (RFC 8878, section 3.1.1.4). @returns The number of literals that they used. */
function decodeSequences(
  bytes: Uint8Array,
  begin: number,
  count: number,
  { tables, repeats }: Entropy,
  literals: Uint8Array,
  output: Output,
): number {
  const [ofLiterals, ofOffsets, ofMatches] = tables as FseTable[] as [FseTable, FseTable, FseTable];
  const target = output.bytes;
  const limit = Math.min(target.length, output.end + MAX_BLOCK_BYTES);
  const stream = new BackwardBits(bytes, streamEnd(bytes, bytes.length));
  let { end } = output;
  let used = 0;
  let literalState = stream.read(ofLiterals.log);
  let offsetState = stream.read(ofOffsets.log);
  let matchState = stream.read(ofMatches.log);
  for (let left = count; left > 0; left--) {
    const offsetCode = ofOffsets.symbols[offsetState]!;
    const matchCode = ofMatches.symbols[matchState]!;
    const literalCode = ofLiterals.symbols[literalState]!;
    const high = offsetCode > 16 ? stream.read(offsetCode - 16) << 16 : 0;
    const value = (1 << offsetCode) | high | stream.read(offsetCode > 16 ? 16 : offsetCode);
    const length = MATCH_BASES[matchCode]! + stream.read(MATCH_BITS[matchCode]!);
    const fresh = LITERAL_BASES[literalCode]! + stream.read(LITERAL_BITS[literalCode]!);
    if (left > 1) {
      literalState = ofLiterals.bases[literalState]! + stream.read(ofLiterals.bits[literalState]!);
      matchState = ofMatches.bases[matchState]! + stream.read(ofMatches.bits[matchState]!);
      offsetState = ofOffsets.bases[offsetState]! + stream.read(ofOffsets.bits[offsetState]!);
    }
    const offset = offsetOf(value, fresh === 0, repeats);
    const stop = end + fresh + length;
    if (used + fresh > literals.length || stop > limit || offset > stop - length || offset < 1)
      throw invalid("expected sequences of what was decoded before");
    for (const from = used - end; end < stop - length; end++) target[end] = literals[end + from]!;
    used += fresh;
    copyMatch(target, end, offset, length);
    end = stop;
  }
  if (stream.bit !== begin * 8) throw invalid("expected sequences to fill their stream");
  output.end = end;
  return used;
}

/** Returns the offset that a value stands for, and remembers it (RFC 8878, section 3.1.1.5). */
function offsetOf(value: number, isAfterMatch: boolean, repeats: Int32Array): number {
  const index = value > 3 ? 3 : value - 1 + (isAfterMatch ? 1 : 0);
  const offset = value > 3 ? value - 3 : index === 3 ? repeats[0]! - 1 : repeats[index]!;
  if (index > 1) repeats[2] = repeats[1]!;
  if (index > 0) repeats[1] = repeats[0]!;
  repeats[0] = offset;
  return offset;
}

/** Parses a dictionary. @throws ZpublishError `corrupt-chunk` */
export function parseZstdDictionary(bytes: Uint8Array): ZstdDictionary {
  const magic = bytes.length < 8 ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  if (magic !== DICTIONARY_MAGIC) throw invalid("expected a dictionary, received something else");
  const huffman = readHuffmanTable(bytes, 8);
  const offsets = readFseTable(bytes, huffman.end, LIMITS[1]);
  const matches = readFseTable(bytes, offsets.end, LIMITS[2]);
  const literals = readFseTable(bytes, matches.end, LIMITS[0]);
  const { end } = literals;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const repeats = Int32Array.of(0, 4, 8).map((at) => view.getInt32(end + at, true));
  const tables = [literals.table, offsets.table, matches.table];
  return { huffman: huffman.table, tables, repeats, content: bytes.subarray(end + 12) };
}

/**
 * Decodes one frame in steps.
 * @param maxByteLength Bound of the decoded bytes.
 * @returns A view of a longer buffer.
 * @throws ZpublishError `corrupt-chunk`
 */
export function* decodeZstdSteps(
  bytes: Uint8Array,
  maxByteLength: number,
  dictionary?: ZstdDictionary,
): CooperativeTask<Uint8Array<ArrayBuffer>> {
  const descriptor = bytes[4] ?? 0;
  const isSingle = (descriptor & 0x20) !== 0;
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  let at = 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]! + sizeBytes;
  const magic = bytes.length < at ? 0 : bitsAt(bytes, 0, 24) + bytes[3]! * 2 ** 24;
  if (magic !== FRAME_MAGIC) throw invalid("expected a frame, received something else");
  const prefix = dictionary?.content ?? new Uint8Array(0);
  const limit = prefix.length + maxByteLength;
  const output: Output = {
    bytes: new Uint8Array(prefix.length + Math.min(maxByteLength, bytes.length * 3)),
    end: 0,
  };
  output.bytes.set(prefix);
  output.end = prefix.length;
  const { huffman, tables = [], repeats = [1, 4, 8] } = dictionary ?? {};
  const entropy: Entropy = { huffman, tables: [...tables], repeats: Int32Array.from(repeats) };
  for (let isLast = false; !isLast; ) {
    yield;
    const header = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    const size = header >> 3;
    const kind = (header >> 1) & 3;
    isLast = (header & 1) === 1;
    at += 3;
    const end = at + (kind === 1 ? 1 : size);
    if (end > bytes.length || size > MAX_BLOCK_BYTES || kind === 3)
      throw invalid("expected whole blocks, received something else");
    if (kind === 2) {
      makeRoom(output, limit, Math.min(MAX_BLOCK_BYTES, limit - output.end));
      decodeBlock(bytes.subarray(at, end), entropy, output);
    } else {
      makeRoom(output, limit, size);
      if (kind === 0) output.bytes.set(bytes.subarray(at, end), output.end);
      else output.bytes.fill(bytes[at]!, output.end, output.end + size);
      output.end += size;
    }
    at = end;
  }
  return output.bytes.subarray(prefix.length, output.end);
}
