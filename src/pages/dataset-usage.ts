import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { Group, Variable } from "../model/data-tree.js";
import { encodePath, encodeSegment } from "./encode-path.js";
import { type Markup, markup, NO_MARKUP, trustedMarkup } from "./markup.js";
import { SERVICE_URL, UP } from "./page-place.js";

/** Prefixes under which a dataset may be served as a Zarr store; the plugins have the same names. */
export const STORE_PREFIXES = ["zarr", "zarr3"] as const;
/** One of {@link STORE_PREFIXES}. */
export type StorePrefix = (typeof STORE_PREFIXES)[number];

/** Format and metadata document of the store below a prefix. */
const STORES = {
  zarr: { version: 2, document: ".zmetadata" },
  zarr3: { version: 3, document: "zarr.json" },
} as const;

/**
 * Renders the Zarr URLs of a group, and code that opens it with each client.
 * @param stores Prefixes that are served, at least one.
 */
export function renderUsage(snapshot: DatasetSnapshot, group: Group, stores: readonly StorePrefix[]): Markup {
  const path = group.path === "/" ? "" : encodePath(group.path);
  const urlOf = (prefix: StorePrefix) =>
    trustedMarkup(`${SERVICE_URL}/datasets/${encodeSegment(snapshot.id)}/${prefix}${path}`);
  const [first = "zarr"] = stores;
  const { version } = STORES[first];
  const url = urlOf(first);
  const variable = largestVariable(group);
  return markup`<section class="usage"><h2 class="head">Zarr URL</h2>
${stores.map((prefix) => {
  const slashed = trustedMarkup(`${UP}${prefix}${path}/`);
  const { version, document } = STORES[prefix];
  return markup`<pre class="copy" tabindex="0" aria-label="Zarr v${version} URL">${urlOf(prefix)}</pre>
<p class="links"><span class="muted">Zarr v${version} store:</span><a href="${slashed}">browse</a><a href="${slashed}${document}">${document}</a></p>
`;
})}<details class="fold client"><summary>How to open it with xarray, zarrita or GDAL</summary><div class="clients">
${CLIENTS.map(
  ({
    name,
    snippet,
  }) => markup`<div class="client"><h3 class="sub">${name}</h3><pre class="copy" tabindex="0" aria-label="Code for ${name}">${snippet({ url, group, variable, version })}</pre></div>
`,
)}</div></details></section>`;
}

/** Renders links to the JSON documents of a group, and to the whole tree unless this page shows it. */
export function renderJsonLinks(snapshot: DatasetSnapshot, group: Group, nested: boolean): Markup {
  const base = trustedMarkup(group.path === "/" ? UP : `${UP}groups${encodePath(group.path)}/`);
  const tree = snapshot.tree.groups.size > 1 && !nested;
  return markup`<ul class="links" aria-label="This group in other forms"><li class="muted">JSON:</li>${[
    "keys",
    "dict",
    "info",
  ].map(
    (name) => markup`<li><a href="${base}${name}">${name}</a></li>`,
  )}<li><a href="${trustedMarkup(UP)}groups">groups</a></li>${tree && markup`<li class="muted">·</li><li><a href="${trustedMarkup(UP)}tree">whole tree</a></li>`}</ul>`;
}

interface Usage {
  /** URL below the first prefix. */
  readonly url: Markup;
  readonly version: 2 | 3;
  readonly group: Group;
  readonly variable: Variable | undefined;
}

interface Client {
  readonly name: string;
  readonly snippet: (usage: Usage) => Markup;
}

// A raster of GDAL has two dimensions: it needs an index for each of the others, and refuses an array without.
const CLIENTS: readonly Client[] = [
  {
    name: "xarray",
    snippet: ({ url, group }) => markup`import xarray as xr

ds = xr.open_zarr("${url}")${
      group.childNames.length > 0 &&
      markup`
dt = xr.open_datatree("${url}", engine="zarr")`
    }`,
  },
  {
    name: "zarrita",
    snippet: ({ url, variable, version }) => markup`import * as zarr from "zarrita";

const store = new zarr.FetchStore("${url}");${
      variable === undefined
        ? markup`
const group = await zarr.open.v${version}(store, { kind: "group" });`
        : markup`
const array = await zarr.open.v${version}(
  zarr.root(store).resolve(${JSON.stringify(variable.name)}),
  { kind: "array" },
);
const { data, shape } = await zarr.get(array${firstSelection(variable)});`
    }`,
  },
  {
    name: "GDAL",
    snippet: ({ url, variable }) =>
      markup`gdalmdiminfo 'ZARR:"/vsicurl/${url}"'${
        variable !== undefined &&
        variable.shape.length >= 2 &&
        markup`
gdalinfo 'ZARR:"/vsicurl/${url}":/${variable.name}${trustedMarkup(":0".repeat(variable.shape.length - 2))}'`
      }`,
  },
];

/** Writes a selection of the last two axes, so that a first try fetches little. */
function firstSelection({ shape }: Variable): Markup {
  if (shape.length < 3) return NO_MARKUP;
  return markup`, [${shape.map((_, axis) => (axis < shape.length - 2 ? "0" : "null")).join(", ")}]`;
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
