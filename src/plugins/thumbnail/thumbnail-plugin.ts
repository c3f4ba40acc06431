import { isCategorical } from "../../cf/packing.js";
import { createRecentMap, type RecentMap } from "../../collections/recent-map.js";
import type { DatasetSnapshot, ServedArray } from "../../dataset/dataset.js";
import { ZpublishError } from "../../errors.js";
import type { BodyReply, RouteRequest } from "../../http/reply.js";
import { normalNodePath } from "../../model/data-tree.js";
import { packageVersion } from "../../observe/versions.js";
import {
  choosePicture,
  type PictureChoice,
  type PictureStyle,
  pictureFlips,
  planPicture,
  readDirection,
} from "../../pages/pictures.js";
import type { Plugin, PluginContext } from "../plugin.js";
import { wrongParameter } from "../read-query.js";
import { PICTURE_PARAMETERS, parsePictureQuery, placeAt } from "./picture-query.js";

/** Planned pictures that are kept per snapshot, some kilobytes each: one for each variable and style. */
const MAX_PLANS = 512;

/** The plugin of small pictures of variables. */
const thumbnailPlugin = {
  name: "thumbnail",
  version: packageVersion,
  path: "zpublish/plugins/thumbnail",
  routes: (context) => [
    {
      path: "/datasets/{dataset_id}/thumbnail/{var:path}.png",
      priority: "page",
      operation: {
        summary: "A small picture of a variable",
        description:
          "A slice of the two horizontal dimensions, at the middle time and the first index of other dimensions. `index.{dimension}=n` chooses another, from the end if `n` is negative. " +
          "Missing values are transparent. At most 16 chunks of 64 MiB in all are read: of a larger slice an overview is shown, or its centre. " +
          "A variable of one dimension is shown as a line; coordinates of their own dimension, texts and scalars have no picture.",
        contentType: "image/png",
        parameters: { dataset_id: "Id of the dataset", var: "Path of the variable: `t2m`, `a/b/t2m`" },
        query: PICTURE_PARAMETERS,
        ranged: true,
      },
      handler: (request) => servePicture(context, request),
    },
  ],
} satisfies Plugin;
export default thumbnailPlugin;

async function servePicture(context: PluginContext, { params, query }: RouteRequest): Promise<BodyReply> {
  const { indices, ...style } = parsePictureQuery(query);
  const snapshot = context.datasets.get(params.dataset_id as string);
  const path = normalNodePath(params.var ?? "");
  const array = snapshot.arrays.get(path);
  if (array === undefined)
    throw new ZpublishError("not-found", `Variable '${path}' not found in dataset '${snapshot.id}'`);
  const choice = choosePicture(snapshot, array, style.size);
  if ("problem" in choice) {
    const message = `Variable '${path}' of dataset '${snapshot.id}' has no picture: ${choice.problem}`;
    throw new ZpublishError("not-found", message);
  }
  const { plane } = choice;
  if (plane === undefined) assertNoScale(style, "the picture is a line");
  else if (isCategorical(array.variable.attrs)) {
    if (style.range !== undefined)
      throw wrongParameter(
        "range",
        "not_applicable",
        "no range, since values are categories",
        `${style.range}`,
      );
    assertNoScale(style, "values are categories");
  }
  const shown = plane === undefined ? [0] : [plane.y, plane.x];
  const place = placeAt(choice.position, array.variable, shown, indices);
  const flips = await pictureFlips(snapshot, array, choice, (each) => directionOf(context, snapshot, each));
  const picture = planOnce(context, snapshot, choice, style, () => planPicture(choice, style, flips));
  return context.chunks.serve(choice.snapshot, picture, place.join("."), "image/png");
}

/** @throws ZpublishError `invalid-query` */
function assertNoScale({ scale, isReversed }: PictureStyle, reason: string): void {
  if (scale !== undefined)
    throw wrongParameter("scale", "not_applicable", `no scale, since ${reason}`, scale);
  if (isReversed) throw wrongParameter("reversed", "not_applicable", `no scale, since ${reason}`, "true");
}

/** Returns the direction of a coordinate, read once per snapshot. A failure is not kept. */
function directionOf(context: PluginContext, snapshot: DatasetSnapshot, coordinate: ServedArray) {
  const { path } = coordinate.plan;
  const kept = context.memo(
    snapshot,
    `direction ${path}`,
    (): { read?: Promise<-1 | 0 | 1> | undefined } => ({}),
  );
  kept.read ??= readDirection(coordinate, context.previews).catch((error) => {
    kept.read = undefined;
    throw error;
  });
  return kept.read;
}

/** Returns the planned picture of a style: the same object for all its requests, by which chunks are found again. */
function planOnce(
  context: PluginContext,
  snapshot: DatasetSnapshot,
  { array: { plan } }: PictureChoice,
  style: PictureStyle,
  make: () => ServedArray,
): ServedArray {
  const plans = context.memo(snapshot, "pictures", (): RecentMap<ServedArray> => createRecentMap(MAX_PLANS));
  const key = JSON.stringify([plan.path, style]);
  let picture = plans.get(key);
  if (picture === undefined) {
    picture = make();
    plans.set(key, picture);
  }
  return picture;
}
