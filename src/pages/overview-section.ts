import type { DatasetSnapshot } from "../dataset/dataset.js";
import { describeLevels } from "../dataset/overviews/overviews.js";
import { STORES, type StorePrefix } from "./dataset-usage.js";
import { formatByteLength, formatCount, formatCounted } from "./format-number.js";
import { type Markup, markup, trustedMarkup } from "./markup.js";
import { DATASET_URL, TOKEN_QUERY, UP } from "./page-place.js";

/**
 * Renders the URLs of a dataset's overviews, and their levels: length of the axes, and size of the largest variable.
 * @param stores Prefixes that are served, at least one.
 */
export function renderOverviews(overviews: DatasetSnapshot, stores: readonly StorePrefix[]): Markup {
  const [first = "zarr"] = stores;
  const token = trustedMarkup(TOKEN_QUERY);
  const summaries = describeLevels(overviews);
  const coarser = formatCounted(summaries.length - 1, "coarser level");
  return markup`<section class="usage"><h2 class="head">Overviews</h2>
${stores.map((prefix) => {
  const { version, document } = STORES[prefix];
  const slashed = trustedMarkup(`${UP}overviews/${prefix}/`);
  return markup`<pre class="copy" tabindex="0" aria-label="Zarr v${version} URL of the overviews">${trustedMarkup(`${DATASET_URL}overviews/${prefix}`)}</pre>
<p class="links"><span class="muted">Zarr v${version} store:</span><a href="${slashed}${token}">browse</a><a href="${slashed}${document}${token}">${document}</a></p>
`;
})}${
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
}</section>`;
}
