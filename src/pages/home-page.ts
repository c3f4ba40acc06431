import type { DatasetPath } from "../dataset/dataset.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { Route } from "../http/router.js";
import { type DatasetList, datasetListSteps, type ListLinks, linkToDataset } from "./dataset-list.js";
import { formatCount, formatCounted } from "./format-number.js";
import { looksOf, picturedArray, pictureLink } from "./look-links.js";
import { type Markup, markup, trustedMarkup } from "./markup.js";
import { renderPage } from "./page.js";
import { SERVICE_URL, TOKEN_QUERY } from "./page-place.js";

/** Content of the home page. */
export interface HomePage {
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
