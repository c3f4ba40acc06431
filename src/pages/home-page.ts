import type { DatasetPath } from "../dataset/dataset.js";
import { FOLDER_END, type IdPage } from "../dataset/id-page.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { Route } from "../http/router.js";
import { formatExtent, formatPeriod } from "./coverage.js";
import type { DatasetSummary } from "./dataset-summary.js";
import { exploreLink, type Looks, looksOf, pictureLink, renderPicture } from "./look-links.js";
import {
  type Crumb,
  encodePath,
  encodeSegment,
  formatByteLength,
  formatCount,
  formatCounted,
  type Markup,
  markup,
  NO_MARKUP,
  renderCode,
  renderPage,
  trustedMarkup,
} from "./page.js";
import { AND_TOKEN, PAGE_SCRIPT_LINK, SERVICE_URL, TOKEN_FIELD, TOKEN_QUERY } from "./page-place.js";

/** Content of the home page. */
interface HomePage {
  readonly title: string;
  readonly list: DatasetList;
  readonly plugins: readonly { readonly name: string; readonly version: string; readonly path: string }[];
  readonly routes: readonly Route[];
  readonly datasetPath: DatasetPath;
  readonly versions: Readonly<Record<string, string>>;
}

const MAX_NAMED_IDS = 20;
const MAX_DESCRIPTION_CHARS = 200;

/** Renders the page at `/`, which lists datasets and routes. All its links are relative to the root of the service. */
export function* homePageSteps(page: HomePage): CooperativeTask<string> {
  const { title, list, plugins, routes, datasetPath, versions } = page;
  const has = (path: string) => routes.some((route) => route.path === path);
  const links = ["datasets", "plugins", "versions", "openapi.json", "docs"].filter((name) => has(`/${name}`));
  const listLinks: ListLinks = {
    pages: has(datasetPath("{dataset_id}")),
    looks: looksOf(routes, datasetPath),
    datasetPath,
  };
  const names = [...list.listed.keys()].slice(0, MAX_NAMED_IDS).join(", ");
  const count = formatCounted(list.total, "dataset");
  const description = `${count} to read over HTTP, as Zarr stores and as JSON: ${names}`;
  return renderPage({
    title: list.folder === "" ? title : `${pathOf(list.folder)} · ${title}`,
    breadcrumb: breadcrumbOf(title, list.folder),
    links: links.map((name) => ({ text: name, link: trustedMarkup(`${name}${TOKEN_QUERY}`) })),
    description: description.slice(0, MAX_DESCRIPTION_CHARS),
    image: imageOf(list, listLinks),
    ...(list.alike.length > 0 && { script: PAGE_SCRIPT_LINK }),
    main: markup`<h1><bdi>${title}</bdi>${list.folder !== "" && markup` <span class="path">${pathOf(list.folder)}</span>`}</h1>
<p class="facts">${count} to read over HTTP, as Zarr stores and as JSON.</p>
${list.alike.map(renderAlike)}
${yield* datasetListSteps(list, listLinks)}
<section><details class="fold"><summary><h2 class="head">Endpoints <span class="count">(${routes.length})</span></h2></summary>
<div class="panel"><dl class="endpoints">${routes.map(renderRoute)}</dl></div></details></section>
<section><details class="fold"><summary><h2 class="head">Plugins <span class="count">(${plugins.length})</span></h2></summary>
<div class="panel"><dl>${plugins.map(({ name, version, path }) => markup`<div><dt class="mono">${name}</dt><dd>${version} <span class="muted">${path}</span></dd></div>`)}</dl></div></details></section>
<section><details class="fold"><summary><h2 class="head">Versions</h2></summary>
<div class="panel"><dl>${Object.entries(versions).map(([name, version]) => markup`<div><dt class="mono">${name}</dt><dd>${version}</dd></div>`)}</dl></div></details></section>`,
  });
}

/** Returns the URL of the first picture on the page. */
function imageOf({ listed }: DatasetList, links: ListLinks): Markup | undefined {
  if (!links.looks.pictures) return undefined;
  for (const [id, { summary }] of listed) {
    const base = `${SERVICE_URL}/${linkToDataset(id, links)}`;
    if (summary?.picture !== undefined) return pictureLink(base, summary.picture.variable);
  }
  return undefined;
}

/** Returns the names of a folder as a path: `archive/2024`. */
function pathOf(folder: string): string {
  return folder.replaceAll(FOLDER_END, "/");
}

function breadcrumbOf(title: string, folder: string): Crumb[] {
  const names = folder === "" ? [] : folder.split(FOLDER_END);
  const crumbs: Crumb[] = [title, ...names].map((text, depth) => ({
    text,
    link: markup`./${queryOf({ folder: names.slice(0, depth).join(FOLDER_END) })}`,
  }));
  return [...crumbs.slice(0, -1), { text: crumbs.at(-1)?.text ?? title }];
}

/** Returns the query of a link with the parameters that are not empty, and the token. */
function queryOf(parameters: Readonly<Record<string, string>>): Markup {
  const asked = new URLSearchParams(
    Object.entries(parameters).filter(([, value]) => value !== ""),
  ).toString();
  return asked === "" ? trustedMarkup(TOKEN_QUERY) : markup`?${asked}${trustedMarkup(AND_TOKEN)}`;
}

/** Files that could be served as one dataset. */
interface AlikeNotice {
  readonly ids: { readonly size: number };
  /** Number of files with those that were not compared. */
  readonly files: number;
  readonly option: string;
  readonly publicCommand: string;
}

function renderAlike({ ids, files, option, publicCommand }: AlikeNotice): Markup {
  const compared = ids.size < files && markup` (${formatCount(ids.size)} of them were compared)`;
  return markup`<div class="notice"><p>${formatCounted(files, "file")} look like one dataset${compared}. With <code>${option}</code>, the server publishes them as one. Its log has the whole command:</p>
${renderCode("Command that publishes them as one dataset", `zpublish serve ${publicCommand}`)}</div>
`;
}

/** Renders one route, as a link if it has no parameters and answers GET. */
function renderRoute({ path, operation, methods }: Route): Markup {
  const shown = path.replace(/:path\}/g, "}");
  const term =
    path.includes("{") || methods?.includes("GET") === false
      ? markup`<code>${shown}</code>`
      : markup`<a href="${path === "/" ? "./" : path.slice(1)}${trustedMarkup(TOKEN_QUERY)}"><code>${shown}</code></a>`;
  return markup`<div><dt>${term}</dt><dd>${operation.summary}</dd></div>`;
}

/** A dataset in a list. */
export interface ListedDataset {
  /** Undefined if it is not known, or cannot be. */
  readonly summary?: DatasetSummary;
  /** Reason for which it cannot be opened, without names of files. */
  readonly problem?: string;
  /** Whether a summary will be there later. */
  readonly isAwaited?: boolean;
}

/** Datasets of a page, and links between such pages. */
export interface DatasetList {
  /** Number of datasets in the folder, at any depth. */
  readonly total: number;
  /** Text that the ids of the list contain; empty for all. */
  readonly filter: string;
  /** As in {@link "../dataset/id-page.js".IdFolder}. */
  readonly folder: string;
  /** Ids of datasets, and beginnings of the ids of folders. */
  readonly page: IdPage;
  /** Number of datasets in a folder, by the beginning of their ids. */
  readonly counts: ReadonlyMap<string, number>;
  /** Datasets of the page, by id. */
  readonly listed: ReadonlyMap<string, ListedDataset>;
  readonly alike: readonly AlikeNotice[];
}

/** Links from a list to its datasets, which may have no pages. */
interface ListLinks {
  readonly pages: boolean;
  readonly looks: Looks;
  readonly datasetPath: DatasetPath;
}

/** Datasets from which on a filter is offered. */
const MIN_FILTERED = 20;
const MAX_FILTER_CHARS = 200;

/** Renders the list of a page: links to folders, and datasets by the folder in which they are. */
function* datasetListSteps(list: DatasetList, links: ListLinks): CooperativeTask<Markup> {
  const { total, filter, folder, page, counts, listed } = list;
  const folders = page.ids.filter((id) => counts.has(id));
  const sections: Markup[] = [];
  for (const [path, ids] of byFolder(listed.keys(), folder)) {
    const items = yield* datasetsSteps(ids, path, list, links);
    sections.push(
      path === folder
        ? items
        : markup`<details class="group" open><summary><h3 class="head">${pathBelow(path, folder)} <span class="count">(${formatCount(ids.length)})</span></h3></summary>${items}</details>
`,
    );
  }
  const awaited = [...listed.values()].filter(({ isAwaited }) => isAwaited).length;
  const count = filter === "" ? formatCount(total) : `${formatCount(page.matching)} of ${formatCount(total)}`;
  return markup`<section><h2 class="head">Datasets <span class="count">(${count})</span></h2>
${(total >= MIN_FILTERED || filter !== "") && renderFilter(list)}
${page.matching === 0 && markup`<p class="muted">${filter === "" ? "There are none yet." : "No dataset has this text in its id."}</p>`}
${folders.length > 0 && markup`<ul class="folders" aria-label="Folders">${folders.map((each) => renderFolder(each, folder, counts.get(each) ?? 0))}</ul>`}
${sections}${awaited > 0 && markup`<p class="muted">${formatCounted(awaited, "dataset")} not described yet: the server is reading. Load the page again to see more.</p>`}${renderSteps(list)}</section>`;
}

/** Sorts ids by their folder, that of the page first. */
function byFolder(ids: Iterable<string>, folder: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, string[]>();
  for (const id of ids) {
    const end = id.lastIndexOf(FOLDER_END);
    const path = end <= folder.length ? folder : id.slice(0, end);
    found.set(path, [...(found.get(path) ?? []), id]);
  }
  return new Map([...found].sort(([a], [b]) => Number(b === folder) - Number(a === folder)));
}

/** Returns the path of a folder below another one. */
function pathBelow(folder: string, above: string): string {
  return pathOf(above === "" ? folder : folder.slice(above.length + FOLDER_END.length));
}

function renderFolder(begin: string, above: string, count: number): Markup {
  const folder = begin.slice(0, -FOLDER_END.length);
  return markup`<li><a href="./${queryOf({ folder })}"><bdi>${pathBelow(folder, above)}/</bdi></a> <span class="count">(${formatCount(count)})</span></li>
`;
}

/** Renders datasets of one folder: those of which something is known, then the others by name. */
function* datasetsSteps(
  ids: readonly string[],
  folder: string,
  { listed }: DatasetList,
  links: ListLinks,
): CooperativeTask<Markup> {
  const described: Markup[] = [];
  const named: Markup[] = [];
  for (const id of ids) {
    yield;
    const { summary, problem } = listed.get(id) ?? {};
    const link = datasetLink(id, folder, links);
    if (summary !== undefined) described.push(renderDataset(id, link, summary, links));
    else if (problem !== undefined)
      described.push(markup`<li>${link} <span class="problem">${problem}</span></li>
`);
    else
      named.push(markup`<li>${link}</li>
`);
  }
  return markup`${described.length > 0 && markup`<ul class="list datasets">${described}</ul>`}${
    named.length > 0 && markup`<ul class="ids">${named}</ul>`
  }`;
}

function linkToDataset(id: string, { datasetPath }: Pick<ListLinks, "datasetPath">): string {
  return datasetPath(encodeSegment(id)).slice(1);
}

/** Renders the name of a dataset in a folder as a link to its page. */
function datasetLink(id: string, folder: string, links: ListLinks): Markup {
  const name = folder !== "" && id.startsWith(folder + FOLDER_END) ? id.slice(folder.length + 1) || id : id;
  return links.pages
    ? markup`<a class="id" href="${linkToDataset(id, links)}${trustedMarkup(TOKEN_QUERY)}"><bdi>${name}</bdi></a>`
    : markup`<span class="id"><bdi>${name}</bdi></span>`;
}

function renderFilter({ filter, folder }: DatasetList): Markup {
  const inFolder = folder !== "" && markup`<input type="hidden" name="folder" value="${folder}">`;
  return markup`<form class="filter" action="./" role="search"><label for="q">Search ids for</label> <input id="q" name="q" type="search" value="${filter}" maxlength="${MAX_FILTER_CHARS}">${inFolder}${trustedMarkup(TOKEN_FIELD)} <button>Search</button>${filter !== "" && markup` <a href="./${queryOf({ folder })}">Show all</a>`}</form>`;
}

function renderSteps({ filter, folder, page }: DatasetList): Markup {
  const { ids, matching, skipped, previous, next } = page;
  if (previous === undefined && next === undefined) return NO_MARKUP;
  const link = (text: string, rel: string, after: string) =>
    markup`<a rel="${rel}" href="./${queryOf({ q: filter, folder, after })}">${text}</a>`;
  const shown =
    ids.length === 0 ? "None" : `${formatCount(skipped + 1)} to ${formatCount(skipped + ids.length)}`;
  return markup`<nav class="steps" aria-label="Pages of datasets">${previous !== undefined && link("← Previous", "prev", previous)} <span>${shown} of ${formatCount(matching)}</span> ${next !== undefined && link("Next →", "next", next)}</nav>`;
}

function renderDataset(id: string, link: Markup, summary: DatasetSummary, links: ListLinks): Markup {
  const { title, groups, content, dims, picture, period, extent } = summary;
  const base = linkToDataset(id, links);
  const explore =
    links.looks.explorer &&
    markup` <a class="explore" href="${exploreLink(base, "/")}" aria-label="Explore ${id}">Explore</a>`;
  const facts = [
    period && formatPeriod(period),
    extent && formatExtent(extent),
    groups > 1 && formatCounted(groups, "group"),
    content && `${formatCounted(content.variables, "variable")}, ${formatByteLength(content.byteLength)}`,
  ].filter((fact) => typeof fact === "string");
  const chips = dims.map(
    ({ name, length, isIndexed }) => markup`<li>${isIndexed ? markup`<b>${name}</b>` : name}: ${length}</li>`,
  );
  return markup`<li>${renderPicture(base, picture, links.looks)}${link}${title !== "" && markup` <span dir="auto">${title}</span>`}${explore}
<div class="facts">${facts.join(" · ")}</div>${chips.length > 0 && markup`<ul class="chips" aria-label="Dimensions">${chips}</ul>`}</li>
`;
}

/** Content of a directory page. */
interface Listing {
  /** Path of the directory as clients know it, below any root path: `/datasets/air/zarr/`. */
  readonly title: string;
  /** Names in the directory. Those of directories end with a slash: `air/`, `.zattrs`. */
  readonly entries: readonly string[];
}

/**
 * Renders a directory page that programs can read, in pieces: one relative link per line, `<a href="name/">name/</a>`, and `../`.
 *
 * - GDAL (3.4 to 3.10, `ParseHTMLFileList`) accepts a title `Index of <path>` with the full encoded path of the URL, or a title
 *   in which the text after `: ` is *part* of that path. The page uses the second form, which also works behind a proxy that
 *   adds a prefix. GDAL reads the first `<a href="` of each line, and needs the newline.
 * - fsspec matches `<a … href="…"`, and drops links that begin with `http` and are no URL below the directory. So the first
 *   letter of such a name is percent-encoded. It takes any text that looks like a URL for a link.
 * - neuroglancer reads the links relative to the page, one level deep.
 */
export function* listingPieces({ title, entries }: Listing): Generator<string, void, undefined> {
  yield markup`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Index of: ${encodePath(title)}</title>
<style>${STYLE}</style>
</head>
<body>
<h1>Index of ${title}</h1>
<ul>
<li><a href="../">../</a></li>
`.html;
  for (const entry of entries) yield entryLine(entry).html;
  yield `</ul>
</body>
</html>
`;
}

const STYLE = trustedMarkup(
  ":root{color-scheme:light dark}" +
    "body{margin:0 auto;max-width:60rem;padding:1rem;font:1rem/1.6 ui-monospace,monospace;overflow-wrap:anywhere}" +
    "h1{font-size:1.1rem}ul{list-style:none;padding:0}a{text-decoration:none}a:hover{text-decoration:underline}",
);

function entryLine(entry: string): Markup {
  const isDirectory = entry.endsWith("/");
  const name = isDirectory ? entry.slice(0, -1) : entry;
  const link = encodeSegment(name).replace(/^http/i, "%68ttp") + (isDirectory ? "/" : "");
  return markup`<li><a href="${link}">${entry}</a></li>
`;
}
