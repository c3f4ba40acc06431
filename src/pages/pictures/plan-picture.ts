import { flagValuesOf, isCategorical, packingOf } from "../../cf/packing.js";
import { encoderRevision } from "../../codec/encoder-revision.js";
import { PNG_ZLIB_LEVEL } from "../../codec/png.js";
import { COLOUR_REVISION, type ColourScaleName } from "../../colour/colour-scales.js";
import type { ServedArray } from "../../dataset/dataset.js";
import { createComputePlan } from "../../zarr/plan/create-encoding-plan.js";
import type { ComputeStep } from "../../zarr/plan/encoding-plan.js";
import { type PictureChoice, pictureSize } from "./choose-picture.js";
import type { PictureFlips } from "./picture-flips.js";

/** Revision of the way pictures are drawn: part of their ETags. */
const PICTURE_REVISION = "1";

/** Colours and size of a picture. */
export interface PictureStyle {
  /** Greatest width and height in pixels. */
  readonly size: number;
  readonly range?: readonly [low: number, high: number] | undefined;
  readonly scale?: ColourScaleName | undefined;
  readonly isReversed: boolean;
}

/**
 * Plans the pictures of all slices of an array: one chunk of the array that is returned is one PNG.
 * @throws ZpublishError `unsupported`
 */
export function planPicture(choice: PictureChoice, style: PictureStyle, flips: PictureFlips): ServedArray {
  const { array, plane, boxShape } = choice;
  const { variable, document, stored } = array;
  const { size, ...colours } = style;
  const common = {
    from: variable.dataType,
    packing: packingOf(variable.attrs, document.fill_value),
    ...pictureSize(choice, size),
    revision: [
      PICTURE_REVISION,
      COLOUR_REVISION,
      encoderRevision({ id: "zlib", level: PNG_ZLIB_LEVEL }),
    ].join(" "),
  };
  const categories = isCategorical(variable.attrs) ? flagValuesOf(variable.attrs) : undefined;
  const compute: ComputeStep =
    plane === undefined
      ? { kind: "line", ...common, range: style.range }
      : { kind: "picture", ...common, ...plane, ...flips, ...colours, categories };
  // A picture without values is a transparent one.
  const request = { path: variable.path, box: boxShape, compute, encode: [], absentIsAbsent: false };
  const plan = createComputePlan(stored, request);
  return Object.freeze({ ...array, plan });
}
