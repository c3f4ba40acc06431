import type { DatasetPath, DatasetSnapshot } from "../dataset/dataset.js";
import type { IdPage } from "../dataset/id-page.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { Route } from "../http/router.js";
import { factsSteps, renderDimensions } from "./group-section.js";
import { exploreLink, type Looks, looksOf, picturedArray, pictureLink, renderPicture } from "./look-links.js";
import {
  encodePath,
  encodeSegment,
  formatCount,
  formatCounted,
  type Markup,
  markup,
  NO_MARKUP,
  renderPage,
  shortened,
  trustedMarkup,
} from "./page.js";
import { AND_TOKEN, SERVICE_URL, TOKEN_FIELD, TOKEN_QUERY } from "./page-place.js";

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
  const names = list.page.ids.slice(0, MAX_NAMED_IDS).join(", ");
  const description = `${formatCounted(list.total, "dataset")} to read over HTTP, as Zarr stores and as JSON: ${names}`;
  return renderPage({
    title,
    breadcrumb: [{ text: title }],
    links: links.map((name) => ({ text: name, link: trustedMarkup(`${name}${TOKEN_QUERY}`) })),
    description: description.slice(0, MAX_DESCRIPTION_CHARS),
    image: imageOf(list, listLinks),
    main: markup`<h1><bdi>${title}</bdi></h1>
<p class="facts">${formatCount(list.total)} ${list.total === 1 ? "dataset" : "datasets"} to read over HTTP, as Zarr stores and as JSON.</p>
${yield* datasetListSteps(list, listLinks)}
<section><details class="fold" open><summary><h2 class="head">Endpoints <span class="count">(${routes.length})</span></h2></summary>
<div class="panel"><dl class="endpoints">${routes.map(renderRoute)}</dl></div></details></section>
<section><details class="fold"><summary><h2 class="head">Plugins <span class="count">(${plugins.length})</span></h2></summary>
<div class="panel"><dl>${plugins.map(({ name, version, path }) => markup`<div><dt class="mono">${name}</dt><dd>${version} <span class="muted">${path}</span></dd></div>`)}</dl></div></details></section>
<section><details class="fold"><summary><h2 class="head">Versions</h2></summary>
<div class="panel"><dl>${Object.entries(versions).map(([name, version]) => markup`<div><dt class="mono">${name}</dt><dd>${version}</dd></div>`)}</dl></div></details></section>`,
  });
}

/** Returns the URL of the first picture on the page. */
function imageOf({ snapshots }: DatasetList, links: ListLinks): Markup | undefined {
  if (!links.looks.pictures) return undefined;
  for (const snapshot of snapshots.values()) {
    const pictured = picturedArray(snapshot, snapshot.tree.root);
    const base = `${SERVICE_URL}/${linkToDataset(snapshot.id, links)}`;
    if (pictured !== undefined) return pictureLink(base, pictured.array.variable);
  }
  return undefined;
}

/** Renders one route, as a link if it has no parameters. */
function renderRoute({ path, operation }: Route): Markup {
  const shown = path.replace(/:path\}/g, "}");
  const term = path.includes("{")
    ? markup`<code>${shown}</code>`
    : markup`<a href="${path === "/" ? "./" : path.slice(1)}${trustedMarkup(TOKEN_QUERY)}"><code>${shown}</code></a>`;
  return markup`<div><dt>${term}</dt><dd>${operation.summary}</dd></div>`;
}

/** Datasets of a page, and links between such pages. */
export interface DatasetList {
  readonly total: number;
  /** Text that the ids of the list contain; empty for all. */
  readonly filter: string;
  readonly page: IdPage;
  /** Datasets of the page that are open, by id: they are described. */
  readonly snapshots: ReadonlyMap<string, DatasetSnapshot>;
  /** Reasons, by id, for which others cannot be opened, without names of files. */
  readonly failures: ReadonlyMap<string, string>;
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

/** Renders the list of a page: open datasets are described, failed ones have their reason, all further ones are names. */
function* datasetListSteps(list: DatasetList, links: ListLinks): CooperativeTask<Markup> {
  const { total, filter, page, snapshots, failures } = list;
  const described: Markup[] = [];
  const named: Markup[] = [];
  for (const id of page.ids) {
    yield;
    const snapshot = snapshots.get(id);
    const failure = failures.get(id);
    if (snapshot !== undefined) described.push(yield* datasetSteps(snapshot, links));
    else if (failure !== undefined)
      described.push(markup`<li>${datasetLink(id, links)} <span class="problem">${failure}</span></li>
`);
    else
      named.push(markup`<li>${datasetLink(id, links)}</li>
`);
  }
  const count = filter === "" ? formatCount(total) : `${formatCount(page.matching)} of ${formatCount(total)}`;
  return markup`<section><h2 class="head">Datasets <span class="count">(${count})</span></h2>
${(total >= MIN_FILTERED || filter !== "") && renderFilter(filter)}
${page.matching === 0 && markup`<p class="muted">${filter === "" ? "None yet." : "None with that text in its id."}</p>`}
${described.length > 0 && markup`<ul class="list datasets">${described}</ul>`}
${
  named.length > 0 &&
  markup`<h3 class="sub">${described.length > 0 ? "Further datasets" : "By name"}</h3><ul class="ids">${named}</ul>`
}${renderSteps(list)}</section>`;
}

function linkToDataset(id: string, { datasetPath }: Pick<ListLinks, "datasetPath">): string {
  return datasetPath(encodeSegment(id)).slice(1);
}

function datasetLink(id: string, links: ListLinks): Markup {
  return links.pages
    ? markup`<a class="id" href="${linkToDataset(id, links)}${trustedMarkup(TOKEN_QUERY)}"><bdi>${id}</bdi></a>`
    : markup`<span class="id"><bdi>${id}</bdi></span>`;
}

function renderFilter(filter: string): Markup {
  return markup`<form class="filter" action="./" role="search"><label for="q">Ids with</label> <input id="q" name="q" type="search" value="${filter}" maxlength="${MAX_FILTER_CHARS}">${trustedMarkup(TOKEN_FIELD)} <button>Filter</button>${filter !== "" && markup` <a href="./${trustedMarkup(TOKEN_QUERY)}">All</a>`}</form>`;
}

function renderSteps({ filter, page }: DatasetList): Markup {
  const { ids, matching, skipped, previous, next } = page;
  if (previous === undefined && next === undefined) return NO_MARKUP;
  const link = (text: string, rel: string, after: string) => {
    const asked = new URLSearchParams({ ...(filter && { q: filter }), ...(after && { after }) }).toString();
    const query = asked === "" ? trustedMarkup(TOKEN_QUERY) : markup`?${asked}${trustedMarkup(AND_TOKEN)}`;
    return markup`<a rel="${rel}" href="./${query}">${text}</a>`;
  };
  const shown =
    ids.length === 0 ? "None" : `${formatCount(skipped + 1)} to ${formatCount(skipped + ids.length)}`;
  return markup`<nav class="steps" aria-label="Pages of datasets">${previous !== undefined && link("← Previous", "prev", previous)} <span>${shown} of ${formatCount(matching)}</span> ${next !== undefined && link("Next →", "next", next)}</nav>`;
}

const MAX_TITLE_CHARS = 200;
/** Maximum of groups whose chunks are counted for one line. */
const MAX_COUNTED_GROUPS = 200;

function* datasetSteps(snapshot: DatasetSnapshot, links: ListLinks): CooperativeTask<Markup> {
  const { looks } = links;
  const { id, tree } = snapshot;
  const { title } = tree.root.attrs;
  const text = typeof title === "string" && title !== id ? shortened(title, MAX_TITLE_CHARS) : "";
  const facts =
    tree.groups.size <= MAX_COUNTED_GROUPS
      ? yield* factsSteps([...tree.groups.values()])
      : markup`${formatCount(tree.groups.size)} groups`;
  const base = linkToDataset(id, links);
  const pictured = looks.pictures ? picturedArray(snapshot, tree.root) : undefined;
  const picture = pictured && renderPicture(base, snapshot, pictured.group, pictured.array, looks);
  const explore =
    looks.explorer &&
    markup` <a class="explore" href="${exploreLink(base, "/")}" aria-label="Explore ${id}">Explore</a>`;
  return markup`<li>${picture}${datasetLink(id, links)}${text !== "" && markup` <span dir="auto">${text}</span>`}${explore}
<div class="facts">${facts}</div>${renderDimensions(tree.root)}</li>
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
