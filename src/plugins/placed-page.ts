import type { Document } from "../http/headers.js";
import { type PagePlace, placePage, quotesAddress } from "../pages/page-place.js";
import type { PluginContext } from "./plugin.js";

/** Maximum of documents per page: one for each address that clients use for it. */
const MAX_PLACES = 4;

/** A page that is made once, and its documents for the addresses that clients use for it. */
export class PlacedPage {
  /** As `placePage` takes it. */
  readonly html: string;
  /** Whether it contains the service's address. */
  readonly quotesAddress: boolean;
  readonly #createDocument: PluginContext["createDocument"];
  /** By address. Equal content makes equal documents, so dropping one is harmless. */
  readonly #documents = new Map<string, Document>();

  constructor(html: string, createDocument: PluginContext["createDocument"]) {
    this.html = html;
    this.quotesAddress = quotesAddress(html);
    this.#createDocument = createDocument;
  }

  /** Returns the document for a place. */
  at(place: PagePlace): Document {
    const address = `${this.quotesAddress ? place.serviceUrl : ""} ${place.up} ${place.tokenQuery}`;
    let document = this.#documents.get(address);
    if (document === undefined) {
      document = this.#createDocument(placePage(this.html, place), "text/html; charset=utf-8");
      if (this.#documents.size >= MAX_PLACES) this.#documents.clear();
      this.#documents.set(address, document);
    }
    return document;
  }
}
