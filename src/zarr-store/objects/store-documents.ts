import { errorFromData, ZpublishError } from "../../errors.js";
import { workThrough } from "../../event-loop/work-through.js";
import type { ByteStore, ObjectVersion } from "../../stores/byte-store.js";
import { textOf } from "../node-documents.js";

/** Longest document, as for local stores. */
const MAX_DOCUMENT_BYTES = 256 * 2 ** 20;

/** Documents that are checked at a time: a refresh leaves most of a store's requests to chunks. */
const CHECKED_AT_ONCE = 8;

/** A metadata document as it was read last. */
interface KnownDocument {
  /** Undefined if it does not exist. */
  readonly version: ObjectVersion | undefined;
  readonly text: string | undefined;
}

/** Metadata documents of one store. A document that has not changed is not sent again. */
export interface StoreDocuments {
  /**
   * Reads the text of a document; undefined if there is none.
   * @throws ZpublishError `source-unreadable`, `invalid-metadata`
   */
  read(key: string): Promise<string | undefined>;
  /** Asks for all documents that were read since `begin` whether they have changed, and returns whether one has. */
  haveChanged(): Promise<boolean>;
  /** Begins another reading of the store: documents that are not read in it are forgotten. */
  begin(): void;
  /** Takes back the reading since `begin`, which failed: what was read before is compared and served as before. */
  abandon(): void;
  /** Lists keys and versions of the documents that exist and were read since `begin`, in the order of keys. */
  versions(): readonly string[];
}

/** Creates the documents of a store, none of which is read yet. */
export function createStoreDocuments(store: ByteStore): StoreDocuments {
  let before = new Map<string, KnownDocument>();
  let documents = new Map<string, KnownDocument>();

  async function fetch(key: string, known: KnownDocument | undefined): Promise<KnownDocument> {
    const options = { maxByteLength: MAX_DOCUMENT_BYTES };
    const found =
      known?.version === undefined
        ? await store.read(key, options)
        : await store.readIfChanged(key, known.version, options);
    if (found === "unchanged") return known as KnownDocument;
    if (found === undefined) return { version: undefined, text: undefined };
    const text = textOf(found.bytes, key);
    if (typeof text !== "string") throw errorFromData(text);
    return { version: found.version, text };
  }

  return {
    begin() {
      before = documents;
      documents = new Map();
    },
    abandon() {
      documents = before;
    },
    async read(key) {
      const known = documents.get(key) ?? (await fetch(key, before.get(key)));
      documents.set(key, known);
      return known.text;
    },
    async haveChanged() {
      let hasChanged = false;
      await workThrough(documents, CHECKED_AT_ONCE, async ([key, known]) => {
        if (hasChanged) return;
        try {
          if ((await fetch(key, known)).version?.token !== known.version?.token) hasChanged = true;
        } catch (error) {
          if (!(error instanceof ZpublishError) || error.code === "source-unreadable") throw error;
          // A document that cannot be understood now has changed.
          hasChanged = true;
        }
      });
      return hasChanged;
    },
    versions() {
      const existing = [...documents].filter(([, { version }]) => version !== undefined);
      return existing.map(([key, { version }]) => `${key}\0${version?.token}`).sort();
    },
  };
}
