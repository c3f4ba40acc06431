import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { Group } from "../model/data-tree.js";
import { summaryOf } from "./dataset-page.js";
import type { Looks } from "./look-links.js";
import { encodePath, markup, renderSummary, trustedMarkup } from "./page.js";
import { ROOT, TOKEN_QUERY, UP } from "./page-place.js";

/** Content of the explorer's page. */
interface ExplorePage {
  readonly snapshot: DatasetSnapshot;
  readonly group: Group;
  /** Names of the explorer's files by their names in the source: `page.js`, `worker.js`, perhaps `page.css` and others. */
  readonly assets: Readonly<Record<string, string>>;
  readonly looks: Looks;
  /** Bytes that a selection may have; undefined if none are served. */
  readonly maxSelectionBytes: number | undefined;
  /** Whether the server lists the versions of its datasets. */
  readonly hasVersions: boolean;
}

/**
 * Renders the page that starts the explorer; `placePage` completes it. It has no inline script and no inline style, which its policy
 * forbids; and no preload of `.zmetadata`: the worker reads it, and a page's preloads are not for workers. What the script needs to know is in `data-*` attributes of its root element, `<main id="explorer">`; URLs there are
 * relative to the page:
 *
 * - `data-store`: the Zarr v2 store of the group, with a slash at its end
 * - `data-overviews`: the Zarr v2 store of the overviews, if the dataset has some
 * - `data-select`, `data-max-selection`: the selections of the dataset, and the bytes that one may have, if these are served
 * - `data-tiles`, `data-wms`: map tiles and the Web Map Service of the dataset, if these are served
 * - `data-versions`, `data-unversioned`: the list of the dataset's versions, and its id without one, if it has some
 * - `data-dataset`, `data-group`: id, and path of the group in the dataset: empty, or `a/b`
 * - `data-title`: what the page is about, for people
 * - `data-page`: the page of the group without scripts
 * - `data-worker`: script of the worker
 * - `data-…`: every further file by its name without ending: `coast-110m.bin` is `data-coast-110m`
 */
export function renderExplorePage(page: ExplorePage): string {
  const { snapshot, group, assets, looks, maxSelectionBytes } = page;
  const { id } = snapshot;
  const name = `${id}${group.path === "/" ? "" : ` ${group.path}`}`;
  const title = `${name} · Explore`;
  const path = group.path === "/" ? "" : group.path.slice(1);
  const store = trustedMarkup(`${UP}zarr/${path === "" ? "" : `${encodePath(path)}/`}`);
  const pageLink = trustedMarkup(`${UP}${path === "" ? "" : `groups/${encodePath(path)}`}${TOKEN_QUERY}`);
  const linkTo = (name: string) =>
    trustedMarkup(`${ROOT}assets/explore/${assets[name] as string}${TOKEN_QUERY}`);
  const overviews =
    snapshot.overviews !== undefined && markup` data-overviews="${trustedMarkup(`${UP}overviews/zarr/`)}"`;
  const select =
    maxSelectionBytes !== undefined &&
    markup` data-select="${trustedMarkup(`${UP}select`)}" data-max-selection="${maxSelectionBytes}"`;
  const maps = (["tiles", "wms"] as const)
    .filter((name) => looks[name])
    .map((name) => markup` data-${trustedMarkup(name)}="${trustedMarkup(UP + name)}"`);
  const versions =
    page.hasVersions &&
    snapshot.versions !== undefined &&
    markup` data-versions="${trustedMarkup(`${UP}versions`)}" data-unversioned="${snapshot.version?.dataset ?? id}"`;
  const others = Object.keys(assets).filter((name) => !STARTED.has(name));
  return markup`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${renderSummary({ title, ...summaryOf(snapshot, group, looks) })}
<link rel="icon" href="data:,">
${
  Object.hasOwn(assets, "page.css") &&
  markup`<link rel="stylesheet" href="${linkTo("page.css")}">
`
}<link rel="modulepreload" href="${linkTo("page.js")}">
<link rel="modulepreload" href="${linkTo("worker.js")}">
<script type="module" src="${linkTo("page.js")}"></script>
</head>
<body>
<main id="explorer" data-store="${store}"${overviews}${select}${maps}${versions} data-dataset="${id}" data-group="${path}" data-title="${name}" data-page="${pageLink}" data-worker="${linkTo("worker.js")}"${others.map((name) => markup` data-${trustedMarkup(name.replace(/\.[^.]*$/, ""))}="${linkTo(name)}"`)}>
<noscript><h1>${id}</h1><p>The explorer needs scripts, and this browser runs none. <a href="${pageLink}">The page of the dataset</a> works without them.</p></noscript>
</main>
</body>
</html>
`.html;
}

/** Files that the page names by themselves. */
const STARTED = new Set(["page.js", "page.css", "worker.js"]);
