import { type Codec, checkDecodedLength, corrupt } from "../codec.js";
import { currentKernel } from "../kernel/kernel.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/kernel-memory.js";
import { copyMatch } from "../plain/block-decoders.js";
import { zstd } from "../zstd.js";

/**
 * Integers of HDF5 of which only `precision` bits count, from `offset` on: they are moved to the lower end, and get their sign
 * (`signed`) in all bits. `size` is that of an item in bytes, `endian` its byte order, `little` or `big`.
 */
export const hdf5Bits: Codec = {
  decode(bytes, { codec }) {
    const { size, precision, offset, signed, endian } = codec;
    const itemSize = Number(size);
    if (bytes.length % itemSize !== 0) {
      throw corrupt(`hdf5-bits: expected items of ${itemSize} bytes, received ${bytes.length} bytes`);
    }
    const target = new DataView(new ArrayBuffer(bytes.length));
    const isLittle = endian === "little";
    const unused = BigInt(64 - Number(precision));
    // Items are moved at the upper end of 64 bits.
    const place = 8 - itemSize;
    const item = new DataView(new ArrayBuffer(8));
    for (let at = 0; at < bytes.length; at += itemSize) {
      for (let byte = 0; byte < itemSize; byte++)
        item.setUint8(isLittle ? place + byte : byte, bytes[at + byte]!);
      const upper =
        item.getBigUint64(0, isLittle) << BigInt(8 * itemSize - Number(precision) - Number(offset));
      const value = (signed === true ? BigInt.asIntN(64, upper) : BigInt.asUintN(64, upper)) >> unused;
      item.setBigInt64(0, value, isLittle);
      for (let byte = 0; byte < itemSize; byte++)
        target.setUint8(at + byte, item.getUint8(isLittle ? byte : place + byte));
      item.setBigInt64(0, 0n);
    }
    return new Uint8Array(target.buffer);
  },
};

/** LZ4 as HDF5's filter 32004 frames it: blocks with their lengths before them; those that did not get shorter are copies. */
export const hdf5Lz4: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    const { byteLength, blockBytes } = framedHeader("hdf5-lz4", bytes);
    checkDecodedLength("hdf5-lz4", byteLength, step);
    if (blockBytes === 0 && byteLength > 0)
      throw corrupt("hdf5-lz4: expected blocks of some bytes, received 0");
    const decoded = memory.allocate(byteLength);
    const kernel = currentKernel();
    let from = HEADER_BYTES;
    for (let to = 0; to < byteLength; ) {
      const block = framedBlock("hdf5-lz4", bytes, from);
      const target = decoded.subarray(to, Math.min(to + blockBytes, byteLength));
      if (block.length === target.length) target.set(block);
      else if (!kernel.decodeLz4(block, target)) {
        throw corrupt(`hdf5-lz4: the block at byte ${from} does not decode to ${target.length} bytes`);
      }
      from += LENGTH_BYTES + block.length;
      to += target.length;
    }
    return decoded;
  },
};

/** Reads the header that both LZ4 and bitshuffle have in HDF5. @throws ZpublishError `corrupt-chunk` if it is cut off. */
function framedHeader(
  id: string,
  bytes: Uint8Array,
): { readonly byteLength: number; readonly blockBytes: number } {
  if (bytes.length < HEADER_BYTES) {
    throw corrupt(`${id}: expected a header of ${HEADER_BYTES} bytes, received ${bytes.length}`);
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return { byteLength: view.getUint32(0) * 2 ** 32 + view.getUint32(4), blockBytes: view.getUint32(8) };
}

/** Returns a block that has its length (uint32, big-endian) before it. @throws ZpublishError `corrupt-chunk` if it is cut off. */
function framedBlock(id: string, bytes: Uint8Array, at: number): Uint8Array {
  const begin = at + LENGTH_BYTES;
  const length =
    begin <= bytes.length
      ? new DataView(bytes.buffer, bytes.byteOffset).getUint32(at)
      : Number.POSITIVE_INFINITY;
  if (begin + length > bytes.length) {
    throw corrupt(`${id}: expected a whole block at byte ${at}, received a chunk of ${bytes.length} bytes`);
  }
  return bytes.subarray(begin, begin + length);
}

const HEADER_BYTES = 12;
const LENGTH_BYTES = 4;
/** Items are shuffled in multiples of it; what is behind the last multiple stays as it is. */
const ITEM_MULTIPLE = 8;
/** `BSHUF_TARGET_BLOCK_SIZE_B` and `BSHUF_MIN_RECOMMEND_BLOCK`. */
const DEFAULT_BLOCK_BYTES = 8192;
const MIN_DEFAULT_ITEMS = 128;

/**
 * Bitshuffle as HDF5's filter 32008 writes it: blocks of shuffled bits, each compressed by itself with `cname` (`lz4`, `zstd`, or
 * null for none), in items of `elementsize` bytes. Uncompressed blocks have `blocksize` items; 0 is the default.
 */
export const hdf5Bitshuffle: Codec = {
  async decode(bytes, step, memory = OWN_MEMORY) {
    const itemSize = Number(step.codec.elementsize);
    const { cname } = step.codec;
    const isFramed = cname !== null;
    const { byteLength, blockBytes } = isFramed
      ? framedHeader("hdf5-bitshuffle", bytes)
      : {
          byteLength: bytes.length,
          blockBytes: blockItems(Number(step.codec.blocksize), itemSize) * itemSize,
        };
    checkDecodedLength("hdf5-bitshuffle", byteLength, step);
    const groupBytes = itemSize * ITEM_MULTIPLE;
    if (byteLength % itemSize !== 0 || blockBytes % groupBytes !== 0 || blockBytes === 0) {
      throw corrupt(
        `hdf5-bitshuffle: expected whole items of ${itemSize} bytes in blocks of a multiple of ${groupBytes}, received ${byteLength} bytes in blocks of ${blockBytes}`,
      );
    }
    const decoded = memory.allocate(byteLength);
    const shuffledEnd = byteLength - (byteLength % groupBytes);
    const scratch =
      isFramed && cname !== "zstd" ? memory.allocate(Math.min(blockBytes, shuffledEnd)) : undefined;
    let from = isFramed ? HEADER_BYTES : 0;
    for (let to = 0; to < shuffledEnd; ) {
      const target = decoded.subarray(to, Math.min(to + blockBytes, shuffledEnd));
      const block = isFramed
        ? framedBlock("hdf5-bitshuffle", bytes, from)
        : bytes.subarray(from, from + target.length);
      const shuffled = !isFramed
        ? block
        : scratch !== undefined
          ? decodeLz4(block, scratch.subarray(0, target.length), from)
          : await decodeZstd(block, target.length, memory);
      currentKernel().unshuffleBits(shuffled, target, itemSize);
      from += (isFramed ? LENGTH_BYTES : 0) + block.length;
      to += target.length;
    }
    const rest = bytes.subarray(from);
    if (rest.length !== byteLength - shuffledEnd) {
      throw corrupt(
        `hdf5-bitshuffle: expected ${byteLength - shuffledEnd} bytes behind the blocks, received ${rest.length}`,
      );
    }
    decoded.set(rest, shuffledEnd);
    return decoded;
  },
};

/** Returns the items of an uncompressed block (`bshuf_default_block_size`). */
function blockItems(blockSize: number, itemSize: number): number {
  if (blockSize > 0) return blockSize;
  const whole = Math.floor(DEFAULT_BLOCK_BYTES / itemSize / ITEM_MULTIPLE) * ITEM_MULTIPLE;
  return Math.max(whole, MIN_DEFAULT_ITEMS);
}

function decodeLz4(block: Uint8Array, target: Uint8Array, at: number): Uint8Array {
  if (currentKernel().decodeLz4(block, target)) return target;
  throw corrupt(`hdf5-bitshuffle: the block at byte ${at} does not decode to ${target.length} bytes`);
}

async function decodeZstd(block: Uint8Array, byteLength: number, memory: KernelMemory): Promise<Uint8Array> {
  const step = {
    codec: { id: "zstd" },
    decodedByteLength: byteLength,
    maxDecodedByteLength: byteLength,
    itemSize: 1,
  };
  const decoded = await zstd.decode(block, step, memory);
  checkDecodedLength("hdf5-bitshuffle", decoded.length, step);
  return decoded;
}

/** Shuffle of HDF5, which leaves what is behind the last whole item as it is: a checksum, in files of netCDF-4. */
export const hdf5Shuffle: Codec = {
  decode(bytes, { codec }, memory = OWN_MEMORY) {
    const target = memory.allocate(bytes.length);
    currentKernel().unshuffleBytes(bytes, target, Number(codec.elementsize));
    return target;
  },
};

/** Control bytes below it are the number of literals less one; others begin a match. */
const MAX_LITERALS = 32;
/** Value of the upper three bits of a match whose length continues in the next byte. */
const LONG_MATCH = 7;

/** `lzf` of h5py: one LibLZF block, of which only the dataset knows how long it is decoded. */
export const lzf: Codec = {
  decode(bytes, step, memory = OWN_MEMORY) {
    const byteLength = measureLzf(bytes);
    if (byteLength === undefined) throw corrupt("lzf: expected a whole block, received one that ends early");
    checkDecodedLength("lzf", byteLength, step);
    const decoded = memory.allocate(byteLength);
    if (!decodeLzf(bytes, decoded)) throw corrupt("lzf: a match reaches before the beginning of the block");
    return decoded;
  },
};

/** Returns the length of a block when decoded; undefined if it ends within a literal or a match. */
function measureLzf(source: Uint8Array): number | undefined {
  let byteLength = 0;
  let from = 0;
  while (from < source.length) {
    const control = source[from++]!;
    if (control < MAX_LITERALS) {
      from += control + 1;
      byteLength += control + 1;
    } else {
      byteLength += (control >>> 5) + 2;
      if (control >>> 5 === LONG_MATCH) byteLength += source[from++] ?? 0;
      from++;
    }
  }
  return from === source.length ? byteLength : undefined;
}

/** Decodes a measured block. @returns False if a match reaches before the block. */
function decodeLzf(source: Uint8Array, target: Uint8Array): boolean {
  let from = 0;
  let to = 0;
  while (from < source.length) {
    const control = source[from++]!;
    if (control < MAX_LITERALS) {
      for (const end = from + control + 1; from < end; ) target[to++] = source[from++]!;
      continue;
    }
    let length = (control >>> 5) + 2;
    if (control >>> 5 === LONG_MATCH) length += source[from++]!;
    const distance = ((control & 31) << 8) + source[from++]! + 1;
    if (distance > to) return false;
    copyMatch(target, to, distance, length);
    to += length;
  }
  return true;
}

const SPACE = 0x20;
const BYTES_PER_CHARACTER = 4;

/**
 * Strings of a fixed length as HDF5 pads them. Decoding clears what is behind their end, as numpy has them: a program that writes
 * strings that end with a null character may leave anything behind it. Strings in UTF-8 become numpy's `<U`: a character has four
 * bytes, and bytes that are no UTF-8 become U+FFFD.
 */
export const hdf5Text: Codec = {
  decode(bytes, { codec }) {
    const size = Number(codec.itemSize);
    const endOf = ENDS[String(codec.padding)]!;
    return codec.charset === "utf-8" ? decodeUtf8(bytes, size, endOf) : clearEnds(bytes, size, endOf);
  },
};

/** Returns the length of a string without what follows it. */
type EndOf = (text: Uint8Array) => number;

function clearEnds(bytes: Uint8Array, size: number, endOf: EndOf): Uint8Array {
  const texts = Uint8Array.from(bytes);
  for (let start = 0; start < texts.length; start += size) {
    const text = texts.subarray(start, start + size);
    text.fill(0, endOf(text));
  }
  return texts;
}

function decodeUtf8(bytes: Uint8Array, size: number, endOf: EndOf): Uint8Array {
  const decoded = new Uint8Array(bytes.length * BYTES_PER_CHARACTER);
  const view = new DataView(decoded.buffer);
  const buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
  for (let start = 0; start < bytes.length; start += size) {
    const end = start + endOf(bytes.subarray(start, start + size));
    let at = start * BYTES_PER_CHARACTER;
    // Each character takes at least one byte of the file, so an item has room for all.
    for (const character of buffer.toString("utf8", start, end)) {
      view.setUint32(at, character.codePointAt(0)!, true);
      at += BYTES_PER_CHARACTER;
    }
  }
  return decoded;
}

/** Ends by padding. The zeros of null-padded strings are those of numpy. */
const ENDS: Readonly<Record<string, EndOf>> = {
  "null-padded": (text) => text.length,
  "null-terminated": endOfTerminated,
  "space-padded": endOfSpaced,
};

function endOfSpaced(text: Uint8Array): number {
  let end = text.length;
  while (end > 0 && text[end - 1] === SPACE) end--;
  return end;
}

function endOfTerminated(text: Uint8Array): number {
  const end = text.indexOf(0);
  return end < 0 ? text.length : end;
}
