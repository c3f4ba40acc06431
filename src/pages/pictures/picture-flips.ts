import { axisRole } from "../../cf/axis-roles.js";
import { packingOf } from "../../cf/packing.js";
import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import { ZpublishError } from "../../errors.js";
import type { PreviewService } from "../preview/preview.js";
import type { PictureChoice } from "./choose-picture.js";
import { coordinateOf, latitudesOf } from "./coordinates.js";

/** Axes of a picture that are drawn from their end, so that north is up and east to the right. */
export interface PictureFlips {
  readonly isFlippedY: boolean;
  readonly isFlippedX: boolean;
}

/** Tells if the values of a coordinate ascend (1) or descend (-1); 0 if neither. */
export type DirectionOf = (coordinate: ServedArray) => Promise<-1 | 0 | 1>;

/**
 * Finds the axes to flip: the vertical one if its coordinate ascends, the horizontal one if it descends. Axes with another role and
 * axes without a coordinate stay as they are stored, as the rows and columns of an image.
 * @param array The variable in the dataset itself, which has the coordinates.
 */
export async function pictureFlips(
  snapshot: DatasetSnapshot,
  { variable }: ServedArray,
  { plane }: Pick<PictureChoice, "plane">,
  directionOf: DirectionOf,
): Promise<PictureFlips> {
  if (plane === undefined) return { isFlippedY: false, isFlippedX: false };
  const [dimY, dimX] = [variable.dims[plane.y] as string, variable.dims[plane.x] as string];
  const ofY = coordinateOf(snapshot, variable, dimY) ?? latitudesOf(snapshot, variable, [dimY, dimX]);
  const ofX = coordinateOf(snapshot, variable, dimX);
  const [y, x] = await Promise.all([
    ofY && axisRole(dimY, ofY.variable.attrs) === "Y" ? directionOf(ofY) : 0,
    ofX && axisRole(dimX, ofX.variable.attrs) === "X" ? directionOf(ofX) : 0,
  ]);
  return { isFlippedY: y > 0, isFlippedX: x < 0 };
}

/**
 * Reads the direction of a coordinate from its first and last values.
 * @throws ZpublishError `source-unreadable` if they cannot be read: a picture must not be upside down instead.
 */
export async function readDirection(
  coordinate: ServedArray,
  previews: Pick<PreviewService, "values">,
): Promise<-1 | 0 | 1> {
  const { variable, document } = coordinate;
  const values = await previews.values(coordinate);
  if (values === undefined) {
    throw new ZpublishError(
      "source-unreadable",
      `the coordinate '${variable.path}' of a picture cannot be read`,
    );
  }
  const { missing, scale } = packingOf(variable.attrs, document.fill_value);
  const numbers = [...values.first, ...values.last]
    .map(Number)
    .filter((value) => Number.isFinite(value) && !missing.includes(value));
  const difference = ((numbers.at(-1) ?? 0) - (numbers[0] ?? 0)) * scale;
  return Math.sign(difference) as -1 | 0 | 1;
}
