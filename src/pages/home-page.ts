import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { DatasetPath } from "../dataset/dataset-path.js";
import { type CooperativeTask, runNow } from "../event-loop/cooperative-task.js";
import type { Route } from "../http/routing/route.js";
import { encodeSegment } from "./encode-path.js";
import { formatCount, formatCounted } from "./format-number.js";
import { factsSteps, renderDimensions } from "./group-section.js";
import { exploreLink, type Looks, looksOf, picturedArray, pictureLink, renderPicture } from "./look-links.js";
import { type Markup, markup, trustedMarkup } from "./markup.js";
import { renderPage } from "./page.js";
import { SERVICE_URL, TOKEN_QUERY } from "./page-place.js";

/** Content of the home page. */
export interface HomePage {
  readonly title: string;
  /** All ids, in the order configured. */
  readonly ids: readonly string[];
  /** Snapshots by id, of the first datasets: those that are shown with details. */
  readonly snapshots: ReadonlyMap<string, DatasetSnapshot>;
  readonly plugins: readonly { readonly name: string; readonly version: string; readonly path: string }[];
  readonly routes: readonly Route[];
  readonly datasetPath: DatasetPath;
  readonly versions: Readonly<Record<string, string>>;
}

/** Renders the page at `/`, which lists datasets and routes. All its links are relative to the root of the service. */
export function renderHomePage(page: HomePage): string {
  return runNow(homePageSteps(page));
}

/** {@link renderHomePage} as a cooperative task. */
export function* homePageSteps({
  title,
  ids,
  snapshots,
  plugins,
  routes,
  datasetPath,
  versions,
}: HomePage): CooperativeTask<string> {
  const brief = ids.filter((id) => !snapshots.has(id));
  const has = (path: string) => routes.some((route) => route.path === path);
  const view: HomeView = {
    pages: has(datasetPath("{dataset_id}")),
    looks: looksOf(routes, datasetPath),
    linkTo: (id) => datasetPath(encodeSegment(id)).slice(1),
  };
  const links = ["datasets", "plugins", "versions", "openapi.json", "docs"].filter((name) => has(`/${name}`));
  const described: Markup[] = [];
  for (const snapshot of snapshots.values()) described.push(yield* datasetSteps(snapshot, view));
  const named: Markup[] = [];
  for (const id of brief) {
    yield;
    named.push(markup`<li>${datasetLink(id, view)}</li>
`);
  }
  return renderPage({
    title,
    breadcrumb: [{ text: title }],
    links: links.map((name) => ({ text: name, link: trustedMarkup(`${name}${TOKEN_QUERY}`) })),
    description:
      `${formatCounted(ids.length, "dataset")} to read over HTTP, as Zarr stores and as JSON: ${ids.slice(0, MAX_NAMED_IDS).join(", ")}`.slice(
        0,
        MAX_TITLE_CHARS,
      ),
    image: imageOf(snapshots, view),
    main: markup`<h1><bdi>${title}</bdi></h1>
<p class="facts">${formatCount(ids.length)} ${ids.length === 1 ? "dataset" : "datasets"} to read over HTTP, as Zarr stores and as JSON.</p>
<section><h2 class="head">Datasets <span class="count">(${formatCount(ids.length)})</span></h2>
${ids.length === 0 && markup`<p class="muted">None yet.</p>`}
${snapshots.size > 0 && markup`<ul class="list datasets">${described}</ul>`}
${
  brief.length > 0 &&
  markup`<h3 class="sub">${snapshots.size > 0 ? "Further datasets" : "All"}</h3><ul class="ids">${named}</ul>`
}</section>
<section><details class="fold" open><summary><h2 class="head">Endpoints <span class="count">(${routes.length})</span></h2></summary>
<div class="panel"><dl class="endpoints">${routes.map(renderRoute)}</dl></div></details></section>
<section><details class="fold"><summary><h2 class="head">Plugins <span class="count">(${plugins.length})</span></h2></summary>
<div class="panel"><dl>${plugins.map(({ name, version, path }) => markup`<div><dt class="mono">${name}</dt><dd>${version} <span class="muted">${path}</span></dd></div>`)}</dl></div></details></section>
<section><details class="fold"><summary><h2 class="head">Versions</h2></summary>
<div class="panel"><dl>${Object.entries(versions).map(([name, version]) => markup`<div><dt class="mono">${name}</dt><dd>${version}</dd></div>`)}</dl></div></details></section>`,
  });
}

/** How the page links to datasets. */
interface HomeView {
  /** Whether datasets have pages. */
  readonly pages: boolean;
  readonly looks: Looks;
  /** Returns the path of a dataset, encoded and relative, with a slash at its end. */
  readonly linkTo: (id: string) => string;
}

function datasetLink(id: string, { pages, linkTo }: HomeView): Markup {
  return pages
    ? markup`<a class="id" href="${linkTo(id)}${trustedMarkup(TOKEN_QUERY)}"><bdi>${id}</bdi></a>`
    : markup`<span class="id"><bdi>${id}</bdi></span>`;
}

const MAX_NAMED_IDS = 20;

/** Returns the URL of the first picture on the page. */
function imageOf(snapshots: HomePage["snapshots"], { looks, linkTo }: HomeView): Markup | undefined {
  if (!looks.pictures) return undefined;
  for (const snapshot of snapshots.values()) {
    const pictured = picturedArray(snapshot, snapshot.tree.root);
    const base = `${SERVICE_URL}/${linkTo(snapshot.id)}`;
    if (pictured !== undefined) return pictureLink(base, pictured.array.variable);
  }
  return undefined;
}

const MAX_TITLE_CHARS = 200;
/** Maximum of groups whose chunks are counted for one line. */
const MAX_COUNTED_GROUPS = 200;

function* datasetSteps(snapshot: DatasetSnapshot, view: HomeView): CooperativeTask<Markup> {
  const { looks } = view;
  const { id, tree } = snapshot;
  const { title } = tree.root.attrs;
  const shown = typeof title === "string" && title !== id ? title : "";
  const text = shown.length <= MAX_TITLE_CHARS ? shown : `${shown.slice(0, MAX_TITLE_CHARS)}…`;
  const facts =
    tree.groups.size <= MAX_COUNTED_GROUPS
      ? yield* factsSteps([...tree.groups.values()])
      : markup`${formatCount(tree.groups.size)} groups`;
  const base = view.linkTo(id);
  const pictured = looks.pictures ? picturedArray(snapshot, tree.root) : undefined;
  const picture = pictured && renderPicture(base, snapshot, pictured.group, pictured.array, looks);
  const explore =
    looks.explorer &&
    markup` <a class="explore" href="${exploreLink(base, "/")}" aria-label="Explore ${id}">Explore</a>`;
  return markup`<li>${picture}${datasetLink(id, view)}${text !== "" && markup` <span dir="auto">${text}</span>`}${explore}
<div class="facts">${facts}</div>${renderDimensions(tree.root)}</li>
`;
}

/** Renders one route, as a link if it has no parameters. */
function renderRoute({ path, operation }: Route): Markup {
  const shown = path.replace(/:path\}/g, "}");
  const term = path.includes("{")
    ? markup`<code>${shown}</code>`
    : markup`<a href="${path === "/" ? "./" : path.slice(1)}${trustedMarkup(TOKEN_QUERY)}"><code>${shown}</code></a>`;
  return markup`<div><dt>${term}</dt><dd>${operation.summary}</dd></div>`;
}
