import { cellAxis } from "./axis.js";
import { ByteScale } from "./byte-scale.js";
import {
  chooseResolution,
  chunkOfCell,
  chunksFromCentre,
  costOf,
  isTooMuch,
  type ReadingCost,
  type Resolution,
  resolutionsOf,
} from "./chunk-plan.js";
import type { ChunkJob } from "./chunk-queue.js";
import type { VariableDescription } from "./dataset-description.js";
import type { Chunk, DatasetSession } from "./dataset-session.js";
import { type ChunkPlace, Picture } from "./picture.js";
import { runsByChunk } from "./picture-tables.js";
import type { ShowRequest } from "./protocol.js";
import type { AxisReader } from "./read-axis.js";
import { type ScreenTable, screenTable } from "./screen-tables.js";

/** Chunks of one level that a picture shows. */
export interface LevelPlan {
  readonly resolution: Resolution;
  readonly chunks: readonly PlannedChunk[];
}

/** A chunk, and its place in the picture. */
export interface PlannedChunk {
  readonly job: ChunkJob<Chunk>;
  readonly place: ChunkPlace;
}

/** What has to be read for a picture. */
export interface PicturePlan {
  readonly variable: VariableDescription;
  readonly rows: ScreenTable;
  readonly columns: ScreenTable;
  readonly fine: LevelPlan;
  /** Coarser levels, the coarsest first: its chunks are few, and are read before the fine ones. */
  readonly coarse: readonly LevelPlan[];
  readonly isMean: boolean;
  readonly cost: ReadingCost;
}

/** Settles which chunks a picture needs. @throws ReadFailure */
export async function planPicture(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const { selection, viewport, isMoving } = request;
  const variable = session.variable(selection.variable);
  const { x, y } = request.axes;
  const { box, width, height, inCells } = viewport;
  const [xAxis, yAxis] = inCells
    ? [cellAxis(variable.shape[x]!), cellAxis(variable.shape[y]!)]
    : await Promise.all([axes.axis(variable, x), axes.axis(variable, y)]);
  const columns = screenTable(xAxis, box.left, box.right, width, false);
  const rows = screenTable(yAxis, box.top, box.bottom, height, false);
  const resolutions = resolutionsOf(variable);
  const chosen = chooseResolution(resolutions, request.axes, { x: columns.density, y: rows.density });

  const plan = (resolution: Resolution, isMean: boolean) => {
    const table = (axis: typeof xAxis, begin: number, end: number, pixels: number, nearest: ScreenTable) =>
      isMean ? screenTable(axis, begin, end, pixels, true) : nearest;
    return planLevel(session, variable, request, resolution, {
      rows: table(yAxis, box.top, box.bottom, height, rows),
      columns: table(xAxis, box.left, box.right, width, columns),
    });
  };
  // A level that needs too many chunks gives way to a coarser one.
  let index = resolutions.indexOf(chosen);
  let fine: LevelPlan;
  let cost: ReadingCost;
  let isMean: boolean;
  for (;;) {
    const resolution = resolutions[index] as Resolution;
    const density = Math.max(columns.density / resolution.factors[x]!, rows.density / resolution.factors[y]!);
    isMean = resolution.level === 0 && density > 2 && !isMoving && !variable.isCategorical;
    fine = plan(resolution, isMean);
    const unread = fine.chunks.filter(({ job }) => !session.queue.has(job.key)).length;
    cost = costOf(unread, resolution.chunkShape, variable.dataType.itemSize);
    if (!isTooMuch(cost) || request.isConfirmed || index === resolutions.length - 1) break;
    index++;
  }
  const coarse = resolutions.slice(index + 1).map((resolution) => plan(resolution, false));
  return { variable, rows, columns, fine, coarse: coarse.reverse(), isMean, cost };
}

function planLevel(
  session: DatasetSession,
  variable: VariableDescription,
  { selection, axes }: ShowRequest,
  resolution: Resolution,
  tables: { readonly rows: ScreenTable; readonly columns: ScreenTable },
): LevelPlan {
  const { factors, chunkShape, shape } = resolution;
  const strides = session.stridesOf(resolution);
  const runs = (table: ScreenTable, axis: number) =>
    runsByChunk(table, factors[axis]!, chunkShape[axis]!, strides[axis]!);
  const rows = runs(tables.rows, axes.y);
  const columns = runs(tables.columns, axes.x);
  const cell = variable.dims.map((_, axis) =>
    axis === axes.x || axis === axes.y ? 0 : (selection.at[axis] ?? 0),
  );
  const coords = chunkOfCell(resolution, cell);
  const base = cell.reduce((sum, index, axis) => {
    const within =
      Math.min(Math.floor(index / factors[axis]!), shape[axis]! - 1) - coords[axis]! * chunkShape[axis]!;
    return sum + within * strides[axis]!;
  }, 0);
  const chunks = chunksFromCentre(rows.keys(), columns.keys()).map(({ row, column }) => ({
    job: session.job(resolution, coords.with(axes.y, row).with(axes.x, column)),
    place: { rows: rows.get(row)!, columns: columns.get(column)!, base },
  }));
  return { resolution, chunks };
}

/** Creates the picture of a plan, without any chunk. */
export function emptyPicture(
  { variable, rows, columns, isMean }: PicturePlan,
  request: ShowRequest,
): Picture {
  const { width, height } = request.viewport;
  const scale = new ByteScale(variable.packing, request.range);
  const picture = new Picture(width, height, scale, variable.packing, isMean);
  picture.clearOutside(rows.from, columns.from);
  return picture;
}
