import { parseDataType } from "../model/data-type.js";
import type { ItemConversion, SwapConversion, UnpackConversion } from "../zarr/codec-step.js";
import type { NumericType } from "../zarr/plan/codec-rules.js";
import {
  allocateItems,
  bytesOf,
  HIGH_WORD,
  isWide,
  LOW_WORD,
  swapWords,
  viewOf,
  WORD,
  wordsOf,
} from "./item-reader.js";
import { decodeNumbers } from "./items/decode-numbers.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";

/**
 * Converts items from one type to another as typed arrays do: integers wrap around, floats lose their fraction or round.
 * The engine's own conversions are loops per pair of types; 64-bit integers are converted by their words.
 * @param bytes In this machine's byte order; never changed.
 * @param memory For the result. Default: memory of its own.
 * @returns In this machine's byte order; `bytes` itself if both types are the same.
 */
export function convertItems(
  bytes: Uint8Array,
  from: NumericType,
  to: NumericType,
  memory?: KernelMemory,
): Uint8Array {
  const isSame = from.itemSize === to.itemSize && (from.kind === "f") === (to.kind === "f");
  if (isSame) return bytes;
  if (isWide(to)) return widen(bytes, from, memory);
  const isNarrowed = isWide(from);
  const low = isNarrowed ? lowWords(bytes, memory) : bytes;
  if (isNarrowed && to.itemSize === 4) return low;
  const count = bytes.length / from.itemSize;
  const converted = allocateItems(count, to, memory);
  converted.set(viewOf(low, isNarrowed ? WORD : from));
  return bytesOf(converted);
}

function widen(bytes: Uint8Array, from: NumericType, memory: KernelMemory | undefined): Uint8Array {
  const items = wordsOf(convertItems(bytes, from, WORD, memory));
  const words = allocateItems(2 * items.length, WORD, memory);
  // Constants of another module are looked up at every use.
  const [atLow, atHigh] = [LOW_WORD, HIGH_WORD];
  const signMask = from.kind === "i" ? -1 : 0;
  for (let i = 0; i < items.length; i++) {
    const item = items[i]!;
    words[2 * i + atLow] = item;
    words[2 * i + atHigh] = (item >> 31) & signMask;
  }
  return bytesOf(words);
}

function lowWords(bytes: Uint8Array, memory: KernelMemory | undefined): Uint8Array {
  const words = wordsOf(bytes);
  const low = allocateItems(words.length / 2, WORD, memory);
  const atLow = LOW_WORD;
  for (let i = 0; i < low.length; i++) low[i] = words[2 * i + atLow]!;
  return bytesOf(low);
}

/**
 * Converts items of a part to those of the joined array.
 * @param bytes Whole items; never changed.
 * @param memory For the result.
 */
export function convertPiece(
  bytes: Uint8Array,
  conversion: ItemConversion,
  memory: KernelMemory,
): Uint8Array {
  switch (conversion.kind) {
    case "swap":
      return swap(bytes, conversion, memory);
    case "unpack":
      return unpack(bytes, conversion, memory);
  }
}

function swap(bytes: Uint8Array, { wordSize }: SwapConversion, memory: KernelMemory): Uint8Array {
  const swapped = memory.allocate(bytes.length);
  swapped.set(bytes);
  swapWords(swapped, wordSize);
  return swapped;
}

function unpack(bytes: Uint8Array, { from, decoding }: UnpackConversion, memory: KernelMemory): Uint8Array {
  const dataType = parseDataType(from);
  const unpacked = memory.allocate((bytes.length / dataType.itemSize) * decoding.to.itemSize);
  decodeNumbers(bytes, dataType, decoding, unpacked);
  return unpacked;
}
