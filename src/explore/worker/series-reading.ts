import { unpacked } from "../../cf/packing.js";
import { centreOf, indexAt } from "../axis.js";
import {
  isOnGrid,
  type ProbeAnswer,
  type ProbeRequest,
  type SeriesAnswer,
  type SeriesRequest,
  type VariableDescription,
} from "../protocol.js";
import { valueText } from "../value-text.js";
import { costOf, finestOf } from "./array-reader.js";
import { PRIORITY, ReadFailure } from "./chunk-queue.js";
import { ChunkReading } from "./chunk-reading.js";
import type { DatasetSession } from "./dataset-session.js";
import { nameOfCell } from "./picture/read-listed-cells.js";
import type { AxisReader, FoundCell } from "./read-axis.js";

/** Prepares to read the values along one axis, chunk by chunk from its begin. @throws ReadFailure */
export function readingOfSeries(
  session: DatasetSession,
  { selection, along }: SeriesRequest,
  send: (answer: SeriesAnswer) => void,
  fail: (error: unknown) => void,
) {
  const variable = session.variable(selection.variable);
  const { shape, chunkShape, dataType, packing } = variable;
  const { [along]: length } = shape;
  if (length === undefined) throw new ReadFailure(`${variable.title} has no axis ${along}.`);
  const source = finestOf(variable);
  const at = shape.map((_, axis) => (axis === along ? 0 : (selection.at[axis] ?? 0)));
  const { coords, offset } = session.placeOf(source, at);
  const stride = session.documentOf(source).strides[along]!;
  const chunkLength = chunkShape[along]!;
  const total = Math.ceil(length / chunkLength);
  const values = new Float64Array(length).fill(Number.NaN);
  const reading = new ChunkReading(session, {
    priority: PRIORITY.series,
    chunks: Array.from({ length: total }, (_, index) => ({
      job: session.job(source, coords.with(along, index)),
      begin: index * chunkLength,
    })),
    endsOnFailure: true,
    fill({ begin }, chunk) {
      if (chunk?.numbers === undefined) return;
      const count = Math.min(chunkLength, length - begin);
      for (let index = 0; index < count; index++)
        values[begin + index] = unpacked(chunk.numbers[offset + index * stride]!, packing);
    },
    answer: (open) => send({ kind: "series", values: values.slice(), done: total - open, total }),
    fail,
  });
  return { reading, cost: costOf(reading.jobs.length, chunkShape, dataType.itemSize) };
}

/** Reads the value of the cell at a place of the picture. @throws ReadFailure, or the signal's reason */
export async function probeCell(
  session: DatasetSession,
  axes: AxisReader,
  request: ProbeRequest,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  const { selection, x, y, inCells, bands } = request;
  const variable = session.variable(selection.variable);
  const { shape, packing } = variable;
  const found = isOnGrid(variable, request.axes, inCells)
    ? await axes.curvilinear.cellAt(request)
    : await cellOnGrid(axes, variable, request);
  if (found === undefined) return { kind: "value", cell: undefined, x, y, value: undefined, text: "" };
  const cell = shape.map((_, axis) =>
    axis === request.axes.y ? found.row : axis === request.axes.x ? found.column : (selection.at[axis] ?? 0),
  );
  const source = finestOf(variable);
  const readCell = async (at: readonly number[]) => {
    const { coords, offset } = session.placeOf(source, at);
    const chunk = await session.readChunk(source, coords, PRIORITY.probe, signal);
    const value = chunk?.numbers === undefined ? Number.NaN : unpacked(chunk.numbers[offset]!, packing);
    return { value: Number.isNaN(value) ? undefined : value, text: valueText(variable, chunk, offset) };
  };
  const { axis = 0, count } = bands ?? {};
  const cells =
    count === undefined ? [cell] : Array.from({ length: count }, (_, band) => cell.with(axis, band));
  const [name, ...read] = await Promise.all([
    nameOfCell(session, variable, cell, signal),
    ...cells.map(readCell),
  ]);
  const text = read.map((each) => each.text).join(", ");
  return { kind: "value", cell, x: found.x, y: found.y, value: read[0]!.value, text, name };
}

async function cellOnGrid(
  axes: AxisReader,
  variable: VariableDescription,
  { x, y, inCells, axes: shown }: ProbeRequest,
): Promise<FoundCell | undefined> {
  const [xAxis, yAxis] = await axes.plane(variable, shown, inCells);
  const [column, row] = [indexAt(xAxis, x), indexAt(yAxis, y)];
  if (column === -1 || row === -1) return undefined;
  return { row, column, x: centreOf(xAxis, column), y: centreOf(yAxis, row) };
}
