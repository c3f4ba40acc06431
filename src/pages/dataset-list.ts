import type { DatasetPath, DatasetSnapshot } from "../dataset/dataset.js";
import type { IdPage } from "../dataset/id-page.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import { encodeSegment } from "./encode-path.js";
import { formatCount } from "./format-number.js";
import { factsSteps, renderDimensions } from "./group-section.js";
import { exploreLink, type Looks, picturedArray, renderPicture } from "./look-links.js";
import { type Markup, markup, NO_MARKUP, trustedMarkup } from "./markup.js";
import { AND_TOKEN, TOKEN_FIELD, TOKEN_QUERY } from "./page-place.js";

/** Datasets of a page, and links between such pages. */
export interface DatasetList {
  /** Number of all datasets. */
  readonly total: number;
  /** Text that the ids of the list contain; empty for all. */
  readonly filter: string;
  readonly page: IdPage;
  /** Datasets of the page that are open, by id: they are described. */
  readonly snapshots: ReadonlyMap<string, DatasetSnapshot>;
  /** Reasons, by id, for which others cannot be opened, without names of files. */
  readonly failures: ReadonlyMap<string, string>;
}

/** Links from a list to its datasets. */
export interface ListLinks {
  /** Whether datasets have pages. */
  readonly pages: boolean;
  readonly looks: Looks;
  readonly datasetPath: DatasetPath;
}

/** Number of datasets from which on a filter is offered. */
const MIN_FILTERED = 20;
/** Longest filter. */
const MAX_FILTER_CHARS = 200;

/** Renders the list of a page: those that are open are described, those that failed say why, the others are names. */
export function* datasetListSteps(list: DatasetList, links: ListLinks): CooperativeTask<Markup> {
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

/** Returns the relative link to a dataset's directory. */
export function linkToDataset(id: string, { datasetPath }: Pick<ListLinks, "datasetPath">): string {
  return datasetPath(encodeSegment(id)).slice(1);
}

function datasetLink(id: string, links: ListLinks): Markup {
  return links.pages
    ? markup`<a class="id" href="${linkToDataset(id, links)}${trustedMarkup(TOKEN_QUERY)}"><bdi>${id}</bdi></a>`
    : markup`<span class="id"><bdi>${id}</bdi></span>`;
}

/** Renders the form of the filter, which needs no script. */
function renderFilter(filter: string): Markup {
  return markup`<form class="filter" action="./" role="search"><label for="q">Ids with</label> <input id="q" name="q" type="search" value="${filter}" maxlength="${MAX_FILTER_CHARS}">${trustedMarkup(TOKEN_FIELD)} <button>Filter</button>${filter !== "" && markup` <a href="./${trustedMarkup(TOKEN_QUERY)}">All</a>`}</form>`;
}

/** Renders the links to the pages before and behind this one. */
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
  const shown = typeof title === "string" && title !== id ? title : "";
  const text = shown.length <= MAX_TITLE_CHARS ? shown : `${shown.slice(0, MAX_TITLE_CHARS)}…`;
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
