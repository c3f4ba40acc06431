import { colourBandsOf } from "../cf/image-data.js";
import { isCategorical } from "../cf/packing.js";
import { type BoundedMap, createBoundedMap } from "../collections/bounded-map.js";
import { type DatasetSnapshot, findArray, type ServedArray } from "../dataset/dataset.js";
import { ZpublishError } from "../errors.js";
import { createSlice } from "../event-loop/cooperative-task.js";
import { indexWithin, parseQuery, readInteger, wrongParameter } from "../http/query.js";
import type { BodyReply, RouteRequest } from "../http/reply.js";
import type { QueryParameter } from "../http/router.js";
import { packageVersion } from "../observe/versions.js";
import {
  assertNoColours,
  COLOUR_QUERY,
  choosePicture,
  DEFAULT_PICTURE_SIZE,
  type PictureChoice,
  type PictureStyle,
  parseColours,
  pictureFlips,
  planPicture,
  readDirection,
} from "../pages/pictures.js";
import { keepPromise } from "./documents.js";
import type { CoreContext, Plugin } from "./plugin.js";

/** The plugin of small pictures of variables. */
const thumbnailPlugin = {
  name: "thumbnail",
  version: packageVersion,
  path: "zpublish/plugins/thumbnail",
  routes: (context: CoreContext) => [
    {
      path: "/datasets/{dataset_id}/thumbnail/{var:path}.png",
      priority: "page",
      operation: {
        summary: "Thumbnail of a variable",
        description:
          "A slice of the two horizontal dimensions, at the middle time and the first index of other dimensions. `index.{dimension}=n` chooses another, from the end if `n` is negative. " +
          "Missing values are transparent. Images are shown in colour, unless the query names a band, a range or a scale. At most 16 chunks of 64 MiB in all are read, or 60 of 4 MiB: of a larger slice an overview is shown, or its centre. " +
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

const slice = createSlice();

async function servePicture(context: CoreContext, { params, query }: RouteRequest): Promise<BodyReply> {
  const { indices, ...style } = parsePictureQuery(query);
  const snapshot = context.datasets.get(params.dataset_id as string);
  const array = findArray(snapshot, params.var ?? "");
  const { path } = array.variable;
  const band = colourBandsOf(array.variable)?.axis ?? -1;
  const isOneBand = indices.has(array.variable.dims[band] ?? "") || hasColours(style);
  const choice = choosePicture(snapshot, array, style.size, isOneBand);
  if ("problem" in choice) {
    const message = `Variable '${path}' of dataset '${snapshot.id}' has no picture: ${choice.problem}`;
    throw new ZpublishError("not-found", message);
  }
  const { plane } = choice;
  if (plane === undefined) assertNoColours({ ...style, range: undefined }, "the picture is a line");
  else if (isCategorical(array.variable.attrs)) assertNoColours(style, "values are categories");
  const shown = plane === undefined ? [0] : [plane.y, plane.x];
  const place = placeAt(choice.position, array.variable, shown, indices);
  const flips = await pictureFlips(snapshot, array, choice, (each, isAcross) =>
    keepPromise(context, snapshot, `direction ${each.plan.path} ${isAcross}`, () =>
      readDirection(each, context.previews, isAcross),
    ),
  );
  // A hundred pictures may have waited for the same directions.
  while (slice.isOver()) await slice.next();
  const picture = planOnce(context, snapshot, choice, style, () => planPicture(choice, style, flips));
  return context.chunks.serve(choice.snapshot, picture, { key: place.join(".") }, undefined, "image/png");
}

/** Whether a request says how numbers become colours. */
function hasColours({ range, scale, isReversed }: PictureStyle): boolean {
  return range !== undefined || scale !== undefined || isReversed;
}

/** Planned pictures that are kept per snapshot, some kilobytes each: one for each variable and style. */
const MAX_PLANS = 512;

/** Returns the planned picture of a style: the same object for all its requests, by which chunks are found again. */
function planOnce(
  context: CoreContext,
  snapshot: DatasetSnapshot,
  { array: { plan }, bands }: PictureChoice,
  style: PictureStyle,
  make: () => ServedArray,
): ServedArray {
  const plans = context.memo(
    snapshot,
    "pictures",
    (): BoundedMap<ServedArray> => createBoundedMap({ maxEntries: MAX_PLANS }),
  );
  const key = JSON.stringify([plan.path, style, bands]);
  let picture = plans.get(key);
  if (picture === undefined) {
    picture = make();
    plans.set(key, picture);
  }
  return picture;
}

const MIN_SIZE = 64;
const MAX_SIZE = 1024;
/** Beginning of the names of indices. */
const INDEX = "index.";

/** Query of a picture. */
interface PictureQuery extends PictureStyle {
  /** Indices by dimension as they came: negative from the end. */
  readonly indices: ReadonlyMap<string, number>;
}

/** Parameters of a picture for the API description. `index.{dim}` has as many names as there are dimensions. */
const PICTURE_PARAMETERS: Readonly<Record<string, QueryParameter>> = {
  size: {
    description: "Greatest width and height in pixels",
    schema: { type: "integer", minimum: MIN_SIZE, maximum: MAX_SIZE, default: DEFAULT_PICTURE_SIZE },
  },
  range: {
    description:
      "Values of the first and last colour, or of the bottom and top of a line: `240,310`. Default: by the values of the picture",
    schema: { type: "string", examples: ["240,310"] },
  },
  ...COLOUR_QUERY,
};

/**
 * Parses the query of a picture. `token` is left to those who check it.
 * @throws ZpublishError `invalid-query`
 */
export function parsePictureQuery(query: string): PictureQuery {
  const values = parseQuery(query, { once: [...Object.keys(PICTURE_PARAMETERS), `${INDEX}{dimension}`] });
  const indices = new Map<string, number>();
  for (const [name, [value = ""]] of values) {
    if (name.startsWith(INDEX))
      indices.set(
        name.slice(INDEX.length),
        readInteger(name, value, Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
      );
  }
  const [size] = values.get("size") ?? [];
  return {
    size: size === undefined ? DEFAULT_PICTURE_SIZE : readInteger("size", size, MIN_SIZE, MAX_SIZE),
    ...parseColours(values),
    indices,
  };
}

/**
 * Returns the place of a picture with the indices that were asked for.
 * @param position Place by default.
 * @param shown Axes that the picture shows.
 * @throws ZpublishError `invalid-query` if a dimension is none of the variable's others, or an index is outside.
 */
function placeAt(
  position: readonly number[],
  { dims, shape }: { readonly dims: readonly string[]; readonly shape: readonly number[] },
  shown: readonly number[],
  indices: ReadonlyMap<string, number>,
): number[] {
  const place = [...position];
  for (const [dim, index] of indices) {
    const axis = dims.indexOf(dim);
    const others = dims.filter((_, each) => !shown.includes(each));
    if (axis < 0 || shown.includes(axis)) {
      const expected =
        others.length === 0
          ? "no index, since the picture shows all dimensions"
          : `an index of ${others.join(", ")}`;
      throw wrongParameter(`index.${dim}`, "unknown_dimension", expected, dim);
    }
    place[axis] = indexWithin(`${INDEX}${dim}`, index, shape[axis]!);
  }
  return place;
}
