import { ZpublishError } from "zpublish";
import { readDocument } from "./read-document.js";

/**
 * @import { Problem } from "./found-in-document.js"
 * @import { KeptDocument } from "./read-document.js"
 */

/**
 * All documents of a catalogue that were read, by URL.
 * @typedef {Map<string, KeptDocument>} KeptDocuments
 */

/**
 * A catalogue as it was read last.
 * @typedef {object} Catalog
 * @property {Map<string, string>} locations Locations of datasets by id.
 * @property {Problem[]} problems
 * @property {KeptDocuments} documents
 */

/** Documents that are read at a time. */
const AT_ONCE = 16;

/**
 * Reads a catalogue and all documents that its links lead to, each once.
 * @param {string} root URL of the catalogue.
 * @param {KeptDocuments} before Documents as they were read last.
 * @param {{ signal: AbortSignal, maxDocuments: number }} options
 * @returns {Promise<Catalog>}
 * @throws {import("zpublish").ZpublishError} if the root cannot be read. What cannot be read below stays as it was, or is a problem.
 */
export async function crawlCatalog(root, before, { signal, maxDocuments }) {
  /** @type {Catalog} */
  const catalog = { locations: new Map(), problems: [], documents: new Map() };
  const { locations, problems, documents } = catalog;
  // Links may lead in a circle.
  const urls = [root];
  const known = new Set(urls);

  /** @type {(url: string) => Promise<KeptDocument | undefined>} */
  const read = async (url) => {
    try {
      const document = await readDocument(url, before.get(url), signal);
      if (document === undefined) throw new Error(`${url}: expected a document, found none`);
      return document;
    } catch (error) {
      signal.throwIfAborted();
      if (url === root) throw error;
      problems.push({ name: url, reason: /** @type {Error} */ (error).message });
      // A failure is no absence.
      return error instanceof ZpublishError ? before.get(url) : undefined;
    }
  };

  /** @type {(url: string, document: KeptDocument) => void} */
  const take = (url, document) => {
    documents.set(url, document);
    problems.push(...document.found.problems);
    for (const [id, location] of document.found.datasets) {
      if (!locations.has(id)) locations.set(id, location);
      else if (locations.get(id) !== location)
        problems.push({ name: url, reason: `expected an id of one dataset, received '${id}' again` });
    }
    for (const next of document.found.links) {
      if (known.has(next)) continue;
      known.add(next);
      if (urls.length < maxDocuments) urls.push(next);
      else problems.push({ name: next, reason: `expected at most ${maxDocuments} documents` });
    }
  };

  for (let first = 0; first < urls.length; ) {
    const lot = urls.slice(first, first + AT_ONCE);
    first += lot.length;
    const lotDocuments = await Promise.all(lot.map(read));
    // In their order, so that each look finds the same.
    lot.forEach((url, at) => {
      const document = lotDocuments[at];
      if (document !== undefined) take(url, document);
    });
  }
  return catalog;
}
