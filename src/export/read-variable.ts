import { copyPlaces } from "../codec/copy-strided.js";
import { swapWords } from "../codec/item-reader.js";
import { wordSizeOf } from "../codec/items/decode-numbers.js";
import { itemValues } from "../codec/items/item-values.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { elementCount } from "../model/data-tree.js";
import type { DataType } from "../model/data-type.js";
import type {
  AxisSelection,
  NumericArray,
  StreamValuesOptions,
  ValueBlock,
  Values,
} from "../values/values.js";
import { sliceOfAxis } from "../zarr/plan/cut-selection.js";
import { forEachPlace, itemStrides, pickedLength } from "../zarr/plan/item-pick.js";
import type { ExportedDataset, ExportedVariable } from "./exported-dataset.js";

/** Part of a dimension. */
export interface DimPart {
  readonly begin: number;
  readonly count: number;
}

/** Reads a part of a variable: one of each of its dimensions. */
export async function readPart(
  { snapshot, isDecoded: decode }: ExportedDataset,
  { source, shape, dataType }: ExportedVariable,
  parts: readonly DimPart[],
  values: Values,
  signal: AbortSignal,
): Promise<ValueBlock> {
  if ("block" in source) {
    const isWhole = parts.every(({ count }, axis) => count === shape[axis]);
    return isWhole
      ? { ...source.block, shape: [elementCount(shape)] }
      : takeItems(source.block, shape, parts);
  }
  const { array, kept, points = [], textLength } = source;
  const selection = source.selection.map((each, axis) => {
    const part = parts[kept.indexOf(points.includes(axis) ? points[0]! : axis)];
    return part === undefined ? each : sliceOfAxis(each, part.begin, part.count);
  });
  const rows = points.length === 0 ? undefined : await rowsOf(selection, points);
  const block =
    rows === undefined
      ? await values.read(snapshot, array, selection, { decode, signal })
      : await values.readPoints(snapshot, array, rows, { decode, signal });
  if (textLength !== undefined) {
    const texts = itemValues(block.bytes, { ...block.dataType, itemSize: textLength });
    return { shape: [texts!.length], dataType, bytes: new Uint8Array(), values: texts };
  }
  // Integers that have no other mark of missing ones.
  const isMarked = rows !== undefined && dataType.kind === "f" && block.dataType.kind !== "f";
  return isMarked ? withMissing(block, dataType, rows) : block;
}

/** Returns a row of indexes per item, in C order, of a selection some of whose axes are taken together. */
async function rowsOf(selection: readonly AxisSelection[], points: readonly number[]): Promise<Int32Array> {
  const lengths = selection.map((each, axis) => (points.indexOf(axis) > 0 ? 1 : pickedLength(each)));
  const strides = itemStrides({ chunkShape: lengths });
  const rows = new Int32Array(elementCount(lengths) * selection.length);
  const slice = createSlice();
  for (const [axis, each] of selection.entries()) {
    const stride = strides[points.includes(axis) ? points[0]! : axis]!;
    const length = pickedLength(each);
    for (let at = axis, item = 0; at < rows.length; at += selection.length, item += 1) {
      if (item % ITEMS_PER_LOOK === 0 && slice.isOver()) await slice.next();
      const step = Math.floor(item / stride) % length;
      rows[at] = "indexes" in each ? each.indexes[step]! : each.begin + step * each.step;
    }
  }
  return rows;
}

function withMissing(block: ValueBlock, dataType: DataType, rows: Int32Array): ValueBlock {
  const values = Float64Array.from(block.values as ArrayLike<number | bigint>, Number);
  const rank = rows.length / values.length;
  for (const [at, index] of rows.entries()) if (index < 0) values[Math.floor(at / rank)] = Number.NaN;
  return { ...block, dataType, values, bytes: new Uint8Array(values.buffer) };
}

/** Items of a block of a stream that {@link readPart} reads; of one that is in memory, which takes long to copy if items are texts. */
const BLOCK_ITEMS = 2 ** 20;
const BLOCK_ITEMS_IN_MEMORY = 2 ** 14;
/** Items between two looks at the clock. */
const ITEMS_PER_LOOK = 4_096;

/** Reads the values of a variable in C order, from an item on, in blocks of some megabytes. */
export async function* streamVariable(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  options: StreamValuesOptions & { readonly signal: AbortSignal },
): AsyncGenerator<ValueBlock> {
  const { source, shape } = variable;
  if ("selection" in source && source.textLength === undefined && !source.points?.length) {
    const { snapshot, isDecoded: decode } = dataset;
    yield* values.stream(snapshot, source.array, source.selection, { decode, ...options });
    return;
  }
  const { firstItem = 0, byteOrder, signal } = options;
  let end = 0;
  for (const parts of boxesOf(shape, "block" in source ? BLOCK_ITEMS_IN_MEMORY : BLOCK_ITEMS)) {
    const count = elementCount(parts.map((part) => part.count));
    const skipped = Math.max(0, firstItem - end);
    end += count;
    if (skipped >= count) continue;
    const block = await readPart(dataset, variable, parts, values, signal);
    const bytes = block.bytes.slice(skipped * block.dataType.itemSize);
    if (byteOrder === "big") swapWords(bytes, wordSizeOf(block.dataType));
    yield { ...block, bytes, shape: [count - skipped], values: block.values?.slice(skipped) };
  }
}

/** Cuts a shape into boxes of at most so many items that follow one another in C order. */
export function* boxesOf(
  [length, ...inner]: readonly number[],
  maxItems: number,
): Generator<readonly DimPart[], undefined> {
  if (length === undefined) yield [];
  if (length === undefined || inner.includes(0)) return undefined;
  const step = Math.max(1, Math.floor(maxItems / elementCount(inner)));
  for (let begin = 0; begin < length; begin += step) {
    const part = { begin, count: Math.min(step, length - begin) };
    for (const others of boxesOf(inner, maxItems)) yield [part, ...others];
  }
  return undefined;
}

/**
 * Gathers a part of a block.
 * @param axes Axis of the block that each part is of; -1 to repeat items.
 */
export function takeItems(
  { dataType, bytes, values = [] }: ValueBlock,
  blockShape: readonly number[],
  parts: readonly DimPart[],
  axes: readonly number[] = [...parts.keys()],
): ValueBlock {
  const from = axes.map((axis) => (axis < 0 ? 0 : elementCount(blockShape.slice(axis + 1))));
  const lengths = parts.map(({ count }) => count);
  const to = itemStrides({ chunkShape: lengths });
  const places = parts.map(({ begin, count }) => ({
    ...{ length: count, from: { first: begin, step: 1 }, to: { first: 0, step: 1 } },
  }));
  const shape = [elementCount(lengths)];
  if (isTexts(values)) {
    const texts = new Array<string>(shape[0]!);
    forEachPlace(places, from, to, (source, target) => {
      texts[target] = values[source]!;
    });
    return { shape, dataType, bytes: new Uint8Array(), values: texts };
  }
  const taken = new Uint8Array(shape[0]! * dataType.itemSize);
  copyPlaces(bytes, from, taken, to, places, dataType.itemSize);
  return { shape, dataType, bytes: taken, values: itemValues(taken, dataType) };
}

function isTexts(values: NumericArray | readonly string[]): values is readonly string[] {
  return Array.isArray(values);
}
