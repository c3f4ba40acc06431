import type { CooperativeTask } from "../../event-loop/cooperative-task.js";
import { corrupt } from "../codec.js";
import { copyMatch } from "./block-decoders.js";

/*
 * Zstandard (RFC 8878) in JavaScript, for what zlib of Node.js 20 and numcodecs.js cannot do: dictionaries, frames that do not say their
 * size, and decoding in steps between which the event loop runs. Checksums of frames are not checked.
 */

/**
 * A table of entropy codes. Of a state of FSE, an entry has the symbol (8 bits), the number of bits to read (8) and what they are added to
 * (16). Of the next bits of a Huffman code it has the symbol, and the length of the code.
 */
interface CodeTable {
  readonly log: number;
  readonly entries: Uint32Array;
}

/** What blocks of a frame hand on to later ones. */
interface Entropy {
  huffman: CodeTable | undefined;
  /** Tables of literal lengths, offsets and match lengths. */
  readonly tables: (CodeTable | undefined)[];
  readonly repeats: Int32Array;
}

/** A dictionary in zstd's own format (RFC 8878, section 5). */
export interface ZstdDictionary extends Readonly<Entropy> {
  readonly content: Uint8Array;
}

const FRAME_MAGIC = 0xfd2fb528;
const DICTIONARY_MAGIC = 0xec30a437;
const MAX_BLOCK_BYTES = 128 * 1024;

/** Number of extra bits by code, and base value (RFC 8878, section 3.1.1.3.2.1.1). */
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

/** Tables of blocks that bring none (RFC 8878, section 3.1.1.3.2.2): -1 as a dot. */
const PREDEFINED = [
  { log: 6, counts: "43222222222221112222222223211111...." },
  { log: 5, counts: "111111222111111111111111....." },
  { log: 6, counts: "1432222221111111111111111111111111111111111111......." },
].map(({ log, counts }) =>
  createFseTable(
    log,
    Array.from(counts, (count) => (count === "." ? -1 : +count)),
  ),
);

function invalid(expected: string): Error {
  return corrupt(`zstd: expected ${expected}, received something else`);
}

/** Reads at most 25 bits that begin at a bit of `bytes`. What is outside of `bytes` counts as zeros. */
function bitsAt(bytes: Uint8Array, bit: number, count: number): number {
  const at = bit >> 3;
  const word = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
  return (word >>> (bit & 7)) & ((1 << count) - 1);
}

/** Bits of a stream that is read backwards, from a mark at its end. */
class BackwardBits {
  /** Place behind the next bits. */
  bit: number;

  constructor(
    private readonly bytes: Uint8Array,
    private readonly begin: number,
    end: number,
  ) {
    const last = bytes[end - 1] ?? 0;
    if (last === 0 || end <= begin) throw invalid("a mark at the end of a bit stream");
    this.bit = end * 8 - 8 + highestBit(last);
  }

  /** Reads at most 25 bits. */
  read(count: number): number {
    this.bit -= count;
    return bitsAt(this.bytes, this.bit, count);
  }

  assertEmpty(): void {
    if (this.bit !== this.begin * 8) throw invalid("codes that fill their stream");
  }
}

function highestBit(value: number): number {
  return 31 - Math.clz32(value);
}

/** Creates a table from counts of symbols; -1 stands for less than one. */
function createFseTable(log: number, counts: readonly number[]): CodeTable {
  const size = 1 << log;
  const entries = new Uint32Array(size);
  const next = Uint16Array.from(counts, (count) => Math.abs(count));
  let high = size;
  for (const [symbol, count] of counts.entries()) if (count < 0) entries[--high] = symbol;
  let place = 0;
  for (const [symbol, count] of counts.entries())
    for (let index = 0; index < count; index++) {
      entries[place] = symbol;
      do place = (place + (size >> 1) + (size >> 3) + 3) & (size - 1);
      while (place >= high);
    }
  for (let state = 0; state < size; state++) {
    const symbol = entries[state]!;
    const value = next[symbol]!++;
    const bits = log - highestBit(value);
    entries[state] = symbol | (bits << 8) | (((value << bits) - size) << 16);
  }
  return { log, entries };
}

/** Reads the description of a table (RFC 8878, section 4.1.1). @returns The table, and the place behind it. */
function readFseTable(bytes: Uint8Array, at: number, limit: { readonly log: number; readonly code: number }) {
  let bit = at * 8 + 4;
  const log = bitsAt(bytes, at * 8, 4) + 5;
  if (log > limit.log) throw invalid(`a table of at most ${limit.log} bits`);
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
    throw invalid("a table of entropy codes");
  return { table: createFseTable(log, counts), end };
}

/** Reads a Huffman tree (RFC 8878, section 4.2.1). @returns The table, and the place behind it. */
function readHuffmanTable(bytes: Uint8Array, at: number) {
  const header = bytes[at] ?? 0;
  const isPlain = header >= 128;
  const end = at + 1 + (isPlain ? (header - 126) >> 1 : header);
  if (end > bytes.length) throw invalid("a Huffman tree");
  const weights = isPlain
    ? Array.from({ length: header - 127 }, (_, index) => bitsAt(bytes, (at + 1) * 8 + (index ^ 1) * 4, 4))
    : readWeights(bytes, at + 1, end);
  const sum = weights.reduce((total, weight) => total + ((1 << weight) >> 1), 0);
  const log = highestBit(sum) + 1;
  const left = (1 << log) - sum;
  if (sum === 0 || log > 11 || (left & (left - 1)) !== 0 || weights.length > 255)
    throw invalid("a complete Huffman tree");
  weights.push(highestBit(left) + 1);
  const entries = new Uint32Array(1 << log);
  let place = 0;
  for (let weight = 1; weight <= log; weight++)
    for (const [symbol, each] of weights.entries())
      if (each === weight) {
        const codes = 1 << (weight - 1);
        entries.fill(((log + 1 - weight) << 8) | symbol, place, place + codes);
        place += codes;
      }
  return { table: { log, entries }, end };
}

/** Reads the weights of a Huffman tree that are coded by two states in turn. */
function readWeights(bytes: Uint8Array, at: number, end: number): number[] {
  const { table, end: begin } = readFseTable(bytes, at, { log: 6, code: 12 });
  const { log, entries } = table;
  const stream = new BackwardBits(bytes, begin, end);
  const weights: number[] = [];
  let now = entries[stream.read(log)]!;
  let other = entries[stream.read(log)]!;
  while (weights.length < 256) {
    weights.push(now & 0xff);
    const next = (now >>> 16) + stream.read((now >> 8) & 0xff);
    now = other;
    if (stream.bit < begin * 8) break;
    other = entries[next]!;
  }
  weights.push(now & 0xff);
  return weights;
}

function decodeHuffman(
  { log, entries }: CodeTable,
  bytes: Uint8Array,
  begin: number,
  end: number,
  target: Uint8Array,
): void {
  const stream = new BackwardBits(bytes, begin, end);
  for (let index = 0; index < target.length; index++) {
    const entry = entries[bitsAt(bytes, stream.bit - log, log)]!;
    target[index] = entry;
    stream.bit -= entry >> 8;
  }
  stream.assertEmpty();
}

/** Reads the literals of a block (RFC 8878, section 3.1.1.3.1). @returns Them, and the place behind them. */
function readLiterals(bytes: Uint8Array, entropy: Entropy) {
  const kind = bytes[0]! & 3;
  const format = (bytes[0]! >> 2) & 3;
  const isCoded = kind >= 2;
  let at = isCoded ? [3, 3, 4, 5][format]! : [1, 2, 1, 3][format]!;
  const width = isCoded ? [10, 10, 14, 18][format]! : [5, 12, 5, 20][format]!;
  const size = bitsAt(bytes, width === 5 ? 3 : 4, width);
  const end = at + (isCoded ? bitsAt(bytes, 4 + width, width) : kind === 1 ? 1 : size);
  if (size > MAX_BLOCK_BYTES || end > bytes.length) throw invalid("literals");
  if (kind === 0) return { literals: bytes.subarray(at, end), end };
  const literals = new Uint8Array(size);
  if (kind === 1) return { literals: literals.fill(bytes[at]!), end };
  if (kind === 2) {
    const tree = readHuffmanTable(bytes, at);
    entropy.huffman = tree.table;
    at = tree.end;
  }
  const { huffman } = entropy;
  if (huffman === undefined) throw invalid("a Huffman tree before literals");
  if (format === 0) decodeHuffman(huffman, bytes, at, end, literals);
  else {
    const part = (size + 3) >> 2;
    let from = at + 6;
    for (let index = 0; index < 4; index++) {
      const to = index === 3 ? end : from + bitsAt(bytes, (at + index * 2) * 8, 16);
      if (to > end || part * 3 > size) throw invalid("four streams of literals");
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
      const entries = Uint32Array.from(bytes.subarray(at, ++at));
      if (!(entries[0]! <= limit.code)) throw invalid("a code of sequences");
      entropy.tables[index] = { log: 0, entries };
    } else if (mode === 2) {
      const { table, end } = readFseTable(bytes, at, limit);
      entropy.tables[index] = table;
      at = end;
    } else if (entropy.tables[index] === undefined) throw invalid("a table before it is used again");
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
  if (needed > limit) throw invalid(`at most ${limit} bytes`);
  if (needed <= output.bytes.length) return;
  const larger = new Uint8Array(Math.min(limit, Math.max(needed, output.bytes.length * 2)));
  larger.set(output.bytes.subarray(0, output.end));
  output.bytes = larger;
}

/** Decodes a compressed block into `output`, which has room for it. @param bytes The block. */
function decodeBlock(bytes: Uint8Array, entropy: Entropy, output: Output): void {
  const { literals, end } = readLiterals(bytes, entropy);
  const [first = 0, second = 0, third = 0] = bytes.subarray(end, end + 3);
  const isShort = first < 128;
  const count = isShort
    ? first
    : first < 255
      ? ((first - 128) << 8) + second
      : second + (third << 8) + 0x7f00;
  let used = 0;
  if (count > 0) {
    const at = readTables(bytes, end + (isShort ? 1 : first < 255 ? 2 : 3), entropy);
    used = decodeSequences(new BackwardBits(bytes, at, bytes.length), count, entropy, literals, output);
  }
  output.bytes.set(literals.subarray(used), output.end);
  output.end += literals.length - used;
}

/** Carries out sequences (RFC 8878, section 3.1.1.4). @returns The number of literals that they used. */
function decodeSequences(
  stream: BackwardBits,
  count: number,
  { tables, repeats }: Entropy,
  literals: Uint8Array,
  output: Output,
): number {
  const [ofLiterals, ofOffsets, ofMatches] = tables as CodeTable[] as [CodeTable, CodeTable, CodeTable];
  const target = output.bytes;
  const limit = Math.min(target.length, output.end + MAX_BLOCK_BYTES);
  let { end } = output;
  let used = 0;
  let literal = ofLiterals.entries[stream.read(ofLiterals.log)]!;
  let distance = ofOffsets.entries[stream.read(ofOffsets.log)]!;
  let match = ofMatches.entries[stream.read(ofMatches.log)]!;
  for (let left = count; left > 0; left--) {
    const offsetCode = distance & 0xff;
    const high = offsetCode > 16 ? stream.read(offsetCode - 16) << 16 : 0;
    const value = (1 << offsetCode) | high | stream.read(offsetCode > 16 ? 16 : offsetCode);
    const length = MATCH_BASES[match & 0xff]! + stream.read(MATCH_BITS[match & 0xff]!);
    const fresh = LITERAL_BASES[literal & 0xff]! + stream.read(LITERAL_BITS[literal & 0xff]!);
    if (left > 1) {
      literal = ofLiterals.entries[(literal >>> 16) + stream.read((literal >> 8) & 0xff)]!;
      match = ofMatches.entries[(match >>> 16) + stream.read((match >> 8) & 0xff)]!;
      distance = ofOffsets.entries[(distance >>> 16) + stream.read((distance >> 8) & 0xff)]!;
    }
    const offset = offsetOf(value, fresh === 0, repeats);
    const stop = end + fresh + length;
    // Not a number if its code is of more than 2 GiB.
    const isBefore = offset >= 1 && offset <= stop - length;
    if (used + fresh > literals.length || stop > limit || !isBefore)
      throw invalid("sequences of what was decoded before");
    for (const from = used - end; end < stop - length; end++) target[end] = literals[end + from]!;
    used += fresh;
    copyMatch(target, end, offset, length);
    end = stop;
  }
  stream.assertEmpty();
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
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 8 || view.getUint32(0, true) !== DICTIONARY_MAGIC) throw invalid("a dictionary");
  const huffman = readHuffmanTable(bytes, 8);
  const offsets = readFseTable(bytes, huffman.end, LIMITS[1]);
  const matches = readFseTable(bytes, offsets.end, LIMITS[2]);
  const literals = readFseTable(bytes, matches.end, LIMITS[0]);
  const { end } = literals;
  if (end + 12 > bytes.length) throw invalid("a dictionary");
  const repeats = Int32Array.of(0, 4, 8).map((at) => view.getInt32(end + at, true));
  const tables = [literals.table, offsets.table, matches.table];
  return { huffman: huffman.table, tables, repeats, content: bytes.subarray(end + 12) };
}

/**
 * Decodes one frame in steps.
 * @param maxByteLength Bound of the decoded bytes.
 * @param likely Room at first. Default: thrice the encoded bytes.
 * @returns A view of a longer buffer.
 * @throws ZpublishError `corrupt-chunk`
 */
export function* decodeZstdSteps(
  bytes: Uint8Array,
  maxByteLength: number,
  dictionary?: ZstdDictionary,
  likely: number = Math.min(maxByteLength, bytes.length * 3),
): CooperativeTask<Uint8Array<ArrayBuffer>> {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (bytes.length < 9 || view.getUint32(0, true) !== FRAME_MAGIC) throw invalid("a frame");
  const descriptor = bytes[4]!;
  const isSingle = (descriptor & 0x20) !== 0;
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6]!;
  let at = 5 + (isSingle ? 0 : 1) + [0, 1, 2, 4][descriptor & 3]! + sizeBytes;
  const { content = new Uint8Array(0), huffman, tables = [], repeats = [1, 4, 8] } = dictionary ?? {};
  const entropy: Entropy = { huffman, tables: [...tables], repeats: Int32Array.from(repeats) };
  const limit = content.length + maxByteLength;
  const output: Output = { bytes: new Uint8Array(content.length + likely), end: content.length };
  output.bytes.set(content);
  for (let isLast = false; !isLast; ) {
    yield;
    const header = bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16);
    const size = header >> 3;
    const kind = (header >> 1) & 3;
    isLast = (header & 1) === 1;
    at += 3;
    const end = at + (kind === 1 ? 1 : size);
    if (end > bytes.length || size > MAX_BLOCK_BYTES || kind === 3) throw invalid("whole blocks");
    makeRoom(output, limit, kind === 2 ? Math.min(MAX_BLOCK_BYTES, limit - output.end) : size);
    if (kind === 2) decodeBlock(bytes.subarray(at, end), entropy, output);
    else {
      if (kind === 0) output.bytes.set(bytes.subarray(at, end), output.end);
      else output.bytes.fill(bytes[at]!, output.end, output.end + size);
      output.end += size;
    }
    at = end;
  }
  return output.bytes.subarray(content.length, output.end);
}
