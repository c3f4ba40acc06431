import { cfTimeFormatter, cfTimeOf, cfTimeScale } from "../cf/cf-time.js";
import { swapWords } from "../codec/item-reader.js";
import { itemValues } from "../codec/items/item-values.js";
import { elementCount } from "../model/data-tree.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import type { AxisSelection, NumericArray, ValueBlock, Values } from "../values/values.js";
import { type ExportedDataset, type ExportedVariable, POINT, TEXT_TYPE } from "./exported-dataset.js";

/** A column of a table. */
export interface TableColumn {
  readonly name: string;
  readonly dataType: DataType;
  /** Units and calendar of CF times that become dates. */
  readonly time: CfTime | undefined;
  /** Undefined for indexes of a dimension without labels. */
  readonly variable: ExportedVariable | undefined;
  readonly dims: readonly string[];
}

/** Attributes of CF times. */
export interface CfTime {
  readonly units: string;
  readonly calendar: string;
}

/** Calendars whose dates `datetime64` has. */
const DATETIME_CALENDAR = /^(?:standard|gregorian|proleptic_gregorian)$/i;
const NOT_A_TIME = -(2n ** 63n);

/** Returns what describes a variable's values as dates (CF section 4.4); undefined if they are none. */
export function timeOf({ attrs, dataType }: ExportedVariable): CfTime | undefined {
  const { units, calendar = "standard" } = attrs;
  if (typeof units !== "string" || typeof calendar !== "string" || !"iuf".includes(dataType.kind))
    return undefined;
  return cfTimeFormatter({ units, calendar }) === undefined ? undefined : { units, calendar };
}

/** Some rows of a table: a value per column and row, in blocks of one dimension. */
export interface TableRows {
  readonly rowCount: number;
  readonly columns: readonly ValueBlock[];
}

/** Part of a dimension. */
interface Part {
  readonly begin: number;
  readonly count: number;
}

/** Bytes of all columns of a box that is read at once, before values are repeated. */
const BOX_BYTES = 2 ** 23;
/** Rows that are yielded at once: to repeat values and to pass them to a worker takes some milliseconds. */
const MAX_ROWS = 2 ** 14;

const INDEX_TYPE = parseDataType("<i8");
const DATETIME = parseDataType("<M8[us]");

/** How CF times are in a table: as text of ISO 8601, as `datetime64` if their calendar has such ones, or as the numbers that are stored. */
export type TimeForm = "text" | "datetime" | "number";

/**
 * Returns the columns of `to_dataframe().reset_index()`: dimensions, then all other variables. Points have no labels and no column.
 * @throws ZpublishError `invalid-query` if a variable has a type that tables do not have
 */
export function tableColumns({ dims, variables }: ExportedDataset, times: TimeForm): readonly TableColumn[] {
  const isLabels = ({ name, dims }: ExportedVariable) => dims.join() === name;
  const columnOf = (variable: ExportedVariable): TableColumn => {
    const { name, dataType } = variable;
    const time = times === "number" ? undefined : timeOf(variable);
    const isDate = time !== undefined && times === "datetime" && DATETIME_CALENDAR.test(time.calendar);
    const type = time === undefined ? dataType : isDate ? DATETIME : TEXT_TYPE;
    return { name, dims: variable.dims, variable, time, dataType: type };
  };
  const labels = [...dims.keys()].flatMap((name): TableColumn[] => {
    const variable = variables.find((each) => each.name === name && isLabels(each));
    if (variable !== undefined) return [columnOf(variable)];
    return name === POINT ? [] : [{ name, dims: [name], variable, time: undefined, dataType: INDEX_TYPE }];
  });
  const others = variables.filter((variable) => !isLabels(variable));
  const [data, coordinates] = [false, true].map((is) => others.filter((each) => each.isCoordinate === is));
  return [...labels, ...[...data!, ...coordinates!].map(columnOf)];
}

/** Returns the bytes of all items of a table, in which values are repeated for each row. */
export function tableByteLength(plan: ExportedDataset): number {
  const bytes = plan.variables.reduce((sum, { dataType }) => sum + dataType.itemSize, 0);
  return elementCount([...plan.dims.values()]) * bytes;
}

/** Reads part of a variable of a plan. */
export async function readBox(
  { snapshot, isDecoded }: ExportedDataset,
  { source, shape, name }: ExportedVariable,
  box: readonly Part[],
  values: Values,
  signal: AbortSignal,
): Promise<ValueBlock> {
  if ("block" in source) return take(source.block, stridesOf(shape), box);
  if ("points" in source) throw new Error(`expected the points of '${name}' to be read`);
  const selection = source.selection.map((each, axis) => {
    const part = box[source.kept.indexOf(axis)];
    return part === undefined ? each : restrict(each, part);
  });
  const block = await values.read(snapshot, source.array, selection, { decode: isDecoded, signal });
  if (source.textLength === undefined) return block;
  const texts = itemValues(block.bytes, { ...block.dataType, itemSize: source.textLength });
  return { shape: [texts!.length], dataType: TEXT_TYPE, bytes: new Uint8Array(), values: texts };
}

function restrict(selection: AxisSelection, { begin, count }: Part): AxisSelection {
  if ("indexes" in selection) return { indexes: Array.from(selection.indexes).slice(begin, begin + count) };
  return { begin: selection.begin + begin * selection.step, count, step: selection.step };
}

/** Reads a table in blocks of rows, in C order of its dimensions. The next box is read while the caller works on one. */
export async function* tableRows(
  plan: ExportedDataset,
  columns: readonly TableColumn[],
  values: Values,
  signal: AbortSignal,
): AsyncGenerator<TableRows, void, undefined> {
  const dims = [...plan.dims.keys()];
  const bytes = columns.reduce((sum, { dataType }) => sum + Math.max(1, dataType.itemSize), 0);
  const last = new Map<TableColumn, { readonly key: string; readonly block: Promise<ValueBlock> }>();
  // Coordinates are read once for all boxes that have the same part of them.
  const readColumn = (column: TableColumn, box: readonly Part[]): Promise<ValueBlock> => {
    const parts = column.dims.map((dim) => box[dims.indexOf(dim)]!);
    const key = JSON.stringify(parts);
    const known = last.get(column);
    if (known?.key === key) return known.block;
    const { variable } = column;
    const block =
      variable === undefined ? indexBlock(parts[0]!) : readBox(plan, variable, parts, values, signal);
    const dated = Promise.resolve(block).then((each) => withDates(each, column));
    last.set(column, { key, block: dated });
    return dated;
  };
  const boxes = boxesOf([...plan.dims.values()], Math.max(1, Math.floor(BOX_BYTES / bytes)));
  const readNext = () => {
    const { value: box } = boxes.next();
    if (box === undefined) return undefined;
    const blocks = Promise.all(columns.map((column) => readColumn(column, box)));
    // The rows before it may end the iteration.
    blocks.catch(() => undefined);
    return { shape: box.map(({ count }) => count), blocks };
  };
  for (let next = readNext(); next !== undefined; ) {
    const { shape, blocks } = next;
    const read = await blocks;
    next = readNext();
    const strides = columns.map((column) => {
      const own = stridesOf(column.dims.map((dim) => shape[dims.indexOf(dim)]!));
      return dims.map((dim) => own[column.dims.indexOf(dim)] ?? 0);
    });
    for (const part of boxesOf(shape, MAX_ROWS)) {
      const rows = read.map((block, index) => take(block, strides[index]!, part));
      yield { rowCount: elementCount(part.map(({ count }) => count)), columns: rows };
    }
  }
}

function withDates(block: ValueBlock, { time, dataType }: TableColumn): ValueBlock {
  if (time === undefined) return block;
  const numbers = Array.from(block.values as ArrayLike<number | bigint>);
  const scale = cfTimeScale({ ...time });
  if (dataType.kind === "M" && scale !== undefined) {
    const isTime = (value: number | bigint) => Number.isFinite(Number(value));
    const values = BigInt64Array.from(numbers, (value) =>
      isTime(value) ? cfTimeOf(value, scale) / 1_000n : NOT_A_TIME,
    );
    return { ...block, dataType, values, bytes: new Uint8Array(values.buffer) };
  }
  const format = cfTimeFormatter({ ...time }) ?? String;
  // Like numbers that are missing, dates are empty fields.
  const values = numbers.map((value) => format(value).replace(/^NaT$/, ""));
  return { ...block, dataType, values, bytes: new Uint8Array() };
}

/** Cuts a shape into boxes of at most so many items that follow one another in C order. */
function* boxesOf(
  [length, ...inner]: readonly number[],
  maxItems: number,
): Generator<readonly Part[], undefined> {
  if (length === undefined) yield [];
  if (length === undefined || inner.includes(0)) return undefined;
  const step = Math.max(1, Math.floor(maxItems / elementCount(inner)));
  for (let begin = 0; begin < length; begin += step) {
    const part = { begin, count: Math.min(step, length - begin) };
    for (const others of boxesOf(inner, maxItems)) yield [part, ...others];
  }
  return undefined;
}

function stridesOf(shape: readonly number[]): number[] {
  return shape.map((_, axis) => elementCount(shape.slice(axis + 1)));
}

function indexBlock({ begin, count }: Part): ValueBlock {
  const values = BigInt64Array.from({ length: count }, (_, index) => BigInt(begin + index));
  return { shape: [count], dataType: INDEX_TYPE, bytes: new Uint8Array(values.buffer), values };
}

/** Gathers a part of a block. Items are repeated along dimensions of stride 0. */
function take(block: ValueBlock, strides: readonly number[], part: readonly Part[]): ValueBlock {
  const { dataType, bytes } = block;
  const length = elementCount(part.map(({ count }) => count));
  const indexes = new Uint32Array(length);
  indexes[0] = part.reduce((sum, { begin }, axis) => sum + begin * strides[axis]!, 0);
  // Grows the list from the innermost dimension outwards.
  let filled = 1;
  for (let axis = part.length - 1; axis >= 0; axis -= 1) {
    const stride = strides[axis]!;
    const { count } = part[axis]!;
    for (let step = 1; step < count; step += 1)
      for (let i = 0; i < filled; i += 1) indexes[step * filled + i] = indexes[i]! + step * stride;
    filled *= count;
  }
  const gather = (source: NumericArray): NumericArray => {
    const taken = new (source.constructor as new (length: number) => NumericArray)(length);
    for (let i = 0; i < length; i += 1) taken[i] = source[indexes[i]!]!;
    return taken;
  };
  const source = block.values ?? [];
  const values = isTexts(source) ? Array.from(indexes, (index) => source[index]!) : gather(source);
  if (isTexts(values)) return { shape: [length], dataType, bytes: new Uint8Array(), values };
  // Half floats are wider as values.
  const isHalf = dataType.kind === "f" && dataType.itemSize === 2;
  const items = isHalf ? gather(new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2)) : values;
  return { shape: [length], dataType, bytes: new Uint8Array(items.buffer as ArrayBuffer), values };
}

function isTexts(values: NumericArray | readonly string[]): values is readonly string[] {
  return Array.isArray(values);
}

/** Reads all values of a variable of a plan in C order, from an item on. */
export async function* readStream(
  plan: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  options: {
    readonly firstItem?: number;
    readonly byteOrder?: "little" | "big";
    readonly signal: AbortSignal;
    readonly reusesMemory?: boolean;
  },
): AsyncGenerator<ValueBlock> {
  const { source, shape } = variable;
  if ("selection" in source && source.textLength === undefined) {
    const { snapshot, isDecoded: decode } = plan;
    yield* values.stream(snapshot, source.array, source.selection, { decode, ...options });
    return;
  }
  const whole = shape.map((count) => ({ begin: 0, count }));
  const block =
    "block" in source ? source.block : await readBox(plan, variable, whole, values, options.signal);
  const { firstItem = 0, byteOrder } = options;
  const { itemSize, kind } = block.dataType;
  // The bytes of texts of any length are none, and may be gone.
  const bytes = itemSize === 0 ? new Uint8Array() : block.bytes.slice(firstItem * itemSize);
  if (byteOrder === "big" && kind !== "S" && kind !== "V")
    swapWords(bytes, kind === "U" ? 4 : kind === "c" ? itemSize / 2 : itemSize);
  const rest = block.values?.slice(firstItem);
  yield { ...block, bytes, shape: [elementCount(block.shape) - firstItem], values: rest };
}
