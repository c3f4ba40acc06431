import { CALENDARS, cfTimeFormatter, cfTimeOf, cfTimeScale, isSameCalendar } from "../cf/cf-time.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { elementCount } from "../model/data-tree.js";
import { type DataType, parseDataType } from "../model/data-type.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import type { ValueBlock, Values } from "../values/values.js";
import { type ExportedDataset, type ExportedVariable, POINT, TEXT_TYPE } from "./exported-dataset.js";
import { boxesOf, type DimPart, readPart, streamVariable, takeItems } from "./read-variable.js";

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

/** Returns what describes the decoded values of a variable as dates (CF section 4.4); undefined if they are none. */
export function timeOf(
  { isDecoded }: ExportedDataset,
  { attrs, dataType }: ExportedVariable,
): CfTime | undefined {
  const { units, calendar = "standard" } = attrs;
  const isNumber = isDecoded && "iuf".includes(dataType.kind);
  if (!isNumber || typeof units !== "string" || typeof calendar !== "string") return undefined;
  return cfTimeFormatter({ units, calendar }) === undefined ? undefined : { units, calendar };
}

/** Some rows of a table: a value per column and row, in blocks of one dimension. */
export interface TableRows {
  readonly rowCount: number;
  readonly columns: readonly ValueBlock[];
}

/** Bytes of all columns of a box that is read at once, before values are repeated. */
const BOX_BYTES = 2 ** 23;
/** Rows that are yielded at once: to repeat values and to pass them to a worker takes some milliseconds. */
const MAX_ROWS = 2 ** 14;

const INDEX_TYPE = parseDataType("<i8");
const NANOSECONDS_PER_DAY = 86_400_000_000_000n;

/**
 * Returns the columns of `to_dataframe().reset_index()`: dimensions, then all other variables. Points have no labels, and no column if
 * each is one row. Decoded times are text of ISO 8601.
 */
export function tableColumns(dataset: ExportedDataset): readonly TableColumn[] {
  const { dims, variables } = dataset;
  const isLabels = (variable: ExportedVariable) => variable.dims.join() === variable.name;
  const columnOf = (variable: ExportedVariable): TableColumn => {
    const { name } = variable;
    const time = timeOf(dataset, variable);
    const dataType = time === undefined ? variable.dataType : TEXT_TYPE;
    return { name, dims: variable.dims, variable, time, dataType };
  };
  const labels = [...dims.keys()].flatMap((name): TableColumn[] => {
    const variable = variables.find((each) => each.name === name && isLabels(each));
    if (variable !== undefined) return [columnOf(variable)];
    return name === POINT && dims.size === 1
      ? []
      : [{ name, dims: [name], variable, time: undefined, dataType: INDEX_TYPE }];
  });
  const others = variables.filter((variable) => !isLabels(variable));
  const data = others.filter(({ isCoordinate }) => !isCoordinate);
  return [...labels, ...[...data, ...others.filter(({ isCoordinate }) => isCoordinate)].map(columnOf)];
}

/**
 * Makes a column of times one of `datetime64`, in micro- or nanoseconds, if that has all of its dates: none of another calendar, none before
 * the Gregorian one began, and none that is too far. Its values are read for that.
 */
export async function withDatetimes(
  dataset: ExportedDataset,
  column: TableColumn,
  values: Values,
  signal: AbortSignal,
): Promise<TableColumn> {
  const { time, variable } = column;
  const scale = time && cfTimeScale({ ...time });
  if (scale === undefined || variable === undefined) return column;
  let [least, greatest] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for await (const { values: items = [] } of streamVariable(dataset, variable, values, { signal }))
    for (const item of items) {
      const number = Number(item);
      if (!Number.isFinite(number)) continue;
      if (number < least) least = number;
      if (number > greatest) greatest = number;
    }
  const step = scale.unit % 1_000n === 0n ? 1_000n : 1n;
  const [first = 0n, last = 0n] =
    least > greatest ? [] : [least, greatest].map((each) => cfTimeOf(each, scale));
  const isHeld = [first, last].every((each) => BigInt.asIntN(64, each / step) === each / step);
  const leastDays = Number(first / NANOSECONDS_PER_DAY);
  if (!isHeld || !isSameCalendar(scale.calendar, CALENDARS.proleptic_gregorian!, leastDays)) return column;
  return { ...column, dataType: parseDataType(step === 1n ? "<M8[ns]" : "<M8[us]") };
}

/** Reads a table in blocks of rows, in C order of its dimensions. The next box is read while the caller works on one. */
export async function* tableRows(
  dataset: ExportedDataset,
  columns: readonly TableColumn[],
  values: Values,
  signal: AbortSignal,
): AsyncGenerator<TableRows, void, undefined> {
  const dims = [...dataset.dims.keys()];
  const bytes = columns.reduce((sum, { dataType }) => sum + Math.max(1, dataType.itemSize), 0);
  const last = new Map<TableColumn, { readonly key: string; readonly block: Promise<ValueBlock> }>();
  // Coordinates are read once for all boxes that have the same part of them.
  const readColumn = (column: TableColumn, box: readonly DimPart[]): Promise<ValueBlock> => {
    const parts = column.dims.map((dim) => box[dims.indexOf(dim)]!);
    const key = JSON.stringify(parts);
    const known = last.get(column);
    if (known?.key === key) return known.block;
    const { variable } = column;
    const block =
      variable === undefined ? indexBlock(parts[0]!) : readPart(dataset, variable, parts, values, signal);
    const dated = Promise.resolve(block).then((each) => withDates(each, column));
    last.set(column, { key, block: dated });
    return dated;
  };
  const boxes = boxesOf([...dataset.dims.values()], Math.max(1, Math.floor(BOX_BYTES / bytes)));
  const readNext = () => {
    const { value: box } = boxes.next();
    if (box === undefined) return undefined;
    const blocks = Promise.all(columns.map((column) => readColumn(column, box)));
    // The rows before it may end the iteration.
    blocks.catch(() => undefined);
    return { shape: box.map(({ count }) => count), blocks };
  };
  const slice = createSlice();
  for (let next = readNext(); next !== undefined; ) {
    const { shape, blocks } = next;
    const read = await blocks;
    next = readNext();
    for (const part of boxesOf(shape, MAX_ROWS)) {
      const rows = columns.map((column, index) => {
        const own = column.dims.map((dim) => shape[dims.indexOf(dim)]!);
        const axes = dims.map((dim) => column.dims.indexOf(dim));
        return takeItems(read[index]!, own, part, axes);
      });
      yield { rowCount: elementCount(part.map(({ count }) => count)), columns: rows };
      // Values in memory are nothing to wait for.
      if (slice.isOver()) await slice.next();
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
      isTime(value) ? cfTimeOf(value, scale) / (dataType.timeUnit === "ns" ? 1n : 1_000n) : NOT_A_TIME,
    );
    return { ...block, dataType, values, bytes: new Uint8Array(values.buffer) };
  }
  const format = cfTimeFormatter({ ...time }) ?? String;
  // Like numbers that are missing, dates are empty fields.
  const values = numbers.map((value) => format(value).replace(/^NaT$/, ""));
  return { ...block, dataType, values, bytes: new Uint8Array() };
}

function indexBlock({ begin, count }: DimPart): ValueBlock {
  const values = BigInt64Array.from({ length: count }, (_, index) => BigInt(begin + index));
  return { shape: [count], dataType: INDEX_TYPE, bytes: new Uint8Array(values.buffer), values };
}
