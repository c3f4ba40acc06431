import { axisRole } from "../cf/axis-roles.js";
import { firstText } from "../cf/dataset-facts.js";
import { type DatasetSnapshot, idOfVersion, severalDatasets } from "../dataset/dataset.js";
import { describeLevels } from "../dataset/overviews/overviews.js";
import type { CooperativeTask } from "../event-loop/cooperative-task.js";
import type { Group, Variable } from "../model/data-tree.js";
import type { NamedVersion } from "../zarr/stored-tree.js";
import { type Coverage, formatExtent, formatPeriod } from "./coverage.js";
import {
  factsSteps,
  groupSteps,
  renderAddresses,
  renderUsage,
  STORES,
  type StorePrefix,
} from "./group-section.js";
import {
  exploreLink,
  type Looks,
  type PlacedArray,
  picturedArray,
  pictureLink,
  renderLargePicture,
} from "./look-links.js";
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
  type Page,
  renderCode,
  renderPage,
  shortened,
  trustedMarkup,
} from "./page.js";
import { createPageBudget, DATASET_URL, PAGE_SCRIPT_LINK, ROOT, TOKEN_QUERY, UP } from "./page-place.js";
import type { PreviewValues } from "./preview-service.js";
import { structuredData } from "./structured-data.js";

/** Content of a page about a group. */
export interface DatasetPage {
  readonly snapshot: DatasetSnapshot;
  readonly group: Group;
  /** Whether the groups below unfold in place (`/tree`). */
  readonly nested: boolean;
  readonly previews: ReadonlyMap<string, PreviewValues>;
  /** Period and area of the group; empty if they are not known. */
  readonly coverage: Coverage;
  /** Prefixes of Zarr stores that are served and that the page links into. */
  readonly stores: readonly StorePrefix[];
  readonly looks: Looks;
  /** Names of the server's plugins. */
  readonly plugins: ReadonlySet<string>;
  /** Whether the files of datasets that offer them are served. */
  readonly hasFiles: boolean;
  /** Whether the server has datasets by OPeNDAP. */
  readonly hasOpendap: boolean;
  /** Bytes that a selection may have; undefined if none are served. */
  readonly maxSelectionBytes: number | undefined;
  readonly serviceTitle: string;
  /** Whether the dataset is published alone, so that its page is the home page. */
  readonly isAlone: boolean;
  /** Routes at the root of the service that the header links to: `plugins`, `versions`, `docs`. */
  readonly serviceLinks: readonly string[];
  /** Versions of the dataset, as its source lists them; empty if there are none, or if they have no pages. */
  readonly versions: readonly NamedVersion[];
}

/** Renders the page of one group of a dataset, or of its whole tree. `placePage` completes it. */
export function* datasetPageSteps(page: DatasetPage): CooperativeTask<string> {
  const { snapshot, group, nested, stores, looks, serviceTitle, serviceLinks } = page;
  const isRoot = group.path === "/";
  const view = { ...page, budget: createPageBudget() };
  const inside = nested ? [...snapshot.tree.groups.values()] : [group];
  const groupPath = !isRoot && markup` <span class="path">${group.path}</span>`;
  const treeMark = nested && markup` <span class="path">whole tree</span>`;
  const facts = yield* factsSteps(inside);
  const summary = summaryOf(snapshot, group, looks);
  const content = yield* groupSteps(view, group, 2);
  return renderPage({
    title: `${snapshot.id}${isRoot ? "" : ` ${group.path}`} · ${serviceTitle}`,
    breadcrumb: breadcrumbOf(page),
    links: serviceLinks.map((name) => ({
      text: name,
      link: trustedMarkup(`${ROOT}${encodeSegment(name)}${TOKEN_QUERY}`),
    })),
    ...summary,
    ...(isRoot && !nested && { data: structuredData({ ...page, image: summary.image }) }),
    script: PAGE_SCRIPT_LINK,
    main: markup`<div class="top"><div class="about"><h1><bdi>${snapshot.id}</bdi>${groupPath}${treeMark}</h1>
${titleLine(group)}
<dl class="extent">${[...versionFact(page), ...extentFacts(page), ["Size", facts], ...placeOf(page)].map(
      ([term, fact]) => markup`<div><dt>${term}</dt><dd>${fact}</dd></div>`,
    )}</dl>
${looks.explorer && hasContent(group) && markup`<p><a class="explore" href="${exploreLink(UP, group.path)}">Explore</a> <span class="muted">maps and plots in your browser</span></p>`}</div>
${summary.pictured && renderLargePicture(snapshot, summary.pictured, looks)}</div>
${stores.length > 0 && renderUsage(group, stores)}
${renderRefused(snapshot, group)}
${content}
${isRoot && stores.length > 0 && snapshot.overviews !== undefined && renderOverviews(snapshot.overviews, stores)}
${isRoot && stores.length > 0 && [...(snapshot.encodings ?? [])].map(([name, encoded]) => renderEncoding(name, encoded, stores))}
${renderVersions(page)}
${renderAddresses(snapshot, group, nested, stores, page.hasOpendap)}`,
  });
}

/** Versions that a page lists. */
const MAX_VERSIONS = 100;

/** Lists versions of a dataset, with links to the same page of each. */
function renderVersions(page: DatasetPage): Markup {
  const { snapshot, versions } = page;
  if (versions.length === 0) return NO_MARKUP;
  const { dataset } = snapshot.version ?? { dataset: snapshot.id };
  const rest = versions.length - MAX_VERSIONS;
  return markup`<section class="usage"><details class="fold"><summary><h2 class="head">Versions <span class="count">(${formatCount(versions.length)})</span></h2></summary><div class="panel">
<dl class="attrs versions">${versions.slice(0, MAX_VERSIONS).map(
    (
      version,
    ) => markup`<div><dt><a href="${samePage(page, idOfVersion(dataset, version))}"><bdi>${version.name}</bdi></a></dt><dd>${version.kind} <span class="muted">${textOf(version)}</span></dd></div>
`,
  )}</dl>
${rest > 0 && markup`<p><a href="${trustedMarkup(`${UP}versions${TOKEN_QUERY}`)}">${formatCount(rest)} more</a></p>`}</div></details></section>`;
}

/** Says which version of a dataset the page shows, with a link to the same page of the dataset as it is now. */
function versionFact(page: DatasetPage): [term: string, fact: Markup][] {
  const { version } = page.snapshot;
  if (version === undefined) return [];
  const { dataset, name } = version;
  const found = page.versions.find((each) => each.kind !== "branch" && each.name === name);
  return [
    [
      "Version",
      markup`<bdi>${name}</bdi> <span class="muted">${found && textOf(found)}</span>, not <a href="${samePage(page, dataset)}"><bdi>${dataset}</bdi> as it is now</a>`,
    ],
  ];
}

/** Writes the time and the message of a version. */
function textOf({ time, message }: NamedVersion): string {
  const at = time.slice(0, 16).replace("T", " ");
  return [at, shortened(message, 200)].filter((text) => text !== "").join(" · ");
}

/** Returns the link to the same page of another dataset, or of a version. */
function samePage({ group, nested }: DatasetPage, id: string): Markup {
  const below = nested ? "tree" : group.path === "/" ? "" : `groups${encodePath(group.path)}`;
  return trustedMarkup(`${ROOT}${severalDatasets(encodeSegment(id)).slice(1)}${below}${TOKEN_QUERY}`);
}

/** Writes period and area as terms and facts; without latitudes and longitudes, the range of each horizontal axis. */
function extentFacts({ coverage, group, previews }: DatasetPage): [term: string, fact: string][] {
  const { period, calendar, extent } = coverage;
  const area = extent === undefined ? gridText(group, previews) : formatExtent(extent);
  const inCalendar = calendar === undefined ? "" : `, calendar ${calendar}`;
  return [
    ...(period === undefined ? [] : [["Period", formatPeriod(period) + inCalendar] as [string, string]]),
    ...(area === "" ? [] : [["Area", area] as [string, string]]),
  ];
}

/** Writes the ranges of the axes of a projected grid: `x 399965 to 509755 m, y 4990245 to 5100035 m`. Empty if none is known. */
function gridText({ variables, coordinateNames }: Group, previews: DatasetPage["previews"]): string {
  const texts = [...coordinateNames].sort().flatMap((name) => {
    const { path, dims, attrs } = variables.get(name) as Variable;
    const role = dims.length === 1 && dims[0] === name ? axisRole(name, attrs) : undefined;
    const { first = [], last = [] } = previews.get(path) ?? {};
    const ends = [first[0], last.at(-1) ?? first.at(-1)].map(Number).sort((a, b) => a - b);
    if ((role !== "X" && role !== "Y") || !ends.every(Number.isFinite)) return [];
    return [`${name} ${ends.join(" to ")} ${firstText(attrs, ["units"]) ?? ""}`.trim()];
  });
  return texts.join(", ");
}

function hasContent({ variables, childNames }: Group): boolean {
  return variables.size > 0 || childNames.length > 0;
}

/** Renders the URLs of stores that lie below a dataset. @param place Path there; trusted. */
function renderStores(place: string, what: string, stores: readonly StorePrefix[]): Markup[] {
  const token = trustedMarkup(TOKEN_QUERY);
  return stores.map((prefix) => {
    const { version, document } = STORES[prefix];
    const slashed = trustedMarkup(`${UP}${place}/${prefix}/`);
    return markup`${renderCode(`Zarr v${version} URL of ${what}`, trustedMarkup(`${DATASET_URL}${place}/${prefix}`))}
<ul class="links" aria-label="Zarr v${version} store of ${what}"><li class="muted">Zarr v${version} store:</li><li><a href="${slashed}${token}">files</a></li><li><a href="${slashed}${document}${token}">${document}</a></li></ul>
`;
  });
}

/** Renders the URLs of a dataset in another encoding, and the variables whose chunks are others there. */
function renderEncoding(
  name: string,
  { arrays, encoded }: DatasetSnapshot,
  stores: readonly StorePrefix[],
): Markup {
  const others = [...arrays.values()].filter(({ variable: { path, chunkShape } }) => {
    const own = encoded?.arrays.get(path)?.variable.chunkShape;
    return own?.some((length, axis) => length !== chunkShape[axis]);
  });
  return markup`<section class="usage"><details class="fold"><summary><h2 class="head">Encoding ${name}</h2></summary><div class="panel">
${renderStores(`encodings/${name}`, `the encoding ${name}`, stores)}${
  others.length > 0 &&
  markup`<p>The same values in other chunks:</p>
<ul class="list">${others.slice(0, MAX_CUT_VARIABLES).map(
    ({
      variable: { path, dims, chunkShape },
    }) => markup`<li>${path} <span class="muted">${dims.map((dim, axis) => `${dim}: ${formatCount(chunkShape[axis]!)}`).join(", ")}</span></li>
`,
  )}</ul>${others.length > MAX_CUT_VARIABLES && markup`<p class="muted">and ${formatCounted(others.length - MAX_CUT_VARIABLES, "other variable")}</p>`}`
}</div></details></section>`;
}

/** Variables of an encoding that a page lists. */
const MAX_CUT_VARIABLES = 20;

/** Renders the URLs of a dataset's overviews, and their levels: length of the axes, and size of the largest variable. */
function renderOverviews(overviews: DatasetSnapshot, stores: readonly StorePrefix[]): Markup {
  const [first = "zarr"] = stores;
  const token = trustedMarkup(TOKEN_QUERY);
  const summaries = describeLevels(overviews);
  const coarser = formatCounted(summaries.length - 1, "coarser level");
  return markup`<section class="usage"><details class="fold"><summary><h2 class="head">Overviews</h2></summary><div class="panel">
${renderStores("overviews", "the overviews", stores)}${
  summaries.length > 0 &&
  markup`<p>The dataset and ${coarser}:</p>
<ul class="list">${summaries.map(
    ({
      level,
      variable,
      byteLength,
    }) => markup`<li><a href="${trustedMarkup(`${UP}overviews/${first}/${level}/`)}${token}">${String(level)}</a> <span class="muted">${variable.name}: ${variable.shape.map(formatCount).join(" × ")}, ${formatByteLength(byteLength)}</span></li>
`,
  )}</ul>`
}</div></details></section>`;
}

const MAX_DESCRIPTION_CHARS = 300;
const MAX_NAMED_VARIABLES = 20;

/** Returns description and picture of a page. If the root has no picture, a group below it may have one. */
export function summaryOf(
  snapshot: DatasetSnapshot,
  group: Group,
  looks: Looks,
): Pick<Page, "description" | "image"> & { readonly pictured: PlacedArray | undefined } {
  const names = [...group.variables.keys()].slice(0, MAX_NAMED_VARIABLES).join(", ");
  const text = firstText(group.attrs, ["title", "long_name", "description", "summary"]);
  const pictured = looks.pictures ? picturedArray(snapshot, group) : undefined;
  return {
    description: (text ?? `${snapshot.id}: ${names}`).slice(0, MAX_DESCRIPTION_CHARS),
    image: pictured && pictureLink(DATASET_URL, pictured.array.variable),
    pictured,
  };
}

function titleLine({ attrs }: Group): Markup {
  const title = firstText(attrs, ["title", "long_name"]);
  return title === undefined ? NO_MARKUP : markup`<p class="lead" dir="auto">${shortened(title, 300)}</p>`;
}

/**
 * Says in which format a dataset is stored unless that is Zarr, in how many files, and where unless that is a path of this machine; links
 * to the file if it is offered.
 */
function placeOf({ snapshot, hasFiles }: DatasetPage): [term: string, fact: Markup][] {
  const { location, format, join } = snapshot;
  const file = hasFiles ? snapshot.file : undefined;
  const isShown = /^(https?|s3):\/\//i.test(location);
  if (!isShown && format === undefined && join === undefined && file === undefined) return [];
  const files = join && formatCounted(new Set(join.parts.map(({ name }) => name)).size, "file");
  const how = join && (join.kind === "concat" ? "joined" : "stacked");
  const inFiles =
    join && markup` in ${files}, ${how} along <span class="mono"><bdi>${join.dimension}</bdi></span>`;
  const at = isShown && markup` at <bdi>${location}</bdi>`;
  const link =
    file &&
    markup`: <a href="${trustedMarkup(`${UP}file${TOKEN_QUERY}`)}"><bdi>${file.name}</bdi></a> <span class="muted">${formatByteLength(file.byteLength)}</span>`;
  return [["Stored as", markup`${format ?? "Zarr"}${inFiles}${at}${link}`]];
}

/** Maximum of linked segments in a breadcrumb; of further segments it shows only the last. */
const MAX_CRUMBS = 12;

function breadcrumbOf({ snapshot, group, nested, serviceTitle, isAlone }: DatasetPage): Crumb[] {
  const crumbs: Crumb[] = isAlone
    ? []
    : [{ text: serviceTitle, link: trustedMarkup(`${ROOT}${TOKEN_QUERY}`) }];
  const segments = group.path.split("/").filter((segment) => segment !== "");
  const isRoot = segments.length === 0 && !nested;
  crumbs.push(
    isRoot ? { text: snapshot.id } : { text: snapshot.id, link: trustedMarkup(`${UP}${TOKEN_QUERY}`) },
  );
  if (nested) crumbs.push({ text: "tree" });
  let path = "";
  for (const [index, segment] of segments.entries()) {
    path += `/${segment}`;
    if (index === segments.length - 1) crumbs.push({ text: segment });
    else if (index < MAX_CRUMBS) {
      crumbs.push({ text: segment, link: trustedMarkup(`${UP}groups${encodePath(path)}${TOKEN_QUERY}`) });
    }
  }
  return crumbs;
}

const MAX_REFUSED = 500;

/** Lists the nodes below a group that are not served, with reasons. */
function renderRefused(snapshot: DatasetSnapshot, group: Group): Markup {
  const prefix = group.path === "/" ? "" : `${group.path.slice(1)}/`;
  const refused = snapshot.refused.filter(({ path }) => path.startsWith(prefix));
  if (refused.length === 0) return NO_MARKUP;
  const rest = refused.length - MAX_REFUSED;
  return markup`<section class="refused"><h2 class="head">Not served <span class="count">(${refused.length})</span></h2>
<dl class="attrs">${refused.slice(0, MAX_REFUSED).map(({ path, reason }) => markup`<div><dt class="mono"><bdi>${path}</bdi></dt><dd>${reason}</dd></div>`)}</dl>${
    rest > 0 && markup`<p>${formatCount(rest)} more</p>`
  }</section>`;
}
