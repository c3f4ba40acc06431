import { isOnGrid } from "../../dataset-description.js";
import type { ShowRequest } from "../../protocol.js";
import type { DatasetSession } from "../dataset-session.js";
import type { AxisReader } from "../read-axis.js";
import { MISSING } from "./byte-scale.js";
import { Picture } from "./picture.js";
import type { PicturePlan } from "./picture-plan.js";
import { planCurvilinear } from "./plan-curvilinear.js";
import { planGrid } from "./plan-grid.js";

/** Settles which chunks a picture needs. @throws ReadFailure */
export function planPicture(
  session: DatasetSession,
  axes: AxisReader,
  request: ShowRequest,
): Promise<PicturePlan> {
  const variable = session.variable(request.selection.variable);
  return isOnGrid(variable, request.axes, request.viewport.inCells)
    ? planCurvilinear(session, axes.curvilinear, request)
    : planGrid(session, axes, request);
}

/** Creates the picture of a plan, without any chunk. */
export function emptyPicture({ grid, isMean, coarse }: PicturePlan, request: ShowRequest): Picture {
  const { width, height } = request.viewport;
  const picture = new Picture(width, height, { isMean, hasLevels: coarse.length > 0 });
  const { pixels } = picture;
  grid?.rows.forEach((row, y) => {
    if (row === -1) pixels.fill(MISSING, y * width, (y + 1) * width);
  });
  grid?.columns.forEach((column, x) => {
    if (column === -1) for (let pixel = x; pixel < pixels.length; pixel += width) pixels[pixel] = MISSING;
  });
  return picture;
}
