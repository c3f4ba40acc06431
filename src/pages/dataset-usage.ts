import { packingOf } from "../cf/packing.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { Group, Variable } from "../model/data-tree.js";
import type { CodePacking, CodeVariable } from "../usage/code-selection.js";
import { type ClientCode, selectionCode } from "../usage/selection-code.js";
import { encodePath } from "./encode-path.js";
import { type Markup, markup, trustedMarkup } from "./markup.js";
import { DATASET_URL, TOKEN_QUERY, UP } from "./page-place.js";

/** Prefixes under which a dataset may be served as a Zarr store; the plugins have the same names. */
export const STORE_PREFIXES = ["zarr", "zarr3"] as const;
/** One of {@link STORE_PREFIXES}. */
export type StorePrefix = (typeof STORE_PREFIXES)[number];

/** Format and metadata document of the store below a prefix. */
export const STORES = {
  zarr: { version: 2, document: ".zmetadata" },
  zarr3: { version: 3, document: "zarr.json" },
} as const;

/**
 * Renders the Zarr URLs of a group, and code that opens it with each client.
 * @param stores Prefixes that are served, at least one.
 */
export function renderUsage(group: Group, stores: readonly StorePrefix[]): Markup {
  const path = group.path === "/" ? "" : encodePath(group.path);
  const [first = "zarr"] = stores;
  const url = storeUrl(group, first);
  const largest = largestVariable(group);
  const clients = selectionCode({
    url,
    version: STORES[first].version,
    variable: largest && firstPlane(largest),
  });
  return markup`<section class="usage"><h2 class="head">Zarr URL</h2>
${stores.map((prefix) => {
  const slashed = trustedMarkup(`${UP}${prefix}${path}/`);
  const { version, document } = STORES[prefix];
  const token = trustedMarkup(TOKEN_QUERY);
  return markup`<pre class="copy" tabindex="0" aria-label="Zarr v${version} URL">${withDatasetUrl(storeUrl(group, prefix))}</pre>
<p class="links"><span class="muted">Zarr v${version} store:</span><a href="${slashed}${token}">browse</a><a href="${slashed}${document}${token}">${document}</a></p>
`;
})}<details class="fold client"><summary>How to open it with xarray, zarrita or GDAL</summary><div class="clients">
${clients.map(
  (
    client,
  ) => markup`<div class="client"><h3 class="sub">${client.client}</h3><pre class="copy" tabindex="0" aria-label="Code for ${client.client}">${withDatasetUrl(withGroup(client, group, url))}</pre></div>
`,
)}</div></details></section>`;
}

/** Renders code that reads a variable, its last two axes at the first index of the others, with each client. */
export function renderVariableCode(
  group: Group,
  { variable, document }: ServedArray,
  store: StorePrefix,
): Markup {
  const { kind, itemSize } = variable.dataType;
  const isInteger = kind === "i" || kind === "u";
  const { missing, scale, offset } = packingOf(variable.attrs, document.fill_value);
  const isPacked = missing.length > 0 || scale !== 1 || offset !== 0;
  const packing: CodePacking | undefined =
    isPacked && (isInteger || kind === "f") ? { missing, scale, offset } : undefined;
  const clients = selectionCode({
    url: storeUrl(group, store),
    version: STORES[store].version,
    variable: { ...firstPlane(variable), packing, isBigInt: isInteger && itemSize === 8 },
  });
  return markup`<details class="fold"><summary>Code that reads it: ${clients.map(({ client }) => client).join(", ")}</summary>${clients.map(
    ({ client, code }) =>
      markup`<pre class="copy" tabindex="0" aria-label="Code for ${client}">${withDatasetUrl(code)}</pre>`,
  )}</details>`;
}

/** Renders links to the JSON documents of a group, and to the whole tree unless this page shows it. */
export function renderJsonLinks(snapshot: DatasetSnapshot, group: Group, nested: boolean): Markup {
  const base = trustedMarkup(group.path === "/" ? UP : `${UP}groups${encodePath(group.path)}/`);
  const token = trustedMarkup(TOKEN_QUERY);
  const tree = snapshot.tree.groups.size > 1 && !nested;
  return markup`<ul class="links" aria-label="This group in other forms"><li class="muted">JSON:</li>${[
    "keys",
    "dict",
    "info",
  ].map(
    (name) => markup`<li><a href="${base}${name}${token}">${name}</a></li>`,
  )}<li><a href="${trustedMarkup(UP)}groups${token}">groups</a></li>${tree && markup`<li class="muted">·</li><li><a href="${trustedMarkup(UP)}tree${token}">whole tree</a></li>`}</ul>`;
}

/** Returns the URL of a group in a store, with {@link PLACE}. */
function storeUrl({ path }: Group, prefix: StorePrefix): string {
  return `${PLACE}${prefix}${path === "/" ? "" : encodePath(path)}`;
}

/** Stands for the URL of the dataset in code, in whose place a page has {@link DATASET_URL} once the code is escaped. */
const PLACE = "https://zpublish.invalid/";

/** Escapes code, and puts {@link DATASET_URL} where {@link PLACE} is. */
function withDatasetUrl(code: string): Markup {
  const [first = "", ...others] = code.split(PLACE);
  return markup`${first}${others.map((part) => markup`${trustedMarkup(DATASET_URL)}${part}`)}`;
}

/** Adds a line that opens or lists the whole group to code that reads one variable. */
function withGroup({ client, language, code }: ClientCode, group: Group, url: string): string {
  if (client === "xarray" && group.childNames.length > 0)
    return `${code}\ndt = xr.open_datatree("${url}", engine="zarr")`;
  if (client !== "GDAL" || group.variables.size === 0) return code;
  const list = `gdalmdiminfo 'ZARR:"/vsicurl/${url}"'`;
  return language === "shell" ? `${list}\n${code}` : list;
}

/** Selects the last two axes at the first index of the others, so that a first try fetches little. */
function firstPlane({ name, dims, shape }: Variable): CodeVariable {
  return {
    path: name,
    axes: shape.map((length, axis) => ({
      dim: dims[axis] ?? `dim_${axis}`,
      length,
      part: axis < shape.length - 2 ? 0 : "all",
    })),
  };
}

/** Picks the data variable with the most dimensions, the most likely one to be opened; a coordinate if there is none. */
function largestVariable(group: Group): Variable | undefined {
  let largest: Variable | undefined;
  for (const variable of group.variables.values()) {
    if (group.coordinateNames.has(variable.name)) continue;
    if (largest === undefined || variable.shape.length > largest.shape.length) largest = variable;
  }
  return largest ?? group.variables.values().next().value;
}
