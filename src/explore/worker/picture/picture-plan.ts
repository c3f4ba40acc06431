import type { VariableDescription } from "../../dataset-description.js";
import type { ShowRequest } from "../../protocol.js";
import { costOf, isTooMuch, type ReadingCost, type Resolution } from "../chunk-plan.js";
import type { ChunkJob } from "../chunk-queue.js";
import type { Chunk, DatasetSession } from "../dataset-session.js";
import { ByteScale } from "./byte-scale.js";
import type { ChunkPlace } from "./picture.js";

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
  /** Cells under the rows and columns of pixels, -1 outside of the data; undefined if the grid is curvilinear. */
  readonly grid: { readonly rows: Int32Array; readonly columns: Int32Array } | undefined;
  /** Cells in the picture. */
  readonly cells: number;
  readonly fine: LevelPlan;
  /** Coarser levels, the coarsest first: its chunks are few, and are read before the fine ones. */
  readonly coarse: readonly LevelPlan[];
  readonly isMean: boolean;
  readonly cost: ReadingCost;
}

/** The plane of a picture, in the chunks of a level. */
export interface PlaneInChunks {
  /** 0 along the picture's axes. */
  readonly coords: readonly number[];
  readonly base: ChunkPlace["base"];
  readonly scale: ByteScale;
}

/** Returns where the indices of the other axes put a picture. */
export function placeOfPlane(
  session: DatasetSession,
  { dims }: VariableDescription,
  { selection, axes, range }: ShowRequest,
  resolution: Resolution,
): PlaneInChunks {
  const isShown = (axis: number) => axis === axes.x || axis === axes.y;
  const cell = dims.map((_, axis) => (isShown(axis) ? 0 : (selection.at[axis] ?? 0)));
  const { coords, offset: base } = session.placeOf(resolution, cell);
  return { coords, base, scale: new ByteScale(session.documentOf(resolution).packing, range) };
}

/**
 * Settles the resolution that is shown: the chosen one, unless it needs too many chunks and a coarser one needs less.
 * @param resolutions Finest first.
 * @param plan Plans the chunks of a resolution.
 */
export function settleLevel(
  session: DatasetSession,
  { dataType }: VariableDescription,
  isConfirmed: boolean,
  resolutions: readonly Resolution[],
  chosen: Resolution,
  plan: (resolution: Resolution) => LevelPlan,
): { readonly fine: LevelPlan; readonly cost: ReadingCost; readonly coarser: readonly Resolution[] } {
  for (let index = resolutions.indexOf(chosen); ; index++) {
    const fine = plan(resolutions[index] as Resolution);
    const unread = fine.chunks.filter(({ job }) => !session.queue.has(job.key)).length;
    const cost = costOf(unread, fine.resolution.chunkShape, dataType.itemSize);
    if (!isTooMuch(cost) || isConfirmed || index === resolutions.length - 1)
      return { fine, cost, coarser: resolutions.slice(index + 1) };
  }
}
