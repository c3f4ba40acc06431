import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ZpublishError } from "zpublish";
import { crawlCatalog } from "./crawl-catalog.js";

/**
 * @import { Plugin, ProvidedDataset } from "zpublish"
 * @import { Catalog } from "./crawl-catalog.js"
 */

/**
 * Options of the plugin.
 * @typedef {object} StacOptions
 * @property {string} catalog Path or HTTP URL of the catalogue.
 * @property {number} [refresh] Seconds between two looks at the catalogue. Default 60.
 * @property {number} [maxDocuments] Most documents of a catalogue. Default 100,000.
 * @property {Omit<ProvidedDataset, "location" | "tree">} [dataset] Options of every dataset.
 */

/**
 * Makes the plugin.
 * @param {unknown} options See {@link StacOptions}.
 * @returns {Plugin}
 */
export default function stacPlugin(options) {
  const { root, refresh, maxDocuments, dataset } = checkOptions(options);
  return {
    name: "catalog",
    version: "0.1.0",
    path: "zpublish-stac",
    datasets() {
      /** @type {Catalog} */
      let catalog = { locations: new Map(), problems: [], documents: new Map() };
      /** @type {string[]} */
      let ids = [];
      let readAgainAt = 0;
      return {
        async list(signal) {
          if (performance.now() < readAgainAt) return ids;
          catalog = await crawlCatalog(root, catalog.documents, { signal, maxDocuments });
          ids = [...catalog.locations.keys()];
          readAgainAt = performance.now() + refresh * 1_000;
          return ids;
        },
        open(id) {
          const location = catalog.locations.get(id);
          return location === undefined ? undefined : { ...dataset, location };
        },
        problems: () => catalog.problems,
      };
    },
  };
}

/**
 * Checks the options.
 * @param {unknown} options
 * @throws {ZpublishError} `invalid-config`
 */
function checkOptions(options) {
  const given = /** @type {Partial<StacOptions>} */ (options ?? {});
  const { catalog, refresh = 60, maxDocuments = 100_000, dataset = {} } = given;
  if (typeof catalog !== "string" || catalog === "")
    throw new ZpublishError("invalid-config", `catalog: expected a path or URL, received ${catalog}`);
  for (const [name, value] of Object.entries({ refresh, maxDocuments })) {
    if (typeof value === "number" && value > 0) continue;
    throw new ZpublishError("invalid-config", `${name}: expected a number above 0, received ${value}`);
  }
  const isUrl = /^(https?|file):/.test(catalog);
  return {
    root: isUrl ? new URL(catalog).href : pathToFileURL(resolve(catalog)).href,
    refresh,
    maxDocuments,
    dataset,
  };
}
