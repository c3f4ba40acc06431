import type { Packing } from "../cf/packing.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import type { ItemConversion, SwapConversion, UnpackConversion } from "../zarr/codec-step.js";
import type { NumericType } from "../zarr/plan/codec-rules.js";
import {
  allocateItems,
  bytesOf,
  HIGH_WORD,
  isWide,
  LOW_WORD,
  swapToOrder,
  swapWords,
  viewOf,
  WORD,
  wordsOf,
} from "./item-reader.js";
import { openRows } from "./item-rows.js";
import type { KernelMemory } from "./kernel/wasm-memory.js";

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

/** Items at a time: 16 KiB of doubles, half of a first-level cache. */
const ROW_ITEMS = 2048;

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

function unpack(bytes: Uint8Array, conversion: UnpackConversion, memory: KernelMemory): Uint8Array {
  const { from, scale, offset, missing, isUnsigned } = conversion;
  const dataType = parseDataType(from);
  const itemSize = conversion.to === "<f4" ? 4 : 8;
  const unpacked = memory.allocate((bytes.length / dataType.itemSize) * itemSize);
  const packing = { missing, scale, offset: offset === 0 ? undefined : offset, isUnsigned };
  unpackInto(unpacked, itemSize, bytes, dataType, packing);
  return swapToOrder(unpacked, { kind: "f", itemSize, isBigEndian: false, name: conversion.to });
}

/** Packing of items. What is undefined is not done: adding 0 would change a negative zero. */
interface FloatPacking extends Pick<Packing, "missing" | "isUnsigned"> {
  readonly scale: number | undefined;
  readonly offset: number | undefined;
}

/**
 * Unpacks items to floats, by the arithmetic of numpy: each step, and the packing's numbers, are rounded to the target's type.
 * @param target As many floats as there are items, aligned; in this machine's byte order.
 * @param itemSize Bytes of one float: 4 or 8.
 * @param bytes Whole items; never changed.
 */
export function unpackInto(
  target: Uint8Array<ArrayBuffer>,
  itemSize: 4 | 8,
  bytes: Uint8Array,
  dataType: DataType,
  { missing, isUnsigned, scale, offset }: FloatPacking,
): void {
  const rows = openRows(bytes, dataType, {
    ...{ missing, scale: scale ?? 1, offset: offset ?? 0, isUnsigned },
    ...{ validMin: Number.NEGATIVE_INFINITY, validMax: Number.POSITIVE_INFINITY },
  });
  const count = target.length / itemSize;
  const row = new Float64Array(Math.min(ROW_ITEMS, count));
  for (let first = 0; first < count; first += ROW_ITEMS) {
    const length = Math.min(ROW_ITEMS, count - first);
    rows.read(row, first, length);
    const at = target.byteOffset + first * itemSize;
    if (itemSize === 4) scaleFloats(row, new Float32Array(target.buffer, at, length), scale, offset);
    else scaleDoubles(row, new Float64Array(target.buffer, at, length), scale, offset);
  }
}

/** As numpy computes with single floats: numbers that are not in the array are rounded, too. */
function scaleFloats(row: Float64Array, target: Float32Array, scale = 1, offset?: number): void {
  const factor = Math.fround(scale);
  for (let i = 0; i < target.length; i++) target[i] = Math.fround(row[i]!) * factor;
  if (offset === undefined) return;
  const summand = Math.fround(offset);
  for (let i = 0; i < target.length; i++) target[i]! += summand;
}

function scaleDoubles(row: Float64Array, target: Float64Array, scale = 1, offset?: number): void {
  for (let i = 0; i < target.length; i++) target[i] = row[i]! * scale;
  if (offset === undefined) return;
  for (let i = 0; i < target.length; i++) target[i]! += offset;
}
