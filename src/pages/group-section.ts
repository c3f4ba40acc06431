import { cfDecodingOf } from "../cf/decoded-type.js";
import { missingMarkOf } from "../cf/image-data.js";
import { packingOf } from "../cf/packing.js";
import type { DatasetSnapshot, ServedArray } from "../dataset/dataset.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { elementCount, type Group, gridShapeOf, type Variable } from "../model/data-tree.js";
import { mapCode } from "../usage/map-code.js";
import {
  type ClientCode,
  type CodePacking,
  type CodeVariable,
  selectionCode,
} from "../usage/selection-code.js";
import { type SelectionFile, selectionFile } from "../usage/selection-url.js";
import { exploreLink, type Looks, pictureLook, renderPicture } from "./look-links.js";
import {
  encodePath,
  encodeSegment,
  formatByteLength,
  formatCount,
  formatCounted,
  type Markup,
  markup,
  NO_MARKUP,
  renderCode,
  trustedMarkup,
} from "./page.js";
import { AND_TOKEN, DATASET_URL, type PageBudget, STORE_URL, TOKEN_QUERY, UP } from "./page-place.js";
import { hasMaps } from "./pictures.js";
import type { PreviewValues } from "./preview-service.js";
import {
  isIndexCoordinate,
  renderAttributes,
  renderVariableRow,
  variableByteLength,
} from "./variable-row.js";

/** State that the sections of one page about a dataset share. */
interface GroupView {
  readonly snapshot: DatasetSnapshot;
  /** First values by variable path, as far as they are known. */
  readonly previews: ReadonlyMap<string, PreviewValues>;
  readonly budget: PageBudget;
  readonly looks: Looks;
  /** Prefixes of Zarr stores that are served. */
  readonly stores: readonly StorePrefix[];
  /** Bytes that a selection may have; undefined if none are served. */
  readonly maxSelectionBytes: number | undefined;
  /** Whether child groups unfold in place, instead of being links. */
  readonly nested: boolean;
}

/** Renders the content of a group: dimensions, coordinates, data variables, attributes, child groups. */
export function* groupSteps(view: GroupView, group: Group, headingLevel: number): CooperativeTask<Markup> {
  const coordinates = coordinatesOf(group);
  const dataVariables = [...group.variables.values()].filter(({ name }) => !group.coordinateNames.has(name));
  // In the order of the page, so that upper sections use its budget first.
  return markup`${renderDimensions(group)}
${yield* variableSection(view, group, "Coordinates", coordinates, headingLevel)}
${yield* variableSection(view, group, "Data variables", dataVariables, headingLevel)}
${attributeSection(view, group, headingLevel)}
${view.nested ? yield* nestedGroups(view, group, headingLevel) : groupLinks(view, group, headingLevel)}`;
}

/** Returns the coordinates of a group: index coordinates in the order of their dimensions, then auxiliary ones. */
export function coordinatesOf({ dims, variables, coordinateNames }: Group): Variable[] {
  const indexes = Array.from(dims.keys(), (dim) => variables.get(dim)).filter(
    (variable) => variable !== undefined && isIndexCoordinate(variable),
  );
  const others = [...variables.values()].filter(
    (variable) => coordinateNames.has(variable.name) && !isIndexCoordinate(variable),
  );
  return [...indexes, ...others] as Variable[];
}

/** Renders one line about groups: counts of groups, variables and chunks, and bytes. */
export function* factsSteps(groups: readonly Group[]): CooperativeTask<Markup> {
  let variables = 0;
  let byteLength = 0;
  let chunks = 0;
  for (const group of groups) {
    variables += group.variables.size;
    for (const variable of group.variables.values()) {
      yield;
      byteLength += variableByteLength(variable) ?? 0;
      chunks += elementCount(gridShapeOf(variable.shape, variable.chunkShape));
    }
  }
  const groupText = groups.length > 1 && markup`${formatCounted(groups.length, "group")} · `;
  return markup`${groupText}${formatCounted(variables, "variable")} · <b>${formatByteLength(byteLength)}</b> uncompressed in ${formatCounted(chunks, "chunk")}`;
}

/** Renders the dimensions of a group as chips; those with an index coordinate are bold. */
export function renderDimensions(group: Group): Markup {
  if (group.dims.size === 0) return NO_MARKUP;
  const chips = [...group.dims].map(([dim, length]) => {
    const variable = group.variables.get(dim);
    const name = variable !== undefined && isIndexCoordinate(variable) ? markup`<b>${dim}</b>` : dim;
    return markup`<li>${name}: ${length}</li>`;
  });
  return markup`<ul class="chips" aria-label="Dimensions">${chips}</ul>`;
}

function heading(level: number, text: string, count?: number): Markup {
  const tag = trustedMarkup(`h${Math.min(level, 6)}`);
  const counted = count !== undefined && markup` <span class="count">(${formatCount(count)})</span>`;
  return markup`<${tag} class="head">${text}${counted}</${tag}>`;
}

/** Rows from which on a browser lays out a list only as it comes into view. Print and find in page see shorter lists whole. */
const MANY_ROWS = 200;

function* variableSection(
  view: GroupView,
  group: Group,
  title: string,
  variables: readonly Variable[],
  headingLevel: number,
): CooperativeTask<Markup> {
  if (variables.length === 0) return NO_MARKUP;
  const { budget, previews, snapshot } = view;
  let pictures = 0;
  const shown = variables.slice(0, budget.variables);
  budget.variables -= shown.length;
  const rows: Markup[] = [];
  for (const variable of shown) {
    yield;
    const array = snapshot.arrays.get(variable.path);
    const picture = array === undefined ? NO_MARKUP : pictureOf(view, group, array);
    if (picture !== NO_MARKUP) pictures++;
    const code = () => (array === undefined ? NO_MARKUP : codeOf(view, group, array));
    const preview = previews.get(variable.path);
    rows.push(renderVariableRow({ variable, array, preview, picture, code }, budget));
  }
  const kinds = [rows.length > MANY_ROWS && "many", pictures > 0 && "pictured"].filter(Boolean);
  const rest = variables.length - shown.length;
  return markup`<section><details class="fold" open><summary>${heading(headingLevel, title, variables.length)}</summary>
${rows.length > 0 && markup`<ul class="${["rows", ...kinds].join(" ")}">${rows}</ul>`}${
  rest > 0 &&
  markup`<p class="muted">${formatCounted(rest, "more variable")} in the JSON documents <code>keys</code> and <code>info</code>.</p>`
}</details></section>`;
}

function pictureOf({ budget, looks, snapshot }: GroupView, group: Group, array: ServedArray): Markup {
  if (budget.pictures <= 0 || !looks.pictures) return NO_MARKUP;
  const picture = renderPicture(UP, pictureLook(snapshot, group, array), looks);
  if (picture !== NO_MARKUP) budget.pictures--;
  return picture;
}

/** Renders the link to the explorer, code that reads the variable, and files with it. */
function codeOf(view: GroupView, group: Group, array: ServedArray): Markup {
  const { budget, looks, stores } = view;
  const { name } = array.variable;
  const link =
    looks.explorer && markup`<p><a href="${exploreLink(UP, group.path, name)}">Explore ${name}</a></p>`;
  const [store] = stores;
  const hasCode = budget.codes > 0;
  if (hasCode) budget.codes--;
  const code = hasCode && store !== undefined && renderVariableCode(group, array, store);
  const files = hasCode ? renderFiles(view, group, array) : NO_MARKUP;
  const maps = hasCode ? renderMaps(view, array) : NO_MARKUP;
  return markup`<div class="code">${link}${code}${files}${maps}</div>`;
}

/** Renders the addresses of maps of a variable, folded, and code that shows them. */
function renderMaps({ looks: { tiles, wms }, snapshot }: GroupView, array: ServedArray): Markup {
  if ((!tiles && !wms) || !hasMaps(snapshot, array)) return NO_MARKUP;
  const services = { tiles: tiles ? `${PLACE}tiles` : undefined, wms: wms ? `${PLACE}wms` : undefined };
  const codes = mapCode(services, { path: array.variable.path, axes: [] });
  return markup`<details class="fold files"><summary>Use in a map: ${[tiles && "tiles", wms && "WMS"].filter(Boolean).join(", ")}</summary>${codes.map(({ client, code }) => markup`<p>${client}</p>${renderCode(`${client} of the variable`, withDatasetUrl(code))}`)}</details>`;
}

/** Formats without code: their parameter, and name. */
const OTHER_FORMATS = [
  ["json", "JSON"],
  ["npy", "npy"],
  ["arrow", "Arrow"],
] as const;

/** Renders files with a whole variable, folded: their links with sizes, URLs to copy, and code that reads them. */
function renderFiles(
  { looks, maxSelectionBytes = 0 }: GroupView,
  group: Group,
  { variable, document }: ServedArray,
): Markup {
  const { dims, shape, path, dataType } = variable;
  // No table and no NetCDF file has such numbers.
  if (maxSelectionBytes === 0 || dataType.kind === "c" || dataType.kind === "V") return NO_MARKUP;
  const coordinates = coordinatesOf(group).filter(
    (other) => other !== variable && other.dims.every((dim) => dims.includes(dim)),
  );
  const decodedBytes = (each: Variable) => cfDecodingOf(each.dataType, each.attrs, null).itemSize;
  const bytes = {
    item: dataType.itemSize,
    labels: coordinates.reduce((sum, each) => sum + (variableByteLength(each) ?? 0), 0),
    row: coordinates.reduce(
      (sum, each) => sum + decodedBytes(each),
      cfDecodingOf(dataType, variable.attrs, document.fill_value).itemSize,
    ),
  };
  const axes = shape.map((length, axis) => {
    const dim = dims[axis]!;
    const isTime = / since /i.test(String(group.variables.get(dim)?.attrs.units));
    return { dim, length, part: "all" as const, isTime };
  });
  const fileOf = (format: SelectionFile["format"]) =>
    selectionFile(format, `${PLACE}select`, { path, axes }, bytes);
  const netcdf = fileOf("NetCDF");
  const linkTo = (url: string) =>
    markup`${trustedMarkup(UP)}${url.slice(PLACE.length)}${trustedMarkup(AND_TOKEN)}`;
  const limit = formatByteLength(maxSelectionBytes);
  const where = looks.explorer ? "choose a part in the explorer" : "name a part in the URL";
  const tooLarge = (needed: number) =>
    markup` <span class="muted">${formatByteLength(needed)} of values; no more than ${limit} may be asked for at once: ${where}</span>`;
  const files = [netcdf, fileOf("CSV")].map(({ format, url, byteLength, selectedBytes, code }) => {
    if (selectedBytes > maxSelectionBytes) return markup`<p>${format}${tooLarge(selectedBytes)}</p>`;
    const size = `${format === "CSV" ? "about " : ""}${formatByteLength(byteLength)}`;
    return markup`<p><a href="${linkTo(url)}" download>${format}</a>${dataType.kind !== "O" && markup` <span class="muted">${size}</span>`}</p>${renderCode(`URL of ${format}`, withDatasetUrl(url))}${renderCode(`Code for ${format}`, withDatasetUrl(code.code))}`;
  });
  const others =
    netcdf.selectedBytes <= maxSelectionBytes &&
    markup`<p class="muted">Also as ${OTHER_FORMATS.map(([format, name], index) => markup`${index > 0 && ", "}<a href="${linkTo(netcdf.url.replace(/nc$/, format))}" download>${name}</a>`)}. Further parameters of the URL select a part.</p>`;
  return markup`<details class="fold files"><summary>Download: NetCDF, CSV, ${OTHER_FORMATS.map(([, name]) => name).join(", ")}</summary>${files}${others}</details>`;
}

/** Maximum of attributes that are shown unfolded. */
const OPEN_ATTRIBUTES = 12;

function attributeSection({ budget }: GroupView, group: Group, headingLevel: number): Markup {
  const count = Object.keys(group.attrs).length;
  if (count === 0) return NO_MARKUP;
  const open = count <= OPEN_ATTRIBUTES && trustedMarkup(" open");
  return markup`<section><details class="fold"${open}><summary>${heading(headingLevel, "Attributes", count)}</summary><div class="panel">${renderAttributes(group.attrs, budget)}</div></details></section>`;
}

function childGroups({ snapshot }: GroupView, group: Group): Group[] {
  const prefix = group.path === "/" ? "/" : `${group.path}/`;
  return group.childNames
    .map((name) => snapshot.tree.groups.get(prefix + name))
    .filter((child) => child !== undefined);
}

function groupLink(group: Group, text: string): Markup {
  return markup`<a href="${trustedMarkup(`${UP}groups${encodePath(group.path)}${TOKEN_QUERY}`)}">${text}</a>`;
}

function groupLinks(view: GroupView, group: Group, headingLevel: number): Markup {
  const children = childGroups(view, group);
  if (children.length === 0) return NO_MARKUP;
  return markup`<section>${heading(headingLevel, "Groups", children.length)}${linkList(view, children)}</section>`;
}

function linkList({ budget }: GroupView, groups: readonly Group[]): Markup {
  const shown = groups.slice(0, budget.groupLinks);
  budget.groupLinks -= shown.length;
  const rest = groups.length - shown.length;
  return markup`<ul class="list">${shown.map(
    (
      child,
    ) => markup`<li>${groupLink(child, child.name)} <span class="muted">${groupSummary(child)}</span></li>
`,
  )}</ul>${rest > 0 && markup`<p class="muted">${formatCounted(rest, "more group")} in the JSON document <code>groups</code>.</p>`}`;
}

/** Formats the content of a group: `3 variables, 2 groups`. */
function groupSummary({ variables, childNames }: Group): string {
  const parts = [
    ...(variables.size > 0 ? [formatCounted(variables.size, "variable")] : []),
    ...(childNames.length > 0 ? [formatCounted(childNames.length, "group")] : []),
  ];
  return parts.join(", ") || "empty";
}

/** Depth from which on groups are links: nested folds leave no room on a phone. */
const MAX_NESTING = 24;

function* nestedGroups(view: GroupView, group: Group, headingLevel: number): CooperativeTask<Markup> {
  const children = childGroups(view, group);
  const unfolded = headingLevel > MAX_NESTING ? [] : children.slice(0, Math.max(0, view.budget.groups));
  view.budget.groups -= unfolded.length;
  const linked = children.slice(unfolded.length);
  const sections: Markup[] = [];
  for (const child of unfolded) {
    const content = yield* groupSteps(view, child, headingLevel + 1);
    sections.push(markup`<details class="group"${headingLevel === 2 && trustedMarkup(" open")}><summary>${heading(headingLevel, child.name)} <span class="muted">${groupSummary(child)}</span></summary>
<p class="facts">${groupLink(child, child.path)}</p>
${content}</details>
`);
  }
  return markup`${sections}${linked.length > 0 && linkList(view, linked)}`;
}

/** Prefixes under which a dataset may be served as a Zarr store; the plugins have the same names. */
export const STORE_PREFIXES = ["zarr", "zarr3"] as const;
/** One of {@link STORE_PREFIXES}. */
export type StorePrefix = (typeof STORE_PREFIXES)[number];

/** Format and metadata document of the store below a prefix. */
export const STORES = {
  zarr: { version: 2, document: ".zmetadata" },
  zarr3: { version: 3, document: "zarr.json" },
} as const;

/** What each client needs, as its users install it. */
const INSTALLED: Readonly<Record<ClientCode["client"], string>> = {
  xarray: "pip install xarray zarr fsspec aiohttp",
  "zarr-python": "pip install zarr fsspec aiohttp",
  zarrita: "JavaScript: npm install zarrita",
  GDAL: "3.4 or newer",
  NetCDF: "pip install xarray netCDF4",
  CSV: "pip install pandas",
};

/** Renders the Zarr URL of a group in the first of the stores, of which there is at least one, and code that opens it with each client. */
export function renderUsage(group: Group, stores: readonly StorePrefix[]): Markup {
  const [first = "zarr"] = stores;
  const url = storeUrl(group, first);
  const { version } = STORES[first];
  const largest = largestVariable(group);
  const clients = selectionCode({ url, version, variable: largest && firstPlane(largest) });
  return markup`<section class="usage"><h2 class="head">Open it</h2>
${renderCode(`Zarr v${version} URL`, withDatasetUrl(url))}
<div class="clients">
${clients.map(
  (
    client,
  ) => markup`<div class="client"><h3 class="sub">${client.client} <span class="muted">${INSTALLED[client.client]}</span></h3>${renderCode(`Code for ${client.client}`, withDatasetUrl(withGroup(client, group, url)))}</div>
`,
)}</div></section>`;
}

/** Renders what else leads to a group, folded: its Zarr stores and their documents, JSON documents, and the whole tree unless this page shows it. */
export function renderAddresses(
  snapshot: DatasetSnapshot,
  group: Group,
  nested: boolean,
  stores: readonly StorePrefix[],
  hasOpendap: boolean,
): Markup {
  const path = group.path === "/" ? "" : encodePath(group.path);
  const base = trustedMarkup(group.path === "/" ? UP : `${UP}groups${path}/`);
  const token = trustedMarkup(TOKEN_QUERY);
  const hasTree = snapshot.tree.groups.size > 1 && !nested;
  return markup`<section><details class="fold addresses"><summary><h2 class="head">Other addresses</h2></summary><div class="panel">${stores.map(
    (prefix) => {
      const slashed = trustedMarkup(`${UP}${prefix}${path}/`);
      const { version, document } = STORES[prefix];
      return markup`${renderCode(`Zarr v${version} URL`, withDatasetUrl(storeUrl(group, prefix)))}
<ul class="links" aria-label="Zarr v${version} store"><li class="muted">Zarr v${version} store:</li><li><a href="${slashed}${token}">files</a></li><li><a href="${slashed}${document}${token}">${document}</a></li></ul>
`;
    },
  )}${hasOpendap && renderCode("OPeNDAP URL of the dataset", trustedMarkup(`${DATASET_URL}opendap/${encodeSegment(snapshot.id)}.nc`))}
<ul class="links" aria-label="Metadata as JSON"><li class="muted">Metadata as JSON:</li>${["keys", "dict", "info"].map((name) => markup`<li><a href="${base}${name}${token}">${name}</a></li>`)}<li><a href="${trustedMarkup(UP)}groups${token}">groups</a></li></ul>${
    hasTree &&
    markup`<p class="links"><a href="${trustedMarkup(UP)}tree${token}">All groups on one page</a></p>`
  }</div></details></section>`;
}

/** Renders code that reads a variable, its last two axes at the first index of all leading axes, with each client. */
function renderVariableCode(group: Group, { variable, document }: ServedArray, store: StorePrefix): Markup {
  const { kind, itemSize } = variable.dataType;
  const isInteger = kind === "i" || kind === "u";
  const { missing, scale, offset } = packingOf(variable.attrs, missingMarkOf(variable, document.fill_value));
  const isPacked = missing.length > 0 || scale !== 1 || offset !== 0;
  const packing: CodePacking | undefined =
    isPacked && (isInteger || kind === "f") ? { missing, scale, offset } : undefined;
  const clients = selectionCode({
    url: storeUrl(group, store),
    version: STORES[store].version,
    variable: { ...firstPlane(variable), packing, isBigInt: isInteger && itemSize === 8 },
  });
  return markup`<details class="fold"><summary>Code that reads it: ${clients.map(({ client }) => client).join(", ")}</summary>${clients.map(
    ({ client, code }) => renderCode(`Code for ${client}`, withDatasetUrl(code)),
  )}</details>`;
}

/** Returns the URL of a group in a store, with {@link PLACE}. */
function storeUrl({ path }: Group, prefix: StorePrefix): string {
  return `${PLACE}${prefix}${path === "/" ? "" : encodePath(path)}`;
}

/** Stands for the URL of the dataset in code, in whose place a page has {@link DATASET_URL} once the code is escaped. */
const PLACE = "https://zpublish.invalid/datasets/x/";
/** Both names of the dataset's URLs in code. */
const PLACES = /(https:\/\/zpublish\.invalid\/datasets\/x(?:\/|\.zarr))/;

/** Escapes code, and puts {@link DATASET_URL} where {@link PLACE} is, and {@link STORE_URL} for the store that ends in `.zarr`. */
function withDatasetUrl(code: string): Markup {
  const parts = code.split(PLACES);
  return markup`${parts.map((part, index) => (index % 2 === 0 ? markup`${part}` : trustedMarkup(part === PLACE ? DATASET_URL : STORE_URL)))}`;
}

/** Adds a line that opens or lists the whole group to code that reads one variable. */
function withGroup({ client, language, code }: ClientCode, group: Group, url: string): string {
  if (client === "xarray" && group.childNames.length > 0)
    return `${code}\ndt = xr.open_datatree("${url}", engine="zarr")`;
  if (client !== "GDAL" || group.variables.size === 0) return code;
  const list = `gdalmdiminfo 'ZARR:"/vsicurl/${url}"'`;
  return language === "shell" ? `${list}\n${code}` : list;
}

/** Selects the last two axes at the first index of all leading axes, so that a first try fetches little. */
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
  const variables = [...group.variables.values()];
  const data = variables.filter(({ name }) => !group.coordinateNames.has(name));
  return data.reduce(
    (largest, each) => (largest === undefined || each.shape.length > largest.shape.length ? each : largest),
    data[0] ?? variables[0],
  );
}
