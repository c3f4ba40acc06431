import { datasetFacts, plainText, variableFacts } from "../cf/dataset-facts.js";
import type { DatasetSnapshot } from "../dataset/dataset.js";
import type { Group, Variable } from "../model/data-tree.js";
import { dataLinks } from "../usage/data-links.js";
import type { Coverage } from "./coverage.js";
import { type Markup, trustedMarkup } from "./page.js";
import { DATASET_URL, SERVICE_URL, STORE_URL } from "./page-place.js";

/** Descriptions are at least this long, as search engines want them. */
const MIN_DESCRIPTION_CHARS = 50;
/** Variables that are described, and those that a description names. */
const MAX_VARIABLES = 200;
const MAX_NAMED = 20;

/** A dataset, and what its page shows of it. */
interface DescribedDataset {
  readonly snapshot: DatasetSnapshot;
  readonly coverage: Coverage;
  readonly plugins: ReadonlySet<string>;
  /** URL of its picture. */
  readonly image: Markup | undefined;
}

/**
 * Describes a dataset for search engines: a `Dataset` of schema.org as JSON-LD, in an element that browsers do not run. Names are of the
 * vocabulary itself, so that readers need not fetch a context. Texts of a file can neither end the element nor be placeholders.
 */
export function structuredData({ snapshot, coverage, plugins, image }: DescribedDataset): Markup {
  const { title, description, keywords, license, creator } = datasetFacts(snapshot.tree.root.attrs);
  const { extent, period, calendar } = coverage;
  const id = plainText(snapshot.id) ?? "";
  const variables = dataVariables(snapshot.tree.groups.values());
  const place = { id: snapshot.id, url: DATASET_URL, store: STORE_URL, plugins };
  const box = extent && `${extent.south} ${extent.west} ${extent.north} ${extent.east}`;
  const links = dataLinks({ ...place, fileType: snapshot.file?.contentType });
  const content = {
    "@context": { "@vocab": "https://schema.org/" },
    "@type": "Dataset",
    "@id": DATASET_URL,
    url: DATASET_URL,
    identifier: id,
    name: title ?? id,
    description: descriptionOf(description ?? title, id, variables),
    ...(keywords.length > 0 && { keywords }),
    ...(license !== undefined && { license }),
    ...(creator !== undefined && { creator: { "@type": "Organization", name: creator } }),
    ...(image !== undefined && { image: image.html }),
    ...(box !== undefined && { spatialCoverage: { "@type": "Place", geo: { "@type": "GeoShape", box } } }),
    // Dates of other calendars are none of ISO 8601.
    ...(period !== undefined && calendar === undefined && { temporalCoverage: period.join("/") }),
    variableMeasured: variables.slice(0, MAX_VARIABLES).map(({ name, attrs }) => {
      const { description = "", unit } = variableFacts(attrs);
      const facts = {
        name: plainText(name) ?? "",
        description,
        ...(unit !== undefined && { unitText: unit }),
      };
      return { "@type": "PropertyValue", ...facts };
    }),
    distribution: links
      .filter(({ role }) => role === "data")
      .map(({ href, type }) => ({ "@type": "DataDownload", contentUrl: href, encodingFormat: type })),
    includedInDataCatalog: { "@type": "DataCatalog", url: `${SERVICE_URL}/` },
  };
  // Nothing in it ends the element, or begins a comment there.
  const escaped = JSON.stringify(content).replace(
    /[<>&]/g,
    (each) => `\\u00${each.charCodeAt(0).toString(16)}`,
  );
  return trustedMarkup(`<script type="application/ld+json">${escaped}</script>\n`);
}

function dataVariables(groups: Iterable<Group>): Variable[] {
  const found: Variable[] = [];
  for (const { variables, coordinateNames } of groups) {
    for (const variable of variables.values()) if (!coordinateNames.has(variable.name)) found.push(variable);
    if (found.length >= MAX_VARIABLES) break;
  }
  return found;
}

function descriptionOf(text: string | undefined, id: string, variables: readonly Variable[]): string {
  if (text !== undefined && text.length >= MIN_DESCRIPTION_CHARS) return text;
  const names = variables.slice(0, MAX_NAMED).map(({ name }) => plainText(name));
  const more = variables.length > MAX_NAMED ? " and others" : "";
  return `${text ?? id}: an n-dimensional dataset to read over HTTP as Zarr. Variables: ${names.join(", ")}${more}`;
}
