import { type Codec, corrupt } from "../codec.js";
import { IS_LITTLE_ENDIAN, swapWords } from "../item-reader.js";
import { type KernelMemory, OWN_MEMORY } from "../kernel/kernel-memory.js";

/** Bits of each number that are stored. */
interface Field {
  readonly first: number;
  readonly width: number;
  readonly isSigned: boolean;
}

/**
 * `packbits` of Zarr v3's registry: `bits` bits of each number, or of each half of a complex one, from bit `firstBit` on. They follow
 * each other from the lowest bit of the first byte on. Decoding puts them back, and extends the sign of signed integers.
 */
export const v3Packbits: Codec = {
  decode(bytes, { codec, decodedByteLength }, memory = OWN_MEMORY) {
    const size = Number(codec.componentSize);
    const field = {
      first: Number(codec.firstBit),
      width: Number(codec.bits),
      isSigned: codec.isSigned === true,
    };
    const count = (decodedByteLength as number) / size;
    const packed = bitsOf(bytes, count * field.width, codec.padding as string, memory);
    const decoded = memory.allocate(count * size);
    const { buffer, byteOffset } = decoded;
    if (size === 8) unpackWide(packed, new BigUint64Array(buffer, byteOffset, count), field);
    else if (size === 4) unpack(packed, new Int32Array(buffer, byteOffset, count), field);
    else if (size === 2) unpack(packed, new Int16Array(buffer, byteOffset, count), field);
    else unpack(packed, decoded, field);
    if (!IS_LITTLE_ENDIAN) swapWords(decoded, size);
    return decoded;
  },
};

/** Zeros after the bits, for reading beyond the last ones. */
const OVERHANG = 9;

/** Returns the bytes that hold the bits, and zeros. @param padding Which byte says how many bits of the last one are none. */
function bitsOf(bytes: Uint8Array, bitCount: number, padding: string, memory: KernelMemory): Uint8Array {
  const length = Math.ceil(bitCount / 8);
  const unused = 8 * length - bitCount;
  const expected = length + (padding === "none" ? 0 : 1);
  if (bytes.length !== expected) {
    throw corrupt(`packbits: expected ${expected} bytes, received ${bytes.length}`);
  }
  const start = padding === "first_byte" ? 1 : 0;
  const received = padding === "none" ? unused : bytes[start === 1 ? 0 : length];
  if (received !== unused) throw corrupt(`packbits: expected ${unused} unused bits, received ${received}`);
  const packed = memory.allocate(length + OVERHANG);
  packed.set(bytes.subarray(start, start + length));
  packed.fill(0, length);
  return packed;
}

/** Reads 32 bits. @param bit Index of the first one in its byte. */
function wordAt(packed: Uint8Array, byte: number, bit: number): number {
  const word =
    packed[byte]! | (packed[byte + 1]! << 8) | (packed[byte + 2]! << 16) | (packed[byte + 3]! << 24);
  return bit === 0 ? word : (word >>> bit) | (packed[byte + 4]! << (32 - bit));
}

function unpack(
  packed: Uint8Array,
  decoded: Uint8Array | Int16Array | Int32Array,
  { first, width, isSigned }: Field,
): void {
  const above = 32 - width;
  for (let i = 0, byte = 0, bit = 0; i < decoded.length; i++) {
    const word = wordAt(packed, byte, bit) << above;
    decoded[i] = (isSigned ? word >> above : word >>> above) << first;
    bit += width;
    byte += bit >>> 3;
    bit &= 7;
  }
}

/** The same for 64 bits, slowly: who stores some of so many? */
function unpackWide(packed: Uint8Array, decoded: BigUint64Array, { first, width, isSigned }: Field): void {
  const narrow = isSigned ? BigInt.asIntN : BigInt.asUintN;
  for (let i = 0, byte = 0, bit = 0; i < decoded.length; i++) {
    const words = [wordAt(packed, byte, bit), wordAt(packed, byte + 4, bit)];
    const [low, high] = words.map((word) => BigInt(word >>> 0)) as [bigint, bigint];
    decoded[i] = BigInt.asUintN(64, narrow(width, low | (high << 32n)) << BigInt(first));
    bit += width;
    byte += bit >>> 3;
    bit &= 7;
  }
}
