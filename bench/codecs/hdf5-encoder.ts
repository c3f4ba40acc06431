import { deflateSync } from "node:zlib";
import { fletcher32 } from "../../src/codec/checksums.js";
import { currentKernel } from "../../src/codec/kernel/kernel.js";
import { zstd } from "../../src/codec/zstd.js";
import type { CodecSpec } from "../../src/zarr/codec-step.js";

/** Farthest match of LZF, and its longest. */
const LZF_WINDOW = 8192;
const LZF_MATCH = 264;

/** Encodes a chunk with a codec that is only decoded by the server; undefined if it is none of HDF5's. */
export async function encodeHdf5(bytes: Uint8Array, codec: CodecSpec): Promise<Uint8Array | undefined> {
  switch (codec.id) {
    case "lzf":
      return encodeLzf(bytes);
    case "hdf5-shuffle": {
      const target = new Uint8Array(bytes.length);
      currentKernel().shuffleBytes(bytes, target, Number(codec.elementsize));
      return target;
    }
    case "hdf5-fletcher32":
      return Buffer.concat([bytes, uint32(fletcher32(bytes), true)]);
    case "hdf5-lz4":
      return Buffer.concat([
        header(bytes.length, 4096),
        ...blocksOf(bytes, 4096).map((block) => framed(shorter(encodeLz4(block), block))),
      ]);
    case "hdf5-bitshuffle":
      return encodeBitshuffle(bytes, codec);
    // HDF5 undoes its own filters as any others.
    case "hdf5-filters":
      return deflateSync(bytes);
    case "pad":
      return bytes.subarray(0, Number(codec.byteLength));
    case "repack":
      return withPadding(bytes, codec);
    // All bytes are good ones.
    case "hdf5-bits":
    case "hdf5-text":
      return bytes;
    default:
      return undefined;
  }
}

/** Bytes between the pieces of an item, which decoding must leave out. */
const PADDING = 0xee;

function withPadding(bytes: Uint8Array, { itemSize, pieces }: CodecSpec): Uint8Array {
  const places = (pieces as readonly (readonly [number, number, number])[]).flatMap(
    ([offset, byteLength, reversed]) =>
      Array.from({ length: byteLength }, (_, i) => offset + i - 2 * (i % reversed) + reversed - 1),
  );
  const padded = new Uint8Array((bytes.length / places.length) * Number(itemSize)).fill(PADDING);
  for (const [at, byte] of bytes.entries()) {
    const item = Math.floor(at / places.length);
    padded[item * Number(itemSize) + (places[at % places.length] as number)] = byte;
  }
  return padded;
}

async function encodeBitshuffle(bytes: Uint8Array, { elementsize, blocksize, cname }: CodecSpec) {
  const itemSize = Number(elementsize);
  const blockBytes = Number(blocksize) * itemSize;
  const end = bytes.length - (bytes.length % (8 * itemSize));
  const parts: Uint8Array[] = cname === null ? [] : [header(bytes.length, blockBytes)];
  for (const block of blocksOf(bytes.subarray(0, end), blockBytes)) {
    const shuffled = new Uint8Array(block.length);
    currentKernel().shuffleBits(block, shuffled, itemSize);
    if (cname === null) parts.push(shuffled);
    else if (cname === "lz4") parts.push(framed(encodeLz4(shuffled)));
    else {
      const step = {
        codec: { id: "zstd", level: 1 },
        decodedByteLength: block.length,
        maxDecodedByteLength: block.length,
        itemSize: 1,
      };
      parts.push(framed((await zstd.encode?.(shuffled, step)) ?? shuffled));
    }
  }
  return Buffer.concat([...parts, bytes.subarray(end)]);
}

function blocksOf(bytes: Uint8Array, byteLength: number): Uint8Array[] {
  const count = Math.ceil(bytes.length / byteLength);
  return Array.from({ length: count }, (_, i) => bytes.subarray(i * byteLength, (i + 1) * byteLength));
}

function encodeLz4(bytes: Uint8Array): Uint8Array {
  const target = new Uint8Array(2 * bytes.length + 64);
  return target.subarray(0, currentKernel().encodeLz4(bytes, target, 1));
}

function shorter(a: Uint8Array, b: Uint8Array): Uint8Array {
  return a.length < b.length ? a : b;
}

function header(byteLength: number, blockBytes: number): Uint8Array {
  return Buffer.concat([uint32(0, false), uint32(byteLength, false), uint32(blockBytes, false)]);
}

function framed(block: Uint8Array): Uint8Array {
  return Buffer.concat([uint32(block.length, false), block]);
}

function uint32(value: number, isLittle: boolean): Uint8Array {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, value, isLittle);
  return new Uint8Array(view.buffer);
}

/** Finds matches by the last place of each three bytes. */
function encodeLzf(bytes: Uint8Array): Uint8Array {
  const encoded: number[] = [];
  const places = new Map<number, number>();
  let literals: number[] = [];
  function flush(): void {
    if (literals.length > 0) encoded.push(literals.length - 1, ...literals);
    literals = [];
  }
  for (let at = 0; at < bytes.length; ) {
    const key = (bytes[at]! << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    const from = places.get(key);
    places.set(key, at);
    let length = 0;
    if (from !== undefined && at - from <= LZF_WINDOW) {
      while (
        length < LZF_MATCH &&
        at + length < bytes.length &&
        bytes[from + length] === bytes[at + length]
      ) {
        length++;
      }
    }
    if (length < 3) {
      literals.push(bytes[at++]!);
      if (literals.length === 32) flush();
      continue;
    }
    flush();
    const distance = at - from! - 1;
    const high = distance >>> 8;
    if (length - 2 < 7) encoded.push(((length - 2) << 5) | high);
    else encoded.push((7 << 5) | high, length - 9);
    encoded.push(distance & 255);
    at += length;
  }
  flush();
  return Uint8Array.from(encoded);
}
