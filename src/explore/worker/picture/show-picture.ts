import { type FrameAnswer, isOnGrid, MISSING, type ShowRequest } from "../../protocol.js";
import { PRIORITY } from "../chunk-queue.js";
import { ChunkReading } from "../chunk-reading.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader } from "../read-axis.js";
import { ColourPicture, Picture, type PicturePlan, type PlannedChunk } from "./picture.js";
import { planCurvilinear, planGrid } from "./plan-picture.js";

/** Settles which chunks a picture needs. @throws ReadFailure */
export function planFrame(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const variable = session.variable(request.selection.variable);
  return isOnGrid(variable, request.axes, request.viewport.inCells)
    ? planCurvilinear(session, axes.curvilinear, request)
    : planGrid(session, axes, request);
}

function emptyPicture(
  { grid, isMean }: PicturePlan,
  { viewport: { width, height }, bands }: ShowRequest,
): Picture | ColourPicture {
  if (bands !== undefined) return new ColourPicture(width, height, isMean, bands.count);
  const picture = new Picture(width, height, isMean);
  const { pixels } = picture;
  grid?.rows.forEach((row, y) => {
    if (row === -1) pixels.fill(MISSING, y * width, (y + 1) * width);
  });
  grid?.columns.forEach((column, x) => {
    if (column === -1) for (let pixel = x; pixel < pixels.length; pixel += width) pixels[pixel] = MISSING;
  });
  return picture;
}

/** Prepares to read the chunks of a picture, and to send frames while they come. */
export function readingOfPicture(
  session: DatasetSession,
  request: ShowRequest,
  plan: PicturePlan,
  send: (frame: FrameAnswer) => void,
  fail: (error: unknown) => void,
): ChunkReading<PlannedChunk> {
  const { chunks, resolution, part } = plan;
  const picture = emptyPicture(plan, request);
  // What is seen where the picture waits for chunks.
  const draft = emptyPicture({ ...plan, isMean: false }, request) as Picture & ColourPicture;
  const drafted = new Map(plan.draft.map(({ job, place }) => [job.key, place]));
  const isDrafted = ({ job }: PlannedChunk) => drafted.has(job.key);
  return new ChunkReading(session, {
    priority: PRIORITY.picture,
    chunks: [...chunks.filter(isDrafted), ...chunks.filter((chunk) => !isDrafted(chunk))],
    endsOnFailure: false,
    fill({ job, place }, chunk) {
      picture.paint(place, chunk?.numbers);
      const inDraft = drafted.get(job.key);
      if (inDraft !== undefined) draft.paint(inDraft, chunk?.numbers);
    },
    answer(open, failed) {
      const { width, height, cells, missing } = picture;
      send({
        kind: "frame",
        pixels: open === 0 ? picture.pixels : picture.over(draft),
        width,
        height,
        done: chunks.length - open - failed,
        total: chunks.length,
        level: resolution.level,
        cells: open + failed === 0 ? cells : plan.cells,
        missing,
        part,
      });
    },
    fail,
  });
}
