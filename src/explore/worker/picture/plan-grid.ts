import type { Axis } from "../../axis.js";
import type { VariableDescription } from "../../dataset-description.js";
import type { ShowRequest } from "../../protocol.js";
import { chooseResolution, chunksFromCentre, type Resolution, resolutionsOf } from "../chunk-plan.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader } from "../read-axis.js";
import { type LevelPlan, type PicturePlan, placeOfPlane, settleLevel } from "./picture-plan.js";
import { runsByChunk } from "./picture-tables.js";
import { type ScreenTable, screenTable } from "./screen-tables.js";

/** Settles which chunks a picture needs whose rows and columns are cells of two axes. @throws ReadFailure */
export async function planGrid(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const { selection, viewport, isMoving, isConfirmed } = request;
  const variable = session.variable(selection.variable);
  const { box, width, height, inCells } = viewport;
  const [xAxis, yAxis] = await axes.plane(variable, request.axes, inCells);
  const columns = screenTable(xAxis, box.left, box.right, width, false);
  const rows = screenTable(yAxis, box.top, box.bottom, height, false);
  const resolutions = resolutionsOf(variable);
  const chosen = chooseResolution(resolutions, request.axes, { x: columns.density, y: rows.density });

  const isMeanOf = ({ level }: Resolution) =>
    level === 0 && Math.max(columns.density, rows.density) > 2 && !isMoving && !variable.isCategorical;
  const plan = (resolution: Resolution) => {
    const table = (axis: Axis, begin: number, end: number, pixels: number, nearest: ScreenTable) =>
      isMeanOf(resolution) ? screenTable(axis, begin, end, pixels, true) : nearest;
    return planLevel(session, variable, request, resolution, {
      rows: table(yAxis, box.top, box.bottom, height, rows),
      columns: table(xAxis, box.left, box.right, width, columns),
    });
  };
  const { fine, cost, coarser } = settleLevel(session, variable, isConfirmed, resolutions, chosen, plan);
  return {
    variable,
    grid: { rows: rows.from, columns: columns.from },
    cells: distinct(rows.from) * distinct(columns.from),
    fine,
    coarse: coarser.map(plan).reverse(),
    isMean: isMeanOf(fine.resolution),
    cost,
  };
}

function planLevel(
  session: DatasetSession,
  variable: VariableDescription,
  request: ShowRequest,
  resolution: Resolution,
  tables: { readonly rows: ScreenTable; readonly columns: ScreenTable },
): LevelPlan {
  const { x, y } = request.axes;
  const { factors, chunkShape } = resolution;
  const { strides } = session.documentOf(resolution);
  const rows = runsByChunk(tables.rows, factors[y]!, chunkShape[y]!, strides[y]!);
  const columns = runsByChunk(tables.columns, factors[x]!, chunkShape[x]!, strides[x]!);
  const { coords, base, scale } = placeOfPlane(session, variable, request, resolution);
  const chunks = chunksFromCentre(rows.keys(), columns.keys()).map(({ row, column }) => ({
    job: session.job(resolution, coords.with(y, row).with(x, column)),
    place: { rows: rows.get(row)!, columns: columns.get(column)!, base, scale },
  }));
  return { resolution, chunks };
}

function distinct(cells: Int32Array): number {
  let count = 0;
  let before = -1;
  for (const cell of cells) {
    if (cell !== -1 && cell !== before) count++;
    before = cell;
  }
  return count;
}
