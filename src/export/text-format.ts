import { cfTimeFormatter, datetimeText } from "../cf/cf-time.js";
import { pythonFloatText, shortestFloat } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import type { DataType } from "../model/data-type.js";
import { NOT_A_TIME } from "../model/fill-value.js";
import type { NumericArray } from "../values/values.js";
import type { CfTime } from "./table.js";

/** Values to write as text. Plain data: it goes to a worker. */
export interface TextColumn {
  readonly values: NumericArray | readonly string[];
  readonly dataType: DataType;
  /** Units and calendar, if values are CF times that are written as dates. */
  readonly time?: CfTime | undefined;
}

/** What is written as text in a worker. */
export type TextTask =
  /** Rows of a table: a value per column and row. */
  | Readonly<{ kind: "csv"; columns: readonly TextColumn[]; rowCount: number }>
  /** Items of nested lists of a shape, from the item with number `firstItem` on. */
  | Readonly<{ kind: "json"; column: TextColumn; shape: readonly number[]; firstItem: number }>;

/** Texts that are kept of a column: its values may be those of a coordinate, repeated in each row. */
const MAX_KNOWN = 4_096;

/** Writes values as text, in UTF-8. Runs in the pool. */
export default function writeText(task: TextTask): Uint8Array {
  const texts = task.kind === "csv" ? csvRows(task.columns, task.rowCount) : jsonItems(task);
  return Buffer.concat(Array.from(texts, (text) => Buffer.from(text)));
}

/** Items that are one text: one of all of them would be copied over and over by the garbage collector. */
const ITEMS_PER_TEXT = 256;

function* csvRows(columns: readonly TextColumn[], rowCount: number): Generator<string> {
  const formats = columns.map((column) => itemFormat(column, "csv"));
  let text = "";
  for (let row = 0; row < rowCount; row += 1) {
    const begin = text.length;
    for (let column = 0; column < formats.length; column += 1)
      text += column === 0 ? formats[column]!(row) : `,${formats[column]!(row)}`;
    // Readers skip empty lines.
    text += text.length === begin ? '""\n' : "\n";
    if ((row + 1) % ITEMS_PER_TEXT !== 0 && row + 1 !== rowCount) continue;
    yield text;
    text = "";
  }
}

/** Quotes a field of CSV if it must be (RFC 4180). */
export function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function* jsonItems({
  column,
  shape,
  firstItem,
}: Extract<TextTask, { readonly kind: "json" }>): Generator<string> {
  const format = itemFormat(column, "json");
  // Items between two beginnings of a list, from the innermost dimension outwards.
  const sizes = shape.map((_, axis) => elementCount(shape.slice(axis)));
  let text = "";
  for (let index = 0; index < column.values.length; index += 1) {
    const item = firstItem + index;
    if (item > 0) text += ",";
    for (const size of sizes) if (item % size === 0) text += "[";
    text += format(index);
    for (const size of sizes) if ((item + 1) % size === 0) text += "]";
    if ((index + 1) % ITEMS_PER_TEXT !== 0 && index + 1 !== column.values.length) continue;
    yield text;
    text = "";
  }
}

/** Returns the function that writes an item. JSON has null for what is no number, CSV an empty field, which pandas reads as NaN. */
function itemFormat({ values, dataType, time }: TextColumn, form: "csv" | "json"): (index: number) => string {
  const { kind, itemSize, timeUnit } = dataType;
  const isJson = form === "json";
  const missing = isJson ? "null" : "";
  const quoted = isJson ? (text: string) => JSON.stringify(text) : csvField;
  const date = (text: string) => (text === "NaT" ? missing : quoted(text));
  if (typeof values[0] === "string") return (index) => quoted(values[index] as string);
  const numbers = values as ArrayLike<number | bigint>;
  if (time !== undefined) {
    const format = cfTimeFormatter({ ...time }) ?? String;
    return (index) => date(format(numbers[index]!));
  }
  if (kind === "M") return (index) => date(datetimeText(BigInt(numbers[index]!), timeUnit ?? ""));
  if (kind === "m") {
    const format = itemFormat({ values, dataType: { ...dataType, kind: "i" } }, form);
    return (index) => (numbers[index] === NOT_A_TIME ? missing : format(index));
  }
  if (kind === "b") {
    const [no, yes] = isJson ? ["false", "true"] : ["False", "True"];
    return (index) => (Number(numbers[index]) === 0 ? no! : yes!);
  }
  if (kind === "f") {
    const write = (value: number) => {
      if (Number.isFinite(value)) return pythonFloatText(isJson ? value : shortestFloat(value, itemSize));
      return isJson || Number.isNaN(value) ? missing : value > 0 ? "inf" : "-inf";
    };
    const known = new Map<number, string>();
    return (index) => {
      const value = numbers[index] as number;
      // -0 and 0 are one key.
      const text = (value === 0 ? undefined : known.get(value)) ?? write(value);
      if (known.size < MAX_KNOWN) known.set(value, text);
      return text;
    };
  }
  // JSON readers that know floats only would change an integer beyond 2^53.
  if (isJson && itemSize === 8)
    return (index) => {
      const value = BigInt(numbers[index]!);
      const isSafe = value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER);
      return isSafe ? String(value) : `"${value}"`;
    };
  return (index) => String(numbers[index]);
}
