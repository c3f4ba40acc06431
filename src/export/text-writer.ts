import { wrongParameter } from "../http/query.js";
import { stringifyJson } from "../json/stringify-json.js";
import { elementCount } from "../model/data-tree.js";
import type { ValueBlock, Values } from "../values/values.js";
import type { DatasetWriter, ExportedDataset, ExportedVariable } from "./exported-dataset.js";
import { streamVariable } from "./read-variable.js";
import { type TableRows, tableColumns, tableRows, timeOf } from "./table.js";
import { csvField, type TextColumn, type TextTask } from "./text-format.js";

const FORMATTER = new URL("./text-format.js", import.meta.url);

/** Writes a dataset as CSV: a line of names, then the table, some thousand rows at a time. */
export const writeCsv: DatasetWriter = async (dataset, values) => {
  assertText(dataset, "csv");
  return { pieces: (_, signal) => csvPieces(dataset, values, signal) };
};

/** Writes a dataset as JSON, in the layout of xarray's `Dataset.to_dict()`. */
export const writeJson: DatasetWriter = async (dataset, values) => {
  assertText(dataset, "json");
  return { pieces: (_, signal) => jsonPieces(dataset, values, signal) };
};

async function* csvPieces(
  dataset: ExportedDataset,
  values: Values,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const columns = tableColumns(dataset);
  // With the first rows, so that a failure to read these is answered as an error.
  let head = `${columns.map(({ name }) => csvField(name)).join()}\n`;
  const rows = tableRows(dataset, columns, values, signal);
  const taskOf = ({ rowCount, columns: blocks }: TableRows): TextTask => {
    return { kind: "csv", rowCount, columns: blocks.map(columnOf) };
  };
  for await (const text of formatAhead(values, signal, rows, taskOf)) {
    yield head === "" ? text : Buffer.concat([Buffer.from(head), text]);
    head = "";
  }
  if (head !== "") yield Buffer.from(head);
}

async function* jsonPieces(
  dataset: ExportedDataset,
  values: Values,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  async function* variables(isCoordinate: boolean): AsyncGenerator<Uint8Array> {
    let separator = "";
    for (const variable of dataset.variables) {
      if (variable.isCoordinate !== isCoordinate) continue;
      const { name, dims, shape } = variable;
      // As xarray's `decode_cf` leaves them.
      const { coordinates, ...decoded } = variable.attrs;
      const { units, calendar, ...others } = decoded;
      const isTime = timeOf(dataset, variable) !== undefined;
      const attrs = isTime ? others : dataset.isDecoded ? decoded : variable.attrs;
      const head = stringifyJson({ dims, attrs }).slice(0, -1);
      yield Buffer.from(`${separator}${JSON.stringify(name)}:${head},"data":`);
      separator = ",";
      yield* jsonValues(dataset, variable, values, signal, shape);
      yield Buffer.from("}");
    }
  }
  yield Buffer.from('{"coords":{');
  yield* variables(true);
  const dims = Object.fromEntries(dataset.dims);
  yield Buffer.from(`},"attrs":${stringifyJson(dataset.attrs)},"dims":${stringifyJson(dims)},"data_vars":{`);
  yield* variables(false);
  yield Buffer.from("}}");
}

/**
 * Writes the values of a variable as lists of JSON: null for what is no number, times as ISO 8601 if decoded.
 * @param shape Lengths of the lists, as many items as the variable has: its shape, or one length.
 * @param change Returns other values for a block whose first item has a number in C order.
 */
export async function* jsonValues(
  dataset: ExportedDataset,
  variable: ExportedVariable,
  values: Values,
  signal: AbortSignal,
  shape: readonly number[],
  change: (block: ValueBlock, firstItem: number) => Pick<ValueBlock, "values" | "dataType"> = (block) =>
    block,
): AsyncGenerator<Uint8Array> {
  if (shape.includes(0)) {
    yield Buffer.from(emptyList(shape));
    return;
  }
  const time = timeOf(dataset, variable);
  let firstItem = 0;
  yield* formatAhead(values, signal, streamVariable(dataset, variable, values, { signal }), (block) => {
    const column = { ...columnOf(change(block, firstItem)), time };
    const task = { kind: "json", column, shape, firstItem } as const;
    firstItem += elementCount(block.shape);
    return task;
  });
}

function emptyList([length = 0, ...inner]: readonly number[]): string {
  return `[${Array.from({ length }, () => emptyList(inner)).join()}]`;
}

/** @throws ZpublishError `invalid-query` if a variable has a type that text does not have */
function assertText({ variables }: ExportedDataset, format: string): void {
  const wrong = variables.find(
    ({ dataType: { kind, zarr } }) => "cV".includes(kind) || typeof zarr !== "string",
  );
  if (wrong === undefined) return;
  const expected = `numbers, texts or times; variable '${wrong.name}' is ${wrong.dataType.numpyName}`;
  throw wrongParameter("f", "unsupported_type", expected, format);
}

function columnOf({ values, dataType }: Pick<ValueBlock, "values" | "dataType">): TextColumn {
  return { values: values!, dataType };
}

/** Formats values in the pool, those of one block while the client takes the text of the one before. */
async function* formatAhead<T>(
  values: Values,
  signal: AbortSignal,
  blocks: AsyncIterable<T>,
  taskOf: (block: T) => TextTask,
): AsyncGenerator<Uint8Array> {
  let before: Promise<Uint8Array> | undefined;
  for await (const block of blocks) {
    const text = values.run<Uint8Array>(FORMATTER, taskOf(block), { signal });
    // The text before it may end the iteration.
    text.catch(() => undefined);
    if (before !== undefined) yield await before;
    before = text;
  }
  if (before !== undefined) yield await before;
}
