import { swapWords } from "../codec/item-reader.js";
import { wordSizeOf } from "../codec/items/decode-numbers.js";
import { itemValues } from "../codec/items/item-values.js";
import { elementCount } from "../model/data-tree.js";
import type {
  AxisSelection,
  NumericArray,
  StreamValuesOptions,
  ValueBlock,
  Values,
} from "../values/values.js";
import { type ExportedDataset, type ExportedVariable, TEXT_TYPE } from "./exported-dataset.js";

/** Part of a dimension. */
export interface DimPart {
  readonly begin: number;
  readonly count: number;
}

/** Reads a part of a variable: one of each of its dimensions. */
export async function readPart(
  { snapshot, isDecoded }: ExportedDataset,
  { source, shape, name }: ExportedVariable,
  parts: readonly DimPart[],
  values: Values,
  signal: AbortSignal,
): Promise<ValueBlock> {
  if ("block" in source) return takeItems(source.block, shape, parts);
  if ("points" in source) throw new Error(`expected the points of '${name}' to be read`);
  const selection = source.selection.map((each, axis) => {
    const part = parts[source.kept.indexOf(axis)];
    return part === undefined ? each : restrict(each, part);
  });
  const block = await values.read(snapshot, source.array, selection, { decode: isDecoded, signal });
  if (source.textLength === undefined) return block;
  const texts = itemValues(block.bytes, { ...block.dataType, itemSize: source.textLength });
  return { shape: [texts!.length], dataType: TEXT_TYPE, bytes: new Uint8Array(), values: texts };
}

function restrict(selection: AxisSelection, { begin, count }: DimPart): AxisSelection {
  if ("indexes" in selection) return { indexes: Array.from(selection.indexes).slice(begin, begin + count) };
  return { begin: selection.begin + begin * selection.step, count, step: selection.step };
}

/** Reads the values of a variable in C order, from an item on, in blocks of some megabytes. */
export async function* streamVariable(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  options: StreamValuesOptions & { readonly signal: AbortSignal },
): AsyncGenerator<ValueBlock> {
  const { source, shape } = variable;
  if ("selection" in source && source.textLength === undefined) {
    const { snapshot, isDecoded: decode } = dataset;
    yield* values.stream(snapshot, source.array, source.selection, { decode, ...options });
    return;
  }
  const { firstItem = 0, byteOrder, signal } = options;
  const whole = shape.map((count) => ({ begin: 0, count }));
  const block = "block" in source ? source.block : await readPart(dataset, variable, whole, values, signal);
  const { itemSize } = block.dataType;
  // The bytes of texts of any length are none, and may be gone.
  const bytes = itemSize === 0 ? new Uint8Array() : block.bytes.slice(firstItem * itemSize);
  if (byteOrder === "big") swapWords(bytes, wordSizeOf(block.dataType));
  const rest = block.values?.slice(firstItem);
  yield { ...block, bytes, shape: [elementCount(block.shape) - firstItem], values: rest };
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
  const strides = axes.map((axis) => (axis < 0 ? 0 : elementCount(blockShape.slice(axis + 1))));
  const shape = [elementCount(parts.map(({ count }) => count))];
  const indexes = new Uint32Array(shape[0]!);
  indexes[0] = parts.reduce((sum, { begin }, axis) => sum + begin * strides[axis]!, 0);
  // Grows the list from the innermost dimension outwards.
  let filled = 1;
  for (let axis = parts.length - 1; axis >= 0; axis -= 1) {
    const stride = strides[axis]!;
    const { count } = parts[axis]!;
    for (let step = 1; step < count; step += 1)
      for (let i = 0; i < filled; i += 1) indexes[step * filled + i] = indexes[i]! + step * stride;
    filled *= count;
  }
  if (isTexts(values)) {
    const texts = Array.from(indexes, (index) => values[index]!);
    return { shape, dataType, bytes: new Uint8Array(), values: texts };
  }
  // Half floats are wider as values.
  const isHalf = dataType.kind === "f" && dataType.itemSize === 2;
  const items = isHalf ? new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2) : values;
  const taken = new (items.constructor as new (length: number) => NumericArray)(indexes.length);
  for (let i = 0; i < indexes.length; i += 1) taken[i] = items[indexes[i]!]!;
  const own = new Uint8Array(taken.buffer as ArrayBuffer);
  return { shape, dataType, bytes: own, values: isHalf ? itemValues(own, dataType) : taken };
}

function isTexts(values: NumericArray | readonly string[]): values is readonly string[] {
  return Array.isArray(values);
}
