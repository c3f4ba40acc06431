import { axisRole } from "../cf/axis-roles.js";
import type { DatasetPath, DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { Group, Variable } from "../model/data-tree.js";
import { encodePath, type Markup, markup, NO_MARKUP, trustedMarkup } from "./page.js";
import { AND_TOKEN, TOKEN_QUERY, UP } from "./page-place.js";
import { choosePicture, coordinateArray, describePicture, pictureSize } from "./pictures.js";

/** Ways to look at data that the server has, so that pages may link to them. */
export interface Looks {
  readonly explorer: boolean;
  readonly pictures: boolean;
  /** Whether there are map tiles, and a Web Map Service. Default: neither. */
  readonly tiles?: boolean;
  readonly wms?: boolean;
}

/** Tells which ways to look at data some routes are. */
export function looksOf(routes: readonly { readonly path: string }[], datasetPath: DatasetPath): Looks {
  const dataset = datasetPath("{dataset_id}");
  const has = (path: string) => routes.some((route) => route.path === dataset + path);
  return {
    ...{ explorer: has("explore"), pictures: has("thumbnail/{var:path}.png") },
    ...{ tiles: has("tiles/{var:path}/tilejson.json"), wms: has("wms") },
  };
}

/**
 * Links to the explorer of a group, or to one variable there.
 * @param base Link to the directory of the dataset's endpoints, such as {@link "./page-place.js".UP}.
 */
export function exploreLink(base: string, groupPath: string, variableName?: string): Markup {
  const group = groupPath === "/" ? "" : `groups${encodePath(groupPath)}/`;
  const view = variableName === undefined ? "" : `#v=${encodePath(variableName)}`;
  return trustedMarkup(`${base}${group}explore${TOKEN_QUERY}${view}`);
}

/** Links to the picture of a variable. */
export function pictureLink(base: string, { path }: Pick<Variable, "path">): Markup {
  return trustedMarkup(`${base}thumbnail/${encodePath(path)}.png`);
}

/** What a page needs to know of a picture to show it. Plain data. */
export interface PictureLook {
  readonly variable: Pick<Variable, "name" | "path">;
  readonly groupPath: string;
  readonly width: number;
  readonly height: number;
  /** What it shows, in a line. */
  readonly description: string;
}

/** Returns what the picture of a variable looks like; undefined if there is none. */
export function pictureLook(
  snapshot: DatasetSnapshot,
  group: Group,
  array: ServedArray,
): PictureLook | undefined {
  const picture = choosePicture(snapshot, array);
  if ("problem" in picture) return undefined;
  const { name, path } = array.variable;
  const description = describePicture(picture);
  return { variable: { name, path }, groupPath: group.path, ...pictureSize(picture), description };
}

/** Renders the picture of a variable, which leads to the explorer; empty if there is none. Browsers fetch it when it comes into view. */
export function renderPicture(base: string, look: PictureLook | undefined, looks: Looks): Markup {
  if (look === undefined || !looks.pictures) return NO_MARKUP;
  const { variable, groupPath, width, height, description } = look;
  const shown = `${looks.explorer ? "Explore" : "Picture of"} ${description}`;
  const image = markup`<img src="${pictureLink(base, variable)}${trustedMarkup(TOKEN_QUERY)}" alt="${shown}" width="${width}" height="${height}" loading="lazy" decoding="async">`;
  return looks.explorer
    ? markup`<a class="picture" href="${exploreLink(base, groupPath, variable.name)}">${image}</a>`
    : markup`<span class="picture">${image}</span>`;
}

/** Pixels of the picture at the top of a dataset's page: twice what it takes there, for sharp screens. */
const LARGE_SIZE = 704;

/** Renders the picture at the top of a page, which leads to the explorer; empty if there is none. */
export function renderLargePicture(
  snapshot: DatasetSnapshot,
  { group, array }: PlacedArray,
  looks: Looks,
): Markup {
  const picture = choosePicture(snapshot, array, LARGE_SIZE);
  if (!looks.pictures || "problem" in picture) return NO_MARKUP;
  const { variable } = array;
  const { width, height } = pictureSize(picture, LARGE_SIZE);
  const described = describePicture(picture);
  const source = markup`${pictureLink(UP, variable)}?size=${LARGE_SIZE}${trustedMarkup(AND_TOKEN)}`;
  const image = markup`<img src="${source}" alt="${looks.explorer ? "Explore" : "Picture of"} ${described}" width="${width}" height="${height}" decoding="async">`;
  return markup`<figure class="large">${looks.explorer ? markup`<a href="${exploreLink(UP, group.path, variable.name)}">${image}</a>` : image}<figcaption>${described}</figcaption></figure>`;
}

/** An array, and its group. */
export interface PlacedArray {
  readonly group: Group;
  readonly array: ServedArray;
}

/** Maximum of groups that are searched for the picture of a dataset, and of variables whose pictures are tried. */
const MAX_SEARCHED_GROUPS = 200;
const MAX_CHOSEN = 32;

/**
 * Picks the variable whose picture stands for a group: a map if there is one, with as many axes as any. For the root it may be in a
 * group below. Undefined if no variable has a picture.
 */
export function picturedArray(snapshot: DatasetSnapshot, group: Group): PlacedArray | undefined {
  const { root, groups } = snapshot.tree;
  let other: PlacedArray | undefined;
  let searched = 0;
  let chosen = 0;
  for (const each of group === root ? groups.values() : [group]) {
    if (++searched > MAX_SEARCHED_GROUPS) break;
    const candidates = [...each.variables.values()]
      .filter(({ name, shape }) => shape.length > 0 && !each.coordinateNames.has(name))
      .sort((a, b) => b.shape.length - a.shape.length);
    for (const { path } of candidates) {
      if (++chosen > MAX_CHOSEN) return other;
      const array = snapshot.arrays.get(path);
      if (array === undefined || "problem" in choosePicture(snapshot, array)) continue;
      if (isMap(snapshot, array.variable)) return { group: each, array };
      other ??= { group: each, array };
    }
  }
  return other;
}

function isMap(snapshot: DatasetSnapshot, variable: Variable): boolean {
  const roles = variable.dims.map((dim) =>
    axisRole(dim, coordinateArray(snapshot, variable, dim)?.variable.attrs),
  );
  return roles.includes("Y") && roles.includes("X");
}
