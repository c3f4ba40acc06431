import type { DataTree, Group, Variable } from "../model/data-tree.js";
import { encodePath } from "./encode-path.js";
import { type Markup, markup, NO_MARKUP, trustedMarkup } from "./markup.js";
import { TOKEN_QUERY } from "./page-place.js";

/** Ways to look at data that the server has, so that pages may link to them. */
export interface Looks {
  /** Whether there is the explorer. */
  readonly explorer: boolean;
  /** Whether there are pictures of variables. */
  readonly pictures: boolean;
}

const EXPLORER_ROUTE = "/datasets/{dataset_id}/explore";
const PICTURE_ROUTE = "/datasets/{dataset_id}/thumbnail/{var:path}.png";

/** Size of a picture unless its URL asks for another. */
const PICTURE_WIDTH = 320;
const PICTURE_HEIGHT = 160;

/** Tells which ways to look at data some routes are. */
export function looksOf(routes: readonly { readonly path: string }[]): Looks {
  const has = (path: string) => routes.some((route) => route.path === path);
  return { explorer: has(EXPLORER_ROUTE), pictures: has(PICTURE_ROUTE) };
}

/** Tells whether there is a picture of a variable: it has numbers, and at least two axes with some length. */
export function hasPicture({ dataType, shape }: Variable): boolean {
  return /^[biuf]$/.test(dataType.kind) && shape.length >= 2 && shape.every((length) => length > 0);
}

/**
 * Links to the explorer of a group, or to one variable there.
 * @param base Link to the dataset's directory `/datasets/{id}/`, such as {@link "./page-place.js".UP}.
 * @param groupPath As `Group.path` is.
 */
export function exploreLink(base: string, groupPath: string, variableName?: string): Markup {
  const group = groupPath === "/" ? "" : `groups${encodePath(groupPath)}/`;
  const view = variableName === undefined ? "" : `#v=${encodePath(variableName)}`;
  return trustedMarkup(`${base}${group}explore${TOKEN_QUERY}${view}`);
}

/** Links to the picture of a variable. @param base As for {@link exploreLink}. */
export function pictureLink(base: string, { path }: Variable): Markup {
  return trustedMarkup(`${base}thumbnail/${encodePath(path)}.png`);
}

/**
 * Renders the picture of a variable, which leads to the explorer. The browser fetches it when it comes into view.
 * @param base As for {@link exploreLink}.
 */
export function renderPicture(base: string, groupPath: string, variable: Variable, looks: Looks): Markup {
  if (!looks.pictures) return NO_MARKUP;
  const { name } = variable;
  const token = trustedMarkup(TOKEN_QUERY);
  const image = (alt: string) =>
    markup`<img src="${pictureLink(base, variable)}${token}" alt="${alt}" width="${PICTURE_WIDTH}" height="${PICTURE_HEIGHT}" loading="lazy" decoding="async">`;
  return looks.explorer
    ? markup`<a class="picture" href="${exploreLink(base, groupPath, name)}">${image(`Explore ${name}`)}</a>`
    : markup`<span class="picture">${image(`Picture of ${name}`)}</span>`;
}

/** A variable, and the group that it is in. */
export interface PlacedVariable {
  readonly group: Group;
  readonly variable: Variable;
}

/** Maximum of groups in which the picture of a dataset is looked for. */
const MAX_SEARCHED_GROUPS = 200;

/**
 * Picks the variable whose picture stands for a group: the one with the most axes; for the root also that of the first group with
 * any. Undefined if there is none.
 */
export function picturedVariable(
  { root, groups }: DataTree,
  group: Group = root,
): PlacedVariable | undefined {
  let searched = 0;
  for (const each of group === root ? groups.values() : [group]) {
    if (++searched > MAX_SEARCHED_GROUPS) break;
    let best: Variable | undefined;
    for (const variable of each.variables.values()) {
      if (each.coordinateNames.has(variable.name) || !hasPicture(variable)) continue;
      if (best === undefined || variable.shape.length > best.shape.length) best = variable;
    }
    if (best !== undefined) return { group: each, variable: best };
  }
  return undefined;
}
