import { axisRole, type Plane, planeOf } from "../../cf/axis-roles.js";
import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import { completeCodec, decodeProblem } from "../../zarr/plan/codec-rules.js";
import { formatByteLength, formatCount } from "../format-number.js";
import { isIndexCoordinate } from "../variable-row.js";
import { coordinateOf } from "./coordinates.js";
import { boxOf, lineBoxOf, MAX_DECODED_BYTES, shownShare, unitBytes } from "./picture-box.js";

/** Greatest width and height of a picture in pixels, unless a request says another. */
export const DEFAULT_PICTURE_SIZE = 320;

/** A picture of a variable: a plane of it, or of a coarser version. */
export interface PictureChoice {
  /** The snapshot that has `array`: the dataset's, or that of its overviews. */
  readonly snapshot: DatasetSnapshot;
  readonly array: ServedArray;
  /** Axes that run down and to the right; undefined if the picture is a line, of the only axis. */
  readonly plane: Plane | undefined;
  /** Elements per axis that are shown. */
  readonly boxShape: readonly number[];
  /** Place of the box in the grid of such boxes: the index along axes that are not shown. */
  readonly position: readonly number[];
  /** Whether the box is the centre of the plane, since the whole would take too long to read. */
  readonly isCentre: boolean;
}

/** An array that a picture may be made of, and its snapshot. */
type PictureSource = Pick<PictureChoice, "snapshot" | "array">;

/** Sentence that says why there is no picture. */
export interface NoPicture {
  readonly problem: string;
}

/**
 * Chooses the picture of a variable. It is a plane by the roles of axes, at the middle time, else at the first index; a variable with
 * one axis is a line. A plane of too many chunks is taken from the coarsest overview that has as many cells as the picture pixels. If
 * none may be read whole, its centre is shown.
 * @param size Greatest width and height in pixels.
 */
export function choosePicture(
  snapshot: DatasetSnapshot,
  array: ServedArray,
  size: number = DEFAULT_PICTURE_SIZE,
): PictureChoice | NoPicture {
  const { variable, stored } = array;
  const { dims, shape, dataType } = variable;
  if (!"biuf".includes(dataType.kind)) return { problem: `it holds no numbers but ${dataType.numpyName}` };
  const attributesOf = (dim: string) => coordinateOf(snapshot, variable, dim)?.variable.attrs;
  const plane = planeOf(dims, attributesOf);
  if (dims.length === 0) return { problem: "it has no dimensions" };
  if (isIndexCoordinate(variable)) return { problem: "it is the coordinate of its own dimension" };
  if (shape.includes(0)) return { problem: "it has no values" };
  const codec = [...stored.codecs, ...(stored.variants ?? []).flat()]
    .map((each) => decodeProblem(completeCodec(each)))
    .find((each) => each !== undefined);
  if (codec !== undefined) return { problem: codec };

  const from = plane === undefined ? { snapshot, array } : sourceOf(snapshot, array, plane, size);
  const box = plane === undefined ? lineBoxOf(array) : boxOf(from.array, plane, array);
  if (box === undefined) {
    return {
      problem: `its chunks have ${formatByteLength(unitBytes(from.array, plane ?? { y: 0, x: 0 }))}, and at most ${formatByteLength(MAX_DECODED_BYTES)} are read for a picture`,
    };
  }
  const position = box.position.map((index, axis) => {
    if (plane === undefined || axis === plane.y || axis === plane.x) return index;
    const isTime = axisRole(dims[axis] as string, attributesOf(dims[axis] as string)) === "T";
    return isTime ? Math.floor((shape[axis] as number) / 2) : 0;
  });
  return { ...from, plane, boxShape: box.boxShape, position, isCentre: box.isCentre };
}

/** Returns the width and height of a picture in pixels: the proportions of its cells, in a square of `size` pixels; 2 to 1 for a line. */
export function pictureSize(
  { boxShape, plane, array }: Pick<PictureChoice, "boxShape" | "plane" | "array">,
  size: number = DEFAULT_PICTURE_SIZE,
): { readonly width: number; readonly height: number } {
  if (plane === undefined) return { width: size, height: Math.round(size / 2) };
  const [rows, columns] = [plane.y, plane.x].map((axis) =>
    Math.min(boxShape[axis] as number, array.variable.shape[axis] as number),
  ) as [number, number];
  const scale = size / Math.max(rows, columns);
  return { width: Math.max(1, Math.round(columns * scale)), height: Math.max(1, Math.round(rows * scale)) };
}

/** Describes a picture in a line, for people who do not see it: `air at time 1460 of 2,920`. */
export function describePicture({ array, plane, boxShape, position, isCentre }: PictureChoice): string {
  const { name, dims, shape } = array.variable;
  const axes = plane === undefined ? [0] : [plane.y, plane.x];
  const places = dims.flatMap((dim, axis) =>
    axes.includes(axis) || shape[axis] === 1
      ? []
      : [`${dim} ${formatCount(position[axis] as number)} of ${formatCount(shape[axis] as number)}`],
  );
  const shown = axes.map((axis) => formatCount(boxShape[axis] as number)).join(" × ");
  const all = axes.map((axis) => formatCount(shape[axis] as number)).join(" × ");
  const at = places.length === 0 ? "" : ` at ${places.join(", ")}`;
  return `${name}${at}${isCentre ? `: the centre, ${shown} of ${all} cells` : ""}`;
}

function sourceOf(snapshot: DatasetSnapshot, array: ServedArray, plane: Plane, size: number): PictureSource {
  const whole = { snapshot, array };
  if (shownShare(array, plane) === 1) return whole;
  const levels = levelsOf(snapshot, array);
  const shareOf = (source: PictureSource) => shownShare(source.array, plane, array);
  const few = levels.filter((level) => shareOf(level) === 1);
  const wanted = pictureSize({ array, plane, boxShape: array.variable.shape }, size);
  const fine = few.findLast(
    ({ array: { variable } }) =>
      (variable.shape[plane.x] as number) >= wanted.width &&
      (variable.shape[plane.y] as number) >= wanted.height,
  );
  // Centres of about the same share are made of the same stored chunks: the finest shows most.
  const widest = [whole, ...levels].reduce((best, each) =>
    shareOf(each) > 1.1 * shareOf(best) ? each : best,
  );
  return fine ?? few[0] ?? widest;
}

/** Lists the coarser versions of an array, finest first. */
function levelsOf({ overviews }: DatasetSnapshot, { variable: { path } }: ServedArray): PictureSource[] {
  const levels: PictureSource[] = [];
  if (overviews === undefined) return levels;
  for (let level = 1; ; level++) {
    const array = overviews.arrays.get(`${level}/${path}`);
    if (array === undefined) return levels;
    levels.push({ snapshot: overviews, array });
  }
}
