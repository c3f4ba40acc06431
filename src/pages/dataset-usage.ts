import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { Group, Variable } from "../model/data-tree.js";
import { encodePath, encodeSegment } from "./encode-path.js";
import { type Markup, markup, NO_MARKUP, trustedMarkup } from "./markup.js";
import { SERVICE_URL, UP } from "./page-place.js";

/** Renders the Zarr URL of a group, and code that opens it with each client. */
export function renderUsage(snapshot: DatasetSnapshot, group: Group): Markup {
  const url = trustedMarkup(
    `${SERVICE_URL}/datasets/${encodeSegment(snapshot.id)}/zarr${group.path === "/" ? "" : encodePath(group.path)}`,
  );
  const variable = largestVariable(group);
  const slashed = trustedMarkup(`${UP}zarr${group.path === "/" ? "" : encodePath(group.path)}/`);
  return markup`<section class="usage"><h2 class="head">Zarr URL</h2>
<pre class="copy" tabindex="0" aria-label="Zarr URL">${url}</pre>
<p class="links"><span class="muted">Zarr store:</span><a href="${slashed}">browse</a><a href="${slashed}.zmetadata">.zmetadata</a></p>
<details class="fold client"><summary>How to open it with xarray, zarrita or GDAL</summary><div class="clients">
${CLIENTS.map(
  ({
    name,
    snippet,
  }) => markup`<div class="client"><h3 class="sub">${name}</h3><pre class="copy" tabindex="0" aria-label="Code for ${name}">${snippet({ url, group, variable })}</pre></div>
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
  readonly url: Markup;
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
    snippet: ({ url, variable }) => markup`import * as zarr from "zarrita";

const store = new zarr.FetchStore("${url}");${
      variable === undefined
        ? markup`
const group = await zarr.open.v2(store, { kind: "group" });`
        : markup`
const array = await zarr.open.v2(
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
