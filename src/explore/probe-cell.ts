import { type Axis, cellAxis, centreOf, indexAt } from "./axis.js";
import { unpacked } from "./byte-scale.js";
import { PRIORITY } from "./chunk-queue.js";
import type { DatasetSession } from "./dataset-session.js";
import type { ProbeAnswer, ProbeRequest } from "./protocol.js";
import type { AxisReader } from "./read-axis.js";
import { valueText } from "./value-text.js";

/** Reads the value of the cell at a place of the picture. @throws ReadFailure, or the signal's reason */
export async function probeCell(
  session: DatasetSession,
  axes: AxisReader,
  request: ProbeRequest,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  const { selection, x, y, inCells } = request;
  const variable = session.variable(selection.variable);
  const { path, shape, chunkShape, packing } = variable;
  const [xAxis, yAxis] = (await Promise.all(
    [request.axes.x, request.axes.y].map(
      async (axis): Promise<Axis> => (inCells ? cellAxis(shape[axis]!) : axes.axis(variable, axis)),
    ),
  )) as [Axis, Axis];
  const [column, row] = [indexAt(xAxis, x), indexAt(yAxis, y)];
  if (column === -1 || row === -1)
    return { kind: "value", cell: undefined, x, y, value: undefined, text: "" };
  const cell = shape.map((_, axis) =>
    axis === request.axes.x ? column : axis === request.axes.y ? row : (selection.at[axis] ?? 0),
  );
  const coords = cell.map((index, axis) => Math.floor(index / chunkShape[axis]!));
  const source = { level: 0, path };
  const strides = session.stridesOf(source);
  const chunk = await session.queue.read(session.job(source, coords), PRIORITY.probe, signal);
  const offset = cell.reduce((sum, index, axis) => sum + (index % chunkShape[axis]!) * strides[axis]!, 0);
  const value = chunk?.numbers === undefined ? Number.NaN : unpacked(chunk.numbers[offset]!, packing);
  return {
    kind: "value",
    cell,
    x: centreOf(xAxis, column),
    y: centreOf(yAxis, row),
    value: Number.isNaN(value) ? undefined : value,
    text: valueText(variable, chunk, offset),
  };
}
