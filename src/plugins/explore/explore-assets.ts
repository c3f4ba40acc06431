import { readFile } from "node:fs/promises";
import { extname } from "node:path";
import { messageOf, ZpublishError } from "../../errors.js";
import type { ContentCoding, Document } from "../../http/headers.js";
import type { PluginContext } from "../plugin.js";

/** Folder of the explorer's files, as `scripts/build-explore.ts` writes them. */
const ASSETS = new URL("../../explore/assets/", import.meta.url);

const CONTENT_TYPES: Readonly<Record<string, string>> = {
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".json": "application/json",
  ".txt": "text/plain; charset=utf-8",
};

/** Files of the explorer. */
export interface ExploreAssets {
  /** Names of the files by their names in the source: `page.js` → `page-0123456789ab.js`. */
  readonly names: Readonly<Record<string, string>>;
  /** Returns a file, which is read at its first use; undefined if there is none of that name. */
  read(file: string): Promise<Document> | undefined;
}

/**
 * Reads the list of files.
 * @param folder Default: that of this build.
 * @throws ZpublishError `internal` if the build has none.
 */
export async function openExploreAssets(
  createDocument: PluginContext["createDocument"],
  folder: URL = ASSETS,
): Promise<ExploreAssets> {
  let names: Readonly<Record<string, string>>;
  try {
    names = JSON.parse(await readFile(new URL("assets.json", folder), "utf8"));
  } catch (error) {
    throw new ZpublishError(
      "internal",
      "plugin 'explore': expected the explorer's files in this build, received none; build them with " +
        `'npm run build:explore', or switch the plugin off with '--no-plugin explore' (${messageOf(error)})`,
      { cause: error },
    );
  }
  const files = new Set(Object.values(names));
  const documents = new Map<string, Promise<Document>>();

  async function load(file: string): Promise<Document> {
    const read = (ending: string) => readFile(new URL(file + ending, folder));
    const [bytes, br, gzip] = await Promise.all([read(""), read(".br"), read(".gz")]);
    const contentType = CONTENT_TYPES[extname(file)] ?? "application/octet-stream";
    return withEncoded(createDocument(bytes, contentType), { br, gzip });
  }

  return {
    names,
    read(file) {
      if (!files.has(file)) return undefined;
      let document = documents.get(file);
      if (document === undefined) {
        document = load(file);
        documents.set(file, document);
        // A file that could not be read once may be readable the next time.
        document.catch(() => documents.delete(file));
      }
      return document;
    },
  };
}

/** Gives a document compressed forms that are made already, better than a server has time for. */
function withEncoded(document: Document, encoded: Readonly<Record<ContentCoding, Uint8Array>>): Document {
  const smaller = (coding: ContentCoding) =>
    encoded[coding].byteLength < document.bytes.byteLength ? encoded[coding] : undefined;
  return Object.freeze({
    ...document,
    encoded: async (coding: ContentCoding) => smaller(coding),
    encodedNow: smaller,
  });
}
