import { centreOf, indexAt } from "../axis.js";
import { isOnGrid, type VariableDescription } from "../dataset-description.js";
import type { ProbeAnswer, ProbeRequest } from "../protocol.js";
import { valueText } from "../value-text.js";
import { finestOf } from "./chunk-plan.js";
import { PRIORITY } from "./chunk-queue.js";
import type { DatasetSession } from "./dataset-session.js";
import { unpacked } from "./picture/byte-scale.js";
import type { FoundCell } from "./picture/curvilinear-reader.js";
import type { AxisReader } from "./read-axis.js";

/** Reads the value of the cell at a place of the picture. @throws ReadFailure, or the signal's reason */
export async function probeCell(
  session: DatasetSession,
  axes: AxisReader,
  request: ProbeRequest,
  signal: AbortSignal,
): Promise<ProbeAnswer> {
  const { selection, x, y, inCells } = request;
  const variable = session.variable(selection.variable);
  const { shape, packing } = variable;
  const found = isOnGrid(variable, request.axes, inCells)
    ? await axes.curvilinear.cellAt(variable, x, y)
    : await cellOnGrid(axes, variable, request);
  if (found === undefined) return { kind: "value", cell: undefined, x, y, value: undefined, text: "" };
  const cell = shape.map((_, axis) =>
    axis === request.axes.x ? found.column : axis === request.axes.y ? found.row : (selection.at[axis] ?? 0),
  );
  const source = finestOf(variable);
  const { coords, offset } = session.placeOf(source, cell);
  const chunk = await session.readChunk(source, coords, PRIORITY.probe, signal);
  const value = chunk?.numbers === undefined ? Number.NaN : unpacked(chunk.numbers[offset]!, packing);
  return {
    kind: "value",
    cell,
    x: found.x,
    y: found.y,
    value: Number.isNaN(value) ? undefined : value,
    text: valueText(variable, chunk, offset),
  };
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
