import { ZpublishError } from "../errors.js";
import { parseDataType } from "../model/data-type.js";
import type {
  ItemConversion,
  SwapConversion,
  UnpackConversion,
  WidenConversion,
} from "../zarr/codec-step.js";
import { type NumericType, parseNumericType } from "../zarr/plan/codec-rules.js";
import { convertItems } from "./convert-items.js";
import { openRows } from "./item-rows.js";
import type { KernelMemory } from "./kernel/kernel-memory.js";
import { copyNativeBytes, swapToOrder } from "./numeric-view.js";

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
    case "widen":
      return widen(bytes, conversion, memory);
    case "unpack":
      return unpack(bytes, conversion, memory);
  }
}

function swap(bytes: Uint8Array, { wordSize }: SwapConversion, memory: KernelMemory): Uint8Array {
  const swapped = memory.allocate(bytes.length);
  swapped.set(bytes);
  const buffer = Buffer.from(swapped.buffer, swapped.byteOffset, swapped.length);
  if (wordSize === 2) buffer.swap16();
  else if (wordSize === 4) buffer.swap32();
  else buffer.swap64();
  return swapped;
}

function widen(bytes: Uint8Array, conversion: WidenConversion, memory: KernelMemory): Uint8Array {
  const [from, to] = [numericType(conversion.from), numericType(conversion.to)];
  const widened = convertItems(copyNativeBytes(bytes, from, memory), from, to, memory);
  return swapToOrder(widened, to);
}

function numericType(text: string): NumericType {
  const type = parseNumericType(text);
  if (type !== undefined) return type;
  throw new ZpublishError("codec-failed", `expected a type of integers, received ${text}`);
}

function unpack(bytes: Uint8Array, conversion: UnpackConversion, memory: KernelMemory): Uint8Array {
  const { from, scale, offset, missing } = conversion;
  const dataType = parseDataType(from);
  const rows = openRows(bytes, dataType, {
    ...{ missing, scale, offset, isUnsigned: undefined },
    ...{ validMin: Number.NEGATIVE_INFINITY, validMax: Number.POSITIVE_INFINITY },
  });
  const count = bytes.length / dataType.itemSize;
  const itemSize = conversion.to === "<f4" ? 4 : 8;
  const unpacked = memory.allocate(count * itemSize);
  const { buffer, byteOffset } = unpacked;
  const row = new Float64Array(Math.min(ROW_ITEMS, count));
  for (let first = 0; first < count; first += ROW_ITEMS) {
    const length = Math.min(ROW_ITEMS, count - first);
    rows.read(row, first, length);
    const at = byteOffset + first * itemSize;
    if (itemSize === 4) scaleFloats(row, new Float32Array(buffer, at, length), scale, offset);
    else scaleDoubles(row, new Float64Array(buffer, at, length), scale, offset);
  }
  return swapToOrder(unpacked, { kind: "f", itemSize, isBigEndian: false, name: conversion.to });
}

/** As numpy computes with single floats: numbers that are not in the array are rounded, too. */
function scaleFloats(row: Float64Array, target: Float32Array, scale: number, offset: number): void {
  const factor = Math.fround(scale);
  const summand = Math.fround(offset);
  for (let i = 0; i < target.length; i++) target[i] = Math.fround(row[i]!) * factor;
  // Zero may be no offset, which would change the sign of a negative zero.
  if (summand !== 0) for (let i = 0; i < target.length; i++) target[i]! += summand;
}

function scaleDoubles(row: Float64Array, target: Float64Array, scale: number, offset: number): void {
  for (let i = 0; i < target.length; i++) target[i] = row[i]! * scale;
  if (offset !== 0) for (let i = 0; i < target.length; i++) target[i]! += offset;
}
